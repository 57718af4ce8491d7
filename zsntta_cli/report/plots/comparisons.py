"""A metric against a setting that was varied: the noise ratio, a fixed threshold."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.figure import LEVEL, LINE, Axis, Figure, Panel, Series
from zsntta_cli.report.plots.groups import (
    DrawnRow,
    Groups,
    Pair,
    PairMeans,
    axis_name,
    by_label,
    check_lines,
    on_pairs,
    pair_titles,
    pairs_of,
    points,
    rows_on,
)
from zsntta_cli.report.plots.over_pairs import ACCURACIES, Cells
from zsntta_cli.results.frame import shown, tables
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.record import Record

ADAPTIVE = "adaptive"


def ratio(runs: Sequence[Record], metric: str = "acc_h") -> Figure:
    """A metric against the noise ratio, a panel for each pair, with mean and deviation over seeds.

    Raises:
        SettingsError: no run has the metric, or there are too many lines.
    """
    panels = []
    having = (run for run in runs if not math.isnan(run.metric(metric)))
    frame = tables([run for run in having if not isinstance(run.settings.stream.ratio, str)])
    titles = pair_titles(pairs_of(frame))
    for pair, groups in on_pairs(frame, without=("ratio",)):
        panel = ratio_panel(titles[pair], groups, [pair], metric)
        check_lines(len(panel.series))
        panels += [panel] if panel.series else []
    if not panels:
        raise SettingsError(f"no kept run that fits has {METRICS[metric].head}.")
    return Figure(tuple(panels))


def ratio_panel(title: str, groups: Groups, pairs: Sequence[Pair], metric: str) -> Panel:
    """A metric against the noise ratio, averaged over pairs: a line for each group that has it.

    Streams whose ratio is no number (natural) are left out.
    """
    lines = []
    for name, rows in groups.items():
        of_one_share = [row for row in rows if not isinstance(row.ratio, str)]
        by_ratio = _by_setting("ratio", of_one_share, pairs).items()
        means = {100 * ratio: m for ratio, m in by_ratio if not math.isnan(m.value(metric).mean)}
        lines += [_line(name, means, metric)] if means else []
    ratios = tuple(sorted({x for line in lines for x in line.x}))
    axes = Axis("noise ratio (%)", ticks=ratios), Axis(axis_name(METRICS[metric]))
    return Panel(title, *axes, tuple(lines))


def _by_setting(name: str, rows: Sequence[DrawnRow], pairs: Sequence[Pair]) -> dict[Any, PairMeans]:
    """Means of the rows with each value of a setting; None, the adaptive threshold, comes last."""
    values = {row.settings[name] for row in rows}
    return {
        value: PairMeans(pairs, [row for row in rows if row.settings[name] == value])
        for value in sorted(values, key=lambda value: math.inf if value is None else value)
    }


def _line(name: str, means: Mapping[float, PairMeans], metric: str) -> Series:
    """A line through means that all have the metric."""
    y, stds = points(mean.shown(METRICS[metric]) for mean in means.values())
    return Series(name, tuple(means), y, LINE, stds, results=tuple(means.values()))


def fixed(runs: Sequence[Record], published: Cells | None = None) -> Figure:
    """Accuracies at fixed thresholds and, dashed, at the adaptive one; a panel for each method.

    Averages are over the pairs with a fixed threshold. Published numbers are for the adaptive
    threshold, over the same pairs, or without measured runs over all of their pairs.

    Raises:
        SettingsError: no method was run at fixed thresholds on all of its pairs.
    """
    panels: list[Panel] = []
    notes: list[str] = []
    frame, published = tables(runs), published or {}
    for name, rows in by_label(frame, without=("fixed",)).items():
        at_fixed = [row for row in rows if row.settings["fixed"] is not None]
        pairs = [pair for pair in pairs_of(frame) if rows_on(at_fixed, pair)]
        means = _by_setting("fixed", rows, pairs)
        lacking = {at: mean.value("acc_h").lacks for at, mean in means.items()}
        notes += [
            f"{name} at threshold {shown('fixed', at)} has no average: it has {lacks}"
            for at, lacks in lacking.items()
            if lacks and pairs
        ]
        whole = {at: mean for at, mean in means.items() if not lacking[at]}
        if {*whole} - {None}:
            printed = PairMeans(pairs, (), published.get(name, {}), name)
            panels.append(_fixed_panel(name, whole, printed))
    if not runs:
        panels = [
            _fixed_panel(f"{name}, published", {}, PairMeans([*of], (), of, name))
            for name, of in published.items()
        ]
    if not panels:
        raise SettingsError(
            "; ".join(["no kept run that fits has a fixed threshold", *notes]),
            remedy="fixed-thresholds",
        )
    return Figure(tuple(panels), tuple(notes))


def _fixed_panel(name: str, means: Mapping[float | None, PairMeans], published: PairMeans) -> Panel:
    at_fixed = {at: mean for at, mean in means.items() if at is not None}
    series = []
    for key in ACCURACIES:
        head = METRICS[key].head
        if at_fixed:
            series.append(_line(head, at_fixed, key))
        if None in means:
            level = 100 * means[None].value(key).mean
            series.append(
                Series(ADAPTIVE, (None,), (level,), LEVEL, look=head, results=(means[None],))
            )
        level = 100 * published.value(key).mean
        if not math.isnan(level):
            called = ADAPTIVE if at_fixed else head
            series.append(Series(called, (None,), (level,), LEVEL, look=head, is_published=True))
    return Panel(name, Axis("fixed threshold", 0, 1), Axis("mean (%)", low=0), tuple(series))
