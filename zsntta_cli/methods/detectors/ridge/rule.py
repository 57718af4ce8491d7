"""The decisions of `ridge`: steps 4 to 7 of docs/detector.md, over the ring of the last items."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import NO_EVIDENCE, NONE, OTHER_KIND, RARE, SURE, Evidence
from zsntta_cli.methods.detectors.ridge.items import Floats, RidgeItems
from zsntta_cli.methods.detectors.ridge.ranking import Suspicion
from zsntta_cli.methods.detectors.ridge.regression import Regression, Views, deviation
from zsntta_cli.methods.detectors.ridge.words import WordWeight
from zsntta_cli.methods.settings import RidgeSettings
from zsntta_cli.methods.state import State, nested, within

_BASE_WEIGHT = 0.5  # weight of each of the three scores whose sum is b
_LEAST_MCM = 1e-3  # lower limit before the logarithm
_MAD = 1.4826  # standard deviation of a Gaussian over its median absolute deviation
_LEAST_SPREAD = 1e-6
# Evidence tells whether there is noise at all; it changes no threshold.
_FAR_FROM = 3.0  # in deviations of g + q
_FAR = 0.02  # mean square beyond _FAR_FROM above which noise is rare and far
_SARLE = 0.6  # bimodality of z above which noise is of another kind; 1 / 3 for a Gaussian
_ALIKE = 0.4  # corr(z, q) above which noise is of another kind if b is flat
_ALIKE_ERRORS = 3.0  # standard errors that are subtracted from it first


@dataclass(frozen=True)
class Trust:
    """Step 4: what the stream shows about its noise; each value is from 0 to 1."""

    gate: float  # gamma: there is noise of another kind, and z separates it
    unseen: float  # kappa is 1 - 0.25 of it: the shape of b shows no noise
    rare: float  # omega: the threshold is chosen for rare, far noise
    apart: float  # alpha: the scores of single images form two groups, or are flat
    common: float  # evidence: many images are of another kind
    far: float  # evidence: a few images are far from all others

    @classmethod
    def in_ring(cls, v: Floats, b: Floats, base: Floats, classes: int, o: RidgeSettings) -> "Trust":
        """Compute it from the ring's views (M, 4), b (M,), and b with -log MCM (M,)."""
        # z learns what uncertain images share. If that is the kind of image, z agrees with q of the
        # single image. If it is only that some classes are hard, q does not depend on it.
        z, q = v[:, 0], v[:, 3]
        agreement = float(z @ q) / len(v)
        gate = _ramp(agreement - o.ridge_gate_errors / np.sqrt(len(v)), o.ridge_gate)
        skewness, kurtosis = _moments(b)  # two humps lower them, a far tail raises them
        unseen = _ramp(skewness + kurtosis, o.ridge_shape)
        # A repeated image is no new evidence. With one class z is q itself.
        alike = agreement - _ALIKE_ERRORS / np.sqrt(len(np.unique(z)))
        flat = 1 - unseen if classes > 1 else 0.0
        return cls(
            gate=gate,
            unseen=unseen,
            rare=_ramp(skewness + kurtosis, o.ridge_tail),
            apart=max(1 - unseen, _ramp(otsu_share(base), o.ridge_apart)),
            common=max(min(gate, _ramp(sarle(z), _SARLE)), min(_ramp(alike, _ALIKE), flat)),
            far=_ramp(_beyond(v[:, 2] + q, _FAR_FROM), _FAR),
        )

    @property
    def evidence(self) -> Evidence:
        """The evidence for noise of another kind than the classes."""
        value = max(self.common, self.far)
        if value < SURE:
            return Evidence(value, NONE)
        return Evidence(value, OTHER_KIND if self.common >= SURE > self.rare else RARE)


