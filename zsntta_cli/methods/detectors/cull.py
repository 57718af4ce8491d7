"""Cull: our noise detector, which needs no labels, no learning rate and no injected noise.

The frozen model's doubt about a single image is unreliable, but what doubtful images have in common
is not: the mean doubtful image less the mean image is a direction w, along which noise of another
kind lies far out. That direction counts as far as it agrees with the single image. (The nearest
published ideas are ETLT, arXiv 2207.08210, and RTL, CVPR 2024, which regress an OOD score on the
features of a test set and rank by the fit.) The equations have the numbers of docs/detector.md:

    1  q = (mean_c - l_c) / sd_c, of the chosen class c        `Views`, `Sums._views`
    2  w = sum of cov(x, y) / sd(y), y = u, h, g; z = x . w    `Views`, `Sums._views`
    3  b = std(h + g + q), s = b + r^3 z, noise iff s > tau    `Rule.scores`, `Sums._rule`
    4  tau, of the shares of ZS-CLIP's and Otsu's noise        `Shares`, `_groups`, `_rare`
    5  class = argmax l_c - eta log(C pi_c)                    `Rule.class_logits`, `Sums._penalty`

An item is decided by itself and by what was learned before its block, so items may come one by one.
A block and not an item is learned at once because thresholds are quantiles of the ring, which has
to be sorted. The views of an item in the ring are those by which it was decided.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import (
    NO_EVIDENCE,
    NONE,
    OTHER_KIND,
    RARE,
    SURE,
    Decisions,
    Evidence,
    Pool,
    StreamData,
)
from zsntta_cli.methods.detectors.cull_order import Order
from zsntta_cli.methods.method import ABOVE_ZERO, FROM_ZERO, Method, MethodSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import Range, option

Floats = NDArray[np.float64]
Features = NDArray[np.float32]

# These cost time and no accuracy.
_BLOCK = 256  # largest number of items of a block; a block is an eighth of the items so far
_GROWTH = 8
_ALL, _EVERY = 1024, 8  # after so many items the deviation of logits is of one item in eight
_GAUSSIAN, _UNIFORM = 2 / np.pi, 3 / 4  # Otsu's share of the variance of two distributions
_MAD = 1.4826  # standard deviation of a Gaussian over its median absolute deviation


@dataclass(frozen=True)
class CullSettings(MethodSettings):
    """The settings of Cull."""

    warm_up_by = "cull-first"
    cull_first: int = option(
        64,
        "Items that ZS-CLIP decides at first; fewest items between updates.",
        within=Range(least=2),
    )
    cull_ring: int = option(
        1024, "M: last items from which thresholds are found.", within=Range(least=2)
    )
    cull_tail: float = option(
        6.0, "Skewness + kurtosis of b above which noise is rare and far.", within=ABOVE_ZERO
    )
    cull_tail_deviations: float = option(
        3.0,
        "Distance of the threshold from the median for rare noise, in deviations.",
        within=FROM_ZERO,
    )
    cull_prior: float = option(
        0.3, "Spread of the class prior up to which it is corrected.", within=FROM_ZERO
    )
    cull_order: bool = option(
        True, "Use the last classes if neighbouring items share a class more often than by chance."
    )
    cautious: bool = option(
        False, "Call an image noise only where there is evidence of noise of another kind."
    )

    @property
    def warm_up(self) -> int:
        """The number of items of the first block, which ZS-CLIP decides."""
        return self.cull_first


@dataclass(frozen=True)
class Items:
    """B images as the detector sees them."""

    features: Features  # (B, D) unit norm (a zero feature stays zero)
    doubt: Floats  # (B, 3) u = 1 - MCM, h = entropy / log C, g = minus the largest logit
    top_logits: Features  # (B, K) descending
    top_classes: NDArray[np.int32]  # (B, K)
    zero_shot_noise: NDArray[np.bool_]  # (B,) whether ZS-CLIP calls it noise

    def __len__(self) -> int:
        return len(self.doubt)

    @classmethod
    def of(cls, data: StreamData, part: slice, zero_shot: Floats) -> "Items":
        """Consecutive items of a stream, by ZS-CLIP's thresholds (B,) for them."""
        raw, detail, u = data.features(part), data.detail(part), data.noise_score[part]
        norm = np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-12)
        doubt = np.column_stack([u, detail.entropy, -detail.top_logits[:, 0]])
        return cls(raw / norm, doubt, detail.top_logits, detail.top_classes, u > zero_shot)

    def part(self, items: NDArray[np.bool_]) -> "Items":
        """Some of the items."""
        return Items(*(column[items] for column in vars(self).values()))

    def followed_by(self, others: "Items") -> "Items":
        """These items and others, in order; nothing is copied if these are none."""
        if not len(self):  # as in a stream that is pushed whole
            return others
        both = zip(vars(self).values(), vars(others).values(), strict=True)
        return Items(*map(np.concatenate, both))


