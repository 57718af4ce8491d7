"""Methods beside each other: over noise ratios, over fixed thresholds, over ID-OOD pairs.

A mean over pairs is over those that each method was run on; the others are named in a note.
"""

import math
from collections.abc import Mapping, Sequence

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.plots.distributions import BASELINE
from zsntta_cli.report.plots.figure import (
    BARS,
    LEVEL,
    LINE,
    MARK,
    RANKS,
    Axis,
    Figure,
    Panel,
    Series,
)
from zsntta_cli.report.plots.selection import (
    Pair,
    check_lines,
    folded,
    grouped,
    mean_std,
    on_pair,
    pair_title,
    pairs,
)
from zsntta_cli.report.plots.streams import METRICS
from zsntta_cli.simulation.records.kept import Kept

ALL_METRICS = {**METRICS, "auroc": "AUROC", "fpr95": "FPR95", "aupr": "AUPR"}
_LOWER_IS_BETTER = ("fpr95",)

# Metrics in percent by method (as a legend has it) and pair; the paper's numbers come like this.
Cells = Mapping[str, Mapping[Pair, Mapping[str, float]]]


def ratio(runs: Sequence[Kept], metric: str = "acc_h") -> Figure:
    """A metric against the noise ratio, a panel a pair; seeds folded into mean and deviation.

    Raises:
        SettingsError: no run has the metric, or there are too many lines.
    """
    panels = []
    for pair in pairs(runs):
        groups = grouped(on_pair(runs, pair), apart=("ratio",))
        check_lines(len(groups))
        lines = [line for name, some in groups.items() if (line := _by_ratio(name, some, metric)).x]
        if lines:
            axes = Axis("noise ratio (%)"), Axis(f"{ALL_METRICS[metric]} (%)")
            panels.append(Panel(pair_title(pair), *axes, tuple(lines)))
    if not panels:
        raise SettingsError(f"no kept run that fits has {ALL_METRICS[metric]}.")
    return Figure(tuple(panels))


def _by_ratio(name: str, runs: Sequence[Kept], metric: str) -> Series:
    ratios = sorted({kept.record.settings.stream.ratio for kept in runs})
    by_ratio = {
        ratio: folded([k for k in runs if k.record.settings.stream.ratio == ratio], metric)
        for ratio in ratios
    }
    known = {100 * ratio: value for ratio, value in by_ratio.items() if not math.isnan(value[0])}
    means, stds = zip(*known.values(), strict=True) if known else ((), ())
    several = len({kept.record.settings.stream.seed for kept in runs}) > 1
    return Series(name, tuple(known), means, LINE, stds if several else ())


def fixed(runs: Sequence[Kept], published: Cells | None = None) -> Figure:
    """Accuracies at fixed thresholds, and dashed those of the adaptive one; a panel a method.

    Raises:
        SettingsError: no method was run at fixed thresholds, or at none on the same pairs.
    """
    panels, notes = [], []
    for name, some in grouped(runs, apart=("fixed",)).items():
        by_value = {
            value: cells({name: [k for k in some if k.record.settings.threshold.fixed == value]})
            for value in sorted({k.record.settings.threshold.fixed for k in some}, key=_adaptive_last)
        }
        if set(by_value) == {None}:
            continue
        merged = {value: known[name] for value, known in by_value.items()}
        common = _common({str(value): known for value, known in merged.items()})
        notes += _left_out(name, merged, common)
        printed = _printed(published or {}, name, common)
        panels.append(_fixed_panel(name, {v: means_of(merged[v], common) for v in merged}, printed))
    if not panels:
        raise SettingsError(
            "no kept run that fits has a fixed threshold", remedy="fixed-thresholds"
        )
    return Figure(tuple(panels), tuple(notes))


def _adaptive_last(value: float | None) -> float:
    return math.inf if value is None else value


def _fixed_panel(
    name: str, means: Mapping[float | None, Mapping[str, float]], printed: Mapping[str, float]
) -> Panel:
    values = tuple(value for value in means if value is not None)
    series = []
    for key, shown in METRICS.items():
        series.append(Series(shown, values, tuple(means[v][key] for v in values), LINE))
        if None in means:
            adaptive = (means[None][key],)
            series.append(Series("adaptive", (None,), adaptive, LEVEL, look=shown))
        if key in printed:
            level = (printed[key],)
            series.append(
                Series("adaptive", (None,), level, LEVEL, look=shown, is_published=True)
            )
    return Panel(name, Axis("fixed threshold", 0, 1), Axis("mean (%)", 0, 100), tuple(series))


