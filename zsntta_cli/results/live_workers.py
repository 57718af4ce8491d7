"""Live runs on several devices: one process for each, which takes runs from the store's queue.

If an error or a kill ends a process, the others go on and take its run over from its last
checkpoint. Ctrl-C ends all processes, each with a checkpoint.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.errors import EncoderError
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Advance, Reporter, Silent
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.results.live_queue import run_queued
from zsntta_cli.results.running import Failures, portable
from zsntta_cli.settings import LiveSettings
from zsntta_cli.simulation import LiveDevices, live_session
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory

_WORD_EVERY = 2.0  # seconds between two words of a process on how far it is


class _Job(NamedTuple):
    """The work that all processes share."""

    scripts: LoadedScripts
    root: Path
    runs: Sequence[RunSettings]
    keeping: Keeping
    before: Mapping[str, float]
    goes_on: bool  # after a run that ends with an error


def run_live(
    root: Path,
    runs: Sequence[RunSettings],
    live: LiveFactory | None,
    reporter: Reporter,
    keeping: Keeping,
    failures: Failures | None,
    before: Mapping[str, float],
) -> list[Record]:
    """Compute live runs in this process, or with one process for each of several devices.

    Raises:
        EncoderError: all processes died.
        KeyboardInterrupt: the runs that Ctrl-C stopped had decided nothing yet.
    """
    if not isinstance(live, LiveDevices) or len(live.apart) == 1:
        return run_queued(root, runs, live, reporter, keeping, failures, before)
    job = _Job(LoadedScripts(), root, runs, keeping, before, failures is not None)
    with _ctrl_c_ignored():  # by them: it is this process that tells them to stop
        workers = [_Worker(job, settings) for settings in live.apart]
    results = _Results(len(runs))
    with _ended(workers) as is_stopped, reporter.waiting(results.status, results.share):
        results.collect(workers, reporter)
    records = list(results.records.values())
    if not results.is_complete:
        if any(record.unfinished for record in records):
            return records
        raise KeyboardInterrupt if is_stopped() or not results.problems else results.problems[0]
    if failures is not None:  # and no other process could do it
        failures |= {k: v for k, v in results.failed.items() if k not in results.records}
    return records


class _Worker:
    """A process on one device, and the connection over which it reports."""

    def __init__(self, job: _Job, settings: LiveSettings) -> None:
        processes = get_context("spawn")  # torch has threads, and CUDA outlives no fork
        self.device = settings.device
        self.tells, end = processes.Pipe(duplex=False)
        self.process = processes.Process(target=_work, args=(job, settings, end))
        self.process.start()
        end.close()

    def stop(self) -> None:
        """Make the process write its checkpoint and end."""
        if self.process.is_alive():
            self.process.terminate()

    def death(self) -> EncoderError:
        """The error that a process died without a report."""
        self.process.join()
        return EncoderError(
            f"the process on {self.device} died (exit code {self.process.exitcode}; -9 is a kill, "
            f"often for want of memory): what was finished is kept; the same command resumes."
        )


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Let processes that are started within the context ignore Ctrl-C from the beginning."""
    if threading.current_thread() is not threading.main_thread():  # has no say in signals
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _ended(workers: Sequence[_Worker]) -> Iterator[Any]:
    """Let Ctrl-C stop the processes, and a second one this process; none is left afterwards."""
    stopped = threading.Event()

    def stop(*_: object) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()
        for worker in workers:
            worker.stop()

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, stop) if is_main else None
    try:
        yield stopped.is_set
    except BaseException:
        for worker in workers:
            worker.process.kill()
        raise
    finally:
        for worker in workers:
            worker.process.join()
            worker.tells.close()
        if is_main:
            signal.signal(signal.SIGINT, before)


@dataclass
class _Results:
    """What the processes have reported."""

    count: int  # of runs
    records: dict[RunSettings, Record] = field(default_factory=dict)
    failed: Failures = field(default_factory=dict)
    problems: list[Exception] = field(default_factory=list)  # that ended a process
    is_complete: bool = False  # one of them saw the end of all runs
    _now: dict[str, str] = field(default_factory=dict)  # by device

    def status(self) -> str:
        """What each device is working on, in words."""
        words = (f"{device}: {text}" for device, text in dict(self._now).items())
        return "; ".join(words) or "processes are beginning"

    def share(self) -> float:
        """The share of the runs that are done."""
        return len({*self.records, *self.failed}) / self.count

    def collect(self, workers: Sequence[_Worker], reporter: Reporter) -> None:
        """Read reports until all processes have ended."""
        talking = {worker.tells: worker for worker in workers}
        while talking:
            for pipe in wait(list(talking)):
                assert isinstance(pipe, Connection)
                worker = talking[pipe]
                try:
                    kind, *content = pipe.recv()
                except (OSError, EOFError):
                    kind, content = "problem", [worker.death()]
                if kind in ("end", "problem"):
                    del talking[pipe]
                self._take(kind, content, worker.device, reporter)

    def _take(self, kind: str, content: list[Any], device: str, reporter: Reporter) -> None:
        match kind:
            case "note":
                reporter.note(content[0])
            case "now":
                self._now[device] = content[0]
            case "problem":
                reporter.note(f"note: {device} takes no part any more: {content[0]}")
                self.problems.append(content[0])
                self._now.pop(device, None)
            case "end":
                self.is_complete |= not content[1]
                self.failed |= content[2]
                for record in content[0]:
                    self._add(record)

    def _add(self, record: Record) -> None:
        """Add a record; a finished one replaces one that Ctrl-C stopped."""
        before = self.records.get(record.settings)
        if before is None or before.unfinished:
            self.records[record.settings] = record


def _work(job: _Job, settings: LiveSettings, tells: Connection) -> None:
    """Compute runs, as the process of one device, until all are finished or it is told to stop."""
    signal.signal(signal.SIGTERM, _stop_once)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    reporter = _Telling(tells)
    session = partial(live_session, settings, reporter)
    failures = Failures() if job.goes_on else None
    records, is_stopped = list[Record](), False
    try:
        records = run_queued(
            job.root, job.runs, session, reporter, job.keeping, failures, job.before
        )
    except KeyboardInterrupt:
        is_stopped = True  # nothing was decided yet, or it was waiting
    except Exception as error:
        tells.send(("problem", portable(error)))
        return
    is_stopped |= any(record.unfinished for record in records)
    tells.send(("end", records, is_stopped, failures or {}))


def _stop_once(*_: object) -> None:
    """Stop as Ctrl-C does; later signals are ignored, so that the checkpoint is written."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _stop_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


class _Telling(Silent):
    """A reporter that sends its reports to another process."""

    def __init__(self, tells: Connection) -> None:
        self._tells, self._lock = tells, threading.Lock()

    def note(self, text: str) -> None:
        """Send a note."""
        with self._lock:
            self._tells.send(("note", text))

    @contextmanager
    def track(self, name: str, total: int, _unit: str = "") -> Iterator[Advance]:
        """Send the progress at intervals."""
        done, last = 0, 0.0

        def advance(images: int, status: str = "") -> None:
            nonlocal done, last
            done += images
            if time.monotonic() - last >= _WORD_EVERY:
                last = time.monotonic()
                self._say(f"{name} {done:,}/{total:,} {status}")

        yield advance

    def _say(self, text: str) -> None:
        with self._lock:
            self._tells.send(("now", text))
