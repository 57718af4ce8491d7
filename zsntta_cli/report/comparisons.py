"""Lines and panels of figures, and means: against a setting that was varied, over ID-OOD pairs.

A figure has at most MOST_LINES lines in a panel and MOST_PANELS panels. Where there are more, it
has those of the settings that most runs share, and a note says what is left out and how to see it.
"""

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zsntta_cli.errors import SettingsError, counted, first_of
from zsntta_cli.report.figure import LINE, POINTS, STAIRS, Figure, Panel, Series
from zsntta_cli.report.tables import usual
from zsntta_cli.results import frame
from zsntta_cli.results.frame import CLEAN, ResultRow, ResultTable, Value, average
from zsntta_cli.simulation.metrics import METRICS, Metric
from zsntta_cli.simulation.record import Record

ACCURACIES = ("acc_s", "acc_n", "acc_h")
MOST_LINES = 8  # of one panel: there are no more colours that everybody can tell apart
MOST_PANELS = 12
_NAMED = 4  # of the lines that are left out

Pair = tuple[str, str]  # ID set, OOD set; CLEAN of a clean stream
Groups = Mapping[str, Sequence[ResultRow]]  # rows by what a legend calls them
BySeed = Mapping[int, float]
# Accuracies in percent by method (as a legend has it) and pair; the paper's numbers come like this.
Cells = Mapping[str, Mapping[Pair, Mapping[str, float]]]


# Which rows of the frame stand in a figure, under which names.


def lines_of(
    tables: Sequence[ResultTable], without: Collection[str] = ()
) -> tuple[Groups, list[str]]:
    """At most MOST_LINES groups of rows, and a note on those that are left out."""
    every = by_label(tables, without)
    if len(every) <= MOST_LINES:
        return every, []
    groups = by_label(list(map(usual, tables)), without)
    by_use = sorted(groups, key=lambda name: -sum(len(row.records) for row in groups[name]))
    drawn = {name: rows for name, rows in groups.items() if name in by_use[:MOST_LINES]}
    rows = [row for of in drawn.values() for row in of]
    left = [name for name, of in every.items() if not any(row in rows for row in of)]
    return drawn, [
        f"{len(drawn)} of {len(every)} lines are drawn, of the settings that most runs share; "
        f"--method, --preset and --setting choose others: {first_of(left, _NAMED)}"
    ]


def by_label(tables: Sequence[ResultTable], without: Collection[str] = ()) -> Groups:
    """Rows by method and by the settings in which its rows differ, except those in `without`.

    Settings that make streams incomparable are named for all methods that have them.
    """
    rows = [row for table in tables for row in table.rows]
    differing, of_methods = frame.differing(rows), frame.varying(rows)
    of_streams = [name for name in frame.OF_STREAM if name in differing]
    groups: dict[str, list[ResultRow]] = {}
    for row in rows:
        names = dict.fromkeys([*of_streams, *of_methods[row.method]])
        if row.settings["limit"] is None:
            names.pop("limit", None)
        groups.setdefault(frame.label(row, [*names], [*without]), []).append(row)
    return groups


def pairs_of(tables: Sequence[ResultTable]) -> list[Pair]:
    """All ID-OOD pairs; clean streams only if there are no pairs."""
    every = dict.fromkeys((table.id_set, name) for table in tables for name in table.columns)
    return [pair for pair in every if pair[1] != CLEAN] or [*every]


def titles_of(pairs: Sequence[Pair]) -> dict[Pair, str]:
    """Titles for the pairs of one figure: the sets in which they differ, both of a single pair."""
    varies = [len({*names}) > 1 or len(pairs) == 1 for names in zip(*pairs, strict=True)]
    return {
        pair: " / ".join(name for name, told in zip(pair, varies, strict=True) if told and name)
        for pair in pairs
    }


def rows_on(rows: Sequence[ResultRow], pair: Pair) -> list[ResultRow]:
    """The rows that have runs on a pair."""
    return [row for row in rows if row.stream.id_set == pair[0] and row.on(pair[1])]


def _by_pair(
    rows: Sequence[ResultRow], pairs: Sequence[Pair], metric: str
) -> dict[str, dict[int, float]]:
    """A metric by the title of the pair and by seed."""
    names, found = titles_of(pairs), dict[str, dict[int, float]]()
    for pair in pairs:
        by_seed = found.setdefault(names[pair], {})
        for row in rows_on(rows, pair):
            by_seed |= row.by_seed(pair[1], metric)
    return found


