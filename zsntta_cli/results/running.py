"""What is said while runs are computed, and the handling of their errors."""

import contextlib
import gc
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from zsntta_cli.errors import ZsnttaError, first_line
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import ENGINES, LOCAL, RAY
from zsntta_cli.settings.options import check, check_choice
from zsntta_cli.settings.ratios import ratio_text
from zsntta_cli.simulation.runs import RunSettings

# Ends one run and no other where failures are wanted: features, images, memory (also a GPU's).
_OF_ONE_RUN = (ZsnttaError, OSError, MemoryError, RuntimeError)
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
