"""Syde without its view of shuffled pixels: AdaND's detector, with labels from visual prototypes.

"Disentangling Signal from Noise: Synergistic Structure Modeling for Zero-shot Noisy Test-time
Adaptation" is implemented from its released code; we know of no article. When L items are queued:

1. Items that ZS-CLIP calls noise train a self-organising map; the means of its cells are prototypes
   o of noise. Of items that it calls clean, each class keeps those of lowest entropy; its prototype
   w is the direction of their sum with the text feature.
2. The visual noise score is 1 - the mass of w in the softmax of w and o. Scores far from their
   threshold give labels, by the gap rule. Items of high entropy get no label.
3. The detector takes a step on these labels.

From the N-th step on the detector decides, by its own threshold; until then ZS-CLIP decides. The
class has the largest weighted sum of the probabilities by text and by w.

Differences from the released code: features in the memory have unit norm (theirs are raw, so one
image outweighs the text), each kind of score has its own queue (theirs share one), the detector has
no weight normalisation, prototypes are those before the item, injected noise is always noise, and
entropy alone drops items (theirs also needs shuffled pixels, at a tenth of the logits).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors.linear import LinearDetector, sigmoid
from zsntta_cli.methods.detectors.som import SelfOrganisingMap
from zsntta_cli.methods.scores import softmax, unit
from zsntta_cli.methods.settings import SydeSettings
from zsntta_cli.methods.threshold import OnlineThreshold, is_surely_id, is_surely_noise
from zsntta_cli.settings import ThresholdSettings

Array = NDArray[np.float32]
Mask = NDArray[np.bool_]


def run(data: StreamData, options: SydeSettings, threshold: ThresholdSettings) -> Decisions:
    """Decide on every item of the stream as if it ran online."""
    dim = data.pool.image_features.shape[1]
    return adapt(
        data, options, threshold, LinearDetector.random(dim, data.seed),
        first_cells(options.syde_map**2, dim, data.seed),
    )  # fmt: skip


def first_cells(count: int, dim: int, seed: int) -> Array:
    """Random directions (M, D): the cells of the map before the first item."""
    drawn = np.random.default_rng((seed, count)).standard_normal((count, dim))
    return unit(drawn).astype(np.float32)


def adapt(
    data: StreamData,
    options: SydeSettings,
    threshold: ThresholdSettings,
    detector: LinearDetector,
    cells: Array,
) -> Decisions:
    """Decide on every item, starting from a given detector and map."""
    u, size = data.noise_score, options.update_every
    zero_shot = OnlineThreshold(threshold)(u)
    is_noise = (u > zero_shot) | data.injected
    syde = _Syde(data, options, threshold, detector, cells)
    v, classes = np.empty(len(u)), data.class_index.copy()
    first = options.stage1_items
    for start in range(0, len(u), size):
        part = slice(start, min(start + size, len(u)))
        queue = SydeQueue.of(data, part, is_noise[part])
        v[part] = syde.noise_scores(queue)
        if start >= first:
            classes[part] = syde.classes(queue)
        if len(queue.is_noise) == size:
            syde.learn(queue)
    late = np.arange(len(u)) >= first
    thresholds = np.full(len(u), np.nan)
    thresholds[late] = OnlineThreshold(threshold)(v[late])
    decided = np.where(late, v > thresholds, is_noise) | data.injected
    return Decisions(classes, decided, 1 - np.where(late, v, u), zero_shot, thresholds)


@dataclass(frozen=True)
class SydeQueue:
    """The items of a full or incomplete queue."""

    raw: Array  # (B, D) raw output of the encoder
    x: Array  # (B, D) unit norm
    logits: Array  # (B, C) of the frozen model
    class_index: NDArray[np.int32]  # (B,)
    entropy: NDArray[np.float64]  # (B,) in nats
    is_noise: Mask  # (B,) called noise by ZS-CLIP, or injected
    known: Mask  # (B,) injected

    @classmethod
    def of(cls, data: StreamData, part: slice, is_noise: Mask) -> "SydeQueue":
        """Make a queue of consecutive items of a stream."""
        raw, classes = data.features(part), len(data.pool.text_features)
        entropy = data.detail(part).entropy * np.log(max(classes, 2))
        return cls(
            raw, unit(raw), data.logits(part, raw), data.class_index[part], entropy, is_noise,
            data.injected[part],
        )  # fmt: skip


class SydeMemory:
    """The text feature and the images of lowest entropy of each class; their directions (C, D)."""

    def __init__(self, text: Array, shots: int) -> None:
        self.proxies = text.copy()
        self._features = np.zeros((len(text), 1 + shots, text.shape[1]), np.float32)
        self._features[:, 0] = text
        self._entropy = np.full((len(text), shots), np.inf)  # inf: the place is free

    def offer(self, x: Array, class_index: NDArray[np.int32], entropy: NDArray[np.float64]) -> None:
        """Offer images (B, D); each replaces the one of highest entropy of its class, if lower."""
        touched = set()
        for feature, c, doubt in zip(x, class_index.tolist(), entropy.tolist(), strict=True):
            worst = int(self._entropy[c].argmax())
            if doubt < self._entropy[c, worst]:
                self._entropy[c, worst] = doubt
                self._features[c, 1 + worst] = feature
                touched.add(c)
        rows = sorted(touched)
        self.proxies[rows] = unit(self._features[rows].sum(axis=1))


class _Syde:
    """The parts of Syde that learn: the detector, the memory, the map and the threshold."""

    def __init__(
        self,
        data: StreamData,
        options: SydeSettings,
        threshold: ThresholdSettings,
        detector: LinearDetector,
        cells: Array,
    ) -> None:
        self._options, self._scale = options, np.float32(data.pool.logit_scale)
        self._detector = detector
        self._memory = SydeMemory(data.pool.text_features, options.syde_shots)
        self._map = SelfOrganisingMap(cells, options.syde_map_rate, options.syde_map_width)
        self._threshold = OnlineThreshold(threshold, options.update_every)  # a full queue has one

    def noise_scores(self, queue: SydeQueue) -> NDArray[np.float64]:
        """The detector's noise scores v (B,)."""
        return sigmoid(self._detector.logits(queue.raw))

    def classes(self, queue: SydeQueue) -> NDArray[np.int32]:
        """The classes (B,) by text and by prototypes."""
        share = np.float32(self._options.syde_visual)
        visual = softmax(self._scale * (queue.x @ self._memory.proxies.T))
        mixed = (1 - share) * softmax(queue.logits) + share * visual
        return mixed.argmax(axis=1).astype(np.int32)

    def learn(self, queue: SydeQueue) -> None:
        """Learn a full queue: first the prototypes, then the detector from their labels."""
        o, noise = self._options, queue.is_noise
        self._map.learn(queue.x[noise], o.syde_map_steps)
        self._memory.offer(queue.x[~noise], queue.class_index[~noise], queue.entropy[~noise])
        u = self._visual_scores(queue.x)
        thresholds = self._threshold(u)
        is_noise = is_surely_noise(u, thresholds, o.syde_gap) | queue.known
        used = is_noise | is_surely_id(u, thresholds, o.syde_gap)
        used &= (queue.entropy <= o.syde_entropy) | queue.known
        if used.any():
            self._detector = self._detector.after(queue.raw[used], is_noise[used], o.learning_rate)

    def _visual_scores(self, x: Array) -> NDArray[np.float64]:
        """1 - the mass (B,) of the classes in the softmax over all prototypes."""
        proxies = np.concatenate([self._memory.proxies, unit(self._map.prototypes)])
        mass = softmax(self._scale * (x @ proxies.T))[:, len(self._memory.proxies) :]
        return mass.sum(axis=1).astype(np.float64)
