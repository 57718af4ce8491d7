"""Many runs, in order, in one process or several."""

import functools
import itertools
import multiprocessing
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.threshold import load_compiled
from zsntta_cli.progress import Reporter, Silent
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.records.keeping import Keeper, Keeping, kept_before
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory, Simulator

_PART = 16  # runs that a process does at a time, on one pair of sets
_FEW = 8  # runs that neither several processes nor loading Numba are worth


def run_one(
    root: Path,
    runs: Sequence[RunSettings],
    live: LiveFactory,
    reporter: Reporter,
    keeping: Keeping | None = None,
) -> tuple[Replay, Record]:
    """The only run, with its items and, of a live method, the gradients of its samples.

    It is run in any case: items are not kept.

    Raises:
        SettingsError: there are several.
    """
    if len(runs) != 1:
        raise SettingsError(f"scores are those of one run, and these options make {len(runs)}.")
    with Keeper(keeping) as keeper, reporter.waiting(lambda: _named(runs[0])):
        replay = Simulator(root, live).replay(runs[0], analyse=True)
        record = keeper.keep(replay)
    _tell(keeper.problem, reporter)
    return replay, record


def run_all(
    root: Path,
    runs: Sequence[RunSettings],
    jobs: int = 1,
    live: LiveFactory | None = None,
    reporter: Reporter | None = None,
    keeping: Keeping | None = None,
) -> list[Record]:
    """All runs, in order, on `jobs` processes; the results do not depend on their number.

    With `keeping`, runs that the store has are taken from it, and each other one is kept as soon as
    it is finished. A live run that Ctrl-C stopped is the last one.

    Raises:
        SettingsError: no process at all, or several for live methods.
    """
    if jobs < 1:
        raise SettingsError(f"jobs is {jobs}, must be 1 or more.")
    reporter = reporter or Silent()
    before = kept_before(root, runs, keeping) if keeping else {}
    if before:
        reporter.note(f"{len(before):,} of {len(runs):,} runs were kept from before")
    left = [run for run in runs if run not in before]
    if jobs > 1 and any(METHODS[run.method].live for run in left):
        raise SettingsError("live methods take the whole machine: jobs must be 1.")
    if len(left) >= _FEW:  # in copies of this process, too
        load_compiled()
    if jobs == 1 or len(left) < _FEW:
        made = _run_some(root, left, live, reporter, keeping)
    else:
        made = _run_apart(root, left, jobs, reporter, keeping)
    by_run = {run: kept.record for run, kept in before.items()}
    by_run |= {record.settings: record for record in made}
    return [by_run[run] for run in runs if run in by_run]


def _run_apart(
    root: Path,
    runs: Sequence[RunSettings],
    jobs: int,
    reporter: Reporter,
    keeping: Keeping | None,
) -> list[Record]:
    """Runs in several processes, those on one pair of sets together, in parts of _PART at most."""
    pairs = [
        list(some)
        for _, some in itertools.groupby(runs, lambda run: (run.encoder, run.id_set, run.ood_set))
    ]
    least = 1 if len(pairs) >= jobs else jobs
    chunks = [
        pair[i::pieces]
        for pair in pairs
        for pieces in [max(min(least, len(pair)), -(-len(pair) // _PART))]
        for i in range(pieces)
    ]
    Keeper(keeping).__exit__()  # what cannot be kept is said before the work
    records: list[Record] = []
    problems: list[str] = []
    with ProcessPoolExecutor(min(jobs, len(chunks)), _processes()) as workers:
        # Before there is a thread that tells how it goes: processes begin as copies of this one.
        results = workers.map(functools.partial(_run_chunk, root, keeping), chunks)
        with reporter.waiting(
            lambda: f"{len(records):,} of {len(runs):,} runs done, {jobs} processes"
        ):
            for done, problem in results:
                records += done
                problems += [problem] * bool(problem)
    _tell("".join(problems[:1]), reporter)
    return records


def _processes() -> Any:
    """How processes begin: as copies of this one where that is safe, else with imports anew.

    Of a process with other threads, or that torch runs in, it is not: locks would stay locked.
    """
    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return multiprocessing.get_context("fork" if sys.platform == "linux" and alone else "spawn")


@functools.cache
def _simulator(root: Path) -> Simulator:
    """That of a process: its next part may be on the same features."""
    return Simulator(root)


def _run_chunk(
    root: Path, keeping: Keeping | None, runs: Sequence[RunSettings]
) -> tuple[list[Record], str]:
    """Runs in a process of their own, and why one of them could not be kept."""
    simulator = _simulator(root)
    with Keeper(keeping) as keeper:
        return [keeper.keep(simulator.replay(run)) for run in runs], keeper.problem


def _run_some(
    root: Path,
    runs: Sequence[RunSettings],
    live: LiveFactory | None,
    reporter: Reporter,
    keeping: Keeping | None,
) -> list[Record]:
    records: list[Record] = []
    if not runs:
        return records
    simulator = Simulator(root, live)
    analyse = keeping is not None and keeping.gradients
    with Keeper(keeping) as keeper, reporter.waiting(lambda: _progress(runs, len(records))):
        for settings in runs:
            records.append(keeper.keep(simulator.replay(settings, analyse)))
            if records[-1].unfinished:
                break
    _tell(keeper.problem, reporter)
    return records


def _tell(problem: str, reporter: Reporter) -> None:
    """Say why results are not kept."""
    if problem:
        reporter.note(f"note: results are not kept: {problem}")


def _progress(runs: Sequence[RunSettings], done: int) -> str:
    now = _named(runs[min(done, len(runs) - 1)])
    return f"run {done + 1:,} of {len(runs):,}: {now}"


def _named(run: RunSettings) -> str:
    against = f" against {run.ood_set}" if run.ood_set else ""
    return f"{run.method} on {run.id_set}{against} at {run.stream.ratio:.4g}"
