"""The results of many runs: from the store, or computed by workers and kept as each run ends.

A worker is this process, one of several processes of this machine, a process for each device of
live runs, or an actor of a Ray cluster. Each computes one run after the other; only this process
writes the store. A kill at any moment loses the runs under way and nothing else, and the same
command computes them again. A live run that another command computes is known by a lock of the file
system, which the system frees when the process dies that holds it.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zsntta_cli.errors import EncoderError, SettingsError, StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.progress import Reporter, Silent
from zsntta_cli.results.keeping import (
    Keeper,
    Keeping,
    kept_before,
    runs_by_key,
)
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.running import (
    Failures,
    Jobs,
    OnRay,
    reporting,
    run_name,
    tell_problem,
)
from zsntta_cli.results.store import RecordStore
from zsntta_cli.results.workers import Outcome, Worker, WorkerLost, encoding, replaying
from zsntta_cli.settings.options import check
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory, Simulator

_POLL = 1.0  # seconds between two looks at what other commands compute
Sets = tuple[str, str, str | None]  # the encoder, the ID set and the OOD set of a run


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

    The results do not depend on the workers. With `keeping`, runs that the store has are taken from
    it, and each other one is kept as soon as it has ended. A live run that Ctrl-C stopped is the
    last one. With `failures`, a run that fails is put there and the others go on; without it, the
    first error ends all.

    Raises:
        SettingsError: zero processes, or several for live methods; a cluster without Ray.
        EncoderError: all workers were lost.
    """
    check(isinstance(jobs, OnRay) or jobs >= 1, f"jobs is {jobs}, must be 1 or more.")
    reporter = reporter or Silent()
    kept_runs = kept_before(root, runs, keeping) if keeping else {}
    if kept_runs:
        reporter.note(f"{len(kept_runs):,} of {len(runs):,} runs were kept from before")
    new_runs = [run for run in runs if run not in kept_runs]
    live_runs = _live_among(root, new_runs)
    if live_runs and not isinstance(jobs, OnRay) and jobs > 1:
        raise SettingsError("live methods take the whole machine: jobs must be 1.")
    if keeping:
        tidy(keeping.path)
    Keeper(keeping).__exit__()  # what cannot be kept is said before the work
    replays = [run for run in new_runs if run not in live_runs]
    images = [run for run in new_runs if run in live_runs]
    work = _Work(root, reporter, keeping, failures, _finished(root, images, keeping))
    if isinstance(jobs, OnRay):
        from zsntta_cli.results.ray_workers import Cluster  # not for every start

        with Cluster(root, keeping, jobs.workers) as cluster:
            work.do(replays, lambda: cluster.replaying(replays))
            work.do(images, lambda: cluster.encoding(images, live), are_live=True)
    else:
        work.do(replays, replaying(root, keeping, replays, jobs, failures))
        work.do(images, encoding(root, keeping, live), are_live=True)
    by_run = {run: kept.record for run, kept in kept_runs.items()}
    by_run |= {record.settings: record for record in work.records}
    return [by_run[run] for run in runs if run in by_run]


def _live_among(root: Path, runs: Sequence[RunSettings]) -> set[RunSettings]:
    """The runs that need the encoder; what they need is not imported for others."""
    if not any(METHODS[run.method].live for run in runs):
        return set()
    from zsntta_cli.simulation.tuned import live_among

    return live_among(root, runs)


def _finished(
    root: Path, runs: Sequence[RunSettings], keeping: Keeping | None
) -> dict[RunSettings, Record]:
    """The results that the store has of some runs, also of those that are to be made again."""
    if keeping is None or not runs:
        return {}
    every = replace(keeping, fresh=False, again=frozenset())
    return {run: kept.record for run, kept in kept_before(root, runs, every).items()}


