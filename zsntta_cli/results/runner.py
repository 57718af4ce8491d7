"""Make runs: kept ones are taken from the store, and each other one is kept as it ends.

Replays go to this process, to others of this machine (joblib) or to a Ray cluster as tasks; live
runs go to this process, or to Ray. A process keeps what it has read. Only this process writes the
store. A kill at any moment loses the runs under way and nothing else, and the same command makes
them. If two commands make the same run, the store keeps the one that ends last.
"""

import contextlib
import functools
import gc
import os
import pickle
import platform
import sys
import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.children import ctrl_c_ignored, end_with_parent
from zsntta_cli.errors import EncoderError, SettingsError, StoreError, ZsnttaError, first_line
from zsntta_cli.extraction.connection import connected, last_line, most_cores
from zsntta_cli.methods import METHODS
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Reporter
from zsntta_cli.results.store import Keeper, Keeping, kept_before
from zsntta_cli.settings import ENGINES, LOCAL, RAY, LiveSettings, ratio_text
from zsntta_cli.settings.options import check, check_choice
from zsntta_cli.simulation import LiveDevices
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.runs import RunSettings, revision, run_key
from zsntta_cli.simulation.simulator import LiveFactory, Simulator
from zsntta_cli.simulation.sources import Foreseen

_FEW = 8  # runs that several processes are not worth
_RETRIES = 5  # of a Ray task whose worker was lost; one that kills its worker each time must end
_MOST_TASKS = 500  # that Ray has at a time
# Ends one run and no other where failures are wanted: features, images, memory (also a GPU's).
_OF_ONE_RUN = (ZsnttaError, OSError, MemoryError, RuntimeError)

Failures = dict[RunSettings, str]  # runs that ended with an error, and its line
Outcome = tuple[RunSettings, Record | Exception]


@dataclass(frozen=True)
class OnRay:
    """The workers of a Ray cluster, in place of processes of this machine."""

    workers: int | None = None  # at most; None: as many as there is a place for


Jobs = int | OnRay  # so many processes, or a cluster


def jobs_of(jobs: int | None, engine: str = LOCAL) -> Jobs:
    """What makes runs: a number of processes, 1 by default, or workers of a cluster.

    Raises:
        SettingsError: there is no such engine, or the number of processes is below 1.
    """
    check_choice("engine", engine, ENGINES)
    check(jobs is None or jobs >= 1, f"jobs is {jobs}, must be 1 or more.")
    return OnRay(jobs) if engine == RAY else jobs or 1


def run_name(run: RunSettings) -> str:
    """A run in few words."""
    against = f" against {run.ood_set}" if run.ood_set else ""
    return f"{run.method} on {run.id_set}{against} at {ratio_text(run.stream.ratio)}"


def run_one(
    root: Path,
    runs: Sequence[RunSettings],
    live: LiveFactory,
    reporter: Reporter,
    keeping: Keeping | None = None,
) -> tuple[Replay, Record]:
    """Make the only run, with its items and, for a live method, the gradients of its samples.

    It is always made, because items are not kept.

    Raises:
        SettingsError: there is more than one run.
    """
    if len(runs) != 1:
        raise SettingsError(f"items are those of one run, and these options make {len(runs)}.")
    with Keeper(keeping, reporter.note) as keeper, reporter.waiting(lambda: run_name(runs[0])):
        replay = Simulator(root, live).replay(runs[0], analyse=True)
        return replay, keeper.add(replay.record(keeping.command if keeping else ""))


