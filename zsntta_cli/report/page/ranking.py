"""What is best on a stream, what is not significantly worse, and by which test."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zsntta_cli.report.page.entries import Bits, Entry, Spot, Words
from zsntta_cli.report.page.rows import LOWER_IS_BETTER, METRICS, Row, measured
from zsntta_cli.results.significance import (
    LEVEL,
    Pair,
    combined,
    holm,
    mcnemar,
    paired_t,
    swap_test,
)

BY_ITEMS, BY_SEEDS, NO_TEST = "items", "seeds", "none"


@dataclass(frozen=True)
class Mark:
    """How a row stands to the best one of its stream, by one metric."""

    is_marked: bool = False  # the best, or not significantly worse
    p: float | None = None  # against the best, corrected for the number of rivals; None of itself
    test: str = ""  # which, or that there was none; empty of the best itself


NOTHING = Mark()


Standings = Mapping[tuple[Row, str], Mark]


def standings(rows: Sequence[Row]) -> Standings:
    """The marks of all rows by all metrics, stream by stream."""
    by_spot: dict[Spot, list[Row]] = {}
    for row in rows:
        by_spot.setdefault(row.spot, []).append(row)
    return {
        (row, metric): mark
        for some in by_spot.values()
        for metric in METRICS
        for row, mark in zip(some, marks(some, metric), strict=True)
    }


def marks(rows: Sequence[Row], metric: str) -> list[Mark]:
    """The marks of rows that saw the same stream; none where there is no other to compare with."""
    values = [row.values[metric].mean for row in rows]
    return _marks(values, metric, lambda best, rival: _test(rows[best], rows[rival], metric))


def average_marks(by_seed: Sequence[Mapping[Any, float]], metric: str) -> list[Mark]:
    """The marks of averages, each given by what its values are paired by: seeds, or runs."""
    values = [math.fsum(one.values()) / len(one) if one else math.nan for one in by_seed]
    return _marks(values, metric, lambda best, rival: _over_seeds(by_seed[best], by_seed[rival]))


_Tested = tuple[float | None, str]


def _marks(values: Sequence[float], metric: str, test: Callable[[int, int], _Tested]) -> list[Mark]:
    there = [i for i, value in enumerate(values) if not math.isnan(value)]
    if len(there) < 2:
        return [NOTHING] * len(values)
    pick = min if metric in LOWER_IS_BETTER else max
    best = pick(there, key=values.__getitem__)
    rivals = {i: test(best, i) for i in there if i != best}
    known = [i for i, (p, _) in rivals.items() if p is not None]
    adjusted = dict(zip(known, holm([rivals[i][0] or 0.0 for i in known]), strict=True))
    made = [NOTHING] * len(values)
    made[best] = Mark(is_marked=True)
    for i, (_, name) in rivals.items():
        p = adjusted.get(i)
        is_equal = values[i] == values[best]
        made[i] = Mark(is_equal or (p is not None and p >= LEVEL), p, name)
    return made


def _test(best: Row, rival: Row, metric: str) -> _Tested:
    """By the samples of each stream where both rows' items were kept, else over seeds."""
    ours, theirs = best.by_seed, rival.by_seed
    seeds = [seed for seed in ours if seed in theirs]
    if metric.startswith("acc"):
        both = [(ours[s], theirs[s]) for s in seeds if _paired(ours[s], theirs[s])]
        if both:
            return combined([_by_items(a, b, metric) for a, b in both]), BY_ITEMS
    return _over_seeds(
        {seed: measured(ours[seed], metric) for seed in seeds},
        {seed: measured(theirs[seed], metric) for seed in seeds},
    )


def _over_seeds(best: Mapping[Any, float], rival: Mapping[Any, float]) -> _Tested:
    differences = [best[seed] - rival[seed] for seed in best if seed in rival]
    if len(differences) < 2 or any(map(math.isnan, differences)):
        return None, NO_TEST
    return paired_t(differences), BY_SEEDS


def _paired(a: Entry, b: Entry) -> bool:
    """Whether both kept their items, of a stream of the same samples."""
    if a.bits is None or b.bits is None:
        return False
    counts = [{k: e.record.counts[k] for k in ("id", "ood")} for e in (a, b)]
    return counts[0] == counts[1] and len(a.bits.known) == len(b.bits.known)


def _by_items(a: Entry, b: Entry, metric: str) -> float:
    assert isinstance(a.bits, Bits)
    assert isinstance(b.bits, Bits)
    counts = a.record.counts
    if metric == "acc_s":
        return _mcnemar(_pair(a.bits.known, b.bits.known, counts["id"]))
    if metric == "acc_n":
        return _mcnemar(_pair(a.bits.noise, b.bits.noise, counts["ood"]))
    known = _pair(a.bits.known, b.bits.known, counts["id"])
    return swap_test(known, _pair(a.bits.noise, b.bits.noise, counts["ood"]))


def _mcnemar(pair: Pair) -> float:
    return mcnemar(pair.first, pair.second)


def _pair(a: Words, b: Words, total: int) -> Pair:
    """A sample that one method has right is ID or OOD by how it was called: so all are known."""
    both = int(np.bitwise_count(a & b).sum())
    first, second = (int(np.bitwise_count(x).sum()) - both for x in (a, b))
    return Pair(first, second, both, total)


def ranks(rows: Sequence[Row]) -> list[int | None]:
    """Places of rows of one stream by their main metric, equal ones alike; None where it is nan."""
    values = [row.values[row.main].mean for row in rows]
    return [
        None if math.isnan(value) else 1 + sum(other > value for other in values)
        for value in values
    ]
