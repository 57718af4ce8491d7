"""Ridge: our noise detector, which needs no labels, no learning rate and no injected noise.

The frozen model's doubt about a single image is unreliable, but what doubtful images have in common
is not: the mean doubtful image less the mean image is a direction w, along which noise of another
kind lies far out. That direction counts as far as it agrees with the single image. The equations
have the numbers of docs/detector.md. (A ridge regression stood in place of w in earlier versions;
the name is kept. The nearest published ideas are ETLT, arXiv 2207.08210, and RTL, CVPR 2024, which
regress an OOD score on the features of a test set and rank by the fit.)

An item is decided by itself and by what was learned before its block, so items may come one by one.
A block and not an item is learned at once because thresholds are quantiles of the ring, which has
to be sorted. The views of an item in the ring are those by which it was decided.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import NONE, OTHER_KIND, RARE, SURE, Evidence
from zsntta_cli.methods.scores import TOP
from zsntta_cli.methods.settings import RidgeSettings
from zsntta_cli.methods.state import State

Floats = NDArray[np.float64]
Features = NDArray[np.float32]

# These cost time and no accuracy.
_BLOCK = 256  # largest number of items of a block; a block is an eighth of the items so far
_GROWTH = 8
_ALL, _EVERY = 1024, 8  # after so many items the deviation of logits is of one item in eight
_GAUSSIAN, _UNIFORM = 2 / np.pi, 3 / 4  # Otsu's share of the variance of two distributions
_MAD = 1.4826  # standard deviation of a Gaussian over its median absolute deviation
_WORDS = 2.0, 0.02, 0.06  # weight of t; shares that match a word best: t starts, counts in full


@dataclass(frozen=True)
class RidgeItems:
    """B images as the detector sees them."""

    features: Features  # (B, D) unit norm (a zero feature stays zero)
    doubt: Floats  # (B, 3) u = 1 - MCM, h = entropy / log C, g = minus the largest logit
    top_logits: Features  # (B, K) descending
    top_classes: NDArray[np.int32]  # (B, K)
    zero_shot_noise: NDArray[np.bool_]  # (B,) whether ZS-CLIP calls it noise
    words: Floats  # (B, 2) t, and whether a word is the best match; (B, 0) without words

    def __len__(self) -> int:
        return len(self.doubt)

    def part(self, items: NDArray[np.bool_]) -> "RidgeItems":
        """Some of the items."""
        return RidgeItems(*(column[items] for column in vars(self).values()))

    @classmethod
    def none(cls, shape: tuple[int, ...], words: int) -> "RidgeItems":
        """No items of a stream with text features of this shape (C, D)."""
        top = min(TOP, shape[0])
        return cls(
            np.zeros((0, shape[1]), np.float32), np.zeros((0, 3)), np.zeros((0, top), np.float32),
            np.zeros((0, top), np.int32), np.zeros(0, bool), np.zeros((0, words)),
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: Sequence["RidgeItems"]) -> "RidgeItems":
        """Join the items of several parts, in order."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))


@dataclass(frozen=True)
class Views:
    """Equations 1 and 2: an item's z, h, g and q by what was learned."""

    direction: Features  # w / |w| (D,)
    center: float  # of the mean image along w
    class_mean: Floats  # (C,) of each class's logit
    class_deviation: Floats  # (C,)

    def __call__(self, items: RidgeItems) -> Floats:
        """The views (B, 4), row by row: a product of several rows depends on their number."""
        z = np.vecdot(items.features, self.direction) - self.center
        first, h, g = items.top_classes[:, 0], items.doubt[:, 1], items.doubt[:, 2]
        q = (self.class_mean[first] + g) / self.class_deviation[first]
        return np.column_stack([z, h, g, q])


@dataclass(frozen=True)
class Rule:
    """Equations 3 to 5 until the next block is learned; it is known before the items come."""

    views: Views
    mean: Floats  # (4,) of the views over the ring
    weights: Floats  # (4,) of the views in s, over their deviations
    words: tuple[float, float]  # mean of t, and its weight in s
    threshold: float  # tau
    evidence: Evidence
    penalty: Floats  # (C,) eta log(C pi_c)

    def scores(self, items: RidgeItems) -> Floats:
        """The noise scores s (B,)."""
        s: Floats = np.vecdot(self.views(items) - self.mean, self.weights)
        return s + self.words[1] * (items.words[:, 0] - self.words[0]) if self.words[1] else s

    def class_logits(self, items: RidgeItems) -> Floats:
        """Equation 5: the largest logits (B, K), lowered for classes chosen too often."""
        logits: Floats = items.top_logits - self.penalty[items.top_classes]
        return logits