def _series(name: str, values: Mapping[Any, Value], metric: Metric) -> Series:
    """A line through means, shares in percent."""
    times = 100 if metric.is_percent else 1
    points = [(times * value.mean, times * value.std) for value in values.values()]
    y, stds = zip(*points, strict=True)
    return Series(name, tuple(values), y, LINE, () if all(map(math.isnan, stds)) else stds)


def _axis_name(metric: str) -> str:
    """A metric with its unit, as the name of an axis."""
    return METRICS[metric].head + " (%)" * METRICS[metric].is_percent


def figure_of(panels: Sequence[Panel], notes: Sequence[str] = ()) -> Figure:
    """A figure of the panels that have a point, of the first where there are too many."""
    having = [panel for panel in panels if any(map(_has_points, panel.series))]
    left = having[MOST_PANELS:]
    said = f"{len(left)} of {len(having)} panels are left out: --id, --ood and --method choose"
    return Figure(tuple(having[:MOST_PANELS]), (*notes, *[said] * bool(left)))


def _has_points(series: Series) -> bool:
    if series.look == "threshold":
        return False
    return any(series.y) if series.shape == STAIRS else not all(map(math.isnan, series.y))


# A metric against a setting that was varied.


def ratio(runs: Sequence[Record], metric: str = "acc_h") -> Figure:
    """A metric against the noise ratio, with its mean and deviation over seeds.

    There is a panel for each pair or, where there are many, for each ID set with its averages.
    Streams whose ratio is no number (natural) are left out.

    Raises:
        SettingsError: no run has the metric.
    """
    having = [
        run
        for run in runs
        if not isinstance(run.settings.stream.ratio, str) and not math.isnan(run.metric(metric))
    ]
    tables = frame.tables(having)
    if not tables:
        raise SettingsError(f"no kept run that fits has {METRICS[metric].head}.")
    groups, notes = lines_of(tables, without=("ratio",))
    pairs = pairs_of(tables)
    parts = {title: [pair] for pair, title in titles_of(pairs).items()}
    if len(parts) > MOST_PANELS:
        parts = {f"{name}, average": [p for p in pairs if p[0] == name] for name, _ in pairs}
        notes.append("the panels are averages over OOD sets: --id and --ood draw single sets")
    panels = []
    for title, of_part in parts.items():
        series = tuple(_against_ratio(groups, of_part, metric))
        panels.append(Panel(title, "noise ratio (%)", _axis_name(metric), series))
    return figure_of(panels, notes)


def _against_ratio(groups: Groups, pairs: Sequence[Pair], metric: str) -> Iterator[Series]:
    for name, rows in groups.items():
        points = {}
        at_ratio = frame.grouped(rows, lambda row: float(row.ratio))
        for share in sorted(at_ratio):
            value = average(_by_pair(at_ratio[share], pairs, metric))
            if not math.isnan(value.mean):
                points[100 * share] = value
        if points:
            yield _series(name, points, METRICS[metric])


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
        by_threshold = frame.grouped(rows, lambda row: row.settings["fixed"])
        at_fixed = [row for at, of in by_threshold.items() if at is not None for row in of]
        pairs = [pair for pair in pairs_of(tables) if rows_on(at_fixed, pair)]
        whole = {}
        for at in sorted(by_threshold, key=lambda at: (at is None, at or 0)):
            lacks = average(_by_pair(by_threshold[at], pairs, "acc_h")).lacks
            if not lacks:
                whole[at] = by_threshold[at]
            elif pairs:
                shown = frame.shown("fixed", at)
                notes.append(f"{name} at threshold {shown} has no average: it has {lacks}")
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
        values = {at: average(_by_pair(of, pairs, key)) for at, of in rows.items()}
        levels = {"adaptive": values.pop(None, frame.NOTHING)}
        levels["published"] = average(_printed(published, pairs, key))
        if values:
            series.append(_series(metric.head, values, metric))
        for called, level in levels.items():
            if not math.isnan(level.mean):  # across all thresholds
                name = called if values else metric.head  # of published numbers alone
                line = _series(name, {0.0: level, 1.0: level}, metric)
                series.append(replace(line, std=(), look=metric.head, is_published=True))
    return Panel(title, "fixed threshold", "mean (%)", tuple(series))


# Methods compared over ID-OOD pairs.

ByMetric = Mapping[str, Mapping[str, BySeed]]  # by metric and the name of a pair
Source = tuple[str, dict[str, ByMetric], bool]  # its title, methods, whether it is published


