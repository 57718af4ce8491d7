"""Make runs: kept ones are taken from the store, and each other one is kept as it ends.

Replays go to this process, to others of this machine (joblib) or to a Ray cluster as tasks; live
runs go to this process, or to Ray. A process keeps what it has read. Only this process writes the
store. A kill at any moment loses only the runs in progress, and the same command makes them
again. If two commands make the same run, the store keeps the one that ends last.
"""

import contextlib
import functools
import gc
import os
import pickle
import platform
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from zsntta_cli.errors import EncoderError, StoreError, ZsnttaError, first_line
from zsntta_cli.extraction.connection import connected, last_line, most_cores
from zsntta_cli.methods import METHODS
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Reporter
from zsntta_cli.results.store import Keeping, keeper, kept_before
from zsntta_cli.settings import ENGINES, LOCAL, RAY, LiveSettings, ratio_text
from zsntta_cli.settings.options import check, check_choice
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.replay import Replay
from zsntta_cli.simulation.runs import RunSettings, revision
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.sources import Library

_FEW = 8  # runs that several processes are not worth
_RETRIES = 5  # of a Ray task whose worker was lost; one that kills its worker each time must end
_SECONDS_A_LOOK = 0.5  # of another process at whether the one that asks is there
_MOST_TASKS = 500  # that Ray has at a time
# Ends one run and no other where others go on: features, images, memory (also a GPU's).
_OF_ONE_RUN = (ZsnttaError, OSError, MemoryError, RuntimeError)

Made = Generator[tuple[RunSettings, Record | Exception], None, None]


class ErrorElsewhere(Exception):
    """A programming error in another process; its text is the traceback there."""


