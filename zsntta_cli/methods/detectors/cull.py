"""Cull: our noise detector, which needs no labels, no learning rate and no injected noise.

The frozen model's doubt about a single image is unreliable, but what doubtful images have in common
is not: the mean doubtful image minus the mean image is a direction w, along which noise of another
kind lies far out. It counts as far as it agrees with the single image. The logits also have an
absolute level: an image that no class's text fits shows none of them, whatever else is in the
stream. The equations are those of docs/detector.md, which also says what is near in the literature.
If the level of the encoder is known, a logit l is by how much better a class's text fits an image
than any text does:

    1  q = (mean_c - l_c) / sd_c, for the chosen class c       `Cull._views`
    2  w = sum of cov(x, y) / sd(y), y = u, h, g; z = x . w    `Cull._learn_views`, `Cull._views`
    3  b = std(h + g + q), s = b + r^3 z                       `Cull._learn_rule`
    4  tau, from Otsu's and ZS-CLIP's shares of noise          `Cull._learn_rule`, `rare`
    5  class = argmax l_c - eta log(C pi_c)                    `class_penalty`
    6  e = log mean_c exp(l_c), noise iff e < level            `any_text`, `Cull._seen`

An image is flagged iff e < level or s > tau. It is decided by itself and by what was learned before
its block, so items may come one by one. Items are learned in blocks because thresholds are
quantiles of the ring, where an item keeps the views that decided it. If items come in order of
their classes, `Order` adds a prior to the logits of equation 5.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.method import Method, MethodSettings
from zsntta_cli.methods.scores import (
    TOP,
    Columns,
    Features,
    Floats,
    Mask,
    blocks,
    softmax,
    unit,
)
from zsntta_cli.settings.options import Range, amount, option, positive, share

# These cost time and no accuracy.
_BLOCK = 256  # largest number of items of a block; a block is an eighth of the items so far
_GROWTH = 8
_ALL, _EVERY = 1024, 8  # after 1,024 items, one item in eight updates the deviation of logits
_GAUSSIAN, _UNIFORM = 2 / np.pi, 3 / 4  # Otsu's share of the variance of two distributions
_MAD = 1.4826  # standard deviation of a Gaussian over its median absolute deviation
_LOW = 2.0  # nats: the level of encoders whose level is known
_APART = 30.0  # logits that two classes must differ by, for their mean to stand for any text
_KEEPS = np.array([[0.5], [0.9], [0.98]])  # of a window's shares from item to item: 2, 10, 50 items
_BEFORE = 512  # items before the last M that move the shares, too: 0.98 ** 512 is 3e-5
_two = partial(option, within=Range(least=2))
_level = partial(option, None, within=Range(least=-1000, most=1000))  # nats

Classes = NDArray[np.int32]


def any_text(data: StreamData) -> Features | None:
    """Any text (D,): the generic text, or the mean of the classes' own; None if they are alike."""
    classes, mean = len(data.text_features), data.text_features.mean(0)
    if data.generic is not None or classes < 2:
        return data.generic
    cosine = (classes * float(mean @ mean) - 1) / (classes - 1)  # mean of two different classes
    return mean if data.logit_scale * (1 - cosine) >= _APART else None


@dataclass(frozen=True)
class Items(Columns):
    """B images as the detector sees them; in equation 6 logits are minus the generic text's."""

    features: Features  # (B, D) unit norm (a zero feature stays zero)
    doubt: Floats  # (B, 3) u = 1 - MCM, h = entropy / log C, g = minus the largest logit
    top_logits: Features  # (B, K) descending
    top_classes: Classes  # (B, K)
    likely: Floats  # (B,) softmax probability of the largest logit
    evidence: Floats  # (B,) e, nan without equation 6
    zero_shot: Floats  # (B,) ZS-CLIP's thresholds on u


