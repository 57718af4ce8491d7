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
    dim = data.pool.image_features.shape[1]
    start = NoiseDetector.zero if options.detector_init == "zero" else NoiseDetector.random
    return adapt(data, options, threshold, start(dim, data.seed))


def adapt(
    data: StreamData, options: AdaNDSettings, threshold: ThresholdSettings, detector: NoiseDetector
) -> Decisions:
    """Algorithm 1 from a given detector."""
    u, stage1 = data.noise_score, options.stage1_items
    zero_shot_threshold = OnlineThreshold(threshold, options.batch_size)(u)
    zero_shot_noise = u > zero_shot_threshold
    evidence = options.evidence * (_logit(u, 1e-4) - _logit(zero_shot_threshold, 1e-2))
    v = _learn(data, options, threshold, detector, zero_shot_noise | data.injected, evidence)

    detector_threshold = OnlineThreshold(threshold, options.batch_size)(v[stage1:])
    # Known noise is called noise in batches but not one by one, as the released code does; injected
    # items enter no metric.
    stage1_noise = zero_shot_noise | (data.injected & (options.batch_size > 1))
    is_noise = np.append(stage1_noise[:stage1], v[stage1:] > detector_threshold)
    return Decisions(
        data.class_index,
        is_noise,
        1 - np.append(u[:stage1], v[stage1:]),
        zero_shot_threshold,
        np.append(np.full(len(u) - len(detector_threshold), np.nan), detector_threshold),
    )


def _learn(
    data: StreamData,
    options: AdaNDSettings,
    threshold: ThresholdSettings,
    detector: NoiseDetector,
    pseudo_label: NDArray[np.bool_],
    evidence: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The detector's noise scores v of all items (T,), each by the detector of its time."""
    own_threshold = OnlineThreshold(threshold, options.batch_size)
    stage1 = options.stage1_items
    scores = np.empty(len(data))
    for queue, is_full in _queues(len(data), options):
        features, labels, v = data.features(queue), pseudo_label[queue], scores[queue]
        v[:] = _score(detector.logits(features), evidence[queue], options)
        if not is_full:
            continue
        is_own = options.pseudo_labels == "detector" and queue.start >= stage1
        if is_own:
            labels = (v > copy.deepcopy(own_threshold)(v)) | data.injected[queue]
        detector.step(features, labels, options.learning_rate)
        if options.reevaluate:
            last = slice(-options.batch_size, None)
            v[last] = _score(detector.logits(features[last]), evidence[queue][last], options)
        if is_own:
            own_threshold(v)
    return scores


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