@dataclass(frozen=True)
class Runner:
    """Makes runs on the features in a folder, and keeps them.

    Raises:
        SettingsError: there is no such engine, or the number of processes is below 1.
    """

    root: Path
    jobs: int | None = 1  # processes, or of a cluster at most so many workers; None: 1, or all
    engine: str = LOCAL
    live: LiveSettings | None = None  # None: live runs say what they lack
    reporter: Reporter = Reporter()  # noqa: RUF009
    keeping: Keeping = Keeping()  # noqa: RUF009

    def __post_init__(self) -> None:
        check_choice("engine", self.engine, ENGINES)
        check(self.jobs is None or self.jobs > 0, f"jobs is {self.jobs}, must be 1 or more.")

    def run(
        self, runs: Sequence[RunSettings], records: dict[RunSettings, Record] | None = None
    ) -> list[Record]:
        """The records of all runs, in order; the first error ends all, as in `outcomes`.

        `records` gets each as it comes, so that some can be shown after Ctrl-C.
        """
        records = {} if records is None else records
        for run, result in self.outcomes(runs):
            assert isinstance(result, Record)
            records[run] = result
        return [records[run] for run in runs if run in records]

    def run_one(self, runs: Sequence[RunSettings]) -> tuple[Replay, Record]:
        """Make the only run, with its items and, for a live method, its samples' gradients.

        It is always made, because items are not kept.

        Raises:
            SettingsError: there is more than one run.
        """
        advice = "choose one method, pair, ratio and seed for --scores or --report classes."
        check(len(runs) == 1, f"these options make {len(runs)} runs: {advice}")
        with (
            keeper(self.keeping, self.reporter.note) as keep,
            self.reporter.waiting(lambda: _name(runs[0])),
        ):
            replay = Simulator(self.root, self.live, self.reporter).replay(runs[0], True)
            keep(record := replay.record(self.keeping.command))
        return replay, record

    def outcomes(
        self, runs: Sequence[RunSettings], goes_on: bool = False
    ) -> Iterator[tuple[RunSettings, Record | str]]:
        """Each different run with its record as it comes, kept ones first.

        The records do not depend on who makes them. A live run that Ctrl-C stopped is the last one.
        If it `goes_on`, a run that fails comes with the line of its error; a programming error
        ends all.

        Raises:
            SettingsError: a cluster without Ray.
            EncoderError: a process died; no cluster.
            Exception: what ended a run, unless it goes on.
        """
        kept = kept_before(self.root, runs, self.keeping)
        if kept:
            self.reporter.note(f"{len(kept):,} of {len(runs):,} runs were already kept")
            yield from kept.items()
        if not (todo := [run for run in dict.fromkeys(runs) if run not in kept]):
            return
        results, done = self._made(todo), 0
        with (
            keeper(self.keeping, self.reporter.note) as keep,
            contextlib.closing(results),
            self.reporter.waiting(
                lambda: f"{done:,} of {len(todo):,} runs done", lambda: done / len(todo)
            ),
        ):
            for run, result in results:
                if isinstance(result, Record):
                    keep(result)
                    yield run, result
                    if result.unfinished:
                        return
                elif goes_on and isinstance(result, _OF_ONE_RUN):
                    yield run, first_line(result)
                    del result  # whose frames hold what filled the memory
                    _empty_cache()
                else:
                    raise result
                done += 1

    def _made(self, runs: Sequence[RunSettings]) -> Made:
        """The runs as they end: replays, then those that encode images."""
        # Reading sets costs as much as some runs, so that those of the same sets follow each other.
        replays, images = sorted(runs, key=attrgetter("encoder", "id_set", "prompt")), []
        if any(METHODS[run.method].live for run in runs):
            from zsntta_cli.simulation.tuned import live_among  # not for every start

            live = live_among(self.root, runs)
            images = [run for run in replays if run in live]
            replays = [run for run in replays if run not in live]
        if self.engine == RAY:
            yield from self._on_ray(replays, images)
            return
        if (self.jobs or 1) > 1 and len(replays) >= _FEW:
            yield from self._by_processes(replays)
            replays = []
        simulator = Simulator(self.root, self.live, self.reporter)
        for run in [*replays, *images]:
            yield run, self._result(simulator, run)

    def _result(self, simulator: Simulator, run: RunSettings) -> Record | Exception:
        """The record to keep of a run, or the error that ended it."""
        try:
            return simulator.replay(run, self.keeping.gradients).record(self.keeping.command)
        except Exception as error:
            return error

    def _packed(self, live: LiveSettings | None) -> bytes:
        """What `_make_elsewhere` needs: scripts first, as what follows may be of their classes.

        The last part tells calls apart: what was read for one may have changed for the next.
        """
        runner = replace(self, live=live, reporter=Reporter())
        return pickle.dumps((LoadedScripts(), runner, Path.cwd(), os.getpid(), os.urandom(8)))

    def _by_processes(self, runs: Sequence[RunSettings]) -> Made:
        """The runs of processes of this machine, each of which takes some tenths of a second's.

        Raises:
            EncoderError: one of them died.
        """
        from concurrent.futures.process import BrokenProcessPool  # not for every start

        from joblib import Parallel, delayed

        packed, make = self._packed(None), delayed(_make_elsewhere)
        # Processes that start here ignore Ctrl-C, as this one ends them; a thread has no say in it.
        has_say = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, signal.SIG_IGN) if has_say else None
        try:
            parallel = Parallel(min(self.jobs or 1, len(runs)), "loky", "generator_unordered")
            results = parallel(make(packed, pickle.dumps(r), i) for i, r in enumerate(runs))
        finally:
            if has_say:
                signal.signal(signal.SIGINT, before)
        try:
            for place, result in results:
                yield runs[place], result
        except BrokenProcessPool as error:
            raise EncoderError(
                "a process died, often because memory ran out: finished runs are kept; the "
                "same command resumes."
            ) from error
        finally:
            with warnings.catch_warnings(action="ignore"):  # of results that nobody waits for
                results.close()

    def _on_ray(self, replays: Sequence[RunSettings], images: Sequence[RunSettings]) -> Made:
        """The runs of a cluster: replays on one core each, then live runs on a GPU each."""
        foreseen, tasks = Library(self.root, rows=False), dict[Any, RunSettings]()
        with connected():
            import ray

            try:
                for runs in (replays, images):
                    settings, needs = None, {"num_cpus": 1}
                    if runs and runs is images and self.live:
                        settings, needs = _live_place(self.live)
                    task: Any = ray.remote(_make_elsewhere).options(max_retries=_RETRIES, **needs)
                    packed, waiting = self._packed(settings), list(runs)
                    while waiting or tasks:
                        while waiting and len(tasks) < (self.jobs or _MOST_TASKS):
                            run = waiting.pop(0)
                            tasks[task.remote(packed, pickle.dumps(run))] = run
                        [done], _ = ray.wait(list(tasks))
                        run = tasks.pop(done)
                        expected = foreseen.look(run)
                        try:
                            _, result = ray.get(done)
                            if isinstance(result, Record) and isinstance(expected, dict):
                                what = "features" * (result.digests != expected)
                                same_code = result.revision == (revision(run.method) or "")
                                what = what or "code" * (not same_code)
                                if what:
                                    result = StoreError(
                                        f"a worker has other {what} for {_name(run)} than this "
                                        f"machine in {self.root.absolute()}: it needs the same "
                                        f"files and the same code."
                                    )
                            yield run, result
                        except ray.exceptions.RayError as error:
                            times = f"{1 + _RETRIES} times as a worker died ({last_line(error)})"
                            yield run, ZsnttaError(f"the Ray cluster lost the run {times}.")
            finally:
                for task in tasks:  # of a cluster that goes on without this process
                    ray.cancel(task, force=True)