def run_all(
    root: Path,
    runs: Sequence[RunSettings],
    jobs: Jobs = 1,
    live: LiveFactory | None = None,
    reporter: Reporter | None = None,
    keeping: Keeping | None = None,
    failures: Failures | None = None,
    found: dict[RunSettings, Record] | None = None,
) -> list[Record]:
    """The records of all runs, in order, from `jobs` processes or a cluster.

    The records do not depend on who makes them. A live run that Ctrl-C stopped is the last one.
    `found` gets each record as it comes, for who has to show some after Ctrl-C. With `failures`, a
    run that fails is put there and the others go on; without it, the first error ends all.

    Raises:
        SettingsError: several processes or devices for live runs; a cluster without Ray.
        EncoderError: a process died; no cluster.
    """
    reporter = reporter or Reporter()
    records = {} if found is None else found
    records |= kept_before(root, runs, keeping) if keeping else {}
    if records:
        reporter.note(f"{len(records):,} of {len(runs):,} runs were kept from before")
    new_runs = [run for run in dict.fromkeys(runs) if run not in records]
    if not new_runs:
        return [records[run] for run in runs]
    # Reading sets costs as much as some runs, so that those of the same sets follow each other.
    new_runs.sort(key=lambda run: (run.encoder, run.id_set, run.ood_set or "", run.prompt))
    images = list[RunSettings]()
    if any(METHODS[run.method].live for run in new_runs):
        from zsntta_cli.simulation.tuned import live_among  # not for every start

        of_images = live_among(root, new_runs)
        images = [run for run in new_runs if run in of_images]
    replays = [run for run in new_runs if run not in images]
    outcomes = _outcomes(root, replays, images, jobs, live, keeping)
    done = 0

    def doing() -> str:
        if jobs == 1 and done < len(new_runs):
            return f"run {done + 1:,} of {len(new_runs):,}: {run_name([*replays, *images][done])}"
        return f"{done:,} of {len(new_runs):,} runs done"

    with (
        Keeper(keeping, reporter.note) as keeper,
        contextlib.closing(outcomes),
        reporter.waiting(doing, lambda: done / len(new_runs)),
    ):
        for run, result in outcomes:
            if isinstance(result, Record):
                records[run] = keeper.add(result)
            elif failures is None or not isinstance(result, _OF_ONE_RUN):
                raise result
            else:
                failures[run] = first_line(result)
                del result  # whose frames hold what filled the memory
                empty_cache()
            done += 1
            if run in records and records[run].unfinished:
                break
    return [records[run] for run in runs if run in records]


def _outcomes(
    root: Path,
    replays: Sequence[RunSettings],
    images: Sequence[RunSettings],
    jobs: Jobs,
    live: LiveFactory | None,
    keeping: Keeping | None,
) -> Generator[Outcome, None, None]:
    """The runs as they end: replays, then those that encode images.

    Raises:
        SettingsError: several processes or devices for live runs.
    """
    job = _Job(LoadedScripts(), root, keeping, None, Path.cwd(), os.getpid(), os.urandom(8).hex())
    if isinstance(jobs, OnRay):
        return _on_ray(job, jobs, live, replays, images)
    if images:
        check(jobs == 1, "live methods take the whole machine: jobs must be 1.")
        device = live.settings.device if isinstance(live, LiveDevices) else ""
        message = f"device is '{device}', must be one: --engine ray takes all GPUs."
        check("," not in device, message)
    if jobs > 1 and len(replays) >= _FEW:
        return _by_processes(job, jobs, replays)
    simulator = Simulator(root, live)
    return ((run, _made(simulator, run, keeping)) for run in [*replays, *images])


def empty_cache() -> None:
    """Free the GPU memory that a failed run held, for the next run."""
    if torch := sys.modules.get("torch"):
        gc.collect()
        torch.cuda.empty_cache()


class _Job(NamedTuple):
    """What makes runs in another process."""

    scripts: LoadedScripts  # first: what follows may be of their classes
    root: Path
    keeping: Keeping | None
    live: LiveSettings | None  # of live runs
    folder: Path  # at which relative paths begin
    parent: int  # the process that asks; those of its machine end with it
    token: str  # no two are the same: what was read for one may have changed for the next


def _by_processes(
    job: _Job, jobs: int, runs: Sequence[RunSettings]
) -> Generator[Outcome, None, None]:
    """The runs of processes of this machine, each of which takes some tenths of a second's.

    Raises:
        EncoderError: one of them died.
    """
    from concurrent.futures.process import BrokenProcessPool  # not for every start

    from joblib import Parallel, delayed

    packed, make = pickle.dumps(job), delayed(_make_elsewhere)
    with ctrl_c_ignored():  # by the processes that start here: this one ends them
        parallel = Parallel(min(jobs, len(runs)), "loky", "generator_unordered")
        results = parallel(make(packed, place, pickle.dumps(r)) for place, r in enumerate(runs))
    try:
        for place, result in results:
            yield runs[place], result
    except BrokenProcessPool as error:
        raise EncoderError(
            "a process died, often for want of memory: what was finished is kept; the same command "
            "goes on."
        ) from error
    finally:
        with warnings.catch_warnings(action="ignore"):  # of results that nobody waits for
            results.close()


