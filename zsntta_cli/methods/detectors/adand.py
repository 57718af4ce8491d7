"""AdaND, "Noisy Test-Time Adaptation in Vision-Language Models", Sec. 4 and Algorithm 1.

A linear noise detector f learns online, on raw image features I(x), from the decisions of ZS-CLIP;
the classifier stays frozen. `push` is Algorithm 1, in the order of its lines:

    S(x), λ of ZS-CLIP (Eq. 1 and 3)       noise scores u = 1 - S, thresholds `zero_shot`
    pseudo-label y                         `label`, true for noise
    logit = f(I(x)), its softmax           noise scores v, by `detector`
    queue Q of L items, loss, update       `queue`, `_learn`
    injected noise g, labelled -1          items that are `injected`
    stage 1, before the N-th update        the first `warm_up` items
    λ of the detector (Sec. 4.1)           thresholds `own`, on v in stage 2
"""

import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors.linear import LinearDetector, sigmoid
from zsntta_cli.methods.method import (
    ABOVE_ZERO,
    FROM_ONE,
    FROM_ZERO,
    FROZEN,
    Method,
    MethodSettings,
)
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import option

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class AdaNDSettings(MethodSettings):
    """The settings of AdaND."""

    warm_up_by = "warmup x update-every"

    batch_size: int = option(1, "Items that are decided on at once.", within=FROM_ONE)
    # At batch sizes above 1 each batch is one queue.
    update_every: int = option(
        128, "L: items in a step, which is the length of the queue.", within=FROM_ONE
    )
    warmup: int = option(  # Sec. 5.1
        10, "N: steps before the detector decides.", within=FROM_ZERO
    )
    learning_rate: float = option(  # Adam, no weight decay (Sec. 5.1)
        5e-4, "Learning rate of the optimiser.", within=ABOVE_ZERO
    )
    reevaluate: bool = option(  # Sec. 4.1
        True, "Decide on the items that trigger an update after the update."
    )
    # It concerns the first item (batch size 1) or the first batch, as in the released code.
    late_start: bool = option(False, "Leave the first item or batch out of all steps.")
    pseudo_labels: str = option(  # appendix
        "frozen",
        "Pseudo-labels of the detector: ZS-CLIP's, or in stage 2 its own.",
        choices=("frozen", "detector"),
    )

    @property
    def queue_items(self) -> int:
        """The number of items in an update: L at batch size 1, and else a batch."""
        return self.update_every if self.batch_size == 1 else self.batch_size

    @property
    def warm_up(self) -> int:
        """The number of items of stage 1, which ZS-CLIP decides: those up to the N-th step."""
        late = (1 if self.batch_size == 1 else self.queue_items) if self.late_start else 0
        return self.warmup * self.queue_items + late


class AdaND(Method):
    """AdaND, Sec. 4 and Algorithm 1: a linear noise detector learns from ZS-CLIP's decisions."""

    Settings = AdaNDSettings
    cites = ("cao2025noisy",)
    cost = "keeps a layer of D + 1 numbers, Adam's moments, L items and the last N_q scores"
    defaults = {"noise": "gaussian"}  # injected by the method itself; by others on request
    official = {"reevaluate": False, "late_start": True}
    is_probability = True
    class_probability = FROZEN

    def __init__(
        self, data: StreamData, options: AdaNDSettings, threshold: ThresholdSettings
    ) -> None:
        """Start before the first item; of the stream only D and the seed matter."""
        self.options = options
        dim = data.pool.image_features.shape[1]
        self.detector = LinearDetector.random(dim, data.seed)  # f
        self.zero_shot, self.threshold, self.label_threshold = (
            OnlineThreshold(threshold, options.batch_size) for _ in "uvv"
        )
        self.queue = Queue(dim)  # Q
        self.seen = 0

    @property
    def adapted(self) -> bool:
        """Whether stage 1 is over."""
        return self.seen >= self.options.warm_up

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on the next items, in stage 1 as ZS-CLIP does; learn when the queue is full."""
        u, stage1 = items.noise_score, self._stage1(len(items), learn)
        zero_shot = self.zero_shot(u, learn)
        label = (u > zero_shot) | items.injected
        v = self._learn(items, label) if learn else self._scores(items.features(slice(None)))
        own = np.full(len(v), np.nan)
        own[~stage1] = self.threshold(v[~stage1], learn)
        # As in the released code, injected noise is called noise in batches but not one by one;
        # it enters no metric.
        known = items.injected & (self.options.batch_size > 1)
        is_noise = np.where(stage1, (u > zero_shot) | known, v > own)
        return Decisions(items.class_index, is_noise, 1 - np.where(stage1, u, v), zero_shot, own)

    def _stage1(self, count: int, learn: bool) -> Mask:
        """The items (T,) of stage 1; without learning no update comes between them."""
        if not learn:
            return np.full(count, not self.adapted)
        return np.arange(self.seen, self.seen + count) < self.options.warm_up

    def _learn(self, items: StreamData, label: Mask) -> Floats:
        """The detector's noise scores v (T,) of the next items, which pass through the queue.

        The loop runs over updates and not over items, because between two updates the detector is
        constant: a stream of 22,500 items takes 25 ms.
        """
        v, start = np.empty(len(items)), 0
        while start < len(v):
            is_late = self.options.late_start and self.options.batch_size == 1 and not self.seen
            room = 1 if is_late else self.options.queue_items - len(self.queue)
            part = slice(start, start + room)
            features = items.features(part)
            score = self._scores(features)
            self.seen += len(score)
            if not is_late:  # a late start leaves the first item out of all steps
                self.queue.add(features, score, label[part], items.injected[part])
                if len(self.queue) == self.options.queue_items:
                    self._step()
                    score = self.queue.score[-len(score) :]
                    self.queue = Queue(self.detector.dim)
            v[part] = score
            start += len(score)
        return v

    def _step(self) -> None:
        """Update the detector by the full queue; score the items that triggered it again."""
        options, queue, label = self.options, self.queue, self.queue.label
        is_own = options.pseudo_labels == "detector" and self.seen - len(queue) >= options.warm_up
        if is_own:
            thresholds = copy.deepcopy(self.label_threshold)(queue.score)
            label = (queue.score > thresholds) | queue.injected
        self.detector.learn(queue.features, label, options.learning_rate)
        if options.reevaluate:  # Sec. 4.1
            last = slice(-options.batch_size, None)
            queue.score[last] = self._scores(queue.features[last])
        if is_own:
            self.label_threshold(queue.score)

    def _scores(self, features: NDArray[np.float32]) -> Floats:
        """The noise scores v (B,) of raw features (B, D)."""
        return sigmoid(self.detector.logits(features))


class Queue:
    """The items of Q, in order; injected noise is among them."""

    def __init__(self, dim: int) -> None:
        self.features = np.empty((0, dim), np.float32)  # (B, D) raw
        self.score = np.empty(0)  # (B,) v, each by the detector when the item came
        self.label = np.empty(0, np.bool_)  # (B,) pseudo-labels from ZS-CLIP: noise
        self.injected = np.empty(0, np.bool_)  # (B,)

    def __len__(self) -> int:
        return len(self.score)

    def add(self, *columns: NDArray[np.generic]) -> None:
        """Put items into the queue; `columns` are in the order of the attributes."""
        if len(self):  # into an empty queue nothing is copied, as in a stream that is pushed whole
            columns = tuple(map(np.concatenate, zip(vars(self).values(), columns, strict=True)))
        vars(self).update(zip(vars(self), columns, strict=True))
