"""Learn from people's answers about other images: a logistic regression on two numbers.

These are an image's margin from the method, and the log ratio of its mean similarity to images
labelled noise and to images labelled clean, where the least suspicious images count as clean, too.
The weights have priors: without answers the margin decides as before. The ratio counts only as far
as its weight exceeds what chance gives; with answers of one kind alone it never counts. Constants
were set on ImageNet, Cars, Pets, their splits and few of their classes, with noise from DTD and
SUN397 (benchmarks/learn.py).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Features = NDArray[np.float32]

USUAL, MOST_USUAL = 0.3, 512  # the share of images that count as clean, and at most so many
_SHARPNESS = 10.0  # exp(_SHARPNESS (cosine - 1)) is the similarity of two images
_PRIOR_MEAN = np.array([0.0, 1.0, 0.0])  # of the weights: constant, margin, ratio
_PRIOR_PRECISION = np.array([5.0, 1.0, 1.0])
_PINNED = 1e9  # the precision of a weight that does not move
_LARGEST = float(np.finfo(np.float16).max)
_LEAST_MARGIN = 1.0  # weight of the margin
_CHANCE, _CERTAIN = 2.0, 3.0  # standard errors of the ratio's weight: it is out, it is in


@dataclass(frozen=True)
class LabelledImages:
    """The answers about L images, in an order that does not depend on when they were given."""

    features: Features  # (L, D) raw
    noise: NDArray[np.bool_]  # (L,)

    @cached_property
    def units(self) -> Features:
        """The features (L, D), of unit norm."""
        return units(self.features)

    @classmethod
    def none(cls, dim: int) -> "LabelledImages":
        """No answers."""
        return cls(np.empty((0, dim), np.float32), np.empty(0, bool))

    def __len__(self) -> int:
        return len(self.noise)

    def and_of(self, features: Features, noise: NDArray[np.bool_]) -> "LabelledImages":
        """These answers and more; the last answer about the same image counts."""
        rows = np.concatenate([self.features, features])[::-1]
        answers = np.concatenate([self.noise, noise])[::-1]
        rows, first = np.unique(rows, axis=0, return_index=True)
        return LabelledImages(rows, answers[first])


def units(features: NDArray[np.floating]) -> Features:
    """Features (N, D) of unit norm; zeros stay zeros."""
    rows = features.astype(np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True)
class LearnedRule:
    """A rule that was learned: the log-odds that an image is noise."""

    answers: LabelledImages
    usual: Features  # (U, D) of unit norm, images that count as clean
    weights: Floats  # (3,) of a constant, the margin and the ratio, both standardised
    centre: float  # of the ratio
    scales: Floats  # (2,) what margin and ratio are divided by

    def log_odds(self, features: Features, margins: Floats) -> Floats:
        """Log-odds (N,) of images by their unit features (N, D) and margins; noise is above 0."""
        if self.weights[2] == 0:
            ratios = np.zeros(len(margins))
        else:
            ratios = _ratios(features, self.answers, self.usual)
        return _design(margins, ratios, self.centre, self.scales) @ self.weights


def usual_of(features: Features, margins: Floats, answers: LabelledImages) -> Features:
    """The least suspicious unit features (N, D), without labelled ones: at most 512."""
    order = np.argsort(margins, kind="stable")[: int(USUAL * len(margins))]
    features = features[order]
    if len(answers) and len(features):
        features = features[(features @ answers.units.T).max(1) < 1 - 1e-6]
    return features[:: -(-len(features) // MOST_USUAL) or 1]


def learned(answers: LabelledImages, margins: Floats, usual: Features) -> LearnedRule:
    """The rule of at least one answer; margins (L,) are those of the answered images."""
    ratios = _ratios(answers.units, answers, usual, among=True)
    centre = float(ratios.mean())
    scales = np.array([_scale(margins), _scale(ratios)])
    design = _design(margins, ratios, centre, scales)
    weights = _weights(design, answers.noise, bool(len(usual)))
    return LearnedRule(answers, usual, weights, centre, scales)


def _design(margins: Floats, ratios: Floats, centre: float, scales: Floats) -> Floats:
    """The inputs of the regression (N, 3)."""
    margin, ratio = margins / scales[0], (ratios - centre) / scales[1]
    return np.stack([np.ones(len(margins)), margin, ratio], 1)


def _scale(values: Floats) -> float:
    """The standard deviation of values; 1 if they are all alike."""
    deviation = float(values.std())
    return deviation if deviation > 1e-9 else 1.0


def _ratios(
    features: Features, answers: LabelledImages, usual: Features, *, among: bool = False
) -> Floats:
    """Log ratios (N,) of mean similarities to noise and to clean images.

    Each mean includes one more image, with the average similarity to all labelled images, so that
    few answers have little effect. `among`: the images are the answered ones, and none counts as
    its own neighbour.
    """
    to_answers = _similarity(features, answers.units)
    if among:
        np.fill_diagonal(to_answers, 0)
    average = to_answers.sum(1) / max(len(answers) - among, 1)
    noise = answers.noise
    counts = np.array([noise.sum(), (~noise).sum() + len(usual)], np.float64)
    sums = to_answers @ np.stack([noise, ~noise], 1).astype(np.float64)
    sums[:, 1] += _similarity(features, usual).sum(1)
    counts_each = np.tile(counts, (len(features), 1))
    if among:
        counts_each -= np.stack([noise, ~noise], 1)
    means = (sums + average[:, None]) / (counts_each + 1)
    logs: Floats = np.log(np.maximum(means, 1e-300))
    return logs[:, 0] - logs[:, 1]


def _similarity(features: Features, others: Features) -> Floats:
    """Similarities (N, M) in (0, 1]; 1 for equal features."""
    cosines = (features @ others.T).astype(np.float64)
    return np.exp(_SHARPNESS * (cosines - 1))


def _weights(design: Floats, noise: NDArray[np.bool_], has_usual: bool) -> Floats:
    """Weights (3,): those of the margin alone, and the ratio's as far as it is significant."""
    mean, precision = _PRIOR_MEAN.copy(), _PRIOR_PRECISION.copy()
    weights, error = _posterior(design, noise, mean, precision)
    if weights[1] < _LEAST_MARGIN:
        mean[1], precision[1] = _LEAST_MARGIN, _PINNED
        weights, error = _posterior(design, noise, mean, precision)
    certainty = (weights[2] / error - _CHANCE) / (_CERTAIN - _CHANCE)
    says = has_usual and noise.any() and not noise.all()
    mean[2] = max(weights[2], 0) * np.clip(certainty, 0, 1) if says else 0.0
    precision[2] = _PINNED
    ratio = mean[2]
    weights, _ = _posterior(design, noise, mean, precision)
    if weights[1] < _LEAST_MARGIN:
        mean[1], precision[1] = _LEAST_MARGIN, _PINNED
        weights, _ = _posterior(design, noise, mean, precision)
    return np.array([weights[0], weights[1], ratio])