def _on_ray(
    job: _Job,
    jobs: OnRay,
    live: LiveFactory | None,
    replays: Sequence[RunSettings],
    images: Sequence[RunSettings],
) -> Generator[Outcome, None, None]:
    """The runs of a cluster: replays on one core each, then live runs on a GPU each."""
    foreseen, tasks = Foreseen(job.root), dict[Any, RunSettings]()
    with connected():
        import ray

        try:
            for runs in filter(None, (replays, images)):
                needs = {"num_cpus": 1}
                if runs is images and isinstance(live, LiveDevices):  # else each says what lacks
                    settings, needs = _live_place(live.settings)
                    job = job._replace(live=settings)
                task: Any = ray.remote(_make_elsewhere).options(max_retries=_RETRIES, **needs)
                packed, left = pickle.dumps(job), list(runs)
                while left or tasks:
                    while left and len(tasks) < (jobs.workers or _MOST_TASKS):
                        run = left.pop(0)
                        tasks[task.remote(packed, 0, pickle.dumps(run))] = run
                    [done], _ = ray.wait(list(tasks))
                    run = tasks.pop(done)
                    try:
                        yield run, _checked(run, ray.get(done)[1], foreseen)
                    except ray.exceptions.RayError as error:
                        times = f"{1 + _RETRIES} times where a worker died ({last_line(error)})"
                        yield run, ZsnttaError(f"the Ray cluster lost it, {times}.")
        finally:
            for waiting in tasks:  # of a cluster that goes on without this process
                ray.cancel(waiting, force=True)


def _make_elsewhere(job: bytes, place: int, run: bytes) -> tuple[int, Record | Exception]:
    """In another process: a run's place, and its record or error."""
    try:
        simulator, keeping = _opened(job)
        result = _made(simulator, pickle.loads(run), keeping)
    except Exception as error:  # of other code than that here, whatever its version says
        result = EncoderError(f"{platform.node()} cannot make the run ({first_line(error)}).")
    if isinstance(result, Exception):
        try:
            pickle.loads(pickle.dumps(result))
        except Exception:  # what cannot be sent is told by its text
            result = ZsnttaError(f"{type(result).__name__}: {first_line(result)}")
        empty_cache()
    return place, result


@functools.lru_cache(maxsize=1)
def _opened(content: bytes) -> tuple[Simulator, Keeping | None]:
    """What makes the runs of a packed job; it is kept for the next run."""
    job: _Job = pickle.loads(content)
    if os.getppid() == job.parent:
        end_with_parent()
    with contextlib.suppress(OSError):  # on a machine without it absolute paths do
        os.chdir(job.folder)
    return Simulator(job.root, LiveDevices(job.live) if job.live else None), job.keeping


def _made(simulator: Simulator, run: RunSettings, keeping: Keeping | None) -> Record | Exception:
    """What is to be kept of a run, or the error that ended it."""
    try:
        replay = simulator.replay(run, keeping is not None and keeping.gradients)
        return replay.record(keeping.command if keeping else "")
    except Exception as error:
        return error


def _checked(
    run: RunSettings, result: Record | Exception, foreseen: Foreseen
) -> Record | Exception:
    """The result of another machine; an error if its features or its method differ from here."""
    expected = foreseen.look(run)
    if isinstance(result, Exception) or isinstance(expected, Exception):
        return result
    if result.key == run_key(run, expected, revision(run.method) or ""):
        return result
    names = ", ".join(sorted(dict(result.digests.items() ^ expected.items())))
    return StoreError(
        f"a worker has other {f'features ({names})' if names else 'code'} for {run_name(run)} than "
        f"this machine in {foreseen.root.absolute()}: it needs the same files and the same code."
    )


def _live_place(settings: LiveSettings) -> tuple[LiveSettings, dict[str, int]]:
    """The settings of live runs on the cluster, and what each needs: a GPU, or a machine's cores.

    Raises:
        SettingsError: the device is one that Ray cannot assign.
        EncoderError: a GPU is requested, and the cluster has none.
    """
    import ray

    resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
    has_gpus, device = resources.get("GPU", 0) >= 1, settings.device
    if device == "auto":
        device = "cuda" if has_gpus else "cpu"
    if device == "cpu":
        cores = min(os.cpu_count() or 1, most_cores())
        return replace(settings, device=device), {"num_cpus": cores}
    if device != "cuda":
        raise SettingsError(f"device is '{device}', must be auto, cpu or cuda: Ray chooses which.")
    if not has_gpus:
        raise EncoderError("no machine of the Ray cluster has a GPU: the device must be cpu.")
    return replace(settings, device=device), {"num_gpus": 1}
