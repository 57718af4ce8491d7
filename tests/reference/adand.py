"""The algorithms item by item, written straight from the paper: what the package must agree with.

Slow on purpose: every item looks at 100 thresholds over the whole queue.
"""

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors.adand import AdaND
from zsntta_cli.methods.threshold import GRID
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.simulation.runs import RunSettings


def criteria(queue: NDArray[np.float64], criterion: str) -> NDArray[np.float64]:
    """Eq. 3 or Otsu by definition: variances within, for each grid value; inf on empty sides."""
    values = np.full(len(GRID), np.inf)
    for k, threshold in enumerate(GRID):
        noise, clean = queue[queue >= threshold], queue[queue < threshold]
        if len(noise) and len(clean):
            share = (1, 1) if criterion == "unweighted" else (len(noise), len(clean))
            total = 1 if criterion == "unweighted" else len(queue)
            values[k] = (share[0] * noise.var() + share[1] * clean.var()) / total
    return values


class PlainThreshold:
    """The adaptive threshold of one batch after another."""

    def __init__(self, settings: ThresholdSettings) -> None:
        self.settings, self.queue, self.last = settings, [], 0.5

    def __call__(self, *scores: float) -> float:
        self.queue = [*self.queue, *scores][-self.settings.queue :]
        values = criteria(np.array(self.queue), self.settings.criterion)
        if np.isfinite(values).any():
            self.last = float(GRID[values.argmin()])
        elif self.settings.degenerate == "zero":
            return 0.0
        return self.last


@dataclass
class Item:
    """An item of Q; its label is 0 for noise, as the detector's output is."""

    feature: torch.Tensor  # (1, D)
    label: int
    injected: bool
    v: float = 0.0


def adand(
    data: StreamData, settings: RunSettings, weight: NDArray[np.float32], bias: NDArray[np.float32]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Algorithm 1 with its variants, batch by batch, with torch: noise (T,) and ID scores (T,)."""
    o = settings.options
    assert isinstance(o, AdaND.Settings)
    layer = torch.nn.Linear(weight.shape[1], 2)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight))
        layer.bias.copy_(torch.from_numpy(bias))
    optimiser = torch.optim.Adam(layer.parameters(), lr=o.learning_rate)
    zero_shot, own, of_labels = (PlainThreshold(settings.threshold) for _ in range(3))
    queue, is_noise, id_score = [], [], []

    def score(item: Item) -> float:
        logits = layer(item.feature).detach().double()[0]
        return 1 / (1 + math.exp(-float(logits[0] - logits[1])))

    def step(last: list[Item], first_place: int) -> None:
        """One update; the items that triggered it are scored again."""
        labelled = queue
        if is_own := o.pseudo_labels == "detector" and first_place >= o.warm_up:
            thresholds, labelled = copy.deepcopy(of_labels), []
            for start in range(0, len(queue), o.batch_size):
                batch = queue[start : start + o.batch_size]
                cut = thresholds(*(item.v for item in batch))
                labelled += [
                    replace(item, label=0 if item.v > cut or item.injected else 1) for item in batch
                ]
        labels = torch.tensor([item.label for item in labelled])
        optimiser.zero_grad()
        logits = layer(torch.cat([item.feature for item in labelled]))
        torch.nn.functional.cross_entropy(logits, labels).backward()
        optimiser.step()
        for item in last if o.reevaluate else ():
            item.v = score(item)
        for start in range(0, len(queue) if is_own else 0, o.batch_size):
            of_labels(*(item.v for item in queue[start : start + o.batch_size]))

    for start in range(0, len(data), o.batch_size):
        places = range(start, min(start + o.batch_size, len(data)))
        u = [float(data.noise_score[i]) for i in places]
        cut, batch = zero_shot(*u), []
        for i, u_i in zip(places, u, strict=True):
            injected = bool(data.injected[i])
            feature = torch.from_numpy(data.features(slice(i, i + 1)))
            item = Item(feature, 0 if u_i > cut or injected else 1, injected)
            item.v = score(item)
            batch.append(item)
        if not (o.late_start and o.batch_size == 1 and start == 0):
            queue += batch
        if len(queue) == o.queue_items:
            step(batch, places[-1] + 1 - len(queue))
            queue = []
        if start < o.warm_up:  # a whole number of batches
            known = [item.injected and o.batch_size > 1 for item in batch]
            is_noise += [u_i > cut or k for u_i, k in zip(u, known, strict=True)]
            id_score += [1 - u_i for u_i in u]
        else:
            cut = own(*(item.v for item in batch))
            is_noise += [item.v > cut for item in batch]
            id_score += [1 - item.v for item in batch]
    return np.array(is_noise), np.array(id_score)
