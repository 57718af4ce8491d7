"""Methods beside each other over ID-OOD pairs: their ranks, their means.

A mean over pairs is over those that each method was run on; the others are named in a note.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.plots.distributions import BASELINE
from zsntta_cli.report.plots.figure import (
    BARS,
    LEVEL,
    MEAN_RANK,
    RANKS,
    Axis,
    Figure,
    Panel,
    Series,
)
from zsntta_cli.report.plots.groups import (
    ALL_METRICS,
    METRICS,
    Pair,
    check_lines,
    folded,
    grouped,
    mean_std,
    on_pair,
    pair_title,
    pairs,
)
from zsntta_cli.results.kept import Kept

_LOWER_IS_BETTER = ("fpr95",)

# Metrics in percent by method (as a legend has it) and pair; the paper's numbers come like this.
Cells = Mapping[str, Mapping[Pair, Mapping[str, float]]]


def ranks(runs: Sequence[Kept], published: Cells | None = None, metric: str = "acc_h") -> Figure:
    """How often each method has which rank on a pair; 1 is the best. Equal values share a rank.

    Raises:
        SettingsError: fewer than two methods, or no pair that all of them were run on.
    """
    series: list[Series] = []
    notes: list[str] = []
    sources = _sources(runs, published, metric)
    for is_published, known in sources:
        common = _compared(known, notes, is_published)
        for name, found in rank_of(known, common, metric).items():
            places = tuple(range(1, len(known) + 1))
            shares = tuple(100 * found.count(place) / len(found) for place in places)
            mean = float(sum(found) / len(found))
            series += [
                Series(name, places, shares, RANKS, is_published=is_published),
                Series(name, (mean,), (None,), MEAN_RANK, is_published=is_published),
            ]
    ticks = tuple(sorted({x for one in series for x in one.x if isinstance(x, int)}))
    axes = Axis(f"rank by {ALL_METRICS[metric]}", ticks=ticks), Axis("share of pairs (%)")
    return Figure((Panel(_over(sources), *axes, tuple(series)),), tuple(notes))


def rank_of(known: Cells, over: Sequence[Pair], metric: str) -> dict[str, list[int]]:
    """The rank of each method on each pair."""
    found: dict[str, list[int]] = {name: [] for name in known}
    sign = -1 if metric in _LOWER_IS_BETTER else 1
    for pair in over:
        values = {name: sign * of[pair][metric] for name, of in known.items()}
        for name, value in values.items():
            found[name].append(1 + sum(other > value for other in values.values()))
    return found


def means(runs: Sequence[Kept], published: Cells | None = None) -> Figure:
    """Mean Acc_S, Acc_N and Acc_H of each method over pairs; dashed, ZS-CLIP's.

    Raises:
        SettingsError: fewer than two methods, or no pair that all of them were run on.
    """
    series: list[Series] = []
    notes: list[str] = []
    sources = _sources(runs, published)
    for is_published, known in sources:
        common = _compared(known, notes, is_published)
        by_method = {name: means_of(of, common) for name, of in known.items()}
        for name, values in by_method.items():
            heights = tuple(values[key] for key in METRICS)
            series.append(
                Series(name, tuple(METRICS.values()), heights, BARS, is_published=is_published)
            )
        if BASELINE in by_method and not any(one.mark == LEVEL for one in series):
            level = tuple(by_method[BASELINE][key] for key in METRICS)
            groups = tuple(METRICS.values())
            series.append(
                Series(f"level of {BASELINE}", groups, level, LEVEL, (), BASELINE, is_published)
            )
    axes = Axis("metric"), Axis("mean (%)", low=0)
    return Figure((Panel(_over(sources), *axes, tuple(series)),), tuple(notes))


def cells(
    groups: Mapping[str, Sequence[Kept]], metric: str = "acc_h"
) -> dict[str, dict[Pair, dict[str, float]]]:
    """Metrics in percent, seeds folded, of groups of runs on noisy streams that have the metric."""
    found: dict[str, dict[Pair, dict[str, float]]] = {}
    for name, some in groups.items():
        found[name] = {}
        for pair in pairs(some):
            on = [kept for kept in on_pair(some, pair) if kept.record.settings.ood_set == pair[1]]
            values = {key: folded(on, key)[0] for key in ALL_METRICS}
            if not math.isnan(values[metric]):
                found[name][pair] = values
    return found


def means_of(known: Mapping[Pair, Mapping[str, float]], over: Sequence[Pair]) -> dict[str, float]:
    """Means over pairs of the accuracies; nothing where there is no pair."""
    if not over:
        return {}
    return {key: mean_std([known[pair][key] for pair in over])[0] for key in METRICS}


def _sources(
    runs: Sequence[Kept], published: Cells | None, metric: str = "acc_h"
) -> list[tuple[bool, Cells]]:
    """What was measured, and what is published: of the measured pairs, where it is of them."""
    measured = {name: of for name, of in cells(grouped(runs), metric).items() if of}
    found: list[tuple[bool, Cells]] = [(False, measured)] if measured else []
    if published:
        here = common_pairs(measured) if measured else []
        same = {name: {p: of[p] for p in here if p in of} for name, of in published.items()}
        found.append((True, same if common_pairs(same) else published))
    if not found:
        raise SettingsError(f"no kept run that fits has {ALL_METRICS[metric]} of a noisy stream.")
    return found


def _compared(known: Cells, notes: list[str], is_published: bool) -> list[Pair]:
    """The pairs that methods are compared on."""
    if len(known) < 2:
        raise SettingsError(
            f"ranks and means compare methods, and there is only {next(iter(known))}",
            remedy="simulate",
        )
    check_lines(len(known), "methods")
    common = common_pairs(known)
    if not common:
        raise SettingsError(
            f"there is no ID-OOD pair that all of {', '.join(known)} were run on", remedy="simulate"
        )
    if not is_published:
        notes += left_out("", known, common)
    return common


def common_pairs(known: Cells) -> list[Pair]:
    """The pairs that all have, in the order of the first."""
    first, *others = known.values()
    return [pair for pair in first if all(pair in of for of in others)]


def left_out(
    name: str, known: Mapping[Any, Mapping[Pair, Any]], common: Sequence[Pair]
) -> list[str]:
    """What to say of the pairs that do not count."""
    every = list(dict.fromkeys(pair for of in known.values() for pair in of))
    lacking = [pair_title(pair) for pair in every if pair not in common]
    if not lacking:
        return []
    what = f"{name}: " if name else ""
    return [
        f"{what}{len(common)} of {len(every)} pairs count: runs are lacking on {', '.join(lacking)}"
    ]


def _over(sources: Sequence[tuple[bool, Cells]]) -> str:
    """What is compared: how many pairs, of published numbers too where these are others."""
    counts = [len(common_pairs(known)) for _, known in sources]
    words = [f"{count} ID-OOD pair{'s' * (count > 1)}" for count in dict.fromkeys(counts)]
    if len(words) > 1:
        return f"{words[0]} (published: {words[1]})"
    return words[0] + ", published" * all(is_published for is_published, _ in sources)
