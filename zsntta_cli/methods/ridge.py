"""Ridge: a noise detector that needs no labels, no learning rate and no injected noise. Ours.

How unsure the frozen model is of an image is noisy; what images of a kind have in common in it is
not. A ridge regression of that doubt on the image feature, kept as the stream runs, is a view z in
which noise of another kind stands apart. Where the stream shows no such noise, scores of the
single image decide, on as few items as the evidence asks for. Nearest published idea: ETLT, "A
Simple Test-Time Method for Out-of-Distribution Detection", arXiv 2207.08210, and RTL, "Test-Time
Linear Out-of-Distribution Detection" (CVPR 2024), which regress an OOD score on the features of a
test set and rank by the fit, also online. Ours: three scores at once, a large penalty, evidence
that says how far the fit is trusted, and a decision.

An item is decided by what was learned before its block and by itself, so items come one by one;
learning is at the end of a block. Steps are numbered as the equations in docs/detector.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.ridge_state import (
    Features,
    Floats,
    Items,
    Regression,
    Ring,
    Views,
    deviation,
)
from zsntta_cli.methods.settings import RidgeSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

_BASE_WEIGHT = 0.5  # of each of the three scores that make b
_LEAST_MCM = 1e-3  # before the logarithm
_MAD = 1.4826  # deviations of a Gaussian in its median absolute deviation
_GROWTH = 8  # an update whenever an eighth more was seen


@dataclass(frozen=True)
class Trust:
    """Step 4: what the stream says of its noise, each from 0 to 1."""

    gate: float  # gamma: there is noise of another kind, and z sees it
    unseen: float  # kappa is 1 - 0.25 of it: nothing in the shape of b speaks for noise
    rare: float  # omega: noise is rare and far

    @classmethod
    def in_ring(cls, v: Floats, b: Floats, o: RidgeSettings) -> "Trust":
        """From the ring's views (M, 4) and base scores (M,)."""
        # z learns what doubtful images share. Where that is the kind of image, it agrees with q of
        # the single image; where it is which classes are hard, q is free of it.
        agreement = float(v[:, 0] @ v[:, 3]) / len(v) - o.ridge_gate_errors / np.sqrt(len(v))
        square = b * b  # skewness + kurtosis: two humps are flat, a far tail is steep
        shape = float((square * b).mean() + (square * square).mean())
        return cls(
            _ramp(agreement, o.ridge_gate), _ramp(shape, o.ridge_shape), _ramp(shape, o.ridge_tail)
        )


@dataclass(frozen=True)
class Rule:
    """What decides until the next learning: all of it known before the items come."""

    views: Views
    trust: Trust
    weights: Floats  # (4,) of the views in the score, divided by its deviation over the ring
    doubt: float  # weight of -log MCM
    threshold: float  # tau, on s
    class_penalty: Floats  # (C,) eta log(C pi_c)

    def score(self, items: Items) -> Floats:
        """Noise scores s of B items, (B,)."""
        return self.views(items) @ self.weights + _hesitation(items, self.doubt)


@dataclass(frozen=True)
class Answer:
    """Decisions on B items."""

    class_index: NDArray[np.int32]  # (B,)
    is_noise: NDArray[np.bool_]  # (B,)
    score: Floats  # (B,) s, higher = more noise; u as long as ZS-CLIP decides
    threshold: float  # on s; nan as long as ZS-CLIP decides


