"""A self-organising map (Kohonen): cells on a grid, which move towards their samples."""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.kernels.compiled import compiled


class SelfOrganisingMap:
    """Cells on a square grid, each a point among the samples, and their prototypes.

    A prototype is the running mean of the samples to which its cell was the nearest.
    """

    def __init__(self, start: NDArray[np.floating], rate: float, width: float) -> None:
        """`start` (M, D): the cells, row by row of the grid; `rate`, `width`: of the first step."""
        side = round(len(start) ** 0.5)
        assert side * side == len(start), "cells fill a square"
        place = np.stack(np.divmod(np.arange(len(start)), side), axis=1)
        self.apart = ((place[:, None] - place) ** 2).sum(axis=2).astype(np.float32)
        self.positions = np.ascontiguousarray(start.T, np.float32)  # (D, M): sums run over cells
        self.rate, self.width = rate, width
        self.sums = np.zeros(start.shape, np.float32)
        self.counts = np.zeros(len(start), np.int64)

    @property
    def cells(self) -> NDArray[np.float32]:
        """The positions (M, D) of the cells."""
        return self.positions.T

    @property
    def prototypes(self) -> NDArray[np.float32]:
        """The prototypes (K, D) of the cells that had any samples."""
        won = self.counts > 0
        return (self.sums[won] / self.counts[won, None]).astype(np.float32)

    def learn(self, samples: NDArray[np.float32], steps: int) -> None:
        """Take steps on samples (N, D) in turn, then add each sample to its nearest cell."""
        if not len(samples):
            return
        samples = np.ascontiguousarray(samples)
        room = np.empty((2, len(self.counts)), np.float32)
        _train(self.positions, samples, self.apart, steps, self.rate, self.width, room)
        winner = self.winners(samples)
        np.add.at(self.sums, winner, samples)
        self.counts += np.bincount(winner, minlength=len(self.counts))

    def winners(self, samples: NDArray[np.float32]) -> NDArray[np.intp]:
        """The nearest cell (N,) of each sample (N, D); of equally near cells the first."""
        distance = (self.positions**2).sum(axis=0) - 2 * samples @ self.positions
        return distance.argmin(axis=1)


@compiled
def _train(cells, samples, apart, steps, rate, width, room):  # type: ignore[no-untyped-def]
    """Move cells (D, M) to samples in turn; rate and width both fall as 1 / (1 + t / (steps/2)).

    `room` holds two numbers for each cell.
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
