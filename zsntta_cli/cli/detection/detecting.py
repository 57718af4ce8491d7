"""How a detection is run from the command line: which sinks take its rows, and what ends it."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

import typer

from zsntta_cli.cli.command import drop_unwritten, say
from zsntta_cli.cli.detection.options import DecisionOptions, ImageOptions
from zsntta_cli.detection.classes.names import read_classes, typed_classes
from zsntta_cli.detection.detecting.corrections import Corrected
from zsntta_cli.detection.detecting.request import Request
from zsntta_cli.detection.detecting.run import Batch, DetectRun, RowSink, detect_run
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.flags import Flag
from zsntta_cli.detection.verdicts import CLEAN, VerdictAnswer, VerdictRow
from zsntta_cli.errors import DatasetError, counted, short
from zsntta_cli.report.verdict_files import json_lines
from zsntta_cli.report.verdicts import SHOWN, Tally, draw, line

_AT_ONCE = 500  # rows between two looks whether anybody still reads


def request_of(images: ImageOptions, decision: DecisionOptions) -> Request:
    """What the options ask for: SettingsError where it will not do."""
    return Request(
        sources=tuple(images.sources or ()),
        set_name=images.set_name,
        all_folders=images.all_folders,
        classes=_classes(images),
        class_photos=images.class_photos,
        prompt=images.prompt,
        method=decision.method,
        flag=Flag.parse(decision.flag),
    )


def _classes(images: ImageOptions) -> tuple[str, ...]:
    """The class names that are given; none where the set or photos have them."""
    if images.classes_file:
        return read_classes(images.classes_file)
    names = () if images.classes is None else typed_classes(images.classes)
    if len(names) == 1 and " " in names[0]:
        say(f"note: '{short(names[0])}' is one class: commas separate names.", err=True)
    return names


class Outputs:
    """Where the rows of a run go, and what is to be said of all of them at the end."""

    def __init__(
        self,
        wanted: Sequence[RowSink],
        everything: Sequence[RowSink],
        only: VerdictAnswer | None,
        screen: "Screen",
    ) -> None:
        """Have the first sinks and the screen take `only` rows of one answer; others take all."""
        self._wanted, self._screen = [*wanted, screen], screen
        self._everything, self._only = everything, only

    def open(self, run: DetectRun) -> None:
        """Begin; nothing is written yet."""
        self.tally, self._corrected = Tally.of(run), run.corrected
        for sink in (*self._everything, *self._wanted):
            sink.open(run)

    def take(self, batch: Batch) -> None:
        """Have all of them take the next rows."""
        self.tally.add(batch.rows)
        for sink in self._everything:
            sink.take(batch)
        batch = batch.only(self._only) if self._only else batch
        for sink in self._wanted:
            sink.take(batch)

    def complete(self) -> None:
        """End a run that has taken all of its images."""
        for sink in (*self._wanted, *self._everything):
            sink.complete()
        self.close()

    def close(self) -> None:
        """End: files are written, what was found is said."""
        for sink in (*self._wanted, *self._everything):
            sink.close()
        for text in self.tally.lines(self._screen.shown):
            say(text, err=True)
        for text in self._corrected.notes() if self._corrected else ():
            say(text, err=True)


class Screen(RowSink):
    """Standard output: on a terminal a table at the end, or lines as images are decided on arrival.

    Else it has rows as JSON Lines; `print0`: paths. With a file of rows it has none.
    """

    def __init__(self, print0: bool, has_file: bool, is_alone: bool) -> None:
        self._print0, self._has_file, self._is_alone = print0, has_file, is_alone
        self._later: list[VerdictRow] = []  # rows of the table at the end
        self.shown = 0  # rows of it at most; none where there is no table
        self._is_read = True  # whether somebody reads standard output

    def open(self, run: DetectRun) -> None:
        """Look at how images are decided."""
        self._is_live = run.request.on_arrival

    def take(self, batch: Batch) -> None:
        """Show rows, or keep them for the table."""
        for start in range(0, len(batch.rows), _AT_ONCE):
            self._tell(partial(self._show, batch.rows[start : start + _AT_ONCE]))

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
                if row["answer"] != CLEAN:
                    say(line(row))

    def close(self) -> None:
        """Show the table."""
        if table := draw(self._later):
            self.shown = SHOWN
            self._tell(lambda: typer.echo(table, nl=False))


def _write(content: bytes) -> None:
    typer.echo(content, nl=False)


def run_once(
    request: Request, encoding: Encoding, outputs: Outputs, corrected: Corrected | None
) -> None:
    """Detect, and put rows where they go."""
    run = detect_run(request, encoding, corrected)
    outputs.open(run)
    try:
        for batch in run.batches():
            outputs.take(batch)
    except KeyboardInterrupt:
        if request.on_arrival:  # what was decided stays decided
            outputs.close()
        raise
    outputs.complete()
    if not outputs.tally.judged:
        images = counted(outputs.tally.counts["images"], "image")
        is_any = outputs.tally.counts["images"]
        why = f"not one of {images} could be read" if is_any else "there was no image"
        raise DatasetError(f"nothing was judged: {why}.")
