"""What is said while runs are computed, and the handling of their errors."""

import contextlib
import gc
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from zsntta_cli.errors import ZsnttaError, first_line
from zsntta_cli.progress import Reporter, time_text
from zsntta_cli.settings import ENGINES, LOCAL, RAY
from zsntta_cli.settings.options import check, check_choice
from zsntta_cli.settings.ratios import ratio_text
from zsntta_cli.simulation.runs import RunSettings

# Ends one run and no other where failures are wanted: features, images, memory (also a GPU's).
_OF_ONE_RUN = (ZsnttaError, OSError, MemoryError, RuntimeError)
MANY, LONG = 200, 60  # runs, seconds: more are announced
_FIRST = 8  # runs by which the time is known
_PATIENCE = 10  # seconds after which a run or two have to tell
_LOOK = 0.5  # seconds between two looks at what others compute
Failures = dict[RunSettings, str]  # runs that ended with an error, and its line


@dataclass(frozen=True)
class OnRay:
    """The workers of a Ray cluster, in place of processes of this machine."""

    workers: int | None = None  # at most; None: as many as there is a place for


Jobs = int | OnRay  # so many processes, or a cluster


def jobs_of(jobs: int | None, engine: str = LOCAL) -> Jobs:
    """What computes runs: a number of processes, 1 by default, or workers of a cluster.

    Raises:
        SettingsError: there is no such engine, or the number of processes is below 1.
    """
    check_choice("engine", engine, ENGINES)
    check(jobs is None or jobs >= 1, f"jobs is {jobs}, must be 1 or more.")
    return OnRay(jobs) if engine == RAY else jobs or 1


@contextlib.contextmanager
def watched(
    reporter: Reporter,
    count: int,
    doing: Callable[[], str],
    share: Callable[[], float],
    methods: int = 1,
) -> Iterator[Callable[[], None]]:
    """Say what is being done, and beforehand if there is much of it: as soon as that is known.

    `share` gives the share that is done of the `count` runs, which are of some `methods`. The
    function that is given looks at it; who computes in this thread calls it behind each run, for
    others it is called each half second.
    """
    notice, ended = _Notice(reporter, count, share, methods), threading.Event()

    def look_often() -> None:
        while not ended.wait(_LOOK):
            notice.look()

    thread = threading.Thread(target=look_often, daemon=True)
    with contextlib.suppress(RuntimeError):  # no memory for a thread: who computes looks
        thread.start()
    try:
        with reporter.waiting(doing, share):
            yield notice.look
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()


class _Notice:
    """How many runs there are and about how long they take, said once by the first of them."""

    def __init__(
        self, reporter: Reporter, count: int, share: Callable[[], float], methods: int
    ) -> None:
        self._reporter, self._count, self._share = reporter, count, share
        # The first runs are one of each method (`with_times_first`), whose times differ most.
        self._first = max(_FIRST, methods)
        self._started, self._told = time.monotonic(), False
        self._lock = threading.Lock()

    def look(self) -> None:
        """Say it if it is known by now, and worth saying."""
        with self._lock:
            done, seconds = self._share() * self._count, time.monotonic() - self._started
            is_known = done >= min(self._first, self._count) or (done >= 1 and seconds > _PATIENCE)
            if self._told or not is_known or done >= self._count:
                return
            total = seconds / done * self._count
            if self._count > MANY or total > LONG:
                self._told = True
                first = "run" if round(done) == 1 else f"{round(done):,}"
                self._reporter.note(
                    f"{self._count:,} runs take about {time_text(total)}, by the first {first}: "
                    f"Ctrl-C keeps what is finished, and the same command goes on"
                )


def count_methods(runs: Sequence[RunSettings]) -> int:
    """How many methods some runs are of."""
    return len({run.method for run in runs})


def with_times_first(runs: Sequence[RunSettings]) -> list[RunSettings]:
    """Runs with one of each method ahead, so that their times tell of all, where there are many.

    Few runs stay in their order, in which lists show them.
    """
    if len(runs) <= MANY and count_methods(runs) <= _FIRST:
        return list(runs)
    first = {run.method: run for run in reversed(runs)}
    ahead = [run for run in runs if first[run.method] is run]
    return ahead + [run for run in runs if first[run.method] is not run]


@contextlib.contextmanager
def reporting(settings: RunSettings, failures: Failures | None) -> Iterator[None]:
    """Add an error that ends a run to `failures` and free its memory, or raise it without them."""
    try:
        yield
        return
    except _OF_ONE_RUN as error:
        if failures is None:
            raise
        failures[settings] = first_line(error)
        may_hold_memory = not isinstance(error, ZsnttaError)  # a broken file holds none
    if may_hold_memory:
        empty_cache()  # after the error, whose frames hold what filled the memory


def empty_cache() -> None:
    """Free the GPU memory that a failed run held, for the next run."""
    if torch := sys.modules.get("torch"):
        gc.collect()
        torch.cuda.empty_cache()


def portable(error: Exception) -> Exception:
    """An error that can be sent to another process: itself if it can be pickled, else its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return ZsnttaError(f"{type(error).__name__}: {first_line(error)}")
    return error


def tell_problem(problem: str, reporter: Reporter) -> None:
    """Report why results are not kept."""
    if problem:
        reporter.note(f"note: results are not kept: {problem}")


def run_name(run: RunSettings) -> str:
    """A run in few words."""
    against = f" against {run.ood_set}" if run.ood_set else ""
    return f"{run.method} on {run.id_set}{against} at {ratio_text(run.stream.ratio)}"
