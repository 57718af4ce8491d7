"""Progress and notes, to stderr: one line that changes on a terminal, a few lines otherwise."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from zsntta_cli.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

_PLAIN_WIDTH = 240  # lines that go to a file are not wrapped
_SECONDS_TO_A_WORD = 2  # of waiting before it is reported; by then the time left can be estimated
_SECONDS_A_CHANGE = 1  # of the line on a terminal
_SECONDS_A_LINE = 30  # between lines without a terminal
_MINUTE, _HOUR = 60, 3600  # seconds


class Advance(Protocol):
    """A function that advances a progress."""

    def __call__(self, images: int, status: str = "") -> None:
        """Advance the progress by `images` images; `status` is a short text beside it."""


def time_text(seconds: float) -> str:
    """A duration in a suitable unit."""
    text, unit = f"{seconds:.2g}", "second"
    if seconds >= _MINUTE:
        size, unit = (_HOUR, "hour") if seconds >= _HOUR else (_MINUTE, "minute")
        text = f"{seconds / size:.1f}".removesuffix(".0")
    return f"{text} {unit}" if text == "1" else f"{text} {unit}s"


def console(stderr: bool = False, plain: bool = False) -> "Console":
    """Make a console; without a terminal, or if `plain`, it has no colours.

    Its width is then COLUMNS, or large if COLUMNS is not set or the text is for a file.
    """
    from rich.console import Console

    terminal = Console(stderr=stderr, highlight=False, emoji=False)
    if terminal.is_terminal and not terminal.is_jupyter and not plain:
        return terminal
    # In a notebook, rich would show at once what is to become a text; `force_jupyter` stops that.
    return Console(
        stderr=stderr, highlight=False, emoji=False, force_terminal=False, force_jupyter=False,
        width=_PLAIN_WIDTH if plain else columns() or _PLAIN_WIDTH,
    )  # fmt: skip


def columns() -> int:
    """The width that the environment variable COLUMNS sets, or 0."""
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isascii() and text.isdigit() else 0


class Reporter:
    """An object to which long work reports its progress and its notes; this one shows nothing."""

    def note(self, text: str) -> None:
        """Show a note."""

    @contextmanager
    def track(self, _name: str, _total: int, _unit: str = "images") -> Iterator[Advance]:
        """Show progress; the yielded function advances it, by images or another unit."""
        yield lambda _images, _status="": None

    @contextmanager
    def waiting(
        self, _doing: Callable[[], str], _share: Callable[[], float] | None = None
    ) -> Iterator[None]:
        """Say what is being done if it takes long and no progress is shown.

        The time left is estimated from the share of the work that is done, in [0, 1].
        """
        yield


class ConsoleReporter(Reporter):
    """A reporter that shows progress and notes on stderr."""

    def __init__(self) -> None:
        self._console = console(stderr=True)
        self._tracking = False
        self._status: Status | None = None  # of waiting, on a terminal
        self._lock = threading.Lock()  # on the line of the terminal, which has one owner

    def note(self, text: str) -> None:
        """Show a note."""
        self._console.print(printable(text), markup=False, soft_wrap=True)

    @contextmanager
    def track(self, name: str, total: int, unit: str = "images") -> Iterator[Advance]:
        """Show progress; the yielded function advances it, and may show a status."""
        with self._lock:
            self._tracking = True
            if self._status:
                self._status.stop()
        tracking = self._bar if self._console.is_terminal else self._lines
        try:
            with tracking(name, total, unit) as advance:
                yield advance
        finally:
            self._tracking = False

    @contextmanager
    def waiting(
        self, doing: Callable[[], str], share: Callable[[], float] | None = None
    ) -> Iterator[None]:
        """Say what is being done, after two seconds and then repeatedly."""
        ended, started = threading.Event(), time.monotonic()

        def tell() -> None:
            wait = _SECONDS_TO_A_WORD
            while not ended.wait(wait):
                seconds, done = time.monotonic() - started, share() if share else 0
                rest = f", about {time_text(seconds / done - seconds)} left" if done else ""
                text = f"{doing()}, {time_text(seconds)} so far{rest}"
                wait = _SECONDS_A_CHANGE if self._console.is_terminal else _SECONDS_A_LINE
                with self._lock:
                    if self._console.is_terminal and not self._tracking:
                        from rich.text import Text

                        self._status = self._status or self._console.status("")
                        self._status.update(Text(printable(text)))
                        self._status.start()
                    elif not self._tracking:
                        self.note(text)

        thread = threading.Thread(target=tell, daemon=True)
        with contextlib.suppress(RuntimeError):  # no memory for a thread: nothing is shown
            thread.start()
        try:
            yield
        finally:
            ended.set()
            if thread.ident is not None:
                thread.join()
            if self._status:
                self._status.stop()

    @contextmanager
    def _lines(self, name: str, total: int, unit: str) -> Iterator[Advance]:
        """Notes, twice a minute."""
        started = last = time.monotonic()
        first: int | None = None  # what an earlier run has finished already
        done = 0

        def advance(images: int, status: str = "") -> None:
            nonlocal done, first, last
            done += images
            first = done if first is None else first
            now = time.monotonic()
            if now - last >= _SECONDS_A_LINE and done > first:
                last, rate = now, (done - first) / (now - started)
                self.note(
                    f"{name}: {done:,}/{total:,} {unit}, {rate:,.1f} {unit}/s, "
                    f"{(total - done) / rate:,.0f} s left" + (f", {status}" if status else "")
                )

        yield advance

    @contextmanager
    def _bar(self, name: str, total: int, unit: str) -> Iterator[Advance]:
        """A bar on the terminal."""
        from rich import progress

        width = max(4, min(40, self._console.width - 72))  # the other columns take 72
        bar = progress.Progress(
            progress.TextColumn("{task.description}"), progress.BarColumn(width),
            progress.MofNCompleteColumn(), progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(), progress.TextColumn("{task.fields[status]}"),
            console=self._console, transient=True,
        )  # fmt: skip
        with bar:
            task = bar.add_task(name, total=total, rate="", status="")

            def advance(images: int, status: str = "") -> None:
                bar.advance(task, images)
                speed = bar.tasks[0].speed
                rate = f"{speed:,.0f}{'' if status else f' {unit}'}/s" if speed else ""
                bar.update(task, rate=rate, status=status)

            yield advance