def ranks(
    runs: Sequence[Kept], published: Cells | None = None, metric: str = "acc_h"
) -> Figure:
    """How often each method has which rank on a pair; 1 is the best. Equal values share a rank.

    Raises:
        SettingsError: fewer than two methods, or no pair that all of them were run on.
    """
    series: list[Series] = []
    notes: list[str] = []
    for is_published, known in _sources(runs, published):
        common = _compared(known, notes, is_published)
        for name, found in rank_of(known, common, metric).items():
            places = tuple(range(1, len(known) + 1))
            shares = tuple(100 * found.count(place) / len(found) for place in places)
            mean = float(sum(found) / len(found))
            series += [
                Series(name, places, shares, RANKS, is_published=is_published),
                Series(name, (None,), (mean,), MARK, is_published=is_published),
            ]
    title = _over(runs, published)
    name = f"rank by {ALL_METRICS[metric]}"
    return Figure(
        (Panel(title, Axis("method"), Axis(name, is_whole=True), tuple(series)),), tuple(notes)
    )


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
    for is_published, known in _sources(runs, published):
        common = _compared(known, notes, is_published)
        by_method = {name: means_of(of, common) for name, of in known.items()}
        for name, values in by_method.items():
            heights = tuple(values[key] for key in METRICS)
            series.append(
                Series(name, tuple(METRICS.values()), heights, BARS, is_published=is_published)
            )
        if BASELINE in by_method and not is_published:
            level = tuple(by_method[BASELINE][key] for key in METRICS)
            series.append(Series(BASELINE, tuple(METRICS.values()), level, LEVEL))
    axes = Axis("metric"), Axis("mean (%)", low=0, high=100)
    return Figure((Panel(_over(runs, published), *axes, tuple(series)),), tuple(notes))


def cells(groups: Mapping[str, Sequence[Kept]]) -> dict[str, dict[Pair, dict[str, float]]]:
    """Metrics in percent, seeds folded, of groups of runs on noisy streams."""
    found: dict[str, dict[Pair, dict[str, float]]] = {}
    for name, some in groups.items():
        found[name] = {}
        for pair in pairs(some):
            on = [kept for kept in on_pair(some, pair) if kept.record.settings.ood_set == pair[1]]
            values = {key: folded(on, key)[0] for key in ALL_METRICS}
            if not math.isnan(values["acc_h"]):
                found[name][pair] = values
    return found


def means_of(known: Mapping[Pair, Mapping[str, float]], over: Sequence[Pair]) -> dict[str, float]:
    """Means over pairs of the accuracies; nothing where there is no pair."""
    if not over:
        return {}
    return {key: mean_std([known[pair][key] for pair in over])[0] for key in METRICS}


def _sources(runs: Sequence[Kept], published: Cells | None) -> list[tuple[bool, Cells]]:
    """What was measured, and what is published."""
    measured = {name: of for name, of in cells(grouped(runs)).items() if of}
    found: list[tuple[bool, Cells]] = [(False, measured)] if measured else []
    found += [(True, published)] if published else []
    if not found:
        raise SettingsError("no kept run that fits has Acc_H of a noisy stream.")
    return found


def _compared(known: Cells, notes: list[str], is_published: bool) -> list[Pair]:
    """The pairs that methods are compared on."""
    if len(known) < 2:
        raise SettingsError(
            f"ranks and means compare methods, and there is only {next(iter(known))}",
            remedy="simulate",
        )
    check_lines(len(known), "methods")
    common = _common(known)
    if not common:
        raise SettingsError(
            f"there is no ID-OOD pair that all of {', '.join(known)} were run on", remedy="simulate"
        )
    if not is_published:
        notes += _left_out("", known, common)
    return common


def _common(known: Cells) -> list[Pair]:
    """The pairs that all have, in the order of the first."""
    first, *others = known.values()
    return [pair for pair in first if all(pair in of for of in others)]


def _left_out(
    name: str, known: Mapping[object, Mapping[Pair, object]], common: Sequence[Pair]
) -> list[str]:
    every = list(dict.fromkeys(pair for of in known.values() for pair in of))
    lacking = [pair_title(pair) for pair in every if pair not in common]
    if not lacking:
        return []
    what = f"{name}: " if name else ""
    return [
        f"{what}mean over {len(common)} of {len(every)} pairs: not all runs are there of "
        f"{', '.join(lacking)}"
    ]


def _printed(published: Cells, name: str, over: Sequence[Pair]) -> dict[str, float]:
    """Published means over the same pairs; nothing unless all of them are printed."""
    of = published.get(name, {})
    return means_of(of, over) if over and all(pair in of for pair in over) else {}


def _over(runs: Sequence[Kept], published: Cells | None) -> str:
    """What a mean is over."""
    counts = [len(_common(known)) for _, known in _sources(runs, published)]
    words = [f"{count} ID-OOD pair{'s' * (count > 1)}" for count in dict.fromkeys(counts)]
    return " (measured), ".join(words) + " (published)" * (len(words) > 1)
