"""How a detection is run from the command line: which sinks take its rows, and what ends it."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import typer

from zsntta_cli.cli.command import drop_unwritten, say
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.runs.detecting import Batch, DetectRun, RowSink, detect_run
from zsntta_cli.detection.runs.request import Request, Watch
from zsntta_cli.detection.runs.sorting import Sorter
from zsntta_cli.detection.runs.watching import Watching, locked, resumed
from zsntta_cli.detection.verdicts import VerdictRow
from zsntta_cli.progress import Reporter
from zsntta_cli.report.review.review import ReviewFile
from zsntta_cli.report.verdict_files import GrowingFile, check_out, json_lines, whole_rows
from zsntta_cli.report.verdicts import Tally, draw, line

_AT_ONCE = 500  # rows between two looks whether anybody still reads
Which = Literal["noise", "clean"]


class Outputs:
    """The sinks of a run, in the order in which they take its rows."""

    def __init__(
        self,
        *,
        out: Path | None,
        only: Which | None,
        print0: bool,
        copy_to: Path | None,
        link_to: Path | None,
        review: ReviewFile | None,
        grows: bool,
        reporter: Reporter,
    ) -> None:
        """Look at where rows are to go; `grows`: their file comes with the state of a watch.

        Raises:
            SettingsError: a file's ending will not do. StoreError: it is a folder.
        """
        if out and grows:
            check_out(out, grows)
        self.out, self._only = out, only
        # Those of the rows that are asked for; the others see all.
        some = [
            whole_rows(out) if out and not grows else None,
            Sorter(copy_to, False, reporter) if copy_to else None,
            Sorter(link_to, True, reporter) if link_to else None,
        ]
        sinks = [self._wanted(sink) for sink in some if sink]
        sinks += [review] if review else []
        self.screen = Screen(only, print0, bool(out), is_alone=not (out or sinks))
        self._sinks = [*sinks, self.screen]

    def _wanted(self, sink: RowSink) -> RowSink:
        return Only(self._only, sink) if self._only else sink

    def add_file(self, file: RowSink) -> None:
        """Have rows go to a file before they go anywhere else."""
        self._sinks.insert(0, self._wanted(file))

    def open(self, run: DetectRun) -> None:
        """Begin."""
        for sink in self._sinks:
            sink.open(run)

    def take(self, batch: Batch) -> None:
        """Have all of them take the next rows."""
        for sink in self._sinks:
            sink.take(batch)

    def close(self) -> None:
        """End: files are written, what was found is said."""
        for sink in self._sinks:
            sink.close()


class Only(RowSink):
    """Passes the images of one verdict on to another sink."""

    def __init__(self, which: Which, sink: RowSink) -> None:
        self._which, self._sink = which, sink

    def open(self, run: DetectRun) -> None:
        """Begin."""
        self._sink.open(run)

    def take(self, batch: Batch) -> None:
        """Pass on what is wanted."""
        self._sink.take(batch.only(self._which))

    def close(self) -> None:
        """End."""
        self._sink.close()


class Screen(RowSink):
    """Standard output, and at the end what is to be said of all rows.

    On a terminal rows are a table at the end, or lines as they are decided on arrival; else they
    are JSON Lines, where no file has them.
    """

    def __init__(self, only: Which | None, print0: bool, has_file: bool, is_alone: bool) -> None:
        self._only, self._print0 = only, print0
        self._has_file, self._is_alone = has_file, is_alone
        self._later: list[VerdictRow] = []  # rows of the table at the end
        self._is_read = True  # whether somebody reads standard output

    def open(self, run: DetectRun) -> None:
        """Begin to count."""
        self.tally, self._is_live = Tally.of(run.detector), run.request.on_arrival

    def take(self, batch: Batch) -> None:
        """Show rows, or keep them for the table."""
        self.tally.add(batch.rows)
        rows = batch.only(self._only).rows if self._only else batch.rows
        for start in range(0, len(rows), _AT_ONCE):
            self._tell(partial(self._show, rows[start : start + _AT_ONCE]))

    def _tell(self, write: Callable[[], None]) -> None:
        """Write to standard output; whoever closes it early has seen enough."""
        if not self._is_read:
            return
        try:
            write()
        except BrokenPipeError:
            drop_unwritten()
            self._is_read = False
            if self._is_alone:
                raise typer.Exit(0) from None

    def _show(self, rows: Sequence[VerdictRow]) -> None:
        if self._print0:
            judged = (row for row in rows if row["error"] is None)
            _write(b"".join(os.fsencode(row["source"]) + b"\0" for row in judged))
        elif not sys.stdout.isatty():
            _write(b"" if self._has_file else json_lines(rows))
        elif not self._is_live:
            self._later += rows
        else:
            for row in rows:
                if row["noise"] or row["error"] is not None:
                    say(line(row))

    def close(self) -> None:
        """Show the table, and say what was found."""
        if table := draw(self._later):
            self.tally.drawn = True
            self._tell(lambda: typer.echo(table, nl=False))
        for text in self.tally.lines():
            say(text, err=True)


def _write(content: bytes) -> None:
    typer.echo(content, nl=False)


def run(request: Request, encoding: Encoding, outputs: Outputs, state: Path | None) -> int:
    """Detect, and put rows where they go; how many are noise."""
    if request.watch:
        _watch(request, request.watch, encoding, outputs, state)
    else:
        _once(request, encoding, outputs)
    return outputs.screen.tally.counts["noise"]


def _once(request: Request, encoding: Encoding, outputs: Outputs) -> None:
    detection = detect_run(request, encoding)
    outputs.open(detection)
    try:
        for batch in detection.batches():
            outputs.take(batch)
    except KeyboardInterrupt:
        if request.on_arrival:  # what was decided stays decided
            outputs.close()
        raise
    outputs.close()


def _watch(
    request: Request, watch: Watch, encoding: Encoding, outputs: Outputs, state: Path | None
) -> None:
    with locked(state) if state else contextlib.nullcontext():
        detection = detect_run(request, encoding)
        known = resumed(state, detection.detector, outputs.out)
        file = GrowingFile(outputs.out, known.size, known.is_new) if outputs.out else None
        if file:
            outputs.add_file(file)
        outputs.open(detection)
        if detection.detector.seen:
            encoding.reporter.note(f"{state}: goes on after {len(known.seen):,} images.")
        if sys.stderr.isatty():
            folders = ", ".join(request.images.sources)
            encoding.reporter.note(f"watching {folders}: Ctrl-C ends it.")
        watching = Watching(detection, watch, known, state)
        with _stopping() as stop, contextlib.closing(file) if file else contextlib.nullcontext():
            for batch in watching.batches(lambda: file.size if file else 0, stop):
                outputs.take(batch)
        outputs.close()


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
