"""Workers on a Ray cluster that compute whole runs, and the process that hands out the runs.

A worker is an actor: it reads features on its own machine, keeps them in memory, and returns what
is to be kept of a run. Ray restarts a worker that is lost, on another machine if necessary, and its
run begins anew.
"""

import contextlib
import functools
import os
import pickle
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from zsntta_cli import __version__
from zsntta_cli.errors import EncoderError, StoreError, ZsnttaError, first_line
from zsntta_cli.extraction.connection import last_line
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Silent
from zsntta_cli.results.keeping import Keeping, judged
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.running import empty_cache, portable, run_name
from zsntta_cli.settings import LiveSettings
from zsntta_cli.simulation import LiveDevices
from zsntta_cli.simulation.digests import Foreseen
from zsntta_cli.simulation.revision import revision
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import Simulator

_RETRIES = 5  # of a run whose worker was lost; one that kills its worker each time must end


class SweepJob(NamedTuple):
    """What all workers of a sweep have in common."""

    scripts: LoadedScripts  # first: what follows may be of their classes
    root: Path
    folder: Path  # that relative paths begin at
    keeping: Keeping | None
    live: LiveSettings | None  # of live runs
    cores: int  # of a worker


class SentRun(NamedTuple):
    """A run as it is sent to a worker."""

    settings: RunSettings
    digests: (
        Mapping[str, str] | None
    )  # of the features that it has to find; None: whatever is there
    revision: str | None  # of the method
    checkpoint: Path | None  # where a live run goes on, should its folder be there


class Outcome(NamedTuple):
    """The result of a run, and the notes about it."""

    result: Kept | Exception
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkerPlace:
    """The cores and GPUs that a worker occupies."""

    cores: int = 1
    gpus: int = 0


class RunMaker:
    """An actor that computes runs and returns errors as values."""

    def __init__(self, content: bytes) -> None:
        """`content`: a pickled SweepJob; it is read later, so that its errors can be reported."""
        self._content = content
        self._checkpoints: dict[RunSettings, Path | None] = {}
        self._noting = _Noting()

    def begin(self, version: str) -> Exception | None:
        """Load what all runs need; return why this machine cannot compute any run, or None."""
        if version != __version__:
            return EncoderError(
                f"{platform.node()} has zsntta {__version__}, not {version}: install the same on "
                f"all machines."
            )
        try:
            _ = self._simulator
        except ZsnttaError as error:
            return portable(error)
        except Exception as error:  # of other code than that here, whatever its version says
            return EncoderError(f"{platform.node()} cannot make any run ({first_line(error)}).")
        return None

    def make(self, content: bytes) -> Outcome:
        """Compute a run, given as a pickled SentRun."""
        self._noting.notes = []
        try:
            job = self._job  # whose classes the run may be of
            result: Kept | Exception = self._make(job, pickle.loads(content))
        except Exception as error:
            result = portable(error)
        if isinstance(result, Exception):
            empty_cache()
        return Outcome(result, tuple(self._noting.notes))

    def _make(self, job: SweepJob, sent: SentRun) -> Kept:
        run = sent.settings
        _check_same(self._foreseen, job.root, sent)
        path = sent.checkpoint
        self._checkpoints[run] = path if path and path.parent.is_dir() else None
        with threadpool_limits(None if job.live else job.cores, "blas"):
            gradients = job.keeping is not None and job.keeping.gradients
            return judged(self._simulator.replay(run, gradients), job.keeping)

    @functools.cached_property
    def _job(self) -> SweepJob:
        job: SweepJob = pickle.loads(self._content)
        with contextlib.suppress(OSError):  # on a machine without it absolute paths do
            os.chdir(job.folder)
        return job

    @functools.cached_property
    def _simulator(self) -> Simulator:
        live = LiveDevices(self._job.live, self._noting) if self._job.live else None
        return Simulator(self._job.root, live, self._checkpoints.get)

    @functools.cached_property
    def _foreseen(self) -> Foreseen:
        return Foreseen(self._job.root)