@dataclass(frozen=True)
class Rule:
    """The rule until the detector learns again; it is known before the items come."""

    views: Views
    trust: Trust
    weights: Floats  # (4,) of the views in the score, over its deviation in the ring
    doubt: float  # weight of -log MCM
    threshold: float  # tau, on s
    class_penalty: Floats  # (C,) eta log(C pi_c)
    suspicion: Suspicion  # ranks items while there is no evidence
    words: WordWeight

    def class_logits(self, items: RidgeItems) -> Floats:
        """Step 7: the largest logits (B, K), lowered for classes that are predicted too often."""
        logits: Floats = items.top_logits - self.class_penalty[items.top_classes]
        return logits

    def answer(self, items: RidgeItems) -> "Answer":
        """Decide on B items."""
        v, evidence = self.views(items), self.trust.evidence
        words = self.words(items.words)
        score = np.vecdot(v, self.weights) + words + _hesitation(items, self.doubt)  # s
        best = self.class_logits(items).argmax(1)
        named = np.take_along_axis(items.top_classes, best[:, None], axis=1)[:, 0]
        return Answer(
            named, score > self.threshold, score, self.threshold,
            np.full(len(v), np.nan) if evidence.is_sure else self.suspicion(v, words), evidence,
        )  # fmt: skip

    def state(self) -> State:
        """All values of the rule."""
        numbers = {"doubt": self.doubt, "threshold": self.threshold}
        arrays = {"weights": self.weights, "class_penalty": self.class_penalty}
        names = ("views", "trust", "suspicion", "words")
        parts = {name: vars(getattr(self, name)) for name in names}
        return {**numbers, **arrays, **nested(**parts)}

    @classmethod
    def restored(cls, state: State) -> "Rule":
        """Make a rule from a state that was checked against that of a rule."""
        views: Any = within(state, "views")
        trust: Any = within(state, "trust")
        suspicion: Any = within(state, "suspicion")
        words: Any = within(state, "words")
        plain_values: Any = {name: value for name, value in state.items() if "." not in name}
        return cls(
            Views(**views), Trust(**trust), suspicion=Suspicion(**suspicion),
            words=WordWeight(**words), **plain_values,
        )  # fmt: skip

    @classmethod
    def none(cls, classes: int, dim: int) -> "Rule":
        """The rule that stands in a state if there is none."""
        views = Views(np.zeros(dim, np.float32), *np.zeros((2, classes)), *np.zeros((2, 4)))
        trust = Trust(*len(fields(Trust)) * [0.0])
        return cls(
            views, trust, np.zeros(4), 0.0, 0.0, np.zeros(classes), Suspicion.none(), WordWeight()
        )


@dataclass(frozen=True)
class Answer:
    """Decisions on B items."""

    class_index: NDArray[np.int32]  # (B,)
    is_noise: NDArray[np.bool_]  # (B,)
    score: Floats  # (B,) s, higher = more noise; u while ZS-CLIP decides
    threshold: float  # on s; nan while ZS-CLIP decides
    suspicion: Floats  # (B,) ranks them; nan: the score minus its threshold
    evidence: Evidence = NO_EVIDENCE  # for noise of another kind


def next_rule(ring: RidgeItems, regression: Regression, mass: Floats, o: RidgeSettings) -> Rule:
    """Take steps 1 to 7 over the ring; `mass` (C,): the softmax mass of items called clean."""
    views, v = Views.over(ring, regression)
    b = v[:, 1:].sum(1)
    b /= deviation(b)
    hesitation = _hesitation(ring, o.ridge_doubt)
    base = b + hesitation
    trust = Trust.in_ring(v, b, base, len(mass), o)
    # Step 5: z is weighted by how far it is trusted.
    weights = np.array([o.ridge_view * trust.gate, *3 * [_BASE_WEIGHT]])
    weights /= deviation(v @ weights)
    mixed, words = v @ weights, WordWeight.over(ring.words)
    if words.weight:
        mixed = mixed + words(ring.words)
        spread = float(deviation(mixed))
        mixed, weights, words = mixed / spread, weights / spread, words.over_deviation(spread)
    zero_shot, single = float(ring.zero_shot_noise.mean()), float((base > otsu(base)).mean())
    # Otsu's split calls a third noise even in easy, uneven sets. So more than ZS-CLIP rejects is
    # called noise only if the two sides are far apart.
    seen = min(single, zero_shot) + trust.apart * max(single - zero_shot, 0.0)
    shares = seen, zero_shot * (1 - (1 - o.ridge_clean) * trust.unseen)
    s = mixed + hesitation
    tau = _threshold(s, trust, shares, o.ridge_tail_deviations)
    suspicion = Suspicion.over(v, weights, words(ring.words), float((s > tau).mean()))
    penalty = _class_penalty(mass, o)
    return Rule(views, trust, weights, o.ridge_doubt, tau, penalty, suspicion, words)


