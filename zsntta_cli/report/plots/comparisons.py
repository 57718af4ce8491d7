"""A metric against what was varied: the noise ratio, a fixed threshold."""

import math
from collections.abc import Mapping, Sequence

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.plots.figure import LEVEL, LINE, Axis, Figure, Panel, Series
from zsntta_cli.report.plots.groups import (
    ALL_METRICS,
    METRICS,
    Pair,
    by_pair,
    check_lines,
    folded,
    grouped,
    pair_title,
)
from zsntta_cli.report.plots.over_pairs import Cells, cells, common_pairs, left_out, means_of
from zsntta_cli.results.kept import Kept

ADAPTIVE = "adaptive"


def ratio(runs: Sequence[Kept], metric: str = "acc_h") -> Figure:
    """A metric against the noise ratio, a panel a pair; seeds folded into mean and deviation.

    Raises:
        SettingsError: no run has the metric, or there are too many lines.
    """
    found = []
    for pair, groups in by_pair(runs, apart=("ratio",)):
        check_lines(len(groups))
        lines = [line for name, some in groups.items() if (line := _by_ratio(name, some, metric)).x]
        found += [(pair, lines)] if lines else []
    if not found:
        raise SettingsError(f"no kept run that fits has {ALL_METRICS[metric]}.")
    ticks = tuple(sorted({x for _, lines in found for line in lines for x in line.x}))
    axes = Axis("noise ratio (%)", ticks=ticks), Axis(f"{ALL_METRICS[metric]} (%)")
    return Figure(tuple(Panel(pair_title(pair), *axes, tuple(lines)) for pair, lines in found))


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

    Published numbers are of the adaptive one: over the same pairs, or alone over all of theirs.

    Raises:
        SettingsError: no method was run at fixed thresholds, or at none on the same pairs.
    """
    panels, notes = [], []
    for name, some in grouped(runs, apart=("fixed",)).items():
        by_value = {
            value: cells({name: [k for k in some if k.record.settings.threshold.fixed == value]})
            for value in sorted(
                {k.record.settings.threshold.fixed for k in some}, key=_adaptive_last
            )
        }
        if set(by_value) == {None}:
            continue
        merged = {value: known[name] for value, known in by_value.items()}
        common = common_pairs({str(value): known for value, known in merged.items()})
        notes += left_out(name, merged, common)
        printed = _printed(published or {}, name, common)
        panels.append(_fixed_panel(name, {v: means_of(merged[v], common) for v in merged}, printed))
    if not runs and published:
        panels = [
            _fixed_panel(f"{name}, published", {}, means_of(of, [*of]))
            for name, of in published.items()
        ]
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
        if values:
            series.append(Series(shown, values, tuple(means[v][key] for v in values), LINE))
        if None in means:
            adaptive = (means[None][key],)
            series.append(Series(ADAPTIVE, (None,), adaptive, LEVEL, look=shown))
        if key in printed:
            level = (printed[key],)
            called = ADAPTIVE if values else shown
            series.append(Series(called, (None,), level, LEVEL, (), shown, is_published=True))
    return Panel(name, Axis("fixed threshold", 0, 1), Axis("mean (%)", low=0), tuple(series))


def _printed(published: Cells, name: str, over: Sequence[Pair]) -> dict[str, float]:
    """Published means over the same pairs; nothing unless all of them are printed."""
    of = published.get(name, {})
    return means_of(of, over) if over and all(pair in of for pair in over) else {}