@dataclass
class _Work:
    """Runs that workers compute, their records so far, and the store that keeps them."""

    root: Path
    reporter: Reporter
    keeping: Keeping | None
    failures: Failures | None
    before: Mapping[RunSettings, Record]  # of live runs that the store has, and that are made again
    records: list[Record] = field(default_factory=list)

    def do(
        self,
        runs: Sequence[RunSettings],
        make_workers: Callable[[], Sequence[Worker]],
        are_live: bool = False,
    ) -> None:
        """Compute runs, and keep each result as it comes.

        Raises:
            EncoderError: all workers were lost.
        """
        if not runs or any(record.unfinished for record in self.records):
            return
        locks = _Locks(self.root, runs, self.keeping) if are_live and self.keeping else None
        queue = _Queue(runs, locks)
        # Before there is a thread that tells how it goes: processes begin as copies of this one.
        workers = _Workers(make_workers())
        with (
            contextlib.closing(queue),
            contextlib.closing(workers),
            Keeper(self.keeping) as keeper,
            self.reporter.waiting(lambda: _progress(queue, workers), lambda: queue.share),
        ):
            try:
                while queue.left:
                    self._send(queue, workers)
                    for run, future in workers.ended(_POLL if queue.waits else None):
                        self._end(run, future, queue, workers, keeper)
                        if any(record.unfinished for record in self.records[-1:]):
                            return
            except BaseException:
                self._keep_finished(workers, keeper)
                raise
        tell_problem(keeper.problem, self.reporter)

    def _send(self, queue: "_Queue", workers: "_Workers") -> None:
        """Give each idle worker a run; take the results of runs that other commands finished."""
        for worker in list(workers.idle):
            while (run := queue.take(worker)) and queue.is_shared:
                if (record := self._from_others(run)) is None:
                    break
                self.records.append(record)
                queue.end(run)
            if run:
                workers.submit(worker, run)

    def _from_others(self, run: RunSettings) -> Record | None:
        """The result of a live run that another command has finished since this one began."""
        record = _finished(self.root, [run], self.keeping).get(run)
        return None if record == self.before.get(run) else record

    def _end(
        self,
        run: RunSettings,
        future: "Future[Outcome]",
        queue: "_Queue",
        workers: "_Workers",
        keeper: Keeper,
    ) -> None:
        """Keep a run's result, or note its error; a run whose worker was lost is for another."""
        try:
            result, notes = future.result()
        except WorkerLost as error:
            self.reporter.note(f"note: {error}")
            queue.put_back(run)
            if not workers.alive:
                raise EncoderError(
                    f"{error}: what was finished is kept; the same command goes on."
                ) from error
            return
        for note in notes:
            self.reporter.note(note)
        with reporting(run, self.failures):
            if isinstance(result, Exception):
                raise result
            self.records.append(keeper.add(result))
        queue.end(run)

    def _keep_finished(self, workers: "_Workers", keeper: Keeper) -> None:
        """Keep what has ended meanwhile; the error that ends the work is the one to tell."""
        with contextlib.suppress(Exception):
            for _, future in workers.ended(0):
                result = future.result().result
                if isinstance(result, Kept):
                    keeper.add(result)


def _progress(queue: "_Queue", workers: "_Workers") -> str:
    """What is computed, in words."""
    names = ", ".join(dict.fromkeys(map(run_name, workers.runs)))
    if len(workers.names) == 1 and names:
        return f"run {queue.ended + 1:,} of {queue.count:,}: {names}"
    done = f"{queue.ended:,} of {queue.count:,} runs done"
    if queue.waits and not names:
        left = ", ".join(sorted(set(map(run_name, queue.left))))
        return f"{done}, waiting for another command, which is at work on {left}"
    return f"{done}, {len(workers.runs):,} of {len(workers.names):,} workers busy"


