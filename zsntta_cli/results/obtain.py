"""The results of many runs: from the store, or computed in one process or several."""

import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from zsntta_cli.errors import SettingsError, ZsnttaError
from zsntta_cli.methods import METHODS
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Reporter, Silent
from zsntta_cli.results.keeping import Keeper, Keeping, changed_sources, former_rules, kept_before
from zsntta_cli.results.live_queue import seconds_before, tidy
from zsntta_cli.results.run_queue import RunQueue
from zsntta_cli.results.running import (
    Failures,
    Jobs,
    OnRay,
    count_methods,
    reporting,
    run_here,
    run_name,
    tell_problem,
    watched,
    with_times_first,
)
from zsntta_cli.settings.options import check
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory, Simulator

_FEW = 8  # runs that several processes are not worth


def run_one(
    root: Path,
    runs: Sequence[RunSettings],
    live: LiveFactory,
    reporter: Reporter,
    keeping: Keeping | None = None,
) -> tuple[Replay, Record]:
    """Compute the only run, with its items and, for a live method, the gradients of its samples.

    It is always computed, because items are not kept.

    Raises:
        SettingsError: there is more than one run.
    """
    if len(runs) != 1:
        raise SettingsError(f"scores are written for one run, and these options make {len(runs)}.")
    with Keeper(keeping) as keeper, reporter.waiting(lambda: run_name(runs[0])):
        replay = Simulator(root, live).replay(runs[0], analyse=True)
        record = keeper.keep(replay)
    tell_problem(keeper.problem, reporter)
    return replay, record


def run_all(
    root: Path,
    runs: Sequence[RunSettings],
    jobs: Jobs = 1,
    live: LiveFactory | None = None,
    reporter: Reporter | None = None,
    keeping: Keeping | None = None,
    failures: Failures | None = None,
) -> list[Record]:
    """The results of all runs, in order, from `jobs` processes or a cluster.

    The results do not depend on the number of processes. With `keeping`, runs that the store has
    are taken from it, and each other one is kept as soon as it is finished. A live run that Ctrl-C
    stopped is the last one. With `failures`, a run that fails is put there and the others go on;
    without it, the first error ends all.

    Raises:
        SettingsError: zero processes, or several for live methods; a cluster without Ray.
    """
    check(isinstance(jobs, OnRay) or jobs >= 1, f"jobs is {jobs}, must be 1 or more.")
    reporter = reporter or Silent()
    # Before anything is read: what others finish from here on is not made once more.
    before = seconds_before(root, runs, keeping) if keeping else {}
    kept_runs = kept_before(root, runs, keeping) if keeping else {}
    if keeping:
        tidy(keeping, [kept.key for kept in kept_runs.values()])
    if kept_runs:
        reporter.note(f"{len(kept_runs):,} of {len(runs):,} runs were kept from before")
    new_runs = with_times_first([run for run in runs if run not in kept_runs])
    if keeping:
        unkept = set(new_runs)
        for words in (*changed_sources(unkept, keeping), *former_rules(unkept, keeping)):
            reporter.note(f"note: kept before and run again: {words}")
    if isinstance(jobs, OnRay):
        from zsntta_cli.results.sweeping import Sweep  # not for every start

        sweep = Sweep(root, jobs.workers, reporter, keeping, failures)
        records = sweep.run(new_runs, live, before)
    elif jobs > 1 and _live_among(root, new_runs):
        raise SettingsError("live methods take the whole machine: jobs must be 1.")
    elif jobs > 1 and len(new_runs) >= _FEW:
        records = _run_apart(root, new_runs, jobs, reporter, keeping, failures)
    else:
        is_queued = _live_among(root, new_runs) if keeping else set()
        at_once = [run for run in new_runs if run not in is_queued]
        records = run_here(root, at_once, live, reporter, keeping, failures)
        if keeping and is_queued:
            queued = [run for run in new_runs if run in is_queued]
            from zsntta_cli.results.live_workers import run_live  # not for every start

            records += run_live(root, queued, live, reporter, keeping, failures, before)
    by_run = {run: kept.record for run, kept in kept_runs.items()}
    by_run |= {record.settings: record for record in records}
    return [by_run[run] for run in runs if run in by_run]


def _live_among(root: Path, runs: Sequence[RunSettings]) -> set[RunSettings]:
    """The runs that need the encoder; what they need is not imported for others."""
    if not any(METHODS[run.method].live for run in runs):
        return set()
    from zsntta_cli.simulation.tuned import live_among

    return live_among(root, runs)


def _run_apart(
    root: Path,
    runs: Sequence[RunSettings],
    jobs: int,
    reporter: Reporter,
    keeping: Keeping | None,
    failures: Failures | None,
) -> list[Record]:
    """Compute runs in several processes, each of which takes another run when it is free."""
    from concurrent.futures import ProcessPoolExecutor

    Keeper(keeping).__exit__()  # what cannot be kept is said before the work
    processes, jobs = _processes(), min(jobs, len(runs))
    simulator = Simulator(root) if processes.get_start_method() == "fork" else None
    if simulator:  # for all copies of this process
        with contextlib.suppress(
            *[] if failures is None else [ZsnttaError]
        ):  # the run itself will say
            simulator.prepare(runs)
    queue = RunQueue(runs, processes)
    with ProcessPoolExecutor(
        jobs, processes, _begin, (LoadedScripts(), queue, root, simulator)
    ) as workers:
        # Before there is a thread that tells how it goes: processes begin as copies of this one.
        threads = max(1, (os.cpu_count() or 1) // jobs)
        futures = [
            workers.submit(_run_from_queue, keeping, threads, failures is not None)
            for _ in range(jobs)
        ]
        with (
            queue,
            watched(
                reporter,
                len(runs),
                lambda: f"{queue.finished:,} of {len(runs):,} runs done, {jobs} processes",
                lambda: queue.finished / len(runs),
                count_methods(runs),
            ),
        ):
            results = [future.result() for future in futures]
    tell_problem(next((problem for _, problem, _ in results if problem), ""), reporter)
    if failures is not None:
        for *_, failed in results:
            failures |= failed
    return [record for records, *_ in results for record in records]


def _processes() -> Any:
    """How processes are started: as copies of this one where that is safe, else from scratch.

    A process with other threads, or in which torch runs, cannot be copied: locks would stay locked.
    """
    import multiprocessing

    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return multiprocessing.get_context("fork" if sys.platform == "linux" and alone else "spawn")


_of_process: list[tuple[RunQueue, Simulator]] = []


def _begin(
    _scripts: LoadedScripts, queue: RunQueue, root: Path, simulator: Simulator | None
) -> None:
    """Start a process; a copy of this one has all that was read, another imports anew."""
    _of_process[:] = [(queue, simulator or Simulator(root))]


def _run_from_queue(
    keeping: Keeping | None, threads: int, goes_on: bool
) -> tuple[list[Record], str, Failures]:
    """Compute the runs that this process takes from the queue, and report problems and failures."""
    [(queue, simulator)], records, last = _of_process, list[Record](), None
    failures = Failures()
    with queue, Keeper(keeping) as keeper, threadpool_limits(threads, "blas"):
        while next_run := queue.take(last):
            settings, last = next_run
            with reporting(settings, failures if goes_on else None):
                records.append(keeper.keep(simulator.replay(settings)))
            queue.mark_finished()
        return records, keeper.problem, failures