def _posterior(
    design: Floats, noise: NDArray[np.bool_], mean: Floats, precision: Floats
) -> tuple[Floats, float]:
    """The most likely weights under a normal prior, and the standard error of the last one.

    They are found by Newton's method; a step that goes too far is halved.
    """
    weights, loss = mean, _loss(design, noise, mean, mean, precision)
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -500, 500)))
        gradient = design.T @ (chance - noise) + precision * (weights - mean)
        curvature = (design.T * (chance * (1 - chance))) @ design + np.diag(precision)
        step = np.linalg.solve(curvature, gradient)
        while (new := _loss(design, noise, weights - step, mean, precision)) > loss:
            step = step / 2
            if abs(step).max() < 1e-12:
                break
        if loss - new < 1e-10:
            break
        weights, loss = weights - step, new
    return weights, float(np.sqrt(np.linalg.inv(curvature)[2, 2]))


def _loss(
    design: Floats, noise: NDArray[np.bool_], weights: Floats, mean: Floats, precision: Floats
) -> float:
    """The negative log posterior of the weights."""
    odds = design @ weights
    likelihood = np.logaddexp(0, odds).sum() - odds[noise].sum()
    return float(likelihood + (precision * (weights - mean) ** 2).sum() / 2)


class Learner:
    """The answers that a detector got, the images that it saw last, and the rule from both.

    The rule is fitted again when answers come, and at fixed numbers of seen images, in whatever
    pieces they are pushed.
    """

    RECENT = 512  # images that are remembered, to know what is usual
    _STEP, _EARLY, _LATE_STEP = 64, 512, 512  # images between two rules: at first, until, later

    def __init__(self, dim: int) -> None:
        """Begin without answers, for features of D dims."""
        self.answers = LabelledImages.none(dim)
        self.rule: LearnedRule | None = None
        self._recent = np.zeros((self.RECENT, dim), np.float16)  # a ring, by the number of an image
        self._seen = 0

    def pieces(self, count: int) -> Iterator[slice]:
        """The next images in pieces, after which the rule may be due; one piece without answers."""
        first = self._STEP - self._seen % self._STEP if len(self.answers) else count
        yield slice(0, min(first, count))
        for start in range(first, count, self._STEP):
            yield slice(start, min(start + self._STEP, count))

    def see(self, features: Features) -> bool:
        """Remember the next images (N, D), and return whether the rule is due."""
        last = features[-self.RECENT :]
        numbers = np.arange(self._seen + len(features) - len(last), self._seen + len(features))
        self._recent[numbers % self.RECENT] = np.clip(last, -_LARGEST, _LARGEST)
        self._seen += len(features)
        return bool(len(self.answers) and len(features) and self._is_due())

    def _is_due(self) -> bool:
        step = self._STEP if self._seen <= self._EARLY else self._LATE_STEP
        return self._seen % step == 0

    def fit(self, margins_of: Callable[[Features], Floats]) -> None:
        """Fit the rule, with the margins that the detector now gives raw features."""
        recent = self._recent[: self._seen].astype(np.float32)
        margins = margins_of(np.concatenate([self.answers.features, recent]))
        of_answers, of_recent = np.split(margins, [len(self.answers)])
        self.rule = learned(
            self.answers, of_answers, usual_of(units(recent), of_recent, self.answers)
        )
