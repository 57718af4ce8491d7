"""Many runs, in order, in one process or several."""

import os
import sys
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.progress import Reporter, Silent
from zsntta_cli.results.keeping import Keeper, Keeping, kept_before
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory, Simulator

_WORTH = 4  # runs for which a process reads what another one has read
_FEW = 8  # runs that several processes are not worth


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
    """Runs in several processes, each of which takes another one when it is free."""
    from concurrent.futures import ProcessPoolExecutor

    Keeper(keeping).__exit__()  # what cannot be kept is said before the work
    processes, jobs = _processes(), min(jobs, len(runs))
    simulator = Simulator(root) if processes.get_start_method() == "fork" else None
    if simulator:  # for all copies of this process
        simulator.prepare(runs)
    left = _Left(runs, processes)
    with ProcessPoolExecutor(jobs, processes, _begin, (left, root, simulator)) as workers:
        # Before there is a thread that tells how it goes: processes begin as copies of this one.
        threads = max(1, (os.cpu_count() or 1) // jobs)
        results = [workers.submit(_run_left, keeping, threads) for _ in range(jobs)]
        with (
            left,
            reporter.waiting(lambda: f"{left.done:,} of {len(runs):,} runs done, {jobs} processes"),
        ):
            made = [result.result() for result in results]
    _tell(next((problem for _, problem in made if problem), ""), reporter)
    return [record for records, _ in made for record in records]


def _processes() -> Any:
    """How processes begin: as copies of this one where that is safe, else with imports anew.

    Of a process with other threads, or that torch runs in, it is not: locks would stay locked.
    """
    import multiprocessing

    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return multiprocessing.get_context("fork" if sys.platform == "linux" and alone else "spawn")


class _Left:
    """Runs that are left to do, of which processes take one after the other.

    Each stays with the sets that it has read as long as there are runs on them.
    """

    def __init__(self, runs: Sequence[RunSettings], processes: Any) -> None:
        by_sets: dict[tuple[str, str, str | None], list[RunSettings]] = {}
        for run in runs:
            by_sets.setdefault((run.encoder, run.id_set, run.ood_set), []).append(run)
        self._runs = list(by_sets.values())
        self._id_sets = [sets[:2] for sets in by_sets]
        self._taken = processes.Array("q", len(by_sets))
        self._done = processes.Value("q", 0)

    def take(self, last: int | None) -> tuple[RunSettings, int] | None:
        """A run and the place of its sets, given that of the run before; None if none is left."""
        with self._taken.get_lock():
            taken = self._taken[:]
            read = {id_set for id_set, begun in zip(self._id_sets, taken, strict=True) if begun}
            fits = [self._fit(place, taken[place], last, read) for place in range(len(taken))]
            place = fits.index(max(fits))
            if fits[place] < (0, 0):
                return None
            self._taken[place] += 1
            return self._runs[place][taken[place]], place

    def _fit(
        self, place: int, taken: int, last: int | None, read: Collection[tuple[str, str]]
    ) -> tuple[int, int]:
        """How well runs on some sets suit a process, and how many are left; below 0: not at all."""
        left, id_set = len(self._runs[place]) - taken, self._id_sets[place]
        if not left or (taken and place != last and left < _WORTH):
            return -1, left
        if taken:
            return (4 if place == last else 0), left
        if last is not None and id_set == self._id_sets[last]:
            return 3, left
        return (1 if id_set in read else 2), left

    @property
    def done(self) -> int:
        """How many are finished."""
        return int(self._done.value)

    def finished(self) -> None:
        """One more is."""
        with self._done.get_lock():
            self._done.value += 1

    def __enter__(self) -> "_Left":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """After an error of one process the others begin no other run."""
        if kind:
            with self._taken.get_lock():
                self._taken[:] = [len(runs) for runs in self._runs]


_of_process: list[tuple[_Left, Simulator]] = []


def _begin(left: _Left, root: Path, simulator: Simulator | None) -> None:
    """A process; a copy has what was read before."""
    _of_process[:] = [(left, simulator or Simulator(root))]


def _run_left(keeping: Keeping | None, threads: int) -> tuple[list[Record], str]:
    """Runs in a process of their own, and why one of them could not be kept."""
    [(left, simulator)], records, last = _of_process, list[Record](), None
    with left, Keeper(keeping) as keeper, threadpool_limits(threads, "blas"):
        while taken := left.take(last):
            settings, last = taken
            records.append(keeper.keep(simulator.replay(settings)))
            left.finished()
        return records, keeper.problem


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
