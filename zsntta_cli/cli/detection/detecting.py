"""How a detection is run from the command line: where rows go, and what ends it."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from zsntta_cli.cli.command import drop_unwritten, say
from zsntta_cli.cli.output import PAGES, form_of
from zsntta_cli.detection.encoding.encoding import Encoding
from zsntta_cli.detection.runs.detecting import Batch, Detection, detection
from zsntta_cli.detection.runs.request import Request, Watch
from zsntta_cli.detection.runs.rows import Row
from zsntta_cli.detection.runs.sorting import Sorter
from zsntta_cli.detection.runs.watching import Watching, locked, resumed
from zsntta_cli.progress import Reporter
from zsntta_cli.report import verdict_files
from zsntta_cli.report.review.writing import ReviewFile
from zsntta_cli.report.verdict_files import GrowingFile, WholeFile, json_lines
from zsntta_cli.report.verdicts import Tally, draw, line

_AT_ONCE = 500  # rows between two looks whether anybody still reads


@dataclass
class Output:
    """Where rows go: a file, folders, standard output."""

    path: Path | None
    only: str | None  # "noise" or "clean": rows of these alone
    print0: bool
    sort_to: Path | None
    links: bool
    reporter: Reporter
    file: WholeFile | GrowingFile | None = None
    sorter: Sorter | None = None
    review: ReviewFile | None = None
    tally: Tally = field(default_factory=lambda: Tally("", 0))
    _later: list[Row] = field(default_factory=list)  # rows of the table at the end
    _names: Sequence[str] = ()
    _hindsight: bool = True
    _heard: bool = True  # whether somebody reads standard output

    def check(self, grows: bool) -> None:
        """Look at the files' names before anything is done: UsageError where one will not do."""
        forms = verdict_files.GROWING if grows else verdict_files.FORMS
        form_of(self.path, forms, option="out")
        if self.path:
            verdict_files.check_writable(self.path)
        if self.review:
            form_of(self.review.path, PAGES, option="review")

    def open(self, job: Detection) -> None:
        """Begin: nothing is written yet."""
        names = self._names = job.detector.class_names
        self._hindsight = not job.request.on_arrival
        self.tally = Tally(job.request.method, len(names))
        if self.sort_to:
            self.sorter = Sorter(self.sort_to, self.links, names, self.reporter)

    def take(self, batch: Batch, show: Callable[[Sequence[Row]], None]) -> None:
        """Take a batch of rows; `show` writes to standard output."""
        self.tally.add(batch.rows)
        pairs = [pair for pair in zip(*batch, strict=True) if self._is_wanted(pair[1])]
        rows = [row for _, row in pairs]
        if self.file:
            self.file.write(rows)
        if self.sorter:
            self.sorter.put(Batch([item for item, _ in pairs], rows))
        if self.review:
            self.review.take(batch)
        for start in range(0, len(rows), _AT_ONCE):
            self._tell(lambda some=rows[start : start + _AT_ONCE]: show(some))  # type: ignore[misc]

    def _is_wanted(self, row: Row) -> bool:
        return self.only is None or row["noise"] is (self.only == "noise")

    def _tell(self, write: Callable[[], None]) -> None:
        """Write to standard output; whoever closes it early has seen enough."""
        if not self._heard:
            return
        try:
            write()
        except BrokenPipeError:
            drop_unwritten()
            self._heard = False
            if not self.file and not self.sorter and not self.review:
                raise typer.Exit(0) from None

    def whole(self, rows: Sequence[Row]) -> None:
        """Show rows that are decided in hindsight: on a terminal as a table, at the end."""
        self._show(rows, self._later.extend)

    def live(self, rows: Sequence[Row]) -> None:
        """Show rows as they are decided."""
        self._show(rows, _tell_lines)

    def _show(self, rows: Sequence[Row], on_terminal: Callable[[Sequence[Row]], Any]) -> None:
        if self.print0:
            judged = (row for row in rows if row["error"] is None)
            _write(b"".join(os.fsencode(row["source"]) + b"\0" for row in judged))
        elif sys.stdout.isatty():
            on_terminal(rows)
        elif not self.path:
            _write(json_lines(rows))

    def close(self) -> None:
        """End: the file is written, what was found is said."""
        if self.file:
            self.file.close()
        if table := draw(self._later):
            self.tally.drawn = True
            self._tell(lambda: typer.echo(table, nl=False))
        if self.sorter:
            self.sorter.close()
        if self.review:
            self.review.close(self._names, self.tally.method, self._hindsight)
        for text in self.tally.lines():
            say(text, err=True)


def _write(content: bytes) -> None:
    typer.echo(content, nl=False)


def _tell_lines(rows: Sequence[Row]) -> None:
    for row in rows:
        if row["noise"] or row["error"] is not None:
            say(line(row))


def run(request: Request, encoding: Encoding, output: Output, state: Path | None) -> int:
    """Detect, and put rows where they go; how many are noise."""
    if request.watch:
        _watch(request, request.watch, encoding, output, state)
    else:
        _once(request, encoding, output)
    return output.tally.counts["noise"]


def _once(request: Request, encoding: Encoding, output: Output) -> None:
    job = detection(request, encoding)
    output.open(job)
    output.file = WholeFile(output.path) if output.path else None
    try:
        for batch in job.batches():
            output.take(batch, output.live if request.on_arrival else output.whole)
    except KeyboardInterrupt:
        if request.on_arrival:  # what was decided stays decided
            output.close()
        raise
    output.close()


def _watch(
    request: Request, watch: Watch, encoding: Encoding, output: Output, state: Path | None
) -> None:
    with locked(state) if state else contextlib.nullcontext():
        job = detection(request, encoding)
        output.open(job)
        is_new = not (state and state.exists())
        known = resumed(state, job.detector, output.path)
        file = GrowingFile(output.path, known.size, is_new) if output.path else None
        output.file = file
        if job.detector.seen:
            encoding.reporter.note(f"{state}: goes on after {len(known.seen):,} images.")
        if sys.stderr.isatty():
            encoding.reporter.note(f"watching {', '.join(request.sources)}: Ctrl-C ends it.")
        watching = Watching(job, watch, known, state)
        with _stopping() as stop, contextlib.closing(file) if file else contextlib.nullcontext():
            for batch in watching.batches(lambda: file.size if file else 0, stop):
                output.take(batch, output.live)
        output.close()


@contextlib.contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Ctrl-C ends a watch after the batch that is being decided; a second one at once."""
    stop = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def ask(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)

    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, before)