def means(runs: Sequence[Record], metric: str = "", published: Cells | None = None) -> Figure:
    """Mean accuracies of each method over pairs, or one metric's means, ± their deviation.

    Raises:
        SettingsError: fewer than two methods have all pairs.
    """
    metrics = [metric] if metric else [*ACCURACIES]
    sources, notes = _compared(runs, metrics, published)
    panels = []
    for title, source, is_published in sources:
        series = []
        for method, by_metric in source.items():
            values = {METRICS[name].head: average(by_metric[name]) for name in metrics}
            line = _series(method, values, METRICS[metrics[0]])
            series.append(replace(line, shape=POINTS, is_published=is_published))
        name = _axis_name(metric) if metric else "mean (%)"
        panels.append(Panel(title, "metric", name, tuple(series)))
    return figure_of(panels, notes)


def ranks(runs: Sequence[Record], metric: str = "acc_h", published: Cells | None = None) -> Figure:
    """On what share of pairs each method has a rank or a better one; equal values share a rank.

    The mean rank of a method stands in the legend; 1 is the best.

    Raises:
        SettingsError: fewer than two methods have all pairs.
    """
    sources, notes = _compared(runs, [metric], published)
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
    by_row: Mapping[str, Mapping[Any, float]], metric: Metric
) -> dict[str, dict[Any, float]]:
    """The mean rank of each row over the places where all rows have a value; 1 is the best.

    Equal values share their mean rank.
    """
    sign = -1 if metric.lower_is_better else 1
    ranks: dict[str, dict[Any, float]] = {row: {} for row in by_row}
    for place in dict.fromkeys(place for values in by_row.values() for place in values):
        values = [sign * of_row.get(place, math.nan) for of_row in by_row.values()]
        if any(map(math.isnan, values)):
            continue
        for row, value in zip(by_row, values, strict=True):
            better, equal = sum(other > value for other in values), values.count(value)
            ranks[row][place] = better + (equal + 1) / 2
    return ranks


def _compared(
    runs: Sequence[Record], metrics: Sequence[str], published: Cells | None
) -> tuple[list[Source], list[str]]:
    """The methods that have all pairs, measured and published, and notes on the others.

    Published numbers are over the measured pairs if those are printed, else over all of their own.
    A method has a pair if it has the last of the metrics there.
    """
    tables, last = frame.tables(runs), metrics[-1]
    pairs = pairs_of(tables)
    groups, notes = lines_of(tables)
    sources: list[Source] = []
    measured = {n: {m: _by_pair(rows, pairs, m) for m in metrics} for n, rows in groups.items()}
    having = {name: of for name, of in measured.items() if not _is_undecided(of[last])}
    if having:
        sources.append((counted(len(pairs), "ID-OOD pair"), _whole(having, last, notes), False))
    if published:
        first, *rest = published.values()
        common = [pair for pair in first if all(pair in of for of in rest)]
        of_pairs = [pair for pair in pairs if pair in common] or common
        printed = {
            name: {m: _printed(of, of_pairs, m) for m in metrics} for name, of in published.items()
        }
        title = f"{counted(len(of_pairs), 'ID-OOD pair')}, published"
        sources.append((title, _whole(printed, last, notes), True))
    if not sources:
        raise SettingsError(f"no kept run that fits has {METRICS[last].head} of a noisy stream.")
    return sources, notes


def _is_undecided(by_pair: Mapping[str, BySeed]) -> bool:
    """Whether a method has runs and none has the metric: a score that decides nothing."""
    values = [value for by_seed in by_pair.values() for value in by_seed.values()]
    return bool(values) and all(map(math.isnan, values))


def _printed(
    of: Mapping[Pair, Mapping[str, float]], pairs: Sequence[Pair], metric: str
) -> dict[str, BySeed]:
    """Published numbers as fractions; they count as one seed."""
    names = titles_of(pairs)
    return {names[p]: {0: of[p][metric] / 100} if metric in of.get(p, {}) else {} for p in pairs}


def _whole(methods: Mapping[str, ByMetric], metric: str, notes: list[str]) -> dict[str, ByMetric]:
    """The methods with an average over all pairs; the notes get what the others have."""
    whole, lacking = dict[str, ByMetric](), list[str]()
    for name, of in methods.items():
        value = average(of[metric])
        if not math.isnan(value.mean):
            whole[name] = of
            continue
        undefined = f"{METRICS[metric].head} is undefined on one of its sets"
        lacks = f"it has {value.lacks}" if value.lacks else undefined
        lacking.append(f"{name} has no average: {lacks}")
    if len(whole) < 2:
        only, pairs = next(iter(whole), "none"), next(iter(methods.values()))[metric]
        over = counted(len(pairs), "ID-OOD pair")
        what = f"methods are compared over {over}, and only {only} has an average"
        raise SettingsError(
            f"{'; '.join([what, *lacking])}: zsntta simulate runs what is missing, or choose with "
            "--id, --ood and --method"
        )
    notes += lacking
    return whole
