"""AdaND, "Noisy Test-Time Adaptation in Vision-Language Models", Sec. 4 and Algorithm 1.

A linear noise detector learns online, on raw image features, from the decisions of ZS-CLIP; the
classifier stays frozen. Injected noise images are noise by definition. Stage 1: ZS-CLIP decides.
Stage 2, from the N-th optimisation step on: the detector decides, by a threshold of its own.

The loop is over updates, not over items: between two updates the detector is constant, so its
scores of all items in between are one product, and thresholds depend on nothing but the scores.
"""

import copy
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.settings import AdaNDSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


class NoiseDetector:
    """`Linear(D, 2)` under softmax and cross-entropy, trained by Adam.

    Output 0 is noise, 1 is clean. Softmax over two outputs depends on their difference alone, and
    the two rows get opposite gradients, hence opposite Adam steps: so only the difference
    `weight[0] - weight[1]` is kept, and a step moves it twice as far. Bias is the last entry.
    """

    def __init__(self, weight: NDArray[np.floating], bias: NDArray[np.floating]) -> None:
        """Start from the layer's weight (2, D) and bias (2,)."""
        self._weight = np.append(weight[0] - weight[1], bias[0] - bias[1]).astype(np.float64)
        self._mean = np.zeros_like(self._weight)
        self._square = np.zeros_like(self._weight)
        self._steps = 0

    @classmethod
    def random(cls, dim: int, seed: int) -> "NoiseDetector":
        """The default initialisation of torch's linear layers: uniform in ±1/sqrt(D)."""
        generator = np.random.Generator(np.random.PCG64(seed))
        bound = 1 / np.sqrt(dim)
        return cls(generator.uniform(-bound, bound, (2, dim)), generator.uniform(-bound, bound, 2))

    @classmethod
    def zero(cls, dim: int, _seed: int) -> "NoiseDetector":
        """All zero: no random start for the first steps to overcome (ours, not the paper's)."""
        return cls(np.zeros((2, dim)), np.zeros(2))

    def logits(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Noise logit minus clean logit (B,) of raw image features (B, D)."""
        return features @ self._weight[:-1].astype(np.float32) + self._weight[-1]

    def step(
        self, features: NDArray[np.float32], is_noise: NDArray[np.bool_], learning_rate: float
    ) -> None:
        """One Adam step (β 0.9/0.999, no weight decay) on the mean cross-entropy over a queue.

        `features` (B, D) raw, `is_noise` (B,) pseudo-labels.
        """
        error = ((sigmoid(self.logits(features)) - is_noise) / len(features)).astype(np.float32)
        gradient = np.append(error @ features, error.sum()).astype(np.float64)
        self._steps += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.001 * (gradient**2 - self._square)
        mean = self._mean / (1 - 0.9**self._steps)
        square = self._square / (1 - 0.999**self._steps)
        self._weight -= 2 * learning_rate * mean / (np.sqrt(square) + 1e-8)


def sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Softmax of two outputs, given their difference."""
    return 1 / (1 + np.exp(-np.clip(logits, -500, 500)))


def run(data: StreamData, options: AdaNDSettings, threshold: ThresholdSettings) -> Decisions:
    """Decide on every item of the stream as it would be online."""
    return adapt(data, options, threshold, initial_detector(data, options))


def initial_detector(data: StreamData, options: AdaNDSettings) -> NoiseDetector:
    """The detector as it is before the first item."""
    dim = data.pool.image_features.shape[1]
    start = NoiseDetector.zero if options.detector_init == "zero" else NoiseDetector.random
    return start(dim, data.seed)


def adapt(
    data: StreamData, options: AdaNDSettings, threshold: ThresholdSettings, detector: NoiseDetector
) -> Decisions:
    """Algorithm 1 from a given detector."""
    online = OnlineAdaND(data, options, threshold, detector)
    for queue, _ in _queues(len(data), options):
        online.learn(data.features(queue))
    return online.decide(slice(0, len(data)))


class OnlineAdaND:
    """Algorithm 1 as the stream runs: `learn` from features, and `decide` on the items they are of.

    Both go through the stream in order, in pieces of whole batches.
    """

    def __init__(
        self,
        data: StreamData,
        options: AdaNDSettings,
        threshold: ThresholdSettings,
        detector: NoiseDetector,
    ) -> None:
        u, size = data.noise_score, options.batch_size
        self._data, self._options, self._detector = data, options, detector
        self._zero_shot_threshold = OnlineThreshold(threshold, size)(u)
        self._zero_shot_noise = u > self._zero_shot_threshold
        self.pseudo_label = self._zero_shot_noise | data.injected  # (T,) what it learns from
        self._evidence = options.evidence * (
            _logit(u, 1e-4) - _logit(self._zero_shot_threshold, 1e-2)
        )
        self._threshold, self._label_threshold = (OnlineThreshold(threshold, size) for _ in "vv")
        self._queues = _queues(len(data), options)
        self._queue, self._is_full = slice(0, 0), False
        self._held: list[NDArray[np.float32]] = []  # the features in the queue
        self._scores = np.empty(len(data))  # v, each by the detector of its time
        self._seen = 0

    def learn(self, features: NDArray[np.float32]) -> None:
        """Score the next items by their raw features (B, D), and learn wherever the queue fills."""
        while len(features):
            if self._seen == self._queue.stop:
                self._held = []
                self._queue, self._is_full = next(self._queues)
            room = self._queue.stop - self._seen
            self._score(features[:room])
            if self._is_full and self._seen == self._queue.stop:
                self._step()
            features = features[room:]

    def _score(self, features: NDArray[np.float32]) -> None:
        """The detector's noise scores v of the next items, which enter the queue."""
        items = slice(self._seen, self._seen + len(features))
        logits = self._detector.logits(features)
        self._scores[items] = _score(logits, self._evidence[items], self._options)
        self._held.append(features)
        self._seen = items.stop

    def _step(self) -> None:
        """One step of the detector on the full queue."""
        options, queue = self._options, self._queue
        features = self._held[0] if len(self._held) == 1 else np.concatenate(self._held)
        labels, v = self.pseudo_label[queue], self._scores[queue]
        is_own = options.pseudo_labels == "detector" and queue.start >= options.stage1_items
        if is_own:
            labels = (v > copy.deepcopy(self._label_threshold)(v)) | self._data.injected[queue]
        self._detector.step(features, labels, options.learning_rate)
        if options.reevaluate:
            last = slice(-options.batch_size, None)
            logits = self._detector.logits(features[last])
            v[last] = _score(logits, self._evidence[queue][last], options)
        if is_own:
            self._label_threshold(v)

    def decide(self, items: slice) -> Decisions:
        """Decisions on the next items, whose features are learned from: ZS-CLIP's in stage 1."""
        data, u, v = self._data, self._data.noise_score[items], self._scores[items]
        stage1 = np.arange(items.start, items.stop) < self._options.stage1_items
        found = np.full(len(v), np.nan)
        found[~stage1] = self._threshold(v[~stage1])
        # Known noise is called noise in batches but not one by one, as the released code does;
        # injected items enter no metric.
        known = data.injected[items] & (self._options.batch_size > 1)
        return Decisions(
            data.class_index[items],
            np.where(stage1, self._zero_shot_noise[items] | known, v > found),
            1 - np.where(stage1, u, v),
            self._zero_shot_threshold[items],
            found,
        )


def _score(
    logits: NDArray[np.float64], evidence: NDArray[np.float64], options: AdaNDSettings
) -> NDArray[np.float64]:
    return sigmoid((logits + evidence) / options.score_temperature)


def _logit(probability: NDArray[np.float64], lowest: float) -> NDArray[np.float64]:
    """Log odds of probabilities that are kept `lowest` away from 0 and 1."""
    kept = np.clip(probability, lowest, 1 - lowest)
    return np.log(kept / (1 - kept))


def _queues(total: int, options: AdaNDSettings) -> Iterator[tuple[slice, bool]]:
    """Runs of items between updates, and whether the run fills the queue and so ends in one."""
    length = options.queue_items
    start = 0
    if options.late_start and options.batch_size == 1 and total:
        yield slice(0, 1), False
        start = 1
    for first in range(start, total, length):
        yield slice(first, min(first + length, total)), first + length <= total
