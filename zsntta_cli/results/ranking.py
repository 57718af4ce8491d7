"""Which rows are marked among those that saw the same samples: the best and those close to it.

Every view uses one rule and two marks:

- **Best** (bold) is the best mean alone; equal means share it. It is chosen among complete values
  of rows that compete (results/frame.py), if there are at least two.
- **Close** (the lighter mark) is a row that does not differ significantly from the best. From the
  best on, rows are marked down to the first that differs significantly or cannot be compared; no
  row below it has a mark. So a row's own spread never lifts it above a better one.

Two rows are compared by the samples of each stream where both kept their items (significance.py),
else by seeds, of which they need five in common (pooled.py); an average over OOD sets always by
seeds, because the sets are fixed by the benchmark and are not a random sample. Where neither is
possible no row is close. The two-sided p-values are corrected for the number of rivals (Holm) and
compared with 5 %.

It is a selection of the best (Gupta 1965; Hsu's multiple comparisons with the best, 1984): where
rows spread alike, the row whose true mean is best has a mark with a probability of at least 95 %.
Neither mark says that rows are equal, and a row without a mark may not differ from its neighbours.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from zsntta_cli.results.frame import ResultRow, Run, Value, fold, may_win
from zsntta_cli.results.kept import Bits, Words
from zsntta_cli.results.pooled import compare_by_seeds
from zsntta_cli.results.significance import (
    LEVEL,
    SplitCounts,
    combined,
    holm,
    mcnemar,
    swap_test,
)
from zsntta_cli.simulation.metrics import METRICS, Metric

BY_ITEMS, BY_SEEDS, NO_TEST = "items", "seeds", "none"  # how two rows are compared
_ROUNDING = 1e-12  # by which equal means may differ


class PairedRun(Run, Protocol):
    """A run whose items may have been kept."""

    @property
    def bits(self) -> Bits | None:
        """Its items; None where they were not kept."""


P = TypeVar("P", bound=PairedRun)


@dataclass(frozen=True)
class RankMark:
    """How a row compares to the best one, by one metric."""

    is_best: bool = False  # equal means share it
    is_close: bool = False  # not the best, and like all rows between not to be told from it
    p: float | None = None  # against the best, corrected for the number of rivals; None of itself
    test: str = ""  # how it was compared, or that it could not be; empty of the best itself


NO_MARK = RankMark()
_Tested = tuple[float | None, str]  # a p-value, and the test that gave it
_BySeed = Mapping[int, float]


def marks(rows: Sequence[ResultRow[P]], ood_set: str, metric: Metric) -> list[RankMark]:
    """The marks of rows that saw the same samples, on one OOD set."""
    values = [row.value(ood_set, metric.name) for row in rows]
    by_seed = [row.by_seed(ood_set, metric.name) for row in rows]

    def p_by_items(best: int, i: int) -> float | None:
        return _compare_by_items(rows[best], rows[i], ood_set, metric)

    return _marks(values, [row.competes for row in rows], metric, by_seed, p_by_items)


def average_marks(
    by_seed: Sequence[_BySeed], metric: str | Metric, competes: Sequence[bool] = ()
) -> list[RankMark]:
    """The marks of averages over sets, each given by the seeds that all of its sets have."""
    line = METRICS[metric] if isinstance(metric, str) else metric
    values = list(map(fold, by_seed))
    return _marks(values, competes or [True] * len(values), line, by_seed, lambda *_: None)


def _marks(
    values: Sequence[Value],
    competes: Sequence[bool],
    metric: Metric,
    by_seed: Sequence[_BySeed],
    p_by_items: Callable[[int, int], float | None],
) -> list[RankMark]:
    places = ranks(values, competes, metric)
    ranked = [i for i, place in enumerate(places) if place is not None]
    if len(ranked) < 2 or not metric.is_ranked:
        return [NO_MARK] * len(values)
    tests = _tests(places.index(1), ranked, by_seed, p_by_items)
    p_values = {i: p for i, (p, _) in tests.items() if p is not None}
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    apart = [places[i] or 0 for i in tests if adjusted.get(i, 0.0) < LEVEL and places[i] != 1]
    return [
        RankMark(
            place == 1,
            place is not None and 1 < place < min(apart, default=math.inf),
            adjusted.get(i),
            tests[i][1] if i in tests else "",
        )
        for i, place in enumerate(places)
    ]


def _tests(
    best: int,
    ranked: Sequence[int],
    by_seed: Sequence[_BySeed],
    p_by_items: Callable[[int, int], float | None],
) -> dict[int, _Tested]:
    """How each rival was compared with the best."""
    tests: dict[int, _Tested] = {
        i: (p, BY_ITEMS) for i in ranked if i != best and (p := p_by_items(best, i)) is not None
    }
    by_seeds = [i for i in ranked if i != best and i not in tests]
    p_values = compare_by_seeds({i: by_seed[i] for i in ranked}, best) if by_seeds else {}
    return tests | {
        i: (p_values[i], BY_SEEDS) if i in p_values else (None, NO_TEST) for i in by_seeds
    }


def ranks(values: Sequence[Value], competes: Sequence[bool], metric: Metric) -> list[int | None]:
    """The rank of each value, equal values alike; None for those that may not be the best."""
    sign = -1 if metric.lower_is_better else 1
    ranked = may_win(values, competes)
    rivals = [
        sign * value.mean for value, is_ranked in zip(values, ranked, strict=True) if is_ranked
    ]
    return [
        1 + sum(other > sign * value.mean + _ROUNDING for other in rivals) if is_ranked else None
        for value, is_ranked in zip(values, ranked, strict=True)
    ]


# How two rows are compared.


def _compare_by_items(
    best: ResultRow[P], rival: ResultRow[P], ood_set: str, metric: Metric
) -> float | None:
    """Compare by the samples of streams of which both rows kept items; None without any."""
    test = _BY_ITEMS.get(metric.name)
    if test is None:
        return None
    seeds = rival.by_seed(ood_set, metric.name)
    runs = [
        (best.on(ood_set)[seed], rival.on(ood_set)[seed])
        for seed in best.by_seed(ood_set, metric.name)
        if seed in seeds
    ]
    pairs = [pair for ours, theirs in runs if (pair := _pairs(ours, theirs))]
    return combined([test(*pair) for pair in pairs]) if pairs else None


_BY_ITEMS: dict[str, Callable[[SplitCounts, SplitCounts], float]] = {  # of ID and OOD samples
    "acc_s": lambda known, _: mcnemar(known.first, known.second),
    "acc_n": lambda _, noise: mcnemar(noise.first, noise.second),
    "acc_h": swap_test,
}


def _pairs(best: PairedRun, rival: PairedRun) -> tuple[SplitCounts, SplitCounts] | None:
    """The counts of ID and of OOD samples of a stream; None unless both runs kept their items."""
    ours, theirs = best.bits, rival.bits
    counts = best.record.counts
    if ours is None or theirs is None or len(ours.known) != len(theirs.known):
        return None
    if any(rival.record.counts[kind] != counts[kind] for kind in ("id", "ood")):
        return None
    id_counts = _pair(ours.known, theirs.known, counts["id"])
    return id_counts, _pair(ours.noise, theirs.noise, counts["ood"])


def _pair(ours: Words, theirs: Words, total: int) -> SplitCounts:
    """Count the samples of one kind that each method has right; the words have a bit for each."""
    both = int(np.bitwise_count(ours & theirs).sum())
    first, second = (int(np.bitwise_count(words).sum()) - both for words in (ours, theirs))
    return SplitCounts(first, second, both, total)