class _Workers:
    """The workers, what each is doing, and the sets that each has read last."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.alive = list(workers)
        self.idle = list[Worker]()
        self._asked: dict[Future[Any], tuple[Worker, RunSettings | None]] = {
            worker.begin(): (worker, None) for worker in workers
        }

    @property
    def names(self) -> list[str]:
        """The names of the workers that are not lost."""
        return [worker.name for worker in self.alive]

    @property
    def runs(self) -> list[RunSettings]:
        """The runs under way."""
        return [run for _, run in list(self._asked.values()) if run]

    def submit(self, worker: Worker, run: RunSettings) -> None:
        """Give an idle worker a run."""
        self.idle.remove(worker)
        # Before it is computed, which in this process is at once: what is told names the run.
        place: Future[Any] = Future()
        self._asked[place] = worker, run
        try:
            self._asked[worker.submit(run)] = worker, run
        finally:
            del self._asked[place]

    def ended(self, seconds: float | None) -> Iterator[tuple[RunSettings, "Future[Outcome]"]]:
        """The runs that have ended, as soon as there is one, or after some seconds."""
        if not self._asked:
            time.sleep(seconds or 0)
            return
        done, _ = wait(self._asked, seconds, FIRST_COMPLETED)
        for future in done:
            worker, run = self._asked.pop(future)
            if isinstance(future.exception(), WorkerLost):
                self.alive.remove(worker)
                worker.stop()  # what is left of it
            else:
                self.idle.append(worker)
            if run:
                yield run, future
            else:
                future.result()  # raises what keeps it from computing any run

    def close(self) -> None:
        """End all workers, whatever they do."""
        for worker in self.alive:
            worker.stop()


class _Queue:
    """The runs that have not ended; a worker stays with the sets that it has read.

    Reading and scoring a set costs as much as some runs on it. So an idle worker goes on with the
    sets of its last run, then with those that no other worker has.
    """

    def __init__(self, runs: Sequence[RunSettings], locks: "_Locks | None" = None) -> None:
        self.count, self.ended, self.waits = len(runs), 0, False
        self.left = dict.fromkeys(runs)  # in order, those under way included
        self._locks = locks
        self._waiting: dict[Sets, list[RunSettings]] = {}
        for run in runs:
            self._waiting.setdefault(_sets(run), []).append(run)
        self._last: dict[str, Sets] = {}  # by worker

    @property
    def is_shared(self) -> bool:
        """Whether other commands may compute the runs too."""
        return self._locks is not None

    @property
    def share(self) -> float:
        """The share of the runs that have ended."""
        return self.ended / self.count

    def take(self, worker: Worker) -> RunSettings | None:
        """The next run for a worker; None if none is left, or other commands compute them all."""
        last, others = self._last.get(worker.name), Counter(self._last.values())
        places = [sets for sets, waiting in self._waiting.items() if waiting]
        self.waits = False
        for sets in sorted(places, key=lambda sets: (sets != last, others[sets])):
            for run in self._waiting[sets]:
                if self._locks and not self._locks.take(run):
                    self.waits = True
                    continue
                self._waiting[sets].remove(run)
                self._last[worker.name] = sets
                return run
        return None

    def put_back(self, run: RunSettings) -> None:
        """Let another worker compute a run."""
        self._waiting[_sets(run)].insert(0, run)

    def end(self, run: RunSettings) -> None:
        """Count a run that has ended."""
        del self.left[run]
        self.ended += 1
        if self._locks:
            self._locks.free(run)

    def close(self) -> None:
        """Free all that is held."""
        if self._locks:
            self._locks.close()


def _sets(run: RunSettings) -> Sets:
    return run.encoder, run.id_set, run.ood_set


class _Locks:
    """Locks of runs beside the store: who holds one computes the run, until its process ends."""

    def __init__(self, root: Path, runs: Sequence[RunSettings], keeping: Keeping) -> None:
        self._store, self._folder = keeping.path, lock_folder(keeping.path)
        # A run that could not be found again is nobody's to wait for.
        self._keys = {run: key for key, run in runs_by_key(root, runs).items()}
        self._held = dict[RunSettings, Any]()

    def take(self, run: RunSettings) -> bool:
        """Hold a run's lock, if no other process does; where none can be made it is as held."""
        from filelock import FileLock, Timeout

        if run in self._held or run not in self._keys:
            return True
        try:
            with _alone(self._store):
                self._folder.mkdir(exist_ok=True)
                lock = FileLock(self._folder / f"{self._keys[run]}.lock", thread_local=False)
                with contextlib.suppress(Timeout):
                    lock.acquire(timeout=0)
        except StoreError:  # a place where no result can be kept either
            return True
        if not lock.is_locked:
            return False
        self._held[run] = lock
        return True

    def free(self, run: RunSettings) -> None:
        """Free a run's lock; its file goes with the others that nobody holds."""
        if lock := self._held.pop(run, None):
            lock.release()

    def close(self) -> None:
        """Free all locks, and remove their files."""
        for run in list(self._held):
            self.free(run)
        tidy(self._store)


def tidy(store: Path) -> None:
    """Remove locks that nobody holds, as a killed process leaves them, and then their folder."""
    from filelock import FileLock, Timeout

    folder = lock_folder(store)
    if not folder.is_dir():
        return
    with contextlib.suppress(StoreError), _alone(store):
        for path in folder.glob("*.lock"):
            with contextlib.suppress(Timeout), FileLock(path, timeout=0, is_singleton=False):
                path.unlink(missing_ok=True)
        folder.rmdir()


@contextlib.contextmanager
def _alone(store: Path) -> Iterator[None]:
    """Within it one process at a time is: a lock whose file another removes holds nobody off."""
    with RecordStore(store, create=True) as records, records.changing():
        yield


def lock_folder(store: Path) -> Path:
    """The folder of locks beside a store; it is there while live runs are computed."""
    return store.with_name(f"{store.name}.live")
