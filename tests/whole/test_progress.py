"""What is said of long work while it goes."""

import itertools
import threading
from types import SimpleNamespace

import pytest

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
    [(0.996, "1 second"), (59, "59 seconds"), (90, "1.5 minutes"), (3_700, "1 hour")],
)
def test_a_duration_has_a_suitable_unit(seconds, text):
    assert time_text(seconds) == text