def _check_same(foreseen: Foreseen, root: Path, sent: SentRun) -> None:
    """Refuse a run whose features or method differ on this machine.

    Raises:
        StoreError: the features differ; the message names them.
        EncoderError: the method is of another revision.
    """
    run, here = sent.settings, platform.node()
    if revision(run.method) != sent.revision:
        raise EncoderError(
            f"{here} has another revision of the method {run.method}: it needs the same code."
        )
    if sent.digests is None:
        return
    digests = foreseen.digests(run) or {}
    names = [name for name, digest in sent.digests.items() if digests.get(name) != digest]
    if names or digests.keys() != sent.digests.keys():
        raise StoreError(
            f"{here} has other features of {run_name(run)} in {root.absolute()} "
            f"({', '.join(names) or 'of further sets'}): it needs the same files."
        )


class _Noting(Silent):
    """A reporter that remembers its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Remember a note."""
        self.notes.append(text)


class RayWorkers:
    """Workers of a cluster to which this process is connected."""

    def __init__(self, job: SweepJob, count: int, place: WorkerPlace) -> None:
        """Ask for `count` workers; those for which there is no place yet start later, or never."""
        import ray

        actor: Any = ray.remote(RunMaker).options(
            num_cpus=place.cores, num_gpus=place.gpus, max_restarts=-1, max_task_retries=_RETRIES
        )
        content = pickle.dumps(job)
        self._actors = {number: actor.remote(content) for number in range(count)}
        # By what stands for an answer: the worker that is asked, and the run that it makes.
        self._asked: dict[Any, tuple[int, RunSettings | None]] = {
            worker.begin.remote(__version__): (number, None)
            for number, worker in self._actors.items()
        }
        self.idle: list[int] = []

    @property
    def is_waiting(self) -> bool:
        """Whether a worker still has something to report."""
        return bool(self._asked)

    @property
    def busy(self) -> int:
        """How many workers are computing a run."""
        return sum(run is not None for _, run in self._asked.values())

    def send(self, worker: int, sent: SentRun) -> None:
        """Send a run to an idle worker."""
        answer = self._actors[worker].make.remote(pickle.dumps(sent))
        self._asked[answer] = worker, sent.settings
        self.idle.remove(worker)

    def dismiss(self, worker: int) -> None:
        """End an idle worker, so that its place is free for one whose machine was lost."""
        import ray

        self.idle.remove(worker)
        ray.kill(self._actors.pop(worker))

    def outcomes(self, seconds: float) -> Iterator[tuple[RunSettings, Outcome]]:
        """The runs that have ended, or end within a few seconds.

        Raises:
            ZsnttaError: a machine cannot compute any run.
        """
        import ray

        answers = list(self._asked)
        if not answers:
            return
        done, _ = ray.wait(answers, num_returns=1, timeout=seconds)
        if done:  # all that have ended by now
            done, _ = ray.wait(answers, num_returns=len(answers), timeout=0)
        for answer in done:
            worker, run = self._asked.pop(answer)
            self.idle.append(worker)
            if run is not None:
                yield run, _outcome(answer)
            elif problem := ray.get(answer):
                raise problem

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        import ray

        while self._actors:
            ray.kill(self._actors.popitem()[1])


def _outcome(answer: Any) -> Outcome:
    """The outcome of a run; an error if it has lost its worker too often."""
    import ray

    try:
        outcome: Outcome = ray.get(answer)
    except ray.exceptions.RayError as error:
        return Outcome(
            ZsnttaError(
                f"it has lost its Ray worker {1 + _RETRIES} times ({last_line(error)}), often for "
                f"want of memory."
            )
        )
    return outcome


@contextlib.contextmanager
def cluster_errors() -> Iterator[None]:
    """Translate the errors of Ray.

    Raises:
        EncoderError: the cluster failed.
    """
    import ray

    try:
        yield
    except ray.exceptions.RayError as error:
        raise EncoderError(
            f"the Ray cluster failed ({last_line(error)}): what was finished is kept; the same "
            f"command goes on."
        ) from error


def cluster_resources() -> Mapping[str, float]:
    """How many cores ("CPU") and GPUs ("GPU") the cluster has."""
    import ray

    resources: Mapping[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return resources