class RidgeDetector:
    """The detector as a stream runs: `decide` on items in any pieces, `learn` block by block."""

    def __init__(self, text: Features, logit_scale: float, settings: RidgeSettings) -> None:
        """`text` (C, D): unit text features."""
        classes, dim = text.shape
        o = self._settings = settings
        self._regression = Regression(text, logit_scale, o.ridge_penalty)
        self._ring = Ring(o.ridge_ring, dim)
        self._prior = np.zeros(classes)  # softmax mass of the items called clean
        self.rule: Rule | None = None  # None: ZS-CLIP decides

    @property
    def block(self) -> int:
        """How many items to decide before the next `learn`."""
        grown = min(self._ring.seen // _GROWTH, self._settings.ridge_block)
        return max(grown, self._settings.ridge_first)

    def decide(self, items: Items) -> Answer:
        """Decide on B items by what was learned before; changes nothing."""
        classes, rule = items.top_classes[:, 0], self.rule
        if rule is None:
            return Answer(classes, items.zero_shot_noise, items.doubt[:, 0], np.nan)
        score = rule.score(items)
        # Step 7: classes that are named too often must win by more.
        best = (items.top_logits - rule.class_penalty[items.top_classes]).argmax(1)
        classes = np.take_along_axis(items.top_classes, best[:, None], axis=1)[:, 0]
        return Answer(classes, score > rule.threshold, score, rule.threshold)

    def learn(self, items: Items, is_noise: NDArray[np.bool_]) -> None:
        """Learn a block of items and what was decided on them."""
        if len(items) < 2:  # a rest of a stream; one item has no deviation
            return
        self._regression.add(items.features, items.doubt)
        self._ring.add(items)
        mass = np.exp(items.top_logits + items.doubt[:, 2:]) * (1 - items.doubt[:, :1])
        np.add.at(self._prior, items.top_classes[~is_noise], mass[~is_noise])
        self.rule = self._next_rule()

    def _next_rule(self) -> Rule:
        """Steps 1 to 7 over the ring."""
        o, ring = self._settings, self._ring.items
        views, v = Views.over(ring, self._regression)
        b = v[:, 1:].sum(1)
        b /= deviation(b)
        trust = Trust.in_ring(v, b, o)
        # Step 5: z comes in as far as it is trusted.
        weights = np.array([o.ridge_view * trust.gate, *3 * [_BASE_WEIGHT]])
        weights /= deviation(v @ weights)
        hesitation = _hesitation(ring, o.ridge_doubt)
        base = b + hesitation
        usual = float(ring.zero_shot_noise.mean()) * (1 - (1 - o.ridge_clean) * trust.unseen)
        shares = float((base > _otsu(base)).mean()), usual
        tau = _threshold(v @ weights + hesitation, trust, shares, o.ridge_tail_deviations)
        return Rule(views, trust, weights, o.ridge_doubt, tau, _class_penalty(self._prior, o))


def _hesitation(items: Items, weight: float) -> Floats:
    """Step 5: an item whose class is doubtful is worth less to accept."""
    return -weight * np.log(np.maximum(1 - items.doubt[:, 0], _LEAST_MCM))


def _threshold(s: Floats, trust: Trust, shares: tuple[float, float], deviations: float) -> float:
    """Step 6: tau on the scores (M,) of the ring, from the shares of noise if gamma is 1 or 0.

    The single image's scores say how many, s says which.
    """
    ordered, rare = np.sort(s), trust.rare
    seen, unseen = (_quantile(ordered, 1 - share) for share in shares)
    tau = trust.gate * seen + (1 - trust.gate) * unseen
    if rare:  # only the far tail
        median = _quantile(ordered, 0.5)
        deviation = _MAD * _quantile(np.sort(np.abs(s - median)), 0.5)
        tau = (1 - rare) * tau + rare * max(tau, median + deviations * deviation)
    return tau


def _class_penalty(mass: Floats, o: RidgeSettings) -> Floats:
    """Step 7: eta log(C pi_c) of the softmax mass (C,), less of it where classes are uneven."""
    prior = mass + o.ridge_prior_items / len(mass)
    log = np.log(prior * (len(mass) / prior.sum()))
    spread = float(prior @ (log * log) / prior.sum())
    penalty: Floats = min(1.0, o.ridge_prior**2 / max(spread, 1e-9)) * log
    return penalty


def _ramp(value: float, start: float) -> float:
    """From 0 at `start` to 1 an eighth above it."""
    return min(max(8 * (value / start - 1), 0.0), 1.0)


def _quantile(ordered: Floats, share: float) -> float:
    """Linear between the two nearest of sorted values."""
    place = share * (len(ordered) - 1)
    low = min(int(place), len(ordered) - 2) if len(ordered) > 1 else 0
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


def _otsu(scores: Floats) -> float:
    """The exact Otsu split of scores: between the two neighbours that part best."""
    v = np.sort(scores)
    n, sums, k = len(v), np.cumsum(v), np.arange(1, len(v))
    between = (sums[-1] * k / n - sums[:-1]) ** 2 / (k * (n - k))
    j = int(between.argmax())
    return float(v[j] + v[j + 1]) / 2


def run(data: StreamData, options: RidgeSettings, threshold: ThresholdSettings) -> Decisions:
    """Decide on every item of the stream as it would be online.

    Injected items are known noise and teach nothing: the others are decided as if they were not
    there.
    """
    is_test = ~data.injected
    # An injected item has the zero-shot threshold of the test item before it.
    found = np.append(OnlineThreshold(threshold)(data.noise_score[is_test]), np.nan)
    zero_shot_threshold = found[np.maximum(np.cumsum(is_test) - 1, 0)]
    detector = RidgeDetector(data.pool.text_features, data.pool.logit_scale, options)
    decisions = []
    for part in _blocks(detector, is_test):
        items, tests = _items(data, part, zero_shot_threshold[part]), is_test[part]
        answer = detector.decide(items)
        detector.learn(items.part(tests), answer.is_noise[tests])
        decisions.append(
            Decisions(
                answer.class_index, answer.is_noise | ~tests, 1 - answer.score,
                zero_shot_threshold[part], np.full(len(items), answer.threshold),
            )
        )  # fmt: skip
    return Decisions.joined(decisions)


def _blocks(detector: RidgeDetector, is_test: NDArray[np.bool_]) -> Iterator[slice]:
    """Runs of the stream with a block of test items each, the last one with what is left."""
    tests = np.flatnonzero(is_test)
    stop = done = 0
    while not done or stop < len(is_test):
        start, done = stop, done + detector.block
        stop = int(tests[done - 1]) + 1 if done < len(tests) else len(is_test)
        yield slice(start, stop)


def _items(data: StreamData, part: slice, zero_shot_threshold: Floats) -> Items:
    """A run of the stream as the detector sees it."""
    raw = data.features(part)
    detail = data.pool.detail.part(data.index[part])
    norm = np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-12)
    u = data.noise_score[part]
    doubt = np.column_stack([u, detail.entropy, -detail.top_logits[:, 0]])
    is_noise = u > zero_shot_threshold
    return Items(raw / norm, doubt, detail.top_logits, detail.top_classes, is_noise)
