"""Many runs on a Ray cluster: workers compute them, and this process alone writes the store.

Each record is kept as soon as it arrives. Live runs are claimed in the store while they are
computed, as by any other process.
"""

import contextlib
import multiprocessing
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from zsntta_cli.errors import EncoderError, SettingsError, StoreError
from zsntta_cli.extraction.connection import Connection, most_cores
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Reporter
from zsntta_cli.results.claims import Claims
from zsntta_cli.results.keeping import Keeper, Keeping, runs_by_key
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.live_queue import POLL, ClaimedRuns
from zsntta_cli.results.ray_workers import (
    Outcome,
    RayWorkers,
    SentRun,
    SweepJob,
    WorkerPlace,
    cluster_errors,
    cluster_resources,
)
from zsntta_cli.results.run_queue import RunQueue
from zsntta_cli.results.running import Failures, reporting, tell_problem, watched
from zsntta_cli.settings import LiveSettings
from zsntta_cli.simulation import LiveDevices
from zsntta_cli.simulation.digests import Foreseen
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.revision import revision
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory
from zsntta_cli.simulation.tuned import live_among


@dataclass(frozen=True)
class Sweep:
    """Runs on the Ray cluster at RAY_ADDRESS, or on a cluster started on this machine."""

    root: Path
    workers: int | None  # at most; None: as many as there is a place for
    reporter: Reporter
    keeping: Keeping | None
    failures: Failures | None

    def run(
        self, runs: Sequence[RunSettings], live: LiveFactory | None, before: Mapping[str, float]
    ) -> list[Record]:
        """Compute runs: first those that replay, on one core each.

        `before`: the seconds of live runs that the store has but that are to be computed anew.

        Raises:
            SettingsError: Ray is not installed, or the device is one that Ray cannot assign.
            EncoderError: there is no cluster, or it failed.
        """
        connection = Connection()
        if not runs:
            return []
        Keeper(self.keeping).__exit__()  # what cannot be kept is said before the work
        is_live = live_among(self.root, runs)
        replays = [run for run in runs if run not in is_live]
        try:
            connection.open()
            records = self._run(_ListedRuns(replays), len(replays), None, WorkerPlace())
            return records + self._run_live([r for r in runs if r in is_live], live, before)
        finally:
            connection.close()

    def _run_live(
        self, runs: Sequence[RunSettings], live: LiveFactory | None, before: Mapping[str, float]
    ) -> list[Record]:
        """Compute live runs, each on a GPU, or on as many cores as one process uses."""
        if not runs:
            return []
        if not isinstance(live, LiveDevices):  # nothing to encode with, as each run will say
            return self._run(_ListedRuns(runs), len(runs), None, WorkerPlace())
        settings, place = _live_place(live.settings)
        by_key = runs_by_key(self.root, runs) if self.keeping else {}
        unknown = [run for run in runs if run not in set(by_key.values())]
        claims = self._claims(before)
        if claims is None or self.keeping is None:
            return self._run(_ListedRuns(runs), len(runs), settings, place)
        with claims, _QueuedRuns(self.root, by_key, self.keeping, claims) as queued:
            records = self._run(_ListedRuns(unknown), len(unknown), settings, place)
            self._run(queued, len(by_key), settings, place)
            return records + queued.records

    def _claims(self, before: Mapping[str, float]) -> Claims | None:
        if self.keeping is None:
            return None
        try:
            return Claims(self.keeping.path, before)
        except StoreError:
            if self.keeping.required:
                raise
            return None

    def _run(
        self, source: "_Source", count: int, live: LiveSettings | None, place: WorkerPlace
    ) -> list[Record]:
        """Compute the runs of a source, and keep each record when it arrives."""
        if not count:
            return []
        job = SweepJob(LoadedScripts(), self.root, Path.cwd(), self.keeping, live, place.cores)
        with Keeper(self.keeping) as keeper, cluster_errors():
            workers = RayWorkers(job, min(count, self.workers or _places(place)), place)
            work = _SweepWork(self, source, workers, keeper)
            with (
                contextlib.closing(workers),
                watched(self.reporter, count, work.status, work.share),
            ):
                work.do()
        tell_problem(keeper.problem, self.reporter)
        return work.records


class _Source(Protocol):
    """The source from which a sweep takes its runs."""

    def take(self, worker: int) -> RunSettings | None:
        """The next run for a worker, if there is one."""

    def end(self, run: RunSettings, record: Record | None, is_kept: bool) -> None:
        """End a run; `record` is None if an error ended it."""

    def checkpoint(self, run: RunSettings) -> Path | None:
        """The checkpoint from which a run continues."""

    @property
    def left(self) -> int:
        """How many runs have not ended."""


class _ListedRuns:
    """Runs that this process alone computes; a worker stays with the sets that it has read."""

    def __init__(self, runs: Sequence[RunSettings]) -> None:
        self._queue, self.left = RunQueue(runs, multiprocessing), len(runs)
        self._last: dict[int, int] = {}  # by worker, the place of the sets of its last run

    def take(self, worker: int) -> RunSettings | None:
        next_run = self._queue.take(self._last.get(worker))
        if next_run is None:
            return None
        run, self._last[worker] = next_run
        return run

    def end(self, run: RunSettings, record: Record | None, is_kept: bool) -> None:
        del run, record, is_kept
        self.left -= 1

    def checkpoint(self, run: RunSettings) -> Path | None:
        del run
        return None


