"""Learn from people's answers about other images: a logistic regression on two numbers.

These are an image's margin from the method, and the log ratio of its mean similarity to images
labelled noise and to images labelled clean, where the least suspicious images count as clean, too.
The weights have priors: without answers the margin decides as before. The ratio counts only as far
as its weight exceeds what chance gives; with answers of one kind alone it never counts. Constants
were set on ImageNet, Cars, Pets, their splits and few of their classes, with noise from DTD and
SUN397 (benchmarks/learn.py).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.scores import unit

Floats = NDArray[np.float64]
Features = NDArray[np.float32]

RECENT = 512  # images that are remembered, to know what is usual
_USUAL = 0.3  # the share of images that count as clean, of which at most RECENT are used
_SHARPNESS = 10.0  # exp(_SHARPNESS (cosine - 1)) is the similarity of two images
_PRIOR_MEAN = np.array([0.0, 1.0, 0.0])  # of the weights: constant, margin, ratio
_PRIOR_PRECISION = np.array([5.0, 1.0, 1.0])
_LEAST_MARGIN = 1.0  # weight of the margin
_PINNED = 1e9  # the precision of a weight that does not move
_CHANCE, _CERTAIN = 2.0, 3.0  # standard errors of the ratio's weight: it is out, it is in


@dataclass(frozen=True)
class Labels:
    """The answers about L images, in an order that does not depend on when they were given."""

    features: Features  # (L, D) raw
    noise: NDArray[np.bool_]  # (L,)

    @classmethod
    def of(cls, features: Features, noise: NDArray[np.bool_]) -> "Labels":
        """Answers in the order in which they were given; the last one about an image counts."""
        rows, last = np.unique(features[::-1], axis=0, return_index=True)
        return cls(rows, noise[::-1][last])

    def __len__(self) -> int:
        return len(self.noise)


@dataclass(frozen=True)
class Rule:
    """A rule that was learned: the log odds that an image is noise."""

    labels: Labels
    usual: Features  # (U, D) of unit norm, images that count as clean
    weights: Floats  # (3,) of a constant, the margin and the ratio, both standardised
    centre: float  # of the ratio
    scales: Floats  # (2,) what margin and ratio are divided by

    def log_odds(self, features: Features, margins: Floats) -> Floats:
        """Log odds (N,) of images by their raw features (N, D) and margins; noise is above 0."""
        ratios = np.zeros(len(margins))
        if self.weights[2]:
            ratios = _ratios(unit(features), self.labels, self.usual)
        return _design(margins, ratios, self.centre, self.scales) @ self.weights


def fitted(labels: Labels, margins: Floats, seen: Features, margins_seen: Floats) -> Rule:
    """Fit the rule of one answer or more, with the margins (L,) of the answered images.

    The images that count as clean come from those that were `seen` (N, D), with margins (N,).
    """
    usual = _usual_of(seen, margins_seen, labels)
    ratios = _ratios(unit(labels.features), labels, usual, among=True)
    centre = float(ratios.mean())
    deviations = np.array([margins.std(), ratios.std()])
    scales = np.where(deviations > 1e-9, deviations, 1.0)  # all alike: as they are
    design = _design(margins, ratios, centre, scales)
    weights, error = _weights(design, labels.noise)
    certainty = (weights[2] / error - _CHANCE) / (_CERTAIN - _CHANCE)
    has_both = len(usual) and labels.noise.any() and not labels.noise.all()
    ratio = max(weights[2], 0) * np.clip(certainty, 0, 1) if has_both else 0.0
    at_bound = _LEAST_MARGIN if weights[1] <= _LEAST_MARGIN else None
    weights, _ = _weights(design, labels.noise, at_bound, float(ratio))
    return Rule(labels, usual, weights, centre, scales)


def _usual_of(features: Features, margins: Floats, labels: Labels) -> Features:
    """The least suspicious of raw features (N, D), without labelled ones: at most 512, as units."""
    order = np.argsort(margins, kind="stable")[: int(_USUAL * len(margins))]
    usual: Features = unit(features[order])
    if len(usual):
        usual = usual[(usual @ unit(labels.features).T).max(1) < 1 - 1e-6]
    return usual[:: -(-len(usual) // RECENT) or 1]


def _design(margins: Floats, ratios: Floats, centre: float, scales: Floats) -> Floats:
    """The inputs of the regression (N, 3)."""
    margin, ratio = margins / scales[0], (ratios - centre) / scales[1]
    return np.stack([np.ones(len(margins)), margin, ratio], 1)


def _ratios(features: Features, labels: Labels, usual: Features, *, among: bool = False) -> Floats:
    """Log ratios (N,) of mean similarities of unit features (N, D) to noise and to clean images.

    Each mean includes one more image, with the average similarity to all labelled images, so that
    few answers have little effect. `among`: the images are the answered ones, and none counts as
    its own neighbour.
    """
    to_answers = _similarity(features, unit(labels.features))
    if among:
        np.fill_diagonal(to_answers, 0)
    average = to_answers.sum(1, keepdims=True) / max(len(labels) - among, 1)
    sides = np.stack([labels.noise, ~labels.noise], 1).astype(np.float64)
    sums = to_answers @ sides
    sums[:, 1] += _similarity(features, usual).sum(1)
    counts = sides.sum(0) + np.array([0, len(usual)]) - (sides if among else 0)
    logs = np.log(np.maximum((sums + average) / (counts + 1), 1e-300))
    return logs[:, 0] - logs[:, 1]


def _similarity(features: Features, rows: Features) -> Floats:
    """Similarities (N, M) in (0, 1]; 1 for equal features."""
    return np.exp(_SHARPNESS * ((features @ rows.T).astype(np.float64) - 1))


def _weights(
    design: Floats,
    noise: NDArray[np.bool_],
    margin: float | None = None,
    ratio: float | None = None,
) -> tuple[Floats, float]:
    """The most likely weights (3,) under the prior, and the standard error of the last one.

    The margin's weight has its least value; a weight that is given does not move.
    """
    from scipy.optimize import minimize

    def loss(weights: Floats) -> tuple[float, Floats]:
        """The negative log posterior, and its slope."""
        odds, change = design @ weights, weights - _PRIOR_MEAN
        value = np.logaddexp(0, odds).sum() - odds[noise].sum()
        slope = design.T @ (_chance(odds) - noise) + _PRIOR_PRECISION * change
        return float(value + (_PRIOR_PRECISION * change**2).sum() / 2), slope

    solution = minimize(
        loss, [0.0, margin or _LEAST_MARGIN, ratio or 0.0], jac=True, method="L-BFGS-B",
        bounds=[(None, None), (margin or _LEAST_MARGIN, margin), (ratio, ratio)],
        options={"ftol": 0.0, "gtol": 1e-9, "maxiter": 500},
    )  # fmt: skip
    weights: Floats = solution.x
    chance = _chance(design @ weights)
    is_at_bound = weights[1] <= _LEAST_MARGIN
    precision = _PRIOR_PRECISION + np.array([0, _PINNED * is_at_bound, 0])
    curvature = (design.T * (chance * (1 - chance))) @ design + np.diag(precision)
    return weights, float(np.sqrt(np.linalg.inv(curvature)[2, 2]))


def _chance(odds: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
