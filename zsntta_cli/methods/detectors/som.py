"""A self-organising map (Kohonen): cells on a grid, drawn to what they and neighbours win."""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.kernels.compiled import compiled


class SelfOrganisingMap:
    """Cells on a square grid, each a point among the samples, and what each cell stands for.

    Its prototypes are the running means of the samples that each cell won.
    """

    def __init__(self, start: NDArray[np.floating], rate: float, width: float) -> None:
        """Start from cells (M, D), row by row of a square grid; the first step's rate and width."""
        side = round(len(start) ** 0.5)
        assert side * side == len(start), "cells fill a square"
        place = np.stack(np.divmod(np.arange(len(start)), side), axis=1)
        self._apart = ((place[:, None] - place) ** 2).sum(axis=2).astype(np.float32)
        self._cells = np.ascontiguousarray(start.T, np.float32)  # (D, M): sums run over cells
        self._rate, self._width = rate, width
        self._sums = np.zeros(start.shape, np.float32)
        self._counts = np.zeros(len(start), np.int64)

    @property
    def cells(self) -> NDArray[np.float32]:
        """Where the cells are (M, D)."""
        return self._cells.T

    @property
    def prototypes(self) -> NDArray[np.float32]:
        """Means of what was won (K, D), of cells that won anything."""
        won = self._counts > 0
        return (self._sums[won] / self._counts[won, None]).astype(np.float32)

    def learn(self, samples: NDArray[np.float32], steps: int) -> None:
        """Steps on samples (N, D) in turn, then each sample counts for the cell that it is in."""
        if not len(samples):
            return
        samples = np.ascontiguousarray(samples)
        room = np.empty((2, len(self._counts)), np.float32)
        _train(self._cells, samples, self._apart, steps, self._rate, self._width, room)
        winner = self.winners(samples)
        np.add.at(self._sums, winner, samples)
        self._counts += np.bincount(winner, minlength=len(self._counts))

    def winners(self, samples: NDArray[np.float32]) -> NDArray[np.intp]:
        """The nearest cell (N,) of each sample (N, D); the first of equals."""
        distance = (self._cells**2).sum(axis=0) - 2 * samples @ self._cells
        return distance.argmin(axis=1)


@compiled
def _train(cells, samples, apart, steps, rate, width, room):  # type: ignore[no-untyped-def]
    """Draw cells (D, M) to samples in turn; rate and width both fall as 1 / (1 + t / (steps/2)).

    `room` is for two numbers a cell.
    """
    distance, pull = room[0], room[1]
    count = len(distance)
    for t in range(steps):
        x = samples[t % len(samples)]
        distance[:] = 0
        for d in range(len(cells)):
            for m in range(count):
                away = cells[d, m] - x[d]
                distance[m] += away * away
        nearest = 0
        for m in range(1, count):
            if distance[m] < distance[nearest]:
                nearest = m
        fall = 1 + t / (steps / 2)
        near, around = apart[nearest], 2 * (width / fall) ** 2
        for m in range(count):
            pull[m] = rate / fall * np.exp(-near[m] / around)
        for d in range(len(cells)):
            for m in range(count):
                cells[d, m] += pull[m] * (x[d] - cells[d, m])
