"""Methods compared over ID-OOD pairs, as rows of a table and as sentences.

The test is that of results/compare.py. Where none is possible, a sentence replaces the p-value.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from zsntta_cli.report.sheet import SheetRow
from zsntta_cli.results.compare import (
    LEVEL,
    PAIRS_NEEDED,
    ByPair,
    Pair,
    PairComparison,
    against,
    best_over_pairs,
)
from zsntta_cli.results.frame import CLEAN, average
from zsntta_cli.simulation.metrics import Metric

AVERAGE, AGAINST_BEST = "over pairs", "against the best"
_HEADS = ("Difference", "Wins/ties/losses")
_P_HEAD = "p (Holm)"
_NONE = "-"
SPEAKS_ONCE = (
    "Each ID-OOD pair speaks once, by its mean over the seeds that both methods have. Wins, ties "
    "and losses are pairs on which a row is better than, equal to and worse than the best."
)


def p_text(p: float | None) -> str:
    """A p-value in a table."""
    return _NONE if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


@dataclass(frozen=True)
class PairContest:
    """Methods with runs on the same streams of some pairs, by name, compared by one metric."""

    metric: Metric
    by_label: Mapping[str, ByPair]
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
        values = {
            label: average({" / ".join(filter(None, pair)): v for pair, v in by_pair.items()})
            for label, by_pair in ((label, self._on_all(label)) for label in self.by_label)
        }
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
        return self.is_contest and len(self.pairs) >= PAIRS_NEEDED

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The heads of a row's values; p-values only if a test is possible."""
        return {AVERAGE: ("Mean",), AGAINST_BEST: (*_HEADS, *[_P_HEAD] * self.is_testable)}

    def rows(self) -> list[SheetRow]:
        """A row for each method, the best mean first, compared with it."""
        best = best_over_pairs(self.whole, self.metric)
        assert best is not None
        means = {name: average(by_pair).mean for name, by_pair in self.whole.items()}
        values = {name: {AVERAGE: [self.metric.text(mean)]} for name, mean in means.items()}
        for name, comparison in against(best, self.whole, self.metric).items():
            values[name][AGAINST_BEST] = self._texts(comparison)
        sign = 1 if self.metric.lower_is_better else -1
        order = sorted(means, key=lambda name: (sign * means[name], name != best))
        return [SheetRow((name,), values[name]) for name in order]

    def _texts(self, other: PairComparison) -> list[str]:
        scale = 100 if self.metric.is_percent else 1
        difference = -other.mean if self.metric.lower_is_better else other.mean  # as it is printed
        points = round(scale * difference, 2) + 0.0  # no -0.00
        texts = [f"{points:+.2f}", f"{other.wins}/{other.ties}/{other.losses}"]
        return texts + [p_text(other.p)] * self.is_testable

    def about(self) -> str:
        """What the p-values mean, or why there are none."""
        if not self.is_testable:
            return _why_untestable(self.pairs)
        text = (
            "p (Holm) is that of Wilcoxon’s signed-rank test over pairs against the best, "
            "two-sided, corrected for the number of rivals."
        )
        shares = len({id_set for id_set, _ in self.pairs}) < len(self.pairs)
        return text + (
            " The test takes pairs as independent; those of one ID set share its images, so p is "
            "smaller than it should be." * shares
        )

    def notes(self) -> Iterator[str]:
        """Which methods are not compared, and what has to be known about the runs."""
        for label, lacks in self.lacking.items():
            what = lacks or f"an undefined {self.metric.head}"
            yield f"{label} is not compared over pairs: it has {what}."
        yield from self.run_notes


def _why_untestable(pairs: Collection[Pair]) -> str:
    """Why no test over some pairs is possible."""
    return (
        f"{len(pairs)} pair{'s' * (len(pairs) > 1)}: no test over pairs is possible. With "
        f"fewer than {PAIRS_NEEDED} the two-sided signed-rank test cannot reach {LEVEL:.0%}."
    )
