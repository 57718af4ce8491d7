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
from zsntta_cli.methods.settings import ABOVE_ZERO, FROM_ONE, FROM_ZERO, MethodSettings
from zsntta_cli.methods.threshold import OnlineThreshold, is_surely_id, is_surely_noise
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import Range, option


@dataclass(frozen=True)
class SydeSettings(MethodSettings):
    """Syde (its released code) without pixels: AdaND's detector, labels from visual prototypes."""

    warm_up_by = "warmup x update-every"

    update_every: int = option(
        128, "L: items in a step, which is the length of the queue.", within=FROM_ONE
    )
    warmup: int = option(10, "N: steps before the detector decides.", within=FROM_ZERO)
    learning_rate: float = option(1e-3, "Learning rate of the optimiser.", within=ABOVE_ZERO)
    syde_shots: int = option(10, "Images of each class in the ID memory.", within=FROM_ONE)
    syde_gap: float = option(
        0.5, "Share of the interval from the threshold to 0, and to 1, in which items get no "
        "label.",
        within=Range(least=0, most=1),
    )  # fmt: skip
    syde_entropy: float = option(  # more than ln C: idle up to 54 classes
        4.0, "Entropy, in nats, above which an item is left out of all steps.", within=FROM_ZERO
    )
    syde_visual: float = option(
        0.2,
        "Weight of the visual probabilities in the decision on the class.",
        within=Range(least=0, most=1),
    )
    syde_map: int = option(15, "Cells on each side of the map of noise.", within=FROM_ONE)
    syde_map_steps: int = option(100, "Steps of the map for each full queue.", within=FROM_ONE)
    syde_map_width: float = option(
        2.0, "Initial width of a step of the map, in cells.", within=ABOVE_ZERO
    )
    syde_map_rate: float = option(
        0.05, "Initial learning rate of the map's steps.", within=Range(above=0, most=1)
    )

    @property
    def warm_up(self) -> int:
        """The number of items that ZS-CLIP decides: those up to the N-th step."""
        return self.warmup * self.update_every


