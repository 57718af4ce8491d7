"""The online adaptive threshold, Eq. 3 (criterion of OWTTT, arXiv 2308.09942).

A queue holds the last N_q noise scores u. Each grid value λ splits it into a noise class (u >= λ)
and a clean class (u < λ); the λ with the smallest within-class variance is the threshold, the
first one on ties. The decision on an item is then "noise" iff u > λ. Scores enter the queue
before its threshold is found, injected noise included.

How this costs a microsecond or two an item: scores fall into 101 cells between grid values, a split
depends only on the count, sum and sum of squares on either side of it, and a queue that moves by
one item changes one or two cells. Scores are rounded to a multiple of a power of two first, so that
sums are exact whatever entered and left and in whatever order, and equal splits stay equal: by
NumPy and by the compiled loop (compiled_threshold.py) thresholds are the same.
"""

import itertools
import math
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.state import State
from zsntta_cli.settings import ThresholdSettings

GRID = np.arange(100) / 100  # 0.00, 0.01 … 0.99, as the released code
UNDEFINED = -1.0  # the threshold of a queue that no grid value splits
_CELLS = len(GRID) + 1
_COMPILED = "zsntta_cli.methods.compiled_threshold"
_CHUNK = 256  # batches at a time: what NumPy needs for them stays in the cache
_CALL = 1024  # items that a call costs as much as: single ones are soon left to the loop
_MUCH = 1 << 17  # items by NumPy after which loading Numba, a third of a second, has paid

Floats = NDArray[np.float64]