class _QueuedRuns:
    """Live runs of the queue in the store, each claimed by this process for a worker."""

    def __init__(
        self, root: Path, by_key: dict[str, RunSettings], keeping: Keeping, claims: Claims
    ) -> None:
        self._claimed = ClaimedRuns(root, by_key, keeping, claims)
        self._held: dict[RunSettings, tuple[str, contextlib.ExitStack]] = {}

    @property
    def records(self) -> list[Record]:
        """The records of finished runs, whichever process computed them."""
        return self._claimed.records

    @property
    def left(self) -> int:
        """How many runs no process has finished."""
        return len(self._claimed.left)

    def take(self, worker: int) -> RunSettings | None:
        del worker
        key = self._claimed.take().key
        if key is None:
            return None
        run, held = self._claimed.left[key], contextlib.ExitStack()
        held.enter_context(self._claimed.claims.held(key))
        self._held[run] = key, held
        return run

    def end(self, run: RunSettings, record: Record | None, is_kept: bool) -> None:
        key, held = self._held.pop(run)
        if record:
            self._claimed.add(record, is_kept)
        held.close()
        del self._claimed.left[key]

    def checkpoint(self, run: RunSettings) -> Path | None:
        return self._claimed.places[run].absolute()

    def __enter__(self) -> "_QueuedRuns":
        self._claimed.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        while self._held:
            self._held.popitem()[1][1].close()
        self._claimed.__exit__()


class _SweepWork:
    """The runs of a source, the workers that compute them, and the records so far."""

    def __init__(self, sweep: Sweep, source: _Source, workers: RayWorkers, keeper: Keeper) -> None:
        self._sweep, self._source, self._workers = sweep, source, workers
        self._keeper, self._foreseen = keeper, Foreseen(sweep.root)
        self._count = source.left
        self.records: list[Record] = []

    def status(self) -> str:
        """The progress, in words."""
        done = self._count - self._source.left
        return f"{done:,} of {self._count:,} runs done, {self._workers.busy} Ray workers"

    def share(self) -> float:
        """The share of the runs that are done."""
        return 1 - self._source.left / self._count

    def do(self) -> None:
        """Compute all runs; those that ended before an error or Ctrl-C are kept."""
        try:
            while self._source.left:
                self._send()
                if self._workers.is_waiting:
                    self._take(POLL)
                elif self._source.left:
                    time.sleep(POLL)  # other processes are at work on what is left
        except BaseException:
            self._keep_finished()
            raise

    def _send(self) -> None:
        """Give each idle worker a run, and end a worker for which there is none."""
        for worker in list(self._workers.idle):
            run = self._source.take(worker)
            if run is not None:
                self._workers.send(worker, self._sent(run))
            elif self._workers.busy:
                self._workers.dismiss(worker)

    def _sent(self, run: RunSettings) -> SentRun:
        digests = self._foreseen.digests(run)
        return SentRun(run, digests, revision(run.method), self._source.checkpoint(run))

    def _take(self, seconds: float) -> None:
        for run, outcome in self._workers.outcomes(seconds):
            for note in outcome.notes:
                self._sweep.reporter.note(note)
            self._end(run, outcome)

    def _keep_finished(self) -> None:
        with contextlib.suppress(Exception):  # the error that ends the sweep is the one to tell
            for _, outcome in self._workers.outcomes(0):
                if isinstance(outcome.result, Kept):
                    self._keeper.add(outcome.result)

    def _end(self, run: RunSettings, outcome: Outcome) -> None:
        record = None
        with reporting(run, self._sweep.failures):
            if isinstance(outcome.result, Exception):
                raise outcome.result
            record = self._keeper.add(outcome.result)
            self.records.append(record)
        self._source.end(run, record, is_kept=not self._keeper.problem)


def _places(place: WorkerPlace) -> int:
    """How many workers the cluster has room for, at least one: another machine may join."""
    resources = cluster_resources()
    by_gpus = resources.get("GPU", 0) // place.gpus if place.gpus else None
    return max(1, int(resources.get("CPU", 1) // place.cores if by_gpus is None else by_gpus))


def _live_place(settings: LiveSettings) -> tuple[LiveSettings, WorkerPlace]:
    """The settings and the place of a worker that computes live runs.

    Raises:
        SettingsError: the device is named by its number.
        EncoderError: there is no GPU.
    """
    has_gpus, device = cluster_resources().get("GPU", 0) >= 1, settings.device
    if device == "auto":
        device = "cuda" if has_gpus else "cpu"
    if device not in ("cpu", "cuda"):
        raise SettingsError(f"device is '{device}', must be auto, cpu or cuda: Ray chooses which.")
    if device == "cpu":
        return replace(settings, device=device), WorkerPlace(min(os.cpu_count() or 1, most_cores()))
    if not has_gpus:
        raise EncoderError("no machine of the Ray cluster has a GPU: the device must be cpu.")
    return replace(settings, device=device), WorkerPlace(gpus=1)