class Ridge:
    """What was learned of a stream: D + C + M numbers, from which the next rule follows."""

    def __init__(self, text: Features, scale: float, options: RidgeSettings, words: int) -> None:
        """`text` (C, D): unit text features; `words`: the number of word values of an item."""
        classes, dim = text.shape
        self.text, self._scale, self._options = text, np.float32(scale), options
        self.seen, self._logits_seen = 0, 0
        self._xy = np.zeros((4, dim))  # sums: of features, and of their products with the doubt
        self._y, self._logits = np.zeros((2, 3)), np.zeros((2, classes))  # and sums of squares
        self._mass = np.zeros(classes)  # softmax mass of items that were called clean
        self._ring = np.zeros((options.ridge_ring, 5 + words))  # views, ZS-CLIP's flag, words
        self.rule: Rule | None = None  # None: ZS-CLIP decides

    @property
    def block(self) -> int:
        """The number of items that are learned next."""
        return self.block_after(self.seen)

    def block_after(self, seen: int) -> int:
        """The number of items of a block after `seen` items were learned."""
        return max(min(seen // _GROWTH, _BLOCK), self._options.ridge_first)

    def learn(self, items: RidgeItems, is_noise: NDArray[np.bool_]) -> None:
        """Learn a block of items and the decisions on them, which only equation 5 uses."""
        x, y = items.features, items.doubt
        some = x if self.seen < _ALL else x[::_EVERY]
        logits = (some @ self.text.T).astype(np.float64) * self._scale
        self._logits += logits.sum(0), (logits * logits).sum(0)
        self._logits_seen += len(logits)
        with_one = np.column_stack([np.ones(len(y)), y]).astype(np.float32)
        self._xy += with_one.T @ x
        self._y += y.sum(0), (y * y).sum(0)
        mass = np.exp(items.top_logits + y[:, 2:]) * (1 - y[:, :1])
        np.add.at(self._mass, items.top_classes[~is_noise], mass[~is_noise])
        slots = np.arange(self.seen, self.seen + len(y)) % len(self._ring)
        self.seen += len(y)
        views = self._views() if self.rule is None else self.rule.views
        flags = items.zero_shot_noise[:, None]
        self._ring[slots] = np.column_stack([views(items), flags, items.words])
        self.rule = self._rule()

    def _views(self) -> Views:
        x, *products = self._xy / self.seen
        y, y_square = self._y / self.seen
        mean, square = self._logits / self._logits_seen
        deviation = np.sqrt(np.maximum(square - mean * mean, 1e-6))
        variance = y_square - y * y
        varies = variance > (1e-6 * np.abs(y) + 1e-7) ** 2
        covariances = np.array(products) - np.outer(y, x)
        w = covariances.T @ (varies / np.sqrt(np.where(varies, variance, 1.0)))
        w /= max(float(np.linalg.norm(w)), 1e-12)
        class_mean = (self.text @ (x * self._scale).astype(np.float32)).astype(np.float64)
        return Views(w.astype(np.float32), float(w @ x), class_mean, deviation)

    def _rule(self) -> Rule:
        ring, o = self._ring[: min(self.seen, len(self._ring))], self._options
        mean, spread = ring[:, :4].mean(0), deviation(ring[:, :4])
        v = (ring[:, :4] - mean) / spread
        b, agreement = v[:, 1] + v[:, 2] + v[:, 3], max(float(v[:, 0] @ v[:, 3]) / len(v), 0.0)
        weights = np.array([agreement**3, *3 * [1 / deviation(b)]])  # equation 3
        b, s = b * weights[1], v @ weights
        words = _word_weight(ring[:, 5:], float(s.std()))
        if words[1]:
            s += words[1] * (ring[:, 5] - words[0])
        split, share = otsu(b)  # equation 4
        # A repeated image is no new evidence: n is the number of those with another logit.
        groups = _groups(share, len(np.unique(ring[:, 2])))
        shares = Shares.of(b > split, ring[:, 4] > 0)
        noise = shares.noise(groups)
        ordered, rare = np.sort(s), _rare(v[:, 2] + v[:, 3], o.ridge_tail)
        tau = _quantile(ordered, 1 - noise)
        if rare:
            median = _quantile(ordered, 0.5)
            mad = _MAD * _quantile(np.sort(np.abs(s - median)), 0.5)
            tau += rare * max(median + o.ridge_tail_deviations * mad - tau, 0.0)
        evidence = shares.evidence(groups**2, rare)  # squared: doubt is not yet evidence
        return Rule(
            self._views(), mean, weights / spread, words, tau, evidence, self._penalty()
        )  # fmt: skip

    def _penalty(self) -> Floats:
        """Equation 5: eta log(C pi_c); eta is small if classes are uneven."""
        prior = self._mass + self._options.ridge_first / len(self._mass)
        log = np.log(prior * (len(prior) / prior.sum()))
        spread = float(prior @ (log * log) / prior.sum())
        penalty: Floats = min(1.0, self._options.ridge_prior**2 / max(spread, 1e-9)) * log
        return penalty

    def state(self) -> State:
        """All numbers that were learned; the rule follows from them."""
        return {
            "seen": self.seen, "logits_seen": self._logits_seen, "xy": self._xy,
            "y": self._y, "logits": self._logits, "mass": self._mass,
            "ring": self._ring,
        }  # fmt: skip

    def restore(self, state: State) -> None:
        """Continue from a state that was checked against this one's."""
        self.seen, self._logits_seen = int(state["seen"]), int(state["logits_seen"])
        for name in ("xy", "y", "logits", "mass", "ring"):
            setattr(self, f"_{name}", np.asarray(state[name]))
        self.rule = self._rule() if self.seen else None


@dataclass(frozen=True)
class Shares:
    """Equation 4: shares of the ring."""

    own: float  # rho_b: on the doubtful side of the split of single images
    zero_shot: float  # rho_0: what ZS-CLIP rejects
    both: float  # what is both

    @classmethod
    def of(cls, is_doubtful: NDArray[np.bool_], is_rejected: NDArray[np.bool_]) -> "Shares":
        """The shares by flags (M,)."""
        flags = is_doubtful, is_rejected, is_doubtful & is_rejected
        return cls(*(float(flag.mean()) for flag in flags))

    def noise(self, groups: float) -> float:
        """rho, the share of noise; `groups`: how clearly single images form two groups.

        Without two groups noise is what both reject, or what ZS-CLIP rejects, as far as it rejects
        most of the images.
        """
        most = max(2 * self.zero_shot - 1, 0.0)
        single = self.both + most * (self.zero_shot - self.both)
        return single + groups * (self.own - single)

    def evidence(self, groups: float, rare: float) -> Evidence:
        """The evidence for noise of another kind than the classes.

        Single images form two groups, or a far tail, or their split takes back more than half of
        what ZS-CLIP rejects.
        """
        back = max(1 - self.own / self.zero_shot, 0.0) if self.zero_shot else 0.0
        far = max(back, rare)
        value = max(groups, far)
        kind = NONE if value < SURE else OTHER_KIND if groups >= far else RARE
        return Evidence(value, kind)


def _groups(share: float, images: int) -> float:
    """How clearly scores of n images form two groups, by Otsu's share of their variance.

    It is 0 for a Gaussian and 1 for a uniform distribution; what chance may add is taken off.
    """
    sure = share - 0.5 / np.sqrt(images)
    return min(max((sure - _GAUSSIAN) / (_UNIFORM - _GAUSSIAN), 0.0), 1.0)


def _rare(scores: Floats, tail: float) -> float:
    """How clearly a few scores (M,) are far from all others, by skewness + kurtosis.

    These are scores without the entropy, which has a tail on clean images of a few easy classes.
    """
    x = (scores - scores.mean()) / deviation(scores)
    square = x * x
    return min(max(8 * (float((square * (x + square)).mean()) / tail - 1), 0.0), 1.0)


def _word_weight(words: Floats, spread: float) -> tuple[float, float]:
    """The mean and the weight of t beside scores of this deviation; 0 if few items match a word."""
    if not words.shape[1]:
        return 0.0, 0.0
    (weight, start, full), t = _WORDS, words[:, 0]
    used = min(max((float(words[:, 1].mean()) - start) / (full - start), 0.0), 1.0)
    return float(t.mean()), float(weight * used * spread / max(float(t.std()), 1e-9))


def deviation(values: Floats) -> Floats:
    """The deviation over the items (axis 0), or inf if it is no more than rounding."""
    spread = values.std(0)
    rounding = 1e-7 + 1e-6 * np.abs(values).max(0)
    return np.where(spread > rounding, spread, np.inf)


def otsu(scores: Floats) -> tuple[float, float]:
    """The exact Otsu split of scores, and the share of their variance that is between its sides.

    The share is 2 / pi = 0.637 for a Gaussian, 0.75 for a uniform distribution, 1 for two points.
    """
    v = np.sort(scores)
    n, sums, k = len(v), np.cumsum(v), np.arange(1, len(v))
    between = (sums[-1] * k / n - sums[:-1]) ** 2 / (k * (n - k))
    j, variance = int(between.argmax()), float(v.var())
    return float(v[j] + v[j + 1]) / 2, float(between[j]) / variance if variance > 1e-12 else 0.0


def _quantile(ordered: Floats, share: float) -> float:
    """The quantile of sorted values, linear between the two nearest."""
    place = share * (len(ordered) - 1)
    low = min(int(place), len(ordered) - 2)
    return float(ordered[low] + (place - low) * (ordered[low + 1] - ordered[low]))