def _hesitation(items: RidgeItems, weight: float) -> Floats:
    """Step 5: raise the noise scores of items whose class is uncertain, by -log MCM."""
    return -weight * np.log(np.maximum(1 - items.doubt[:, 0], _LEAST_MCM))


def _threshold(s: Floats, trust: Trust, shares: tuple[float, float], deviations: float) -> float:
    """Step 6: tau on the ring's scores (M,), from the shares of noise if gamma is 1 and 0.

    The scores of single images determine how many items are noise, and s determines which.
    """
    ordered, rare = np.sort(s), trust.rare
    seen, unseen = (_quantile(ordered, 1 - share) for share in shares)
    tau = trust.gate * seen + (1 - trust.gate) * unseen
    if rare:  # only the far tail is noise
        median, spread = _middle(s)
        tau = (1 - rare) * tau + rare * max(tau, median + deviations * spread)
    return tau


def _class_penalty(mass: Floats, o: RidgeSettings) -> Floats:
    """Step 7: eta log(C pi_c) of the softmax mass (C,); eta is small if classes are uneven."""
    prior = mass + o.ridge_prior_items / len(mass)
    log = np.log(prior * (len(mass) / prior.sum()))
    spread = float(prior @ (log * log) / prior.sum())
    penalty: Floats = min(1.0, o.ridge_prior**2 / max(spread, 1e-9)) * log
    return penalty


def _ramp(value: float, start: float) -> float:
    """A line that rises from 0 at `start` to 1 an eighth above it."""
    return min(max(8 * (value / start - 1), 0.0), 1.0)


def _quantile(ordered: Floats, share: float) -> float:
    """The quantile of sorted values, linear between the two nearest."""
    place = share * (len(ordered) - 1)
    low = min(int(place), len(ordered) - 2) if len(ordered) > 1 else 0
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


def otsu(scores: Floats) -> float:
    """The exact Otsu split of scores: the middle between two neighbours."""
    v = np.sort(scores)
    between = _between(v)
    j = int(between.argmax())
    return float(v[j] + v[j + 1]) / 2


def otsu_share(scores: Floats) -> float:
    """The share of the scores' variance that is between the sides of their Otsu split.

    It is 2 / pi = 0.637 for a Gaussian, 0.75 for a uniform distribution, 1 for two points.
    """
    v = np.sort(scores)
    total = float(v.var()) * len(v)
    return float(_between(v).max()) / total if total > 1e-12 * len(v) else 0.0


def sarle(scores: Floats) -> float:
    """Sarle's bimodality of scores with mean 0 and variance 1: (skewness^2 + 1) / kurtosis.

    It is 1 / 3 for a Gaussian, 5 / 9 for a uniform distribution, 1 for two points.
    """
    skewness, kurtosis = _moments(scores)
    return (skewness**2 + 1) / max(kurtosis, 1.0)


def _moments(scores: Floats) -> tuple[float, float]:
    """The skewness and kurtosis of scores with mean 0 and variance 1."""
    square = scores * scores
    return float((square * scores).mean()), float((square * square).mean())


def _beyond(scores: Floats, deviations: float) -> float:
    """The mean square of the excess of scores over `deviations` above their median."""
    median, spread = _middle(scores)
    if spread < _LEAST_SPREAD:  # half of the images are the same
        return 0.0
    beyond = np.maximum((scores - median) / spread - deviations, 0.0)
    return float((beyond * beyond).mean())


def _middle(scores: Floats) -> tuple[float, float]:
    """The median, and the deviation that follows from the median absolute deviation."""
    median = _quantile(np.sort(scores), 0.5)
    return median, _MAD * _quantile(np.sort(np.abs(scores - median)), 0.5)


def _between(ordered: Floats) -> Floats:
    """The sums of squares between the two sides of all n - 1 splits of sorted scores."""
    n, sums, k = len(ordered), np.cumsum(ordered), np.arange(1, len(ordered))
    between: Floats = (sums[-1] * k / n - sums[:-1]) ** 2 * n / (k * (n - k))
    return between
