"""Batches that threads read ahead: in order, no more than some at once, an error at its place."""

import threading
import time

import numpy as np
import pytest

from zsntta_cli.encoders.batches import read_ahead

BATCHES = np.split(np.arange(100), range(10, 100, 10))


def test_results_are_in_order_however_long_each_takes():
    def slow(item):
        time.sleep(0.002 * (item % 3))
        return item

    assert [*read_ahead(slow, BATCHES, 4)] == [batch.tolist() for batch in BATCHES]
    assert [*read_ahead(slow, [], 4)] == []


def test_three_batches_are_read_ahead_and_none_once_nobody_wants_more():
    seen, before = [], threading.active_count()
    reading = read_ahead(seen.append, BATCHES, 2)
    next(reading)
    deadline = time.monotonic() + 60
    while len(seen) < 40 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sorted(seen) == list(range(40)), "the one that was given, and three"
    reading.close()
    assert threading.active_count() == before
    assert len(seen) == 40


def test_an_error_comes_where_its_batch_does():
    def fail(item):
        if item == 25:
            raise ValueError("25")
        return item

    reading = read_ahead(fail, BATCHES, 3)
    assert [next(reading)[0], next(reading)[0]] == [0, 10]
    with pytest.raises(ValueError, match="25"):
        next(reading)
