"""What is said of long work while it goes."""

import io
import itertools
import threading
from types import SimpleNamespace

import pytest
from rich.console import Console

from zsntta_cli import progress
from zsntta_cli.progress import ConsoleReporter, time_text


@pytest.mark.parametrize(
    ("share", "rest"), [(None, ""), (0.0, ""), (0.25, ", about 24 seconds left")]
)
def test_the_rest_is_estimated_from_the_share_that_is_done(monkeypatch, capsys, share, rest):
    clock = itertools.chain([100.0], itertools.repeat(108.0))
    monkeypatch.setattr(progress, "_SECONDS_TO_A_WORD", 0.01)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    asked = threading.Event()

    def doing():
        asked.set()
        return "run 2 of 4"

    with ConsoleReporter().waiting(doing, None if share is None else lambda: share):
        assert asked.wait(60)
    assert capsys.readouterr().err == f"run 2 of 4, 8 seconds so far{rest}\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5, "5 seconds"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (90, "1.5 minutes"),
        (3_700, "1 hour"),
        (7_200, "2 hours"),
        (0.996, "1 second"),
    ],
)
def test_a_duration_has_a_suitable_unit(seconds, text):
    assert time_text(seconds) == text


def test_on_a_terminal_one_line_lives_and_a_progress_takes_its_place(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(
        progress, "console", lambda stderr: Console(file=shown, force_terminal=True, width=80)
    )
    monkeypatch.setattr(progress, "_SECONDS_TO_A_WORD", 0.01)
    monkeypatch.setattr(progress, "_SECONDS_A_CHANGE", 0.01)
    reporter, asked = ConsoleReporter(), threading.Semaphore(0)

    def doing():
        asked.release()
        return "run [1] of 4"

    with reporter.waiting(doing):
        for _ in range(3):
            assert asked.acquire(timeout=60)
        with reporter.track("pets", 2) as advance:
            advance(2)
            progressed = shown.tell()
            for _ in range(3):
                assert asked.acquire(timeout=60)
        behind = shown.getvalue()[progressed:]
    said = shown.getvalue()
    assert "run [1] of 4, " in said
    assert "pets" in said
    assert "run [1] of 4" not in behind
    assert said.endswith("\x1b[2K")  # nothing of it stays