@dataclass(frozen=True)
class Views:
    """Equations 1 and 2: an item's z, h, g and q by what was learned."""

    direction: Features  # w / |w| (D,)
    center: float  # of the mean image along w
    class_mean: Floats  # (C,) of each class's logit
    class_deviation: Floats  # (C,)

    def __call__(self, items: Items) -> Floats:
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
    threshold: float  # tau
    evidence: Evidence
    penalty: Floats  # (C,) eta log(C pi_c)

    def scores(self, items: Items) -> Floats:
        """The noise scores s (B,)."""
        s: Floats = np.vecdot(self.views(items) - self.mean, self.weights)
        return s

    def class_logits(self, items: Items) -> Floats:
        """Equation 5: the largest logits (B, K), lowered for classes chosen too often."""
        logits: Floats = items.top_logits - self.penalty[items.top_classes]
        return logits


class Cull(Method):
    """Cull: our noise detector without labels, with the same values for all sets and encoders.

    The detector while a stream runs, in pieces of any size.

    Injected noise is not learned; the other items are decided as if it were not in the stream.

    """

    Settings = CullSettings
    cites = ("zsntta",)
    cost = "keeps 4 D numbers, 9 for each of M items and 6 for each class"
    revision = 3

    def __init__(
        self, data: StreamData, options: CullSettings, threshold: ThresholdSettings
    ) -> None:
        """Start before the first item; of the stream only the texts matter."""
        shape = data.pool.text_features.shape
        self.options, self.zero_shot = options, OnlineThreshold(threshold)
        self.sums = Sums(data.pool, options)
        self.order = Order(shape[0], options.cull_ring)
        # The items that wait until they are learned together, and the decisions on them.
        self.block, self.is_noise = Items.of(data, slice(0), np.empty(0)), np.empty(0, bool)

    @property
    def adapted(self) -> bool:
        """Whether there is a rule."""
        return self.sums.rule is not None

    @property
    def evidence(self) -> Evidence:
        """The evidence of the stream for noise of another kind."""
        return self.sums.rule.evidence if self.sums.rule else NO_EVIDENCE

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on the next items, and learn at the end of each block."""
        if not learn:
            zero_shot = np.full(len(items), self.zero_shot.latest)
            nothing = np.zeros(len(items), bool)
            return self._decide(Items.of(items, slice(None), zero_shot), nothing, zero_shot)[0]
        is_test = ~items.injected
        # An injected item gets the zero-shot threshold of the test item before it.
        before = self.zero_shot.latest
        thresholds = np.append(before, self.zero_shot(items.noise_score[is_test]))
        zero_shot = thresholds[np.cumsum(is_test)]
        parts: list[Decisions] = []
        tests, start, done = np.flatnonzero(is_test), 0, 0
        while start < len(items) or not parts:
            done += self.sums.block - len(self.block)
            stop = int(tests[done - 1]) + 1 if done <= len(tests) else len(items)
            part = slice(start, stop)
            parts.append(self._push_part(items, part, zero_shot[part]))
            start = stop
        return Decisions.joined(parts)

    def _push_part(self, data: StreamData, part: slice, zero_shot: Floats) -> Decisions:
        """Decide on the items of a block, or of the rest of it."""
        items, is_test = Items.of(data, part, zero_shot), ~data.injected[part]
        answer, is_noise = self._decide(items, is_test, zero_shot)
        if not is_test.all():
            assert answer.is_noise is not None
            items = items.part(is_test)
            answer = replace(answer, is_noise=answer.is_noise | ~is_test)
        self.block = self.block.followed_by(items)
        self.is_noise = np.append(self.is_noise, is_noise[is_test])
        if len(self.block) == self.sums.block:
            self.sums.learn(self.block, self.is_noise)
            if self.options.cull_order:
                self.order.learn()
            nothing = np.zeros(len(self.block), bool)
            self.block, self.is_noise = self.block.part(nothing), np.empty(0, bool)
        return answer

    def _decide(
        self, items: Items, enters: NDArray[np.bool_], zero_shot: Floats
    ) -> tuple[Decisions, NDArray[np.bool_]]:
        """Decide on B items by the rule, or as ZS-CLIP does; the flags are those before caution.

        The classes of clean items that enter are remembered for the next items.
        """
        rule, count = self.sums.rule, len(items)
        if rule:
            score, tau, logits = rule.scores(items), rule.threshold, rule.class_logits(items)
            is_noise = score > tau
        else:
            score, tau, is_noise = items.doubt[:, 0], np.nan, items.zero_shot_noise
            logits = items.top_logits.astype(np.float64)
        named = self.order.name(logits, items.top_classes, enters & ~is_noise)
        evidence = self.evidence
        return Decisions(
            named, is_noise & (evidence.is_sure or not self.options.cautious), 1 - score, zero_shot,
            np.full(count, tau), np.full(count, evidence.value),
            np.full(count, evidence.kind, np.int8),
        ), is_noise  # fmt: skip


class Sums:
    """What was learned of a stream: D + C + M numbers, from which the next rule follows."""

    def __init__(self, pool: Pool, options: CullSettings) -> None:
        """`pool` has the texts of the classes."""
        classes, dim = pool.text_features.shape
        self.pool, self.options = pool, options
        self.seen, self.logits_seen = 0, 0
        self.xy = np.zeros((4, dim))  # sums: of features, and of their products with the doubt
        self.y, self.logits = np.zeros((2, 3)), np.zeros((2, classes))  # and sums of squares
        self.mass = np.zeros(classes)  # softmax mass of items that were called clean
        self.ring = np.zeros((options.cull_ring, 5))  # views, and ZS-CLIP's flag
        self.rule: Rule | None = None  # None: ZS-CLIP decides

    @property
    def text(self) -> Features:
        """The unit text features (C, D)."""
        return self.pool.text_features

    @property
    def block(self) -> int:
        """The number of items that are learned next."""
        return max(min(self.seen // _GROWTH, _BLOCK), self.options.cull_first)

    def learn(self, items: Items, is_noise: NDArray[np.bool_]) -> None:
        """Learn a block of items and the decisions on them, which only equation 5 uses."""
        x, y = items.features, items.doubt
        some = x if self.seen < _ALL else x[::_EVERY]
        logits = (some @ self.text.T).astype(np.float64) * np.float32(self.pool.logit_scale)
        self.logits += logits.sum(0), (logits * logits).sum(0)
        self.logits_seen += len(logits)
        with_one = np.column_stack([np.ones(len(y)), y]).astype(np.float32)
        self.xy += with_one.T @ x
        self.y += y.sum(0), (y * y).sum(0)
        mass = np.exp(items.top_logits + y[:, 2:]) * (1 - y[:, :1])
        np.add.at(self.mass, items.top_classes[~is_noise], mass[~is_noise])
        slots = np.arange(self.seen, self.seen + len(y)) % len(self.ring)
        self.seen += len(y)
        views = self._views() if self.rule is None else self.rule.views
        flags = items.zero_shot_noise[:, None]
        self.ring[slots] = np.column_stack([views(items), flags])
        self.rule = self._rule()

    def _views(self) -> Views:
        x, *products = self.xy / self.seen
        y, y_square = self.y / self.seen
        mean, square = self.logits / self.logits_seen
        deviation = np.sqrt(np.maximum(square - mean * mean, 1e-6))
        variance = y_square - y * y
        varies = variance > (1e-6 * np.abs(y) + 1e-7) ** 2
        covariances = np.array(products) - np.outer(y, x)
        w = covariances.T @ (varies / np.sqrt(np.where(varies, variance, 1.0)))
        w /= max(float(np.linalg.norm(w)), 1e-12)
        scaled = (x * np.float32(self.pool.logit_scale)).astype(np.float32)
        class_mean = (self.text @ scaled).astype(np.float64)
        return Views(w.astype(np.float32), float(w @ x), class_mean, deviation)

    def _rule(self) -> Rule:
        ring, o = self.ring[: min(self.seen, len(self.ring))], self.options
        mean, spread = ring[:, :4].mean(0), deviation(ring[:, :4])
        v = (ring[:, :4] - mean) / spread
        b, agreement = v[:, 1] + v[:, 2] + v[:, 3], max(float(v[:, 0] @ v[:, 3]) / len(v), 0.0)
        weights = np.array([agreement**3, *3 * [1 / deviation(b)]])  # equation 3
        b, s = b * weights[1], v @ weights
        split, share = otsu(b)  # equation 4
        # A repeated image is no new evidence: n is the number of those with another logit.
        groups = _groups(share, len(np.unique(ring[:, 2])))
        shares = Shares.of(b > split, ring[:, 4] > 0)
        noise = shares.noise(groups)
        ordered, rare = np.sort(s), _rare(v[:, 2] + v[:, 3], o.cull_tail)
        tau = _quantile(ordered, 1 - noise)
        if rare:
            median = _quantile(ordered, 0.5)
            mad = _MAD * _quantile(np.sort(np.abs(s - median)), 0.5)
            tau += rare * max(median + o.cull_tail_deviations * mad - tau, 0.0)
        evidence = shares.evidence(groups**2, rare)  # squared: doubt is not yet evidence
        return Rule(self._views(), mean, weights / spread, tau, evidence, self._penalty())

    def _penalty(self) -> Floats:
        """Equation 5: eta log(C pi_c); eta is small if classes are uneven."""
        prior = self.mass + self.options.cull_first / len(self.mass)
        log = np.log(prior * (len(prior) / prior.sum()))
        spread = float(prior @ (log * log) / prior.sum())
        penalty: Floats = min(1.0, self.options.cull_prior**2 / max(spread, 1e-9)) * log
        return penalty


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
