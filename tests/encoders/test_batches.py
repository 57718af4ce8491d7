"""Batches that threads read ahead: in order, no more than some at once, an error at its place."""

import threading
import time

import numpy as np
import pytest

from zsntta_cli.encoders.batches import read_ahead

BATCHES = np.split(np.arange(100), range(10, 100, 10))


def test_results_are_in_order_however_long_each_takes_and_an_error_is_at_its_place():
    def slow(item):
        time.sleep(0.002 * (item % 3))
        if item == 85:
            raise ValueError("85")
        return item

    reading = read_ahead(slow, BATCHES, 4)
    assert [next(reading) for _ in range(8)] == [batch.tolist() for batch in BATCHES[:8]]
    with pytest.raises(ValueError, match="85"):
        next(reading)
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
