"""Who is best among rows that saw the same samples, and who is not significantly worse.

Two rows are compared by the samples of each stream where both kept their items, else by their
seeds; p-values are corrected for the number of rivals (significance.py has the tests). The best is
that of the frame: it is sought among whole values of rows that compete.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.results.frame import ResultRow, Run, Value, fold, may_win, standings
from zsntta_cli.results.kept import KeptItems
from zsntta_cli.results.significance import (
    LEVEL,
    SplitCounts,
    combined,
    holm,
    mcnemar,
    paired_t,
    swap_test,
)
from zsntta_cli.simulation.metrics import METRICS, Metric

BY_ITEMS, BY_SEEDS, NO_TEST = "items", "seeds", "none"  # how two rows are compared

Words = NDArray[np.uint64]


class Bits(NamedTuple):
    """A bit for each test sample of a stream, 64 to a word: thousands of runs fit in memory."""

    known: Words  # ID samples that are called clean and classified right
    noise: Words  # OOD samples that are called noise


def bits_of(items: KeptItems) -> Bits:
    """What a test by items needs of a run's items."""
    return Bits(_words(items.is_right & ~items.is_noise), _words(items.is_right & items.is_noise))


def _words(flags: NDArray[np.bool_]) -> Words:
    words = np.zeros(-(-len(flags) // 64), np.uint64)
    packed = np.packbits(flags)
    words.view(np.uint8)[: len(packed)] = packed
    return words


class PairedRun(Run, Protocol):
    """A run that may have kept its items."""

    @property
    def bits(self) -> Bits | None:
        """Its items; None where they were not kept."""


P = TypeVar("P", bound=PairedRun)


@dataclass(frozen=True)
class RankMark:
    """How a row stands to the best one, by one metric."""

    is_marked: bool = False  # the best, or not significantly worse
    p: float | None = None  # against the best, corrected for the number of rivals; None of itself
    test: str = ""  # how it was compared, or that it could not be; empty of the best itself


NO_MARK = RankMark()
_Tested = tuple[float | None, str]  # a p-value, and the test that gave it


def marks(rows: Sequence[ResultRow[P]], ood_set: str, metric: Metric) -> list[RankMark]:
    """The marks of rows that saw the same samples, on one OOD set.

    There are none where fewer than two rows can be compared.
    """
    values = [row.value(ood_set, metric.name) for row in rows]
    competes = [row.competes for row in rows]
    return _marks(
        values, competes, metric, lambda best, i: _compare(rows[best], rows[i], ood_set, metric)
    )


def average_marks(
    by_pairing: Sequence[Mapping[Any, float]], metric: str | Metric, competes: Sequence[bool] = ()
) -> list[RankMark]:
    """The marks of averages, each given by what its values are paired by: seeds, or runs."""
    line = METRICS[metric] if isinstance(metric, str) else metric
    values = [fold(dict(enumerate(by_pair.values()))) for by_pair in by_pairing]
    return _marks(
        values,
        competes or [True] * len(values),
        line,
        lambda best, i: _by_seeds(by_pairing[best], by_pairing[i]),
    )


def _marks(
    values: Sequence[Value],
    competes: Sequence[bool],
    metric: Metric,
    test: Callable[[int, int], _Tested],
) -> list[RankMark]:
    places = standings(values, competes, metric)
    if 1 not in places:
        return [NO_MARK] * len(values)
    best = places.index(1)
    ranked = may_win(values, competes)
    tests = {i: test(best, i) for i in range(len(values)) if ranked[i] and i != best}
    p_values = {i: p for i, (p, _) in tests.items() if p is not None}
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    row_marks = [NO_MARK] * len(values)
    row_marks[best] = RankMark(is_marked=True)
    for i, (_, name) in tests.items():
        is_marked = places[i] == 1 or adjusted.get(i, 0.0) >= LEVEL
        row_marks[i] = RankMark(is_marked, adjusted.get(i), name)
    return row_marks


def ranks(values: Sequence[Value], competes: Sequence[bool], metric: Metric) -> list[int | None]:
    """The rank of each value, equal ones alike; None of what may not be the best."""
    sign = -1 if metric.lower_is_better else 1
    ranked = may_win(values, competes)
    rivals = [
        sign * value.mean for value, is_ranked in zip(values, ranked, strict=True) if is_ranked
    ]
    return [
        1 + sum(other > sign * value.mean for other in rivals) if is_ranked else None
        for value, is_ranked in zip(values, ranked, strict=True)
    ]


# How two rows are compared.


def _compare(best: ResultRow[P], rival: ResultRow[P], ood_set: str, metric: Metric) -> _Tested:
    """By the samples of each stream where both rows' items were kept, else by seeds."""
    ours, theirs = best.by_seed(ood_set, metric.name), rival.by_seed(ood_set, metric.name)
    if test := _BY_ITEMS.get(metric.name):
        runs = [(best.on(ood_set)[s], rival.on(ood_set)[s]) for s in ours if s in theirs]
        if pairs := [pair for a, b in runs if (pair := _pairs(a, b))]:
            return combined([test(*pair) for pair in pairs]), BY_ITEMS
    return _by_seeds(ours, theirs)


def _by_seeds(best: Mapping[Any, float], rival: Mapping[Any, float]) -> _Tested:
    differences = [best[seed] - rival[seed] for seed in best if seed in rival]
    if len(differences) < 2 or any(difference != difference for difference in differences):
        return None, NO_TEST
    return paired_t(differences), BY_SEEDS


_BY_ITEMS: dict[str, Callable[[SplitCounts, SplitCounts], float]] = {  # of ID and OOD samples
    "acc_s": lambda known, _: mcnemar(known.first, known.second),
    "acc_n": lambda _, noise: mcnemar(noise.first, noise.second),
    "acc_h": swap_test,
}


def _pairs(best: PairedRun, rival: PairedRun) -> tuple[SplitCounts, SplitCounts] | None:
    """The ID and the OOD samples of a stream of which both runs kept the items, else None."""
    ours, theirs = best.bits, rival.bits
    counts = best.record.counts
    if ours is None or theirs is None or len(ours.known) != len(theirs.known):
        return None
    if any(rival.record.counts[kind] != counts[kind] for kind in ("id", "ood")):
        return None
    known = _pair(ours.known, theirs.known, counts["id"])
    return known, _pair(ours.noise, theirs.noise, counts["ood"])


def _pair(ours: Words, theirs: Words, total: int) -> SplitCounts:
    """A sample that one method has right is ID or OOD by how it was called: so all are known."""
    both = int(np.bitwise_count(ours & theirs).sum())
    first, second = (int(np.bitwise_count(words).sum()) - both for words in (ours, theirs))
    return SplitCounts(first, second, both, total)
