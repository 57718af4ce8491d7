"""Live runs as a queue in the store: each claimed, resumed from checkpoints, finished once.

Any number of processes work on the same runs. Each takes the next run that is free. In the end it
waits for the runs of other processes, and takes them over if their process dies.
"""

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.progress import Reporter
from zsntta_cli.results.claims import Claims, Taken
from zsntta_cli.results.keeping import Keeper, Keeping, kept_before, runs_by_key
from zsntta_cli.results.running import (
    Failures,
    reporting,
    run_here,
    run_name,
    tell_problem,
    watched,
)
from zsntta_cli.results.store import RecordStore
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory, Simulator

POLL = 2.0  # seconds between two looks at what others do


def run_queued(
    root: Path,
    runs: Sequence[RunSettings],
    live: LiveFactory | None,
    reporter: Reporter,
    keeping: Keeping,
    failures: Failures | None,
    before: Mapping[str, float],
) -> list[Record]:
    """Compute live runs that no other process computes, and wait for the others.

    `before`: by key, the seconds of runs that the store has but that are to be computed anew. A run
    that Ctrl-C stopped is the last one.
    """
    by_key = runs_by_key(root, runs)
    # What cannot be found again is nobody's to wait for: most of it fails, and says how.
    unknown = [run for run in runs if run not in set(by_key.values())]
    records = run_here(root, unknown, live, reporter, keeping, failures)
    if any(record.unfinished for record in records):
        return records
    try:
        claims = Claims(keeping.path, before)
    except StoreError:
        if keeping.required:
            raise
        return records + run_here(root, runs, live, reporter, keeping, failures)
    with (
        claims,
        _Work(root, by_key, live, keeping, claims) as work,
        watched(reporter, len(runs), work.status, work.share),
    ):
        while not work.is_done:
            if not work.take_next(failures):
                time.sleep(POLL)
    tell_problem(work.problem, reporter)
    return records + work.records


class ClaimedRuns:
    """The unfinished runs of the queue, including those of this process."""

    def __init__(
        self, root: Path, by_key: dict[str, RunSettings], keeping: Keeping, claims: Claims
    ) -> None:
        self._root, self._keeping, self.claims = root, keeping, claims
        self.left = dict(by_key)
        self.places = {run: checkpoint_path(keeping.path, key) for key, run in by_key.items()}
        self.records: list[Record] = []  # of finished runs, whoever made them

    def take(self) -> Taken:
        """Claim a run, and read the records of runs that other processes finished since."""
        claim = self.claims.take(list(self.left))
        for key, seconds in claim.finished.items():
            self._read(key, seconds)
        return claim

    def _read(self, key: str, seconds: float) -> None:
        """Read the record of a finished run, if all that is to be kept was kept."""
        run = self.left[key]
        keeping = replace(self._keeping, fresh=False, again=frozenset())
        kept_runs = kept_before(self._root, [run], keeping)
        if run in kept_runs:
            self.records.append(kept_runs[run].record)
            self.places[run].unlink(missing_ok=True)  # its process may have died before that
            del self.left[key]
        else:
            self.claims.make_again(key, seconds)

    def add(self, record: Record, is_kept: bool) -> None:
        """Add the record of a run that this process computed."""
        self.records.append(record)
        if is_kept and not record.unfinished:
            self.places[record.settings].unlink(missing_ok=True)

    @property
    def others_work(self) -> str:
        """What this process waits for, in words."""
        names = ", ".join(sorted(set(map(run_name, self.left.values()))))
        return f"waiting for other processes, which are at work on {names}"

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):  # what is killed leaves it, for `tidy` to see
            live_folder(self._keeping.path).mkdir(exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(StoreError):
            self.claims.leave(live_folder(self._keeping.path))


class _Work(ClaimedRuns):
    """The work of one process on the runs in the queue."""

    def __init__(
        self,
        root: Path,
        by_key: dict[str, RunSettings],
        live: LiveFactory | None,
        keeping: Keeping,
        claims: Claims,
    ) -> None:
        super().__init__(root, by_key, keeping, claims)
        self._simulator = Simulator(root, live, self.places.get)
        self._keeper, self._count, self._now = Keeper(keeping), len(by_key), ""

    @property
    def is_done(self) -> bool:
        """Whether all runs are finished, or Ctrl-C stopped one."""
        return not self.left or any(record.unfinished for record in self.records[-1:])

    @property
    def problem(self) -> str:
        """Why a result could not be kept."""
        return self._keeper.problem

    def status(self) -> str:
        """The progress of the work, in words."""
        return f"{self._count - len(self.left):,} of {self._count:,} live runs done: {self._now}"

    def share(self) -> float:
        """The share of the runs that are done."""
        return 1 - len(self.left) / self._count

    def take_next(self, failures: Failures | None) -> bool:
        """Compute the next run; False if other processes compute all that are left."""
        claim = self.take()
        if claim.key is None:
            self._now = self.others_work
            return bool(claim.finished)
        run = self.left[claim.key]
        self._now = run_name(run)
        with self.claims.held(claim.key), reporting(run, failures):
            replay = self._simulator.replay(run, self._keeping.gradients)
            self.add(self._keeper.keep(replay), is_kept=not self.problem)
        del self.left[claim.key]
        return True

    def __exit__(self, *_: object) -> None:
        self._keeper.__exit__()
        super().__exit__()


def live_folder(store: Path) -> Path:
    """The folder of checkpoints beside a store; it exists while runs are unfinished."""
    return store.with_name(f"{store.name}.live")


def checkpoint_path(store: Path, key: str) -> Path:
    """The file with the checkpoints of a run."""
    return live_folder(store) / f"{key}.pt"


def seconds_before(
    root: Path, runs: Sequence[RunSettings], keeping: Keeping
) -> Mapping[str, float]:
    """How long the live runs that the store has took, by key."""
    live = [run for run in runs if METHODS[run.method].live]
    if not live or not keeping.path.exists():
        return {}
    with RecordStore(keeping.path) as store:
        return store.seconds(list(runs_by_key(root, live)))


def tidy(keeping: Keeping, kept_keys: Sequence[str]) -> None:
    """Remove the claims and checkpoints that killed processes left of finished runs."""
    folder = live_folder(keeping.path)
    if not folder.is_dir():
        return
    with contextlib.suppress(OSError, StoreError):  # of a store that is not one's own
        for key in kept_keys:
            checkpoint_path(keeping.path, key).unlink(missing_ok=True)
        with Claims(keeping.path, {}) as claims:
            claims.leave(folder)
