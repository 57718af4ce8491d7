"""Methods compared over ID-OOD pairs, as rows of a table and as sentences.

The tests are those of results/pairs.py. Where none is possible, a sentence replaces the p-value.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from zsntta_cli.report.sheet import SheetRow
from zsntta_cli.results.frame import CLEAN, average
from zsntta_cli.results.pairs import (
    FEWEST,
    ByPair,
    Pair,
    PairComparison,
    against,
    against_best,
    best_of,
    count_id_sets,
    least_p,
)
from zsntta_cli.results.significance import LEVEL
from zsntta_cli.simulation.metrics import Metric

AVERAGE, AGAINST_BEST = "over pairs", "against the best"
HEADS = ("Difference", "Wins/ties/losses")
P_HEADS = ("p", "p (Holm)")
_NONE = "-"
SPEAKS_ONCE = (
    "Each ID-OOD pair speaks once, by its mean over the seeds that both methods have. Wins, ties "
    "and losses are pairs on which a row is better than, equal to and worse than what it is "
    "compared with."
)


def p_text(p: float | None) -> str:
    """A p-value in a table."""
    return _NONE if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def p_phrase(p: float) -> str:
    """A p-value in a sentence."""
    return "p < 0.001" if p < 0.001 else f"p = {p_text(p)}"


@dataclass(frozen=True)
class PairContest:
    """Methods with runs on the same streams of some pairs, by name, compared by one metric."""

    metric: Metric
    by_label: Mapping[str, ByPair]
    baseline: str = ""  # the label of the row that gains are told from, if there is one
    run_notes: Sequence[str] = ()  # what has to be known of their runs

    @cached_property
    def pairs(self) -> list[Pair]:
        """All pairs of the methods."""
        return list(dict.fromkeys(pair for by_pair in self.by_label.values() for pair in by_pair))

    @property
    def size(self) -> str:
        """How many pairs there are, and of how many ID sets; clean streams have ID sets only."""
        count = len({id_set for id_set, _ in self.pairs})
        id_sets = f"{count} ID set{'s' * (count > 1)}"
        is_clean = all(ood_set == CLEAN for _, ood_set in self.pairs)
        return id_sets if is_clean else f"{len(self.pairs)} ID-OOD pairs of {id_sets}"

    @cached_property
    def lacking(self) -> dict[str, str]:
        """The methods without an average over all pairs, and what each has."""
        values = {label: average(self._on_all(label)) for label in self.by_label}
        return {label: value.lacks for label, value in values.items() if math.isnan(value.mean)}

    @cached_property
    def whole(self) -> dict[str, ByPair]:
        """The methods that are compared: those that have all pairs."""
        return {name: self._on_all(name) for name in self.by_label if name not in self.lacking}

    def _on_all(self, label: str) -> ByPair:
        return {pair: self.by_label[label].get(pair, {}) for pair in self.pairs}

    @property
    def is_contest(self) -> bool:
        """Whether there is something to compare: two methods on two pairs."""
        return len(self.whole) > 1 and len(self.pairs) > 1

    @property
    def is_testable(self) -> bool:
        """Whether a test over the pairs is possible."""
        return self.is_contest and count_id_sets(self.pairs) >= FEWEST

    @cached_property
    def best(self) -> str:
        """The method with the best mean."""
        best = best_of(self.whole, self.metric)
        assert best is not None
        return best

    @property
    def against_baseline(self) -> str:
        """The head of the comparison with the baseline; empty if that is the best."""
        is_another = self.baseline in self.whole and self.baseline != self.best
        return f"against {self.baseline}" * is_another

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The heads of a row's values; p-values only if a test is possible."""
        names = filter(None, [AGAINST_BEST, self.against_baseline])
        return {AVERAGE: ("Mean",), **dict.fromkeys(names, HEADS + P_HEADS * self.is_testable)}

    def rows(self) -> list[SheetRow]:
        """A row for each method, the best mean first, compared with it and with the baseline."""
        means = {name: average(by_pair).mean for name, by_pair in self.whole.items()}
        values = {name: {AVERAGE: [self.metric.text(mean)]} for name, mean in means.items()}
        families = {AGAINST_BEST: against_best(self.best, self.whole, self.metric)}
        if head := self.against_baseline:
            families[head] = against(self.baseline, self.whole, self.metric)
        for head, family in families.items():
            for name, comparison in family.items():
                values[name][head] = self._texts(comparison)
        sign = 1 if self.metric.lower_is_better else -1
        order = sorted(means, key=lambda name: (sign * means[name], name != self.best))
        return [SheetRow((name,), values[name]) for name in order]

    def _texts(self, other: PairComparison) -> list[str]:
        scale = 100 if self.metric.is_percent else 1
        difference = -other.mean if self.metric.lower_is_better else other.mean  # as it is printed
        points = round(scale * difference, 2) + 0.0  # no -0.00
        texts = [f"{points:+.2f}", f"{other.wins}/{other.ties}/{other.losses}"]
        return texts + [p_text(other.p), p_text(other.adjusted)] * self.is_testable

    def about(self) -> Iterator[str]:
        """What the p-values mean, or why there are none."""
        id_sets = {id_set for id_set, _ in self.pairs}
        if len(id_sets) > count_id_sets(self.pairs):
            yield (
                f"{len(id_sets)} ID sets show the images of {count_id_sets(self.pairs)}: "
                f"corruptions and splits of a set count as that set."
            )
        if not self.is_testable:
            yield why_untestable(self.pairs)
            return
        yield _test(self.pairs)
        rivals = len(self.whole) - 1
        comparisons = rivals * (rivals + 1) // 2
        if rivals < 2:
            return
        yield (
            f"p (Holm) is corrected for the number of comparisons: against the best for all "
            f"{comparisons} of two methods, since the same values chose it."
        )
        if self.against_baseline:
            yield (
                f"{self.against_baseline.capitalize()}, which was chosen beforehand, p (Holm) is "
                f"corrected for {rivals} comparisons."
            )
        if comparisons * least_p(self.pairs) >= LEVEL:
            yield (
                f"With {count_id_sets(self.pairs)} ID sets no p can be below "
                f"{LEVEL:.0%} once it is corrected for {comparisons} comparisons: compare fewer "
                f"methods."
            )

    def summary(self) -> str:
        """How many rivals the best is significantly better than, or why no test can say."""
        if not self.is_testable:
            return why_untestable(self.pairs)
        family = against_best(self.best, self.whole, self.metric)
        worse = sum(
            other.adjusted is not None and other.adjusted < LEVEL and other.mean < 0
            for other in family.values()
        )
        return (
            f"{self.size}: by {self.metric.head} {self.best} is better than {worse} of "
            f"{len(family)} rivals (signed-rank test over pairs, Holm, {LEVEL:.0%})."
        )

    def notes(self) -> Iterator[str]:
        """Which methods are not compared, and what has to be known about the runs."""
        for label, lacks in self.lacking.items():
            what = lacks or f"an undefined {self.metric.head}"
            yield f"{label} is not compared over pairs: it has {what}."
        yield from self.run_notes


def why_untestable(pairs: Collection[Pair]) -> str:
    """Why no test over some pairs is possible."""
    id_sets = count_id_sets(pairs)
    if id_sets == len(pairs) or len(pairs) < FEWEST:
        return (
            f"{len(pairs)} pair{'s' * (len(pairs) > 1)}: no test over pairs is possible. With "
            f"fewer than {FEWEST} the two-sided signed-rank test cannot reach {LEVEL:.0%}."
        )
    return (
        f"{len(pairs)} pairs of {id_sets} ID set{'s' * (id_sets > 1)}: no test over pairs is "
        f"possible. Pairs of an ID set share its images, and with fewer than {FEWEST} ID sets no "
        f"test that respects this can reach {LEVEL:.0%}."
    )


def _test(pairs: Collection[Pair]) -> str:
    """The name of the test."""
    name = "p is that of Wilcoxon’s signed-rank test over pairs, two-sided"
    if count_id_sets(pairs) == len(pairs):
        return f"{name}."
    return (
        f"{name}; the signs of all pairs of an ID set are flipped together, since these share its "
        f"images. That pairs share OOD images, too, is not accounted for."
    )
