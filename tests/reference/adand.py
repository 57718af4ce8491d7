"""The algorithms item by item, written straight from the paper: what the package must agree with.

Slow on purpose: every item looks at 100 thresholds over the whole queue.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors.adand import AdaNDSettings
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
    """The adaptive threshold of one item after another."""

    def __init__(self, settings: ThresholdSettings) -> None:
        self.settings, self.queue, self.last = settings, [], 0.5

    def __call__(self, score: float) -> float:
        self.queue = [*self.queue, score][-self.settings.queue :]
        values = criteria(np.array(self.queue), self.settings.criterion)
        if np.isfinite(values).any():
            self.last = float(GRID[values.argmin()])
        elif self.settings.degenerate == "zero":
            return 0.0
        return self.last


def zs_clip(data: StreamData, settings: RunSettings) -> NDArray[np.bool_]:
    """Which items (T,) ZS-CLIP calls noise at batch size 1."""
    threshold = PlainThreshold(settings.threshold)
    return np.array([u > threshold(u) for u in data.noise_score])


def adand(
    data: StreamData, settings: RunSettings, weight: NDArray[np.float32], bias: NDArray[np.float32]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Algorithm 1 at batch size 1, preset `paper`, with torch: noise (T,) and ID scores (T,)."""
    options = settings.options
    assert isinstance(options, AdaNDSettings)
    layer = torch.nn.Linear(weight.shape[1], 2)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight))
        layer.bias.copy_(torch.from_numpy(bias))
    optimiser = torch.optim.Adam(layer.parameters(), lr=options.learning_rate)
    zero_shot_threshold = PlainThreshold(settings.threshold)
    own_threshold = PlainThreshold(settings.threshold)
    queue, steps, is_noise, id_score = [], 0, [], []
    for i, u in enumerate(data.noise_score):
        feature = torch.from_numpy(data.features(slice(i, i + 1)))
        pseudo = bool(u > zero_shot_threshold(u))
        in_stage_2 = steps >= options.warmup
        queue.append((feature, 0 if pseudo or data.injected[i] else 1))
        if len(queue) == options.update_every:
            inputs, labels = torch.cat([f for f, _ in queue]), torch.tensor([y for _, y in queue])
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(layer(inputs), labels).backward()
            optimiser.step()
            steps, queue = steps + 1, []
        if in_stage_2:
            v = layer(feature).softmax(dim=1)[0, 0].item()  # after the step: re-evaluated
            is_noise.append(v > own_threshold(v))
            id_score.append(1 - v)
        else:
            is_noise.append(pseudo)
            id_score.append(1 - u)
    return np.array(is_noise), np.array(id_score)