class OnlineThreshold:
    """The threshold as a stream runs: feed scores in order, in pieces of whole batches.

    `batch_size` items share one threshold, found after all of them entered the queue. Only the last
    piece may end within a batch.
    """

    _by_numpy: ClassVar[int] = 0  # items of all queues of this process, and calls
    loading: ClassVar[float] = 0.0  # seconds that this process took to load the compiled loop

    def __init__(self, settings: ThresholdSettings, batch_size: int = 1) -> None:
        self._settings = settings
        self._batch_size = batch_size
        window = settings.queue + batch_size
        self._scale = 2.0 ** (52 - math.ceil(math.log2(window)))
        self._ring = np.zeros(settings.queue)
        self._cells = np.zeros((3, _CELLS))  # count, sum, sum of squares
        self._seen = 0
        self._last = 0.5  # held until the first valid threshold

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Thresholds (T,) of the next T noise scores (T,)."""
        settings = self._settings
        if settings.fixed is not None:
            return np.full(len(scores), self.latest)
        assert self._seen % self._batch_size == 0, "a piece ended within a batch"
        return self._fill_undefined(self._slide(scores))

    def _slide(self, scores: Floats) -> Floats:
        """Push scores through the queue: by a compiled loop where it is there or pays."""
        OnlineThreshold._by_numpy += len(scores) + _CALL
        if OnlineThreshold._by_numpy > _MUCH and _COMPILED not in sys.modules:
            load_compiled()
        if _COMPILED in sys.modules:  # at least half: another thread may be loading it
            return self._push(scores, import_module(_COMPILED).slide)
        return self._push(scores, _slide)

    def _push(self, scores: Floats, slide: Callable[..., Floats]) -> Floats:
        unweighted = self._settings.criterion == "unweighted"
        queue = self._ring, self._cells, self._seen
        found = slide(scores, *queue, self._batch_size, self._scale, unweighted)
        self._seen += len(scores)
        return found

    @property
    def latest(self) -> float:
        """The threshold of the last item; 0.5 before the first one."""
        settings = self._settings
        if settings.fixed is None:
            return self._last
        on_noise = settings.fixed_on == "noise-score"  # or the ID score, Eq. 1: clean iff S >= λ
        return settings.fixed if on_noise else 1 - settings.fixed

    def state(self) -> State:
        """The queue, its cells, and the last threshold."""
        return {
            "ring": self._ring, "cells": self._cells, "seen": self._seen, "last": self._last,
        }  # fmt: skip

    def restore(self, state: State) -> None:
        """Go on from a state that was checked to be like this one's."""
        ring, cells, seen, last = (state[name] for name in ("ring", "cells", "seen", "last"))
        self._ring, self._cells = np.asarray(ring), np.asarray(cells)
        self._seen, self._last = int(seen), float(last)

    def _fill_undefined(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        """Replace thresholds of queues that no grid value splits: hold the last one, or zero."""
        undefined = found == UNDEFINED
        if self._settings.degenerate == "zero":
            found[undefined] = 0.0
        else:
            latest = np.maximum.accumulate(np.where(undefined, -1, np.arange(len(found))))
            found = np.where(latest >= 0, found[latest], self._last)
        if len(found):
            self._last = float(found[-1])
        return found


def load_compiled() -> None:
    """Take the compiled loop from now on: many items are to come."""
    started = time.perf_counter()
    slide = import_module(_COMPILED).slide
    slide(np.zeros(1), np.zeros(1), np.zeros((3, _CELLS)), 0, 1, 1.0, False)
    OnlineThreshold.loading += time.perf_counter() - started


def _slide(
    scores: Floats, ring: Floats, cells: Floats, seen: int, batch_size: int, scale: float,
    unweighted: bool,
) -> Floats:  # fmt: skip
    """Push scores batch by batch through the queue; the threshold of each, UNDEFINED without one.

    `ring` and `cells` are changed as they are item by item.
    """
    sums = 3 if unweighted else 2  # the other criterion needs no squares at any split
    room = _Room(min(_CHUNK, -(-len(scores) // batch_size)), sums)
    found, step = np.empty(len(scores)), _CHUNK * batch_size
    for start in range(0, len(scores), step):
        part = scores[start : start + step]
        batch = np.arange(len(part)) // batch_size
        held, below = room.first(int(batch[-1]) + 1)
        held[0] = cells[:sums]
        leaving = _replaced(part, ring, seen + start)
        _move(held, batch, part, scale, 1.0)
        _move(held, batch[len(part) - len(leaving) :], leaving, scale, -1.0)
        if not unweighted:
            _move_squares(cells[2], part, scale, 1.0)
            _move_squares(cells[2], leaving, scale, -1.0)
        cells[:sums] = _running_sums(held)[-1]
        below[:] = held.transpose(2, 1, 0)
        best = room.best_splits(_running_sums(below), unweighted)
        found[start : start + step] = best[batch]
    return found


def _replaced(scores: Floats, ring: Floats, seen: int) -> Floats:
    """Scores that leave the queue as others enter the ring: the last of these each push one out."""
    slots = np.arange(seen, seen + len(scores)) % len(ring)
    first = slots[: len(ring)]
    held = seen + np.arange(len(first)) >= len(ring)
    leaving = np.append(ring[first[held]], scores[: -len(ring)])
    ring[slots[-len(ring) :]] = scores[-len(ring) :]
    return leaving


def _move(held: Floats, batch: NDArray[np.intp], scores: Floats, scale: float, sign: float) -> None:
    """Add (sign 1) or take away (-1) scores in their cells, from their batch on."""
    place = batch * held[0].size + _cell(scores)
    powers = np.ones(len(scores)), scores, scores * scores
    for row, power in enumerate(powers[: held.shape[1]]):
        np.add.at(held.reshape(-1), place + row * _CELLS, sign * np.rint(power * scale) / scale)


def _move_squares(square: Floats, scores: Floats, scale: float, sign: float) -> None:
    np.add.at(square, _cell(scores), sign * np.rint(scores * scores * scale) / scale)


def _cell(scores: Floats) -> NDArray[np.intp]:
    """The number of grid values <= each score."""
    return np.searchsorted(GRID, scores, side="right")


def _running_sums(rows: Floats) -> Floats:
    """Cumulative sums over the first axis, in place, up to eight times as fast as NumPy's."""
    for before, row in itertools.pairwise(rows):
        np.add(row, before, out=row)
    return rows


class _Room:
    """Memory for the splits of some batches, used again and again: getting it costs the most."""

    def __init__(self, batches: int, sums: int) -> None:
        self._sums, self._all = sums, np.empty((2 * sums + 5, _CELLS * batches))

    def first(self, batches: int) -> tuple[Floats, Floats]:
        """Room for what cells hold, (B, sums, cells) of zeros and (cells, sums, B)."""
        sums = self._sums
        held, below = (
            self._all[i : i + sums].reshape(-1)[: sums * _CELLS * batches] for i in (0, sums)
        )
        held[:] = 0
        return held.reshape(batches, sums, _CELLS), below.reshape(_CELLS, sums, batches)

    def best_splits(self, below: Floats, unweighted: bool) -> Floats:
        """The first grid value with the smallest criterion, (B,).

        `below` (cells, sums, B): count, sum and, unweighted, sum of squares of the scores in a cell
        and all before it. Otsu's criterion n0/n var0 + n1/n var1 equals (Σu² - s0²/n0 - s1²/n1)/n,
        and n and Σu² are the same for all splits; the paper's Eq. 3 is var0 + var1, unweighted.
        """
        splits, batches = len(GRID), below.shape[2]
        n0, s0 = below[:-1, 0], below[:-1, 1]
        n1, s1, criterion, more, rows = (
            part[: splits * batches].reshape(splits, batches)
            for part in self._all[2 * self._sums :]
        )
        np.subtract(below[-1, 0], n0, out=n1)
        np.subtract(below[-1, 1], s0, out=s1)
        with np.errstate(all="ignore"):  # sides without a score, below
            if unweighted:  # q0/n0 - (s0/n0)² + q1/n1 - (s1/n1)²
                q0 = below[:-1, 2]
                np.divide(q0, n0, out=criterion)
                criterion -= np.square(np.divide(s0, n0, out=more), out=more)
                np.subtract(below[-1, 2], q0, out=more)
                more /= n1
                criterion += more
                criterion -= np.square(np.divide(s1, n1, out=more), out=more)
            else:  # -(s0²/n0 + s1²/n1)
                np.multiply(s0, s0, out=criterion)
                criterion /= n0
                np.multiply(s1, s1, out=more)
                more /= n1
                criterion += more
                np.negative(criterion, out=criterion)
        criterion[(n0 == 0) | (n1 == 0)] = np.inf
        by_batch = rows.reshape(batches, splits)
        by_batch[:] = criterion.T
        best = by_batch.argmin(axis=1)
        return np.where(np.isinf(by_batch[np.arange(batches), best]), UNDEFINED, GRID[best])
