"""Workers on a Ray cluster for the executor: actors that compute whole runs.

An actor reads features on its own machine, keeps them in memory, and returns what is to be kept of
a run. Ray restarts an actor that is lost, on another machine if necessary, and its run begins anew.
"""

import contextlib
import functools
import os
import pickle
import platform
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli import __version__
from zsntta_cli.errors import EncoderError, SettingsError, StoreError, ZsnttaError, first_line
from zsntta_cli.extraction.connection import Connection, last_line, most_cores
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.results.running import portable, run_name
from zsntta_cli.results.workers import Job, Maker, Outcome, Worker
from zsntta_cli.settings import LiveSettings
from zsntta_cli.simulation import LiveDevices
from zsntta_cli.simulation.digests import Foreseen
from zsntta_cli.simulation.revision import revision
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory

_RETRIES = 5  # of a run whose worker was lost; one that kills its worker each time must end


class SentRun(NamedTuple):
    """A run as it is sent to another machine, with what it must find there."""

    settings: RunSettings
    digests: Mapping[str, str] | None  # of the features; None: whatever is there
    revision: str | None  # of the method


@dataclass(frozen=True)
class _Place:
    """The cores and GPUs that a worker occupies."""

    cores: int = 1
    gpus: int = 0


class RunMaker:
    """An actor that computes runs and returns errors as values."""

    def __init__(self, content: bytes, folder: Path) -> None:
        """`content`: a pickled Job; it is read later, so that its errors can be reported.

        Relative paths begin at `folder`.
        """
        self._content, self._folder = content, folder

    def begin(self, version: str) -> Exception | None:
        """Load what all runs need; return why this machine cannot compute any run, or None."""
        if version != __version__:
            return EncoderError(
                f"{platform.node()} has zsntta {__version__}, not {version}: install the same on "
                f"all machines."
            )
        try:
            _ = self._maker
        except ZsnttaError as error:
            return portable(error)
        except Exception as error:  # of other code than that here, whatever its version says
            return EncoderError(f"{platform.node()} cannot make any run ({first_line(error)}).")
        return None

    def make(self, content: bytes) -> Outcome:
        """Compute a run, given as a pickled SentRun."""
        try:
            maker = self._maker  # whose scripts have the classes of the run
            sent: SentRun = pickle.loads(content)
            self._check_same(sent)
        except Exception as error:
            return Outcome(portable(error))
        return maker.make(sent.settings)

    @functools.cached_property
    def _job(self) -> Job:
        job: Job = pickle.loads(self._content)
        with contextlib.suppress(OSError):  # on a machine without it absolute paths do
            os.chdir(self._folder)
        return job

    @functools.cached_property
    def _maker(self) -> Maker:
        return Maker(self._job)

    @functools.cached_property
    def _foreseen(self) -> Foreseen:
        return Foreseen(self._job.root)

    def _check_same(self, sent: SentRun) -> None:
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
        digests = self._foreseen.digests(run) or {}
        names = [name for name, digest in sent.digests.items() if digests.get(name) != digest]
        if names or digests.keys() != sent.digests.keys():
            raise StoreError(
                f"{here} has other features of {run_name(run)} in {self._job.root.absolute()} "
                f"({', '.join(names) or 'of further sets'}): it needs the same files."
            )


class _RayWorker:
    """An actor as a worker of the executor."""

    def __init__(self, actor: Any, foreseen: Foreseen, name: str) -> None:
        self.name, self._actor, self._foreseen = name, actor, foreseen

    def begin(self) -> "Future[Any]":
        """When Ray has a place for it: now, later, or never."""
        return _answer(self._actor.begin.remote(__version__), _begun)

    def submit(self, run: RunSettings) -> "Future[Outcome]":
        """Send a run."""
        sent = SentRun(run, self._foreseen.digests(run), revision(run.method))
        return _answer(self._actor.make.remote(pickle.dumps(sent)), _outcome)

    def stop(self) -> None:
        """End the actor, whatever it does."""
        import ray

        ray.kill(self._actor)


