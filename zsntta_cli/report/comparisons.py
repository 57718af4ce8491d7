"""Means of metrics: against a setting that was varied, and of methods over ID-OOD pairs."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.figure import LINE, POINTS, Figure, Panel, Series
from zsntta_cli.report.lines import (
    MOST_PANELS,
    BySeed,
    Groups,
    Pair,
    axis_name,
    by_label,
    figure_of,
    lines_of,
    pairs_of,
    rows_on,
    seeds_of,
    series_of,
    titled,
    titles_of,
    value_over,
)
from zsntta_cli.results import frame
from zsntta_cli.results.frame import ResultRow, average
from zsntta_cli.simulation.metrics import METRICS, Metric
from zsntta_cli.simulation.record import Record

ACCURACIES = ("acc_s", "acc_n", "acc_h")

# Accuracies in percent by method (as a legend has it) and pair; the paper's numbers come like this.
Cells = Mapping[str, Mapping[Pair, Mapping[str, float]]]


# A metric against a setting that was varied.


def ratio(runs: Sequence[Record], metric: str = "acc_h") -> Figure:
    """A metric against the noise ratio, with its mean and deviation over seeds.

    There is a panel for each pair or, where there are many, for each ID set with its averages.
    Streams whose ratio is no number (natural) are left out.

    Raises:
        SettingsError: no run has the metric.
    """
    having = (run for run in runs if not math.isnan(run.metric(metric)))
    numeric = (run for run in having if not isinstance(run.settings.stream.ratio, str))
    tables = frame.tables(numeric)
    if not tables:
        raise SettingsError(f"no kept run that fits has {METRICS[metric].head}.")
    groups, notes = lines_of(tables, without=("ratio",))
    pairs = pairs_of(tables)
    parts = {title: [pair] for pair, title in titles_of(pairs).items()}
    if len(parts) > MOST_PANELS:
        parts = {f"{name}, average": [p for p in pairs if p[0] == name] for name, _ in pairs}
        notes.append("the panels are averages over OOD sets: --id and --ood draw single sets")
    axes = "noise ratio (%)", axis_name(metric)
    panels = [
        Panel(title, *axes, tuple(_against_ratio(groups, of_part, metric)))
        for title, of_part in parts.items()
    ]
    return figure_of(panels, notes)


def _against_ratio(groups: Groups, pairs: Sequence[Pair], metric: str) -> Iterator[Series]:
    for name, rows in groups.items():
        ratios = sorted({float(row.ratio) for row in rows})
        values = {
            100 * share: value_over([row for row in rows if row.ratio == share], pairs, metric)
            for share in ratios
        }
        if points := {x: value for x, value in values.items() if not math.isnan(value.mean)}:
            yield series_of(name, points, METRICS[metric])


def fixed(runs: Sequence[Record], published: Cells | None = None) -> Figure:
    """Accuracies at fixed thresholds, and at the adaptive one across; a panel for each method.

    Averages are over the pairs with a fixed threshold. Published numbers are for the adaptive
    threshold, over the same pairs, or without measured runs over all of their pairs.

    Raises:
        SettingsError: no method was run at fixed thresholds on all of its pairs.
    """
    panels: list[Panel] = []
    notes: list[str] = []
    tables, published = frame.tables(runs), published or {}
    for name, rows in by_label(tables, without=("fixed",)).items():
        at_fixed = [row for row in rows if row.settings["fixed"] is not None]
        pairs = [pair for pair in pairs_of(tables) if rows_on(at_fixed, pair)]
        thresholds = sorted({row.settings["fixed"] for row in at_fixed})
        by_threshold = {
            at: [row for row in rows if row.settings["fixed"] == at] for at in (*thresholds, None)
        }
        present = {at: of for at, of in by_threshold.items() if of}
        lacking = {at: value_over(of, pairs, "acc_h").lacks for at, of in present.items()}
        notes += [
            f"{name} at threshold {frame.shown('fixed', at)} has no average: it has {lacks}"
            for at, lacks in lacking.items()
            if lacks and pairs
        ]
        whole = {at: by_threshold[at] for at, lacks in lacking.items() if not lacks}
        if {*whole} - {None}:
            panels.append(_fixed_panel(name, whole, pairs, published.get(name, {})))
    if not runs:
        panels = [_fixed_panel(f"{n}, published", {}, [*of], of) for n, of in published.items()]
    if not panels:
        raise SettingsError(
            "; ".join(["no kept run that fits has a fixed threshold", *notes])
            + ": zsntta simulate --method zs-clip --threshold adaptive --threshold 0.5"
        )
    return figure_of(panels, notes)


def _fixed_panel(
    title: str,
    rows: Mapping[float | None, Sequence[ResultRow]],
    pairs: Sequence[Pair],
    published: Mapping[Pair, Mapping[str, float]],
) -> Panel:
    series = []
    for key in ACCURACIES:
        metric = METRICS[key]
        values = {at: value_over(of, pairs, key) for at, of in rows.items()}
        levels = {"adaptive": values.pop(None, frame.NOTHING)}
        levels["published"] = average(_printed({"": published}, pairs, key)[""])
        if values:
            series.append(series_of(metric.head, values, metric))
        for called, level in levels.items():
            if not math.isnan(level.mean):  # across all thresholds
                name = called if values else metric.head  # of published numbers alone
                line = series_of(name, {0.0: level, 1.0: level}, metric)
                series.append(replace(line, std=(), look=metric.head, is_published=True))
    return Panel(title, "fixed threshold", "mean (%)", tuple(series))


# Methods compared over ID-OOD pairs.


def means(runs: Sequence[Record], metric: str = "", published: Cells | None = None) -> Figure:
    """Mean accuracies of each method over pairs, or one metric's means, ± their deviation.

    Raises:
        SettingsError: fewer than two methods have all pairs.
    """
    metrics = [METRICS[name] for name in ([metric] if metric else ACCURACIES)]
    sources, notes = _compared(runs, metric or "acc_h", published)
    name = axis_name(metric) if metric else "mean (%)"
    panels = []
    for title, source, is_published in sources:
        series = []
        for method, by_metric in source.items():
            values = {one.head: average(titled(by_metric[one.name])) for one in metrics}
            line = series_of(method, values, metrics[0])
            series.append(replace(line, shape=POINTS, is_published=is_published))
        panels.append(Panel(title, "metric", name, tuple(series)))
    return figure_of(panels, notes)


def ranks(runs: Sequence[Record], metric: str = "acc_h", published: Cells | None = None) -> Figure:
    """On what share of pairs each method has a rank or a better one; equal values share a rank.

    The mean rank of a method stands in the legend; 1 is the best.

    Raises:
        SettingsError: fewer than two methods have all pairs.
    """
    sources, notes = _compared(runs, metric, published)
    panels = []
    for title, source, is_published in sources:
        values = {  # without rounding errors, so that equal means are equal
            name: {p: round(frame.fold(v).mean, 12) for p, v in by_metric[metric].items()}
            for name, by_metric in source.items()
        }
        places = tuple(range(1, 1 + len(values)))
        series = []
        for name, by_pair in mean_ranks(values, METRICS[metric]).items():
            own = list(by_pair.values())
            shares = tuple(100 * sum(r <= place for r in own) / len(own) for place in places)
            told = f"{name} (mean {statistics.fmean(own):.2f})"
            series.append(Series(told, places, shares, LINE, (), name, is_published))
        name = f"rank by {METRICS[metric].head}"
        panels.append(Panel(title, name, "pairs of this rank or a better one (%)", tuple(series)))
    return figure_of(panels, notes)


def mean_ranks(
    by_row: Mapping[str, Mapping[Pair, float]], metric: Metric
) -> dict[str, dict[Pair, float]]:
    """The mean rank of each row over the places where all rows have a value; 1 is the best.

    Equal values share their mean rank.
    """
    sign = -1 if metric.lower_is_better else 1
    ranks: dict[str, dict[Pair, float]] = {row: {} for row in by_row}
    for place in dict.fromkeys(place for values in by_row.values() for place in values):
        values = [sign * of_row.get(place, math.nan) for of_row in by_row.values()]
        if any(map(math.isnan, values)):
            continue
        for row, value in zip(by_row, values, strict=True):
            better, equal = sum(other > value for other in values), values.count(value)
            ranks[row][place] = better + (equal + 1) / 2
    return ranks


ByMetric = Mapping[str, Mapping[Pair, BySeed]]
Source = tuple[str, dict[str, ByMetric], bool]  # its title, methods, whether it is published


def _compared(
    runs: Sequence[Record], metric: str, published: Cells | None
) -> tuple[list[Source], list[str]]:
    """The methods that have all pairs, measured and published, and notes on the others.

    Published numbers are over the measured pairs if those are printed, else over all of their own.
    """
    tables = frame.tables(runs)
    pairs = pairs_of(tables)
    groups, notes = lines_of(tables)
    measured = {
        name: {m: {pair: seeds_of(rows, pair, m) for pair in pairs} for m in METRICS}
        for name, rows in groups.items()
    }
    having = {name: of for name, of in measured.items() if not _is_undecided(of[metric])}
    sources = [(_count(pairs), _whole(having, metric, notes), False)] if having else []
    if published:
        first, *rest = published.values()
        common = [pair for pair in first if all(pair in of for of in rest)]
        of_pairs = [pair for pair in pairs if pair in common] or common
        by_metric = {m: _printed(published, of_pairs, m) for m in METRICS}
        printed = {name: {m: by_metric[m][name] for m in METRICS} for name in published}
        title = f"{_count(of_pairs)}, published"
        sources.append((title, _whole(printed, metric, notes), True))
    if not sources:
        raise SettingsError(f"no kept run that fits has {METRICS[metric].head} of a noisy stream.")
    return sources, notes


def _is_undecided(by_pair: Mapping[Pair, BySeed]) -> bool:
    """Whether a method has runs and none has the metric: a score that decides nothing."""
    values = [value for by_seed in by_pair.values() for value in by_seed.values()]
    return bool(values) and all(map(math.isnan, values))


def _printed(published: Cells, pairs: Sequence[Pair], metric: str) -> dict[str, dict[Pair, BySeed]]:
    """Published numbers as fractions; they count as one seed."""
    return {
        name: {p: {0: of[p][metric] / 100} if metric in of.get(p, {}) else {} for p in pairs}
        for name, of in published.items()
    }


def _whole(methods: Mapping[str, ByMetric], metric: str, notes: list[str]) -> dict[str, ByMetric]:
    """The methods with an average over all pairs; the notes get what the others have."""
    averages = {name: average(titled(of[metric])) for name, of in methods.items()}
    whole = {name: of for name, of in methods.items() if not math.isnan(averages[name].mean)}
    undefined = f"{METRICS[metric].head} is undefined on one of its sets"
    lacking = [
        f"{name} has no average: {f'it has {value.lacks}' if value.lacks else undefined}"
        for name, value in averages.items()
        if name not in whole
    ]
    if len(whole) < 2:
        only, over = next(iter(whole), "none"), _count([*next(iter(methods.values()))[metric]])
        what = f"methods are compared over {over}, and only {only} has an average"
        raise SettingsError(
            f"{'; '.join([what, *lacking])}: zsntta simulate runs what is missing, or choose with "
            "--id, --ood and --method"
        )
    notes += lacking
    return whole


def _count(pairs: Sequence[Pair]) -> str:
    return f"{len(pairs)} ID-OOD pair{'s' * (len(pairs) > 1)}"
