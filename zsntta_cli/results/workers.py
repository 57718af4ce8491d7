"""What computes runs, one after the other: this process, others of this machine, one on a device.

Another process is asked for a run over a pipe, and answers with what is to be kept of it.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from zsntta_cli.children import ctrl_c_ignored, end_with_parent
from zsntta_cli.errors import ZsnttaError
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Silent
from zsntta_cli.results.keeping import Keeping, judged
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.running import Failures, empty_cache, portable, run_name
from zsntta_cli.settings import LiveSettings
from zsntta_cli.simulation import LiveDevices
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory, Simulator

_FEW = 8  # runs that several processes are not worth


class Outcome(NamedTuple):
    """What a worker answers: a run's result or its error, and the notes about it."""

    result: Kept | Exception
    notes: tuple[str, ...] = ()


class Worker(Protocol):
    """What computes one run after the other."""

    name: str

    def begin(self) -> "Future[Any]":
        """When the worker is ready; an error says why it cannot compute any run."""

    def submit(self, run: RunSettings) -> "Future[Outcome]":
        """Compute a run; the future has an error if the worker is lost."""

    def stop(self) -> None:
        """End the worker, whatever it does."""


class Job(NamedTuple):
    """What all workers of another process need."""

    scripts: LoadedScripts  # first: what follows may be of their classes
    root: Path
    keeping: Keeping | None
    live: LiveSettings | None = None  # of live runs
    threads: int | None = None  # of BLAS; None: as many as it takes


class WorkerLost(Exception):
    """A worker ended without an answer."""


class _Here:
    """This process as the only worker; an error is raised with its own traceback."""

    name = "this process"

    def __init__(self, root: Path, live: LiveFactory | None, keeping: Keeping | None) -> None:
        self._simulator, self._keeping = Simulator(root, live), keeping

    def begin(self) -> "Future[Any]":
        """At once."""
        return _done(None)

    def submit(self, run: RunSettings) -> "Future[Outcome]":
        """Compute a run now; Ctrl-C ends it, or all if the run has decided nothing yet."""
        try:
            return _done(Outcome(_computed(self._simulator, run, self._keeping)))
        except Exception as error:
            return _done(Outcome(error))

    def stop(self) -> None:
        """There is nothing to end."""


def _done(result: Any) -> "Future[Any]":
    future = Future[Any]()
    future.set_result(result)
    return future


def _computed(simulator: Simulator, run: RunSettings, keeping: Keeping | None) -> Kept:
    gradients = keeping is not None and keeping.gradients
    return judged(simulator.replay(run, gradients), keeping)


def replaying(
    root: Path,
    keeping: Keeping | None,
    runs: Sequence[RunSettings],
    jobs: int,
    failures: Failures | None,
) -> Callable[[], Sequence[Worker]]:
    """Workers for runs that replay: this process, or several where there are many runs."""
    if jobs == 1 or len(runs) < _FEW:
        return lambda: [_Here(root, None, keeping)]

    def begun() -> Sequence[Worker]:
        count, processes = min(jobs, len(runs)), _processes()
        simulator = Simulator(root) if processes.get_start_method() == "fork" else None
        if simulator:  # read once for all copies of this process
            unless = [] if failures is None else [ZsnttaError]  # the run itself will say
            with contextlib.suppress(*unless):
                simulator.prepare(runs)
        job = Job(LoadedScripts(), root, keeping, threads=max(1, (os.cpu_count() or 1) // count))
        return [_Process(processes, job, f"process {i + 1}", simulator) for i in range(count)]

    return begun


def encoding(
    root: Path, keeping: Keeping | None, live: LiveFactory | None
) -> Callable[[], Sequence[Worker]]:
    """Workers for live runs: this process, or one for each of several devices."""
    if not isinstance(live, LiveDevices) or len(live.apart) == 1:
        return lambda: [_Here(root, live, keeping)]

    def begun() -> Sequence[Worker]:
        import multiprocessing

        processes = multiprocessing.get_context("spawn")  # CUDA outlives no fork
        jobs = [Job(LoadedScripts(), root, keeping, settings) for settings in live.apart]
        return [
            _Process(processes, job, f"the process on {job.live.device}")
            for job in jobs
            if job.live
        ]

    return begun


def _processes() -> Any:
    """How processes are started: as copies of this one where that is safe, else from scratch.

    A process with other threads, or in which torch runs, cannot be copied: locks would stay locked.
    """
    import multiprocessing

    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return multiprocessing.get_context("fork" if sys.platform == "linux" and alone else "spawn")


class _Process:
    """Another process of this machine, which is asked for one run at a time."""

    def __init__(
        self, processes: Any, job: Job, name: str, simulator: Simulator | None = None
    ) -> None:
        """`simulator`: what a copy of this process has read."""
        self.name = name
        self._pipe, end = processes.Pipe()
        with ctrl_c_ignored():  # by the other process: this one ends it
            self._process = processes.Process(
                target=_compute, args=(job, end, simulator), daemon=True
            )
            self._process.start()
        end.close()
        self._thread: ThreadPoolExecutor | None = None  # only when all processes have begun

    def begin(self) -> "Future[Any]":
        """At once: what cannot be loaded is the error of its first run."""
        self._thread = ThreadPoolExecutor(1)
        return _done(None)

    def submit(self, run: RunSettings) -> "Future[Outcome]":
        """Send a run to the process, and wait for its answer in a thread."""
        assert self._thread is not None
        return self._thread.submit(self._ask, run)

    def _ask(self, run: RunSettings) -> Outcome:
        try:
            self._pipe.send(run)
            outcome: Outcome = self._pipe.recv()
        except (OSError, EOFError):
            self._process.join()
            raise WorkerLost(
                f"{self.name} died at {run_name(run)} (exit code {self._process.exitcode}; -9 is "
                f"a kill, often for want of memory)"
            ) from None
        return outcome

    def stop(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()
        if self._thread:
            self._thread.shutdown()
        self._pipe.close()


def _compute(job: Job, pipe: Any, simulator: Simulator | None) -> None:
    """Answer for one run after the other, as a process does until it is ended."""
    end_with_parent()
    maker = Maker(job, simulator)
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(maker.make(pipe.recv()))


class Maker:
    """What computes runs in another process; errors are values, and notes come with the result."""

    def __init__(self, job: Job, simulator: Simulator | None = None) -> None:
        self._job, self._noting = job, _Noting()
        live = LiveDevices(job.live, self._noting) if job.live else None
        self._simulator = simulator or Simulator(job.root, live)

    def make(self, run: RunSettings) -> Outcome:
        """Compute a run."""
        from threadpoolctl import threadpool_limits

        self._noting.notes.clear()
        try:
            with threadpool_limits(self._job.threads, "blas"):
                result: Kept | Exception = _computed(self._simulator, run, self._job.keeping)
        except Exception as error:
            result = portable(error)
        if isinstance(result, Exception):
            empty_cache()
        return Outcome(result, tuple(self._noting.notes))


class _Noting(Silent):
    """A reporter that remembers its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Remember a note."""
        self.notes.append(text)
