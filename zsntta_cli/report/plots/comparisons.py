"""A metric against what was varied: the noise ratio, a fixed threshold."""

import math
from collections.abc import Mapping, Sequence

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.figure import LEVEL, LINE, Axis, Figure, Panel, Series
from zsntta_cli.report.plots.groups import (
    Groups,
    Pair,
    Row,
    average_over,
    axis_name,
    by_label,
    by_seed,
    check_lines,
    on_pairs,
    pair_title,
    pairs_of,
    scale,
    stds,
    tidy_point,
)
from zsntta_cli.report.plots.over_pairs import ACCURACIES, Cells, printed
from zsntta_cli.results.frame import Value, tables
from zsntta_cli.results.kept import Kept
from zsntta_cli.simulation.metrics import METRICS

ADAPTIVE = "adaptive"


def ratio(runs: Sequence[Kept], metric: str = "acc_h") -> Figure:
    """A metric against the noise ratio, a panel a pair; seeds folded into mean and deviation.

    Raises:
        SettingsError: no run has the metric, or there are too many lines.
    """
    panels = []
    for pair, groups in on_pairs(tables(runs), without=("ratio",)):
        panel = ratio_panel(pair_title(pair), groups, [pair], metric)
        check_lines(len(panel.series))
        panels += [panel] if panel.series else []
    if not panels:
        raise SettingsError(f"no kept run that fits has {METRICS[metric].head}.")
    return Figure(tuple(panels))


def ratio_panel(title: str, groups: Groups, pairs: Sequence[Pair], metric: str) -> Panel:
    """A metric against the noise ratio, averaged over pairs: a line for each group that has it."""
    lines = [_by_ratio(name, rows, pairs, metric) for name, rows in groups.items()]
    lines = [line for line in lines if line.x]
    ratios = tuple(sorted({x for line in lines for x in line.x}))
    axes = Axis("noise ratio (%)", ticks=ratios), Axis(axis_name(METRICS[metric]))
    return Panel(title, *axes, tuple(lines))


def _by_ratio(name: str, rows: Sequence[Row], pairs: Sequence[Pair], metric: str) -> Series:
    values = {
        at: average_over({pair: by_seed(same, pair, metric) for pair in pairs})
        for at in sorted({row.ratio for row in rows})
        if (same := [row for row in rows if row.ratio == at])
    }
    whole = {at: value for at, value in values.items() if not math.isnan(value.mean)}
    times = scale(METRICS[metric])
    return Series(
        name, tuple(100 * at for at in whole), tuple(times * v.mean for v in whole.values()), LINE,
        stds([times * value.std for value in whole.values()]),
        rows=tuple(tidy_point([r for r in rows if r.ratio == at], pairs) for at in whole),
    )  # fmt: skip


def fixed(runs: Sequence[Kept], published: Cells | None = None) -> Figure:
    """Accuracies at fixed thresholds, and dashed those of the adaptive one; a panel a method.

    Averages are over the pairs with a fixed threshold. Published numbers are of the adaptive one:
    over the same pairs, or alone over all of theirs.

    Raises:
        SettingsError: no method was run at fixed thresholds on all of its pairs.
    """
    panels: list[Panel] = []
    notes: list[str] = []
    frame = tables(runs)
    for name, rows in by_label(frame, without=("fixed",)).items():
        at_fixed = {id(row) for row in rows if row.settings["fixed"] is not None}
        pairs = [
            (id_set, ood)
            for id_set, ood in pairs_of(frame)
            if any(r.stream.id_set == id_set and r.on(ood) for r in rows if id(r) in at_fixed)
        ]
        averages = _averages(rows, pairs)
        notes += _lacking(name, averages)
        whole = {at: values for at, values in averages.items() if not values["acc_h"].lacks}
        if set(whole) - {None}:
            of_pairs = _published(published or {}, name, pairs)
            panels.append(_fixed_panel(name, rows, pairs, whole, of_pairs))
    if not runs and published:
        panels = [
            _fixed_panel(f"{name}, published", [], [], {}, _published(published, name, [*of]))
            for name, of in published.items()
        ]
    if not panels:
        raise SettingsError(
            "; ".join(["no kept run that fits has a fixed threshold", *notes]),
            remedy="fixed-thresholds",
        )
    return Figure(tuple(panels), tuple(notes))


Averages = Mapping[float | None, Mapping[str, Value]]  # by fixed threshold, None the adaptive one


def _averages(rows: Sequence[Row], pairs: Sequence[Pair]) -> Averages:
    values = {row.settings["fixed"] for row in rows}
    return {
        at: {
            name: average_over({pair: by_seed(same, pair, name) for pair in pairs})
            for name in ACCURACIES
        }
        for at in sorted(values, key=lambda value: math.inf if value is None else value)
        if (same := [row for row in rows if row.settings["fixed"] == at]) and pairs
    }


def _lacking(name: str, averages: Averages) -> list[str]:
    return [
        f"{name} at threshold {ADAPTIVE if at is None else at} has no average: it has {lacks}"
        for at, values in averages.items()
        if (lacks := values["acc_h"].lacks)
    ]


def _published(published: Cells, name: str, pairs: Sequence[Pair]) -> dict[str, float]:
    """Published averages in percent over the same pairs; none unless all of them are printed."""
    by_metric = {key: printed(published, pairs, key).get(name, {}) for key in ACCURACIES}
    averages = {key: average_over(by_pair).mean for key, by_pair in by_metric.items()}
    return {key: 100 * mean for key, mean in averages.items() if not math.isnan(mean)}


def _fixed_panel(
    name: str,
    rows: Sequence[Row],
    pairs: Sequence[Pair],
    averages: Averages,
    published: Mapping[str, float],
) -> Panel:
    at_fixed = tuple(at for at in averages if at is not None)
    points = {
        at: tidy_point([r for r in rows if r.settings["fixed"] == at], pairs) for at in averages
    }
    series = []
    for key in ACCURACIES:
        head = METRICS[key].head
        means = {at: 100 * values[key].mean for at, values in averages.items()}
        deviations = stds([100 * averages[at][key].std for at in at_fixed])
        if at_fixed:
            at_points = tuple(points[at] for at in at_fixed)
            y = tuple(means[at] for at in at_fixed)
            series.append(Series(head, at_fixed, y, LINE, deviations, rows=at_points))
        if None in means:
            level = (means[None],), LEVEL, (), head, False, (points[None],)
            series.append(Series(ADAPTIVE, (None,), *level))
        if key in published:
            called = ADAPTIVE if at_fixed else head
            series.append(
                Series(called, (None,), (published[key],), LEVEL, (), head, is_published=True)
            )
    return Panel(name, Axis("fixed threshold", 0, 1), Axis("mean (%)", low=0), tuple(series))