def _name(run: RunSettings) -> str:
    against = f" against {run.ood_set}" if run.ood_set else ""
    return f"{run.method} on {run.id_set}{against} at {ratio_text(run.stream.ratio)}"


def _empty_cache() -> None:
    """Free the GPU memory that a failed run held, for the next run."""
    if torch := sys.modules.get("torch"):
        gc.collect()
        torch.cuda.empty_cache()


# In and of other processes.


def _make_elsewhere(job: bytes, run: bytes, place: int = 0) -> tuple[int, Record | Exception]:
    """In another process: a run's place, and its record or an error that can be sent back."""
    try:
        runner, simulator = _opened(job)
        result = runner._result(simulator, pickle.loads(run))
    except Exception as error:  # of other code than that here, whatever its version says
        result = EncoderError(f"{platform.node()} cannot make the run ({first_line(error)}).")
    if isinstance(result, Record | ZsnttaError):
        return place, result
    _empty_cache()
    if isinstance(result, _OF_ONE_RUN):
        return place, ZsnttaError(f"{type(result).__name__}: {first_line(result)}")
    return place, ErrorElsewhere("".join(traceback.format_exception(result)))


@functools.lru_cache(maxsize=1)
def _opened(job: bytes) -> tuple[Runner, Simulator]:
    """What makes the runs of a packed job; it is kept for the next run."""
    runner: Runner
    _, runner, folder, parent, _ = pickle.loads(job)
    if os.getppid() == parent:  # of its machine: it ends with the one that asks, even by a kill
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(OSError):  # on a machine without it absolute paths do
        os.chdir(folder)
    return runner, Simulator(runner.root, runner.live)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, and another process has taken it over."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_A_LOOK)
    os._exit(1)


def _live_place(settings: LiveSettings) -> tuple[LiveSettings, dict[str, int]]:
    """The settings of live runs on the cluster, and what each needs: a GPU, or a machine's cores.

    Raises:
        SettingsError: the device is one that Ray cannot assign.
        EncoderError: a GPU is requested, and the cluster has none.
    """
    import ray

    has_gpus = ray.cluster_resources().get("GPU", 0) >= 1  # type: ignore[no-untyped-call]
    device = ("cuda" if has_gpus else "cpu") if settings.device == "auto" else settings.device
    which = f"device is '{device}', must be auto, cpu or cuda: Ray chooses which."
    check(device in ("cpu", "cuda"), which)
    if device == "cuda" and not has_gpus:
        raise EncoderError("no machine in the Ray cluster has a GPU: the device must be cpu.")
    cores = min(os.cpu_count() or 1, most_cores())
    needs = {"num_gpus": 1} if device == "cuda" else {"num_cpus": cores}
    return replace(settings, device=device), needs