def _answer(asked: Any, read: Callable[["Future[Any]"], Any]) -> "Future[Any]":
    """The future of an actor's answer, which `read` makes of Ray's."""
    answer = Future[Any]()

    def take(future: "Future[Any]") -> None:
        try:
            answer.set_result(read(future))
        except Exception as error:
            answer.set_exception(error)

    asked.future().add_done_callback(take)
    return answer


def _begun(future: "Future[Exception | None]") -> None:
    """Raise what keeps a machine from computing any run."""
    import ray

    try:
        problem = future.result()
    except ray.exceptions.RayError as error:
        raise EncoderError(
            f"the Ray cluster failed ({last_line(error)}): what was finished is kept; the same "
            f"command goes on."
        ) from error
    if problem:
        raise problem


def _outcome(future: "Future[Outcome]") -> Outcome:
    """The outcome of a run; an error if it has lost its worker too often."""
    import ray

    try:
        return future.result()
    except ray.exceptions.RayError as error:
        return Outcome(
            ZsnttaError(
                f"it has lost its Ray worker {1 + _RETRIES} times ({last_line(error)}), often for "
                f"want of memory."
            )
        )


class Cluster:
    """The Ray cluster at RAY_ADDRESS, or one on this machine, which is begun when it is needed."""

    def __init__(self, root: Path, keeping: Keeping | None, most: int | None) -> None:
        """`most`: the largest number of workers; None: as many as there is a place for.

        Raises:
            SettingsError: Ray is not installed.
        """
        self._root, self._keeping, self._most = root, keeping, most
        self._connection = Connection()

    def replaying(self, runs: Sequence[RunSettings]) -> Sequence[Worker]:
        """Workers for runs that replay, on one core each."""
        self._connection.open()
        return self._workers(len(runs), None, _Place())

    def encoding(self, runs: Sequence[RunSettings], live: LiveFactory | None) -> Sequence[Worker]:
        """Workers for live runs, each on a GPU, or on as many cores as one process uses.

        Raises:
            SettingsError: the device is one that Ray cannot assign.
            EncoderError: there is no cluster, or no GPU in it.
        """
        self._connection.open()
        if not isinstance(live, LiveDevices):  # nothing to encode with, as each run will say
            return self._workers(len(runs), None, _Place())
        return self._workers(len(runs), *_live_place(live.settings))

    def _workers(self, count: int, live: LiveSettings | None, place: _Place) -> list[Worker]:
        """Ask for workers; those for which there is no place yet begin later, or never."""
        import ray

        threads = None if live else place.cores
        job = Job(LoadedScripts(), self._root, self._keeping, live, threads)
        content, foreseen = pickle.dumps(job), Foreseen(self._root)
        actor: Any = ray.remote(RunMaker).options(
            num_cpus=place.cores, num_gpus=place.gpus, max_restarts=-1, max_task_retries=_RETRIES
        )
        return [
            _RayWorker(actor.remote(content, Path.cwd()), foreseen, f"Ray worker {i + 1}")
            for i in range(min(count, self._most or _places(place)))
        ]

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _places(place: _Place) -> int:
    """How many workers the cluster has room for, at least one: another machine may join."""
    resources = _resources()
    by_gpus = resources.get("GPU", 0) // place.gpus if place.gpus else None
    return max(1, int(resources.get("CPU", 1) // place.cores if by_gpus is None else by_gpus))


def _live_place(settings: LiveSettings) -> tuple[LiveSettings, _Place]:
    """The settings and the place of a worker that computes live runs."""
    has_gpus, device = _resources().get("GPU", 0) >= 1, settings.device
    if device == "auto":
        device = "cuda" if has_gpus else "cpu"
    if device not in ("cpu", "cuda"):
        raise SettingsError(f"device is '{device}', must be auto, cpu or cuda: Ray chooses which.")
    if device == "cpu":
        return replace(settings, device=device), _Place(min(os.cpu_count() or 1, most_cores()))
    if not has_gpus:
        raise EncoderError("no machine of the Ray cluster has a GPU: the device must be cpu.")
    return replace(settings, device=device), _Place(gpus=1)


def _resources() -> Mapping[str, float]:
    """How many cores ("CPU") and GPUs ("GPU") the cluster has."""
    import ray

    resources: Mapping[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return resources