class Cull(Method):
    """Cull: our noise detector without labels, with the same values for all sets.

    Injected noise is not learned; the other items are decided as if it were not in the stream.
    """

    class Settings(MethodSettings):
        warm_up_by = "cull-first"
        cull_first: int = _two(
            64,
            "Number of first items that ZS-CLIP decides; minimum number of items between updates.",
        )
        cull_ring: int = _two(1024, "M: number of last items that determine the thresholds.")
        cull_low: float | None = _level(
            "Level in nats: an image with less evidence for its classes is noise "
            "(OpenAI's ViT: 2; others: none)."
        )
        cull_high: float | None = _level(
            "Level in place of cull-low while many images are below it (default: 1 nat more)."
        )
        cull_many: float = share(0.05, "Share of images below cull-low that counts as many.")
        cull_tail: float = positive(6.0, "Skewness + kurtosis above which noise is rare and far.")
        cull_tail_deviations: float = amount(
            3.0, "Distance of the threshold for rare noise from the median, in deviations."
        )
        cull_prior: float = amount(0.3, "Maximum spread of the class prior that is corrected.")
        cautious: bool = option(
            False, "Call an image noise only if its evidence is below the level."
        )

        @property
        def warm_up(self) -> int:
            """The number of items of the first block, which ZS-CLIP decides."""
            return self.cull_first

        def note(self, has_generic: bool, is_level_known: bool) -> str:
            """Where equation 6 is left out, or has no generic text."""
            if self.cull_low is None and not is_level_known:
                return (
                    "has no noise level for this encoder and judges by the stream alone "
                    "(--set cull-low=NATS sets one)"
                )
            lacks = "no generic text of this encoder and uses the mean of the class texts instead"
            return "" if has_generic else f"has {lacks}"

    reads_generic = True
    cites = ("zsntta",)
    cost = "keeps 4 D numbers, 20 for each of M items and 6 for each class"
    revision = 4

    def start(self, data: StreamData) -> None:
        """Start before the first item; of the stream only the texts matter."""
        self.text, self.scale = data.text_features, data.logit_scale
        (classes, dim), o = self.text.shape, self.options
        # Equation 6 is omitted without a level, or without a text that stands for any text.
        low = o.cull_low if o.cull_low is not None else _LOW if data.is_level_known else np.nan
        self.any_text = None if np.isnan(low) else any_text(data)
        self.low = np.nan if self.any_text is None else low
        self.high = max(self.low, self.low + 1 if o.cull_high is None else o.cull_high)
        # The generic text, whose logit is subtracted from all others.
        self.generic = None if self.any_text is None else data.generic
        # What was learned: D + C + M numbers.
        self.seen, self.logits_seen = 0, 0
        self.xy = np.zeros((4, dim))  # sums: of features, and of their products with the doubt
        self.y, self.logits = np.zeros((2, 3)), np.zeros((2, classes))  # and sums of squares
        self.mass = np.zeros(classes)  # softmax mass of items that were not flagged
        self.ring = np.zeros((0, 6))  # of the last M: views, ZS-CLIP's flag, whether e < low
        self.order = Order(classes, o.cull_ring)
        self.level, self.penalty = self.low, np.zeros(classes)  # of e; (C,) eta log(C pi_c)
        # Items that are learned together, and whether they were flagged; how many are missing.
        self.waiting: list[tuple[Items, Mask]] = []
        self.missing = o.cull_first

    @property
    def adapted(self) -> bool:
        """Whether a block was learned, so that its own rule decides and not ZS-CLIP."""
        return self.seen > 0

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on the next items, and learn at the end of each block."""
        if not learn or not len(items):
            zero_shot = np.full(len(items), self.threshold.latest)
            return self._decide(self._seen(items, zero_shot), learn=False)[0]
        if items.injected.any():  # it is noise, and no rule decides on it
            nothing, flags = np.full((4, len(items)), np.nan), items.injected.copy()
            every = Decisions(items.class_index.copy(), flags, 1 - items.noise_score, *nothing)
            for block in blocks(len(items)):  # a part is a copy of the features
                test = block.start + np.flatnonzero(~items.injected[block])
                for name, column in vars(self.push(items.part(test))).items():
                    vars(every)[name][test] = column
            return every
        zero_shot, parts, start = self.threshold(items.noise_score), list[Decisions](), 0
        while start < len(items):
            part = slice(start, start + self.missing)
            seen = self._seen(items.part(part), zero_shot[part])
            decisions, flagged = self._decide(seen, learn=True)
            parts.append(decisions)
            self.waiting.append((seen, flagged))
            self.missing, start = self.missing - len(flagged), start + len(flagged)
            if not self.missing:
                self._learn()
        return Decisions.joined(parts)

    def _seen(self, data: StreamData, zero_shot: Floats) -> Items:
        """Items of a stream, by ZS-CLIP's thresholds (B,) for them."""
        frozen, u = data.zero_shot, data.noise_score
        features, logits = unit(data.features()), frozen.top_logits
        likely, evidence = 1 - frozen.noise_score, np.full(len(u), np.nan)
        if self.any_text is not None:
            other = np.float32(self.scale) * np.vecdot(features, self.any_text)
            evidence = (logits[:, 0] - other) - np.log(likely * len(self.text))
            logits = logits if self.generic is None else logits - other[:, None]
        doubt = np.column_stack([u, frozen.entropy, -logits[:, 0]])
        return Items(features, doubt, logits, frozen.top_classes, likely, evidence, zero_shot)

    def _views(self, items: Items) -> Floats:
        """Equations 1 and 2: the views z, h, g and q (B, 4) of items by what was learned."""
        # Row by row, because a product of several rows depends on their number.
        z = np.vecdot(items.features, self.direction) - self.center
        first, h, g = items.top_classes[:, 0], items.doubt[:, 1], items.doubt[:, 2]
        q = (self.class_mean[first] + g) / self.class_deviation[first]
        return np.column_stack([z, h, g, q])

    def _decide(self, items: Items, learn: bool) -> tuple[Decisions, Mask]:
        """Decide on B items by the rule, or as ZS-CLIP does; the flags are those before caution.

        If they are learned, the classes of unflagged items are remembered for the next items.
        """
        score, tau, of_rule = items.doubt[:, 0], items.zero_shot, np.full(len(items.likely), np.nan)
        if self.adapted:
            score = np.vecdot(self._views(items) - self.mean, self.weights)
            tau = of_rule = np.full(len(score), self.tau)
        score = np.fmax(score, tau + (self.level - items.evidence))  # without equation 6 it is nan
        flagged, below = score > tau, items.evidence < self.level
        named = self.order.name(self._logits_of(items), items.top_classes, ~flagged & learn)
        return Decisions(
            named, below if self.options.cautious else flagged, 1 - score, items.zero_shot,
            of_rule, items.evidence, np.full(len(score), self.level),
        ), flagged  # fmt: skip

    def _logits_of(self, items: Items) -> Floats:
        """The largest logits (B, K), less what equation 5 takes."""
        return items.top_logits.astype(np.float64) - self.penalty[items.top_classes]

    def _learn(self) -> None:
        """Learn a block of items and the decisions on them, which only equation 5 uses."""
        pieces, flags = zip(*self.waiting, strict=True)
        items, clean = Items.joined(pieces), ~np.concatenate(flags)
        self.order.learn(self._logits_of(items)[clean], items.top_classes[clean])
        x, y = items.features, items.doubt
        logits = self._logits(x if self.seen < _ALL else x[::_EVERY])
        self.logits += [logits.sum(0), (logits * logits).sum(0)]
        self.logits_seen += len(logits)
        self.xy += np.column_stack([np.ones(len(y)), y]).astype(np.float32).T @ x
        self.y += [y.sum(0), (y * y).sum(0)]
        mass = np.exp(items.top_logits + y[:, 2:]) * items.likely[:, None]
        np.add.at(self.mass, items.top_classes[clean], mass[clean])
        views = self._views(items) if self.adapted else None
        self.seen += len(y)
        self._learn_views()
        views = self._views(items) if views is None else views
        columns = views, y[:, 0] > items.zero_shot, items.evidence < self.low
        self.ring = np.concatenate([self.ring, np.column_stack(columns)])[-self.options.cull_ring :]
        self._learn_rule()
        self.waiting = []
        self.missing = max(min(self.seen // _GROWTH, _BLOCK), self.options.cull_first)

    def _logits(self, features: Features) -> Floats:
        """The logits (B, C) of unit features, less that of the generic text."""
        logits = (features @ self.text.T).astype(np.float64)
        if self.generic is not None:
            logits -= (features @ self.generic)[:, None]
        logits *= np.float32(self.scale)
        return logits

    def _learn_views(self) -> None:
        """Equations 1 and 2: the direction w / |w| (D,), and mean and sd of each class's logit."""
        x, *products = self.xy / self.seen
        y, y_square = self.y / self.seen
        mean, square = self.logits / self.logits_seen
        self.class_deviation = np.sqrt(np.maximum(square - mean * mean, 1e-6))
        self.class_mean = self._logits(x.astype(np.float32)[None])[0]
        variance = y_square - y * y
        varies = variance > (1e-6 * np.abs(y) + 1e-7) ** 2
        covariances = np.array(products) - np.outer(y, x)
        w = covariances.T @ (varies / np.sqrt(np.where(varies, variance, 1.0)))
        w /= max(float(np.linalg.norm(w)), 1e-12)
        self.direction, self.center = w.astype(np.float32), float(w @ x)

    def _learn_rule(self) -> None:
        """Equations 3 to 6 until the next block is learned, by the ring."""
        o, views = self.options, self.ring[:, :4]
        self.mean, spread = views.mean(0), deviation(views)
        standardised = (views - self.mean) / spread
        z, h, g, q = standardised.T
        b, r = h + g + q, max(float(z @ q) / len(z), 0.0)
        weights = np.array([r**3, *3 * [1 / deviation(b)]])  # equation 3
        s, self.weights = standardised @ weights, weights / spread
        split, v = otsu(b)  # equation 4
        rho_b = float((b > split).mean())
        rho_1 = float(((b > split) & (self.ring[:, 4] > 0)).mean())  # noise for ZS-CLIP, too
        # How clearly b forms two groups: 0 for a Gaussian, 1 for a uniform distribution. What
        # chance may add is taken off; a repeated image, of the same logit, is no new evidence.
        sure = v - 0.5 / np.sqrt(len(np.unique(views[:, 2])))
        t = min(max((sure - _GAUSSIAN) / (_UNIFORM - _GAUSSIAN), 0.0), 1.0)
        self.tau = float(np.quantile(s, 1 - (rho_1 + t * (rho_b - rho_1))))
        if omega := rare(g + q, o.cull_tail):
            median = float(np.median(s))
            far = median + o.cull_tail_deviations * _MAD * float(np.median(np.abs(s - median)))
            self.tau += omega * max(far - self.tau, 0.0)
        self.level = self.high if float(self.ring[:, 5].mean()) > o.cull_many else self.low
        self.penalty = class_penalty(self.mass + o.cull_first / len(self.mass), o.cull_prior)


def class_penalty(mass: Floats, most: float) -> Floats:
    """Equation 5: eta log(C pi_c) by softmax masses (C,); eta is small if classes are uneven."""
    log = np.log(mass * (len(mass) / mass.sum()))
    spread = float(mass @ (log * log) / mass.sum())
    return np.asarray(min(1.0, most**2 / max(spread, 1e-9)) * log)


def rare(scores: Floats, tail: float) -> float:
    """How clearly a few scores (M,) are far above all others, by skewness + kurtosis.

    A tail below is of few images that belong. The scores are without the entropy, which has a tail
    on clean images of a few easy classes.
    """
    x = (scores - scores.mean()) / deviation(scores)
    square = x * x
    skewness, kurtosis = float((square * x).mean()), float((square * square).mean())
    return min(max(8 * ((skewness + kurtosis) / tail - 1), 0.0), 1.0) if skewness > 0 else 0.0


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


class Order:
    """Whether items come in order of their classes, and what follows for the class of the next.

    If a person photographs one kind after another, neighbours share a predicted class more often
    than by chance. Then the last classes are a prior for the next one, over three windows, with the
    weights that make the stream likeliest. In a shuffled stream all weights are 0.
    """

    def __init__(self, classes: int, size: int) -> None:
        """Start a stream of C classes; order is looked for in the last M items, the `size`."""
        self.size, self.weights = size, np.zeros(3)
        self.shares = np.full((3, classes), 1 / classes)  # of the classes in each window
        # Of the last M items and those before them: K classes, and the softmax of their logits.
        self.classes = np.empty((0, min(TOP, classes)), np.int32)
        self.likely = np.empty(self.classes.shape)

    def name(self, logits: Floats, classes: Classes, is_kept: Mask) -> Classes:
        """Choose the classes of B items in turn, of `classes` (B, K); those that are kept count."""
        if self.weights.any():
            gain = self._follow(softmax(logits), classes, is_kept)
            logits = logits + np.log(1 + np.tensordot(gain - 1, self.weights, axes=(1, 0)))
        return classes[np.arange(len(classes)), logits.argmax(axis=1)]

    def learn(self, logits: Floats, classes: Classes) -> None:
        """Look for order in the last M items, from 4 to 6 standard errors, and find the weights.

        The items since the last time have the largest logits (N, K), of `classes` (N, K).
        """
        last, self.weights = self.size + _BEFORE, np.zeros(3)
        self.classes = np.concatenate([self.classes, classes])[-last:]
        self.likely = np.concatenate([self.likely, softmax(logits)])[-last:]
        trust = min(max(errors_in_order(self.classes[-self.size :, 0]) / 2 - 2, 0.0), 1.0)
        if not trust:
            return
        self.shares = np.full_like(self.shares, 1 / self.shares.shape[1])
        gain = self._follow(self.likely, self.classes, np.ones(last, bool))
        # How much likelier than 1 / C the prior, and each window, made the last M items.
        gains = (gain * self.likely[:, None]).sum(axis=2)[-self.size :]
        likelihood, weights = np.column_stack([np.ones(len(gains)), gains]), np.full(4, 0.25)
        for _ in range(20):  # expectation maximisation; 20 items speak for none
            weights = weights * ((1 / (likelihood @ weights)) @ likelihood) + [20, 0, 0, 0]
            weights /= weights.sum()
        self.weights = trust * weights[1:]

    def _follow(self, likely: Floats, classes: Classes, is_kept: Mask) -> Floats:
        """How much likelier than 1 / C the windows make K classes of B items (B, 3, K).

        Each item that is kept moves the shares, by its probabilities (B, K) of `classes` (B, K).
        """
        shares, gain = self.shares.copy(), np.empty((len(classes), 3, classes.shape[1]))
        for i, (few, p) in enumerate(zip(classes, likely, strict=True)):
            gain[i] = shares[:, few]
            if is_kept[i]:
                shares *= _KEEPS
                shares += 1e-30  # tiny numbers would be slow
                shares[:, few] += (1 - _KEEPS) * p
        self.shares = shares
        return gain * shares.shape[1]


def errors_in_order(classes: Classes) -> float:
    """By how many standard errors neighbours share a class more often than by chance.

    Roots (Freeman and Tukey) serve if few are expected; with few classes the error is smaller.
    """
    joins, sizes = float((classes[1:] == classes[:-1]).sum()), np.bincount(classes)
    expected = float((sizes * (sizes - 1.0)).sum()) / max(len(classes), 1)
    return float(np.sqrt(joins) + np.sqrt(joins + 1) - np.sqrt(4 * expected + 1))