Array = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Syde:
    """Syde while the stream runs."""

    def __init__(
        self, data: StreamData, options: SydeSettings, threshold: ThresholdSettings
    ) -> None:
        dim = data.pool.image_features.shape[1]
        self.options = options
        self.detector = LinearDetector.random(dim, data.seed)
        self.memory = SydeMemory(data.pool.text_features, options.syde_shots)
        cells = first_cells(options.syde_map**2, dim, data.seed)
        self.map = SelfOrganisingMap(cells, options.syde_map_rate, options.syde_map_width)
        self.zero_shot, self.threshold = OnlineThreshold(threshold), OnlineThreshold(threshold)
        self.visual = OnlineThreshold(threshold, options.update_every)  # a full queue has one
        self.queue = SydeQueue.of(data, slice(0), np.empty(0, bool))
        self.seen = 0

    @property
    def adapted(self) -> bool:
        """Whether the detector decides on the next item."""
        return self.seen >= self.options.warm_up

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on the next items; learn when the queue is full."""
        u = items.noise_score
        zero_shot = self.zero_shot(u, learn)
        is_noise = (u > zero_shot) | items.injected
        late = np.arange(len(u)) + self.seen >= self.options.warm_up
        late = late if learn else np.full(len(u), self.adapted)
        v, classes, start = np.empty(len(u)), items.class_index.copy(), 0
        while start < len(u):
            part = slice(start, start + self.options.update_every - len(self.queue.is_noise))
            added = SydeQueue.of(items, part, is_noise[part])
            v[part] = sigmoid(self.detector.logits(added.raw))
            classes[part] = np.where(late[part], self.classes(added, items), classes[part])
            if learn:
                self._enter(added, items)
            start += len(added.is_noise)
        own = np.full(len(u), np.nan)
        own[late] = self.threshold(v[late], learn)
        decided = np.where(late, v > own, is_noise) | items.injected
        return Decisions(classes, decided, 1 - np.where(late, v, u), zero_shot, own)

    def classes(self, queue: "SydeQueue", items: StreamData) -> NDArray[np.int32]:
        """The classes (B,) by text and by prototypes."""
        share, scale = np.float32(self.options.syde_visual), np.float32(items.pool.logit_scale)
        visual = softmax(scale * (queue.x @ self.memory.proxies.T))
        mixed = (1 - share) * softmax(queue.logits) + share * visual
        return mixed.argmax(axis=1).astype(np.int32)

    def _enter(self, added: "SydeQueue", items: StreamData) -> None:
        """Put items into the queue, and learn when it is full."""
        self.queue = self.queue.and_of(added) if len(self.queue.is_noise) else added
        self.seen += len(added.is_noise)
        if len(self.queue.is_noise) == self.options.update_every:
            self.learn(self.queue, np.float32(items.pool.logit_scale))
            self.queue = self.queue.part(slice(0))

    def learn(self, queue: "SydeQueue", scale: np.float32) -> None:
        """Learn a full queue: first the prototypes, then the detector from their labels."""
        o, noise = self.options, queue.is_noise
        self.map.learn(queue.x[noise], o.syde_map_steps)
        self.memory.offer(queue.x[~noise], queue.class_index[~noise], queue.entropy[~noise])
        u = self._visual_scores(queue.x, scale)
        thresholds = self.visual(u)
        is_noise = is_surely_noise(u, thresholds, o.syde_gap) | queue.known
        used = is_noise | is_surely_id(u, thresholds, o.syde_gap)
        used &= (queue.entropy <= o.syde_entropy) | queue.known
        if used.any():
            self.detector.learn(queue.raw[used], is_noise[used], o.learning_rate)

    def _visual_scores(self, x: Array, scale: np.float32) -> NDArray[np.float64]:
        """1 - the mass (B,) of the classes in the softmax over all prototypes."""
        proxies = np.concatenate([self.memory.proxies, unit(self.map.prototypes)])
        mass = softmax(scale * (x @ proxies.T))[:, len(self.memory.proxies) :]
        return mass.sum(axis=1).astype(np.float64)

    def check_learned(self) -> None:
        """Raise ValueError if the queue is not that after so many items."""
        if len(self.queue.is_noise) != self.seen % self.options.update_every:
            raise ValueError(f"{len(self.queue.is_noise)} items wait after {self.seen}")


def first_cells(count: int, dim: int, seed: int) -> Array:
    """Random directions (M, D): the cells of the map before the first item."""
    drawn = np.random.default_rng((seed, count)).standard_normal((count, dim))
    return unit(drawn).astype(np.float32)


@dataclass
class SydeQueue:
    """The items of a full or incomplete queue, column by column."""

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

    def part(self, items: slice) -> "SydeQueue":
        """Some of the items, copied."""
        return SydeQueue(*(column[items].copy() for column in vars(self).values()))

    def and_of(self, more: "SydeQueue") -> "SydeQueue":
        """These items and then others."""
        both = zip(vars(self).values(), vars(more).values(), strict=True)
        return SydeQueue(*map(np.concatenate, both))


class SydeMemory:
    """The text feature and the images of lowest entropy of each class; their directions (C, D)."""

    def __init__(self, text: Array, shots: int) -> None:
        self.proxies = text.copy()
        self.features = np.zeros((len(text), 1 + shots, text.shape[1]), np.float32)
        self.features[:, 0] = text
        self.entropy = np.full((len(text), shots), np.inf)  # inf: the place is free

    def offer(self, x: Array, class_index: NDArray[np.int32], entropy: NDArray[np.float64]) -> None:
        """Offer images (B, D); each replaces the one of highest entropy of its class, if lower."""
        touched = set()
        for feature, c, doubt in zip(x, class_index.tolist(), entropy.tolist(), strict=True):
            worst = int(self.entropy[c].argmax())
            if doubt < self.entropy[c, worst]:
                self.entropy[c, worst] = doubt
                self.features[c, 1 + worst] = feature
                touched.add(c)
        rows = sorted(touched)
        self.proxies[rows] = unit(self.features[rows].sum(axis=1))
