"""Lines and panels of figures, and means: against a setting that was varied, over ID-OOD pairs.

A figure has at most MOST_LINES lines in a panel and MOST_PANELS panels. If there are more, it
shows the settings that most runs share, and a note says what is left out and how to see it.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from zsntta_cli.errors import SettingsError, counted, first_of
from zsntta_cli.report.figure import LINE, POINTS, STAIRS, Figure, Panel, Series
from zsntta_cli.report.tables import usual
from zsntta_cli.results import frame
from zsntta_cli.results.frame import CLEAN, ResultRow, ResultTable, Value, average, fold
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.record import Record

ACCURACIES = ("acc_s", "acc_n", "acc_h")
MOST_LINES = 8  # of one panel: there are no more colours that everybody can tell apart
MOST_PANELS = 12
_NAMED = 4  # of the lines that are left out

Pair = tuple[str, str]  # ID set, OOD set; CLEAN of a clean stream
Groups = Mapping[str, Sequence[ResultRow]]  # rows by what a legend calls them
ByPair = Mapping[str, Mapping[int, float]]  # a metric by the title of a pair and by seed
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
    groups = by_label([usual(table) for table in tables], without)
    by_use = sorted(groups, key=lambda name: -sum(len(row.records) for row in groups[name]))
    drawn = {name: rows for name, rows in groups.items() if name in by_use[:MOST_LINES]}
    rows = {row for of in drawn.values() for row in of}
    left_out = [name for name, of in every.items() if rows.isdisjoint(of)]
    return drawn, [
        f"{len(drawn)} of {len(every)} lines are shown, for the settings that most runs share; "
        f"--method, --preset and --setting select others: {first_of(left_out, _NAMED)}"
    ]


def by_label(tables: Sequence[ResultTable], without: Collection[str] = ()) -> Groups:
    """Rows by method and by the settings in which its rows differ, except those in `without`.

    Settings that make streams incomparable are named for all methods that have them.
    """
    rows = [row for table in tables for row in table.rows]
    [differing] = frame.varying(rows, lambda _: "").values() or [[]]
    of_methods = frame.varying(rows)
    of_streams = [name for name in frame.OF_STREAM if name in differing]

    def label(row: ResultRow) -> str:
        names = dict.fromkeys([*of_streams, *of_methods[row.method]])
        if row.settings["limit"] is None:
            names.pop("limit", None)
        return frame.label(row, [*names], [*without])

    return frame.grouped(rows, label)


def pairs_of(tables: Sequence[ResultTable]) -> list[Pair]:
    """All ID-OOD pairs; clean streams only if there are no pairs."""
    every = dict.fromkeys((table.id_set, name) for table in tables for name in table.columns)
    return [pair for pair in every if pair[1] != CLEAN] or [*every]


def titles_of(pairs: Sequence[Pair]) -> dict[Pair, str]:
    """Titles for the pairs of one figure: the sets that differ, or both sets of a single pair."""
    differ = [len(pairs) == 1 or len({*sets}) > 1 for sets in zip(*pairs, strict=True)]
    return {pair: " / ".join(filter(None, itertools.compress(pair, differ))) for pair in pairs}


def runs_on(rows: Sequence[ResultRow], pair: Pair) -> dict[int, Record]:
    """The runs of some rows on a pair, by seed."""
    runs: dict[int, Record] = {}
    for row in rows:
        if row.stream.id_set == pair[0]:
            runs |= row.on(pair[1])
    return runs


def by_pair(rows: Sequence[ResultRow], pairs: Sequence[Pair], metric: str) -> ByPair:
    """A metric of finished runs."""
    return {
        title: {s: r.metric(metric) for s, r in runs_on(rows, pair).items() if not r.unfinished}
        for pair, title in titles_of(pairs).items()
    }


def _printed(of: Mapping[Pair, Mapping[str, float]], pairs: Sequence[Pair], metric: str) -> ByPair:
    """Published numbers as fractions; they count as one seed."""
    titles = titles_of(pairs)
    return {titles[p]: {0: of[p][metric] / 100} if metric in of.get(p, {}) else {} for p in pairs}


def _series(name: str, values: Mapping[Any, Value]) -> Series:
    """A line through means, shares in percent."""
    y = tuple(100 * value.mean for value in values.values())
    stds = tuple(100 * value.std for value in values.values())
    return Series(name, tuple(values), y, LINE, () if all(map(math.isnan, stds)) else stds)


def figure_of(panels: Sequence[Panel], notes: Sequence[str], nothing: str = "") -> Figure:
    """A figure of the panels that have a point; only the first ones if there are too many.

    Raises:
        SettingsError: there is no panel; `nothing` says what is missing.
    """
    if not panels:
        raise SettingsError(nothing)
    having = [panel for panel in panels if any(map(_has_points, panel.series))]
    if left_out := len(having) - len(having[:MOST_PANELS]):
        which = f"{left_out} of {len(having)} panels are left out"
        notes = [*notes, f"{which}: --id, --ood and --method select others"]
    return Figure(tuple(having[:MOST_PANELS]), tuple(notes))


def _has_points(series: Series) -> bool:
    if series.look == "threshold":
        return False
    return any(series.y) if series.shape == STAIRS else not all(map(math.isnan, series.y))


# A metric against a setting that was varied.


def ratio(runs: Sequence[Record], metric: str = "acc_h") -> Figure:
    """A metric against the noise ratio, with its mean and deviation over seeds.

    There is a panel for each pair or, if there are many, for each ID set with its averages.
    Streams whose ratio is not a number (natural) are left out.

    Raises:
        SettingsError: no run has the metric.
    """
    head, tables = METRICS[metric].head, frame.tables([
        run for run in runs
        if not isinstance(run.settings.stream.ratio, str) and not math.isnan(run.metric(metric))
    ])  # fmt: skip
    if not tables:
        raise SettingsError(f"no matching kept run has {head}.")
    groups, notes = lines_of(tables, without=("ratio",))
    pairs = pairs_of(tables)
    parts = {title: [pair] for pair, title in titles_of(pairs).items()}
    if len(parts) > MOST_PANELS:
        parts = {f"{name}, average": [p for p in pairs if p[0] == name] for name, _ in pairs}
        notes.append("the panels are averages over OOD sets: --id and --ood select single sets")
    panels = []
    for title, of_part in parts.items():
        lines = list[Series]()
        for name, rows in groups.items():
            lines += _along(name, rows, of_part, metric, lambda row: 100 * float(row.ratio))
        panels.append(Panel(title, "noise ratio (%)", f"{head} (%)", tuple(lines)))
    return figure_of(panels, notes)


def _along(
    name: str,
    rows: Sequence[ResultRow],
    pairs: Sequence[Pair],
    metric: str,
    x: Callable[[ResultRow], float],
) -> list[Series]:
    """A line through the averages of a metric over pairs, where there are any."""
    points = {}
    for at, rows_at in sorted(frame.grouped(rows, x).items(), key=itemgetter(0)):
        value = average(by_pair(rows_at, pairs, metric))
        if not math.isnan(value.mean):
            points[at] = value
    return [_series(name, points)] if points else []


def fixed(runs: Sequence[Record], published: Cells | None = None) -> Figure:
    """Accuracies at fixed thresholds, with the adaptive one as a line; a panel for each method.

    Averages are over the pairs with a fixed threshold. Published numbers are for the adaptive
    threshold, over the same pairs; without measured runs, over all of their pairs.

    Raises:
        SettingsError: no method was run at fixed thresholds on all of its pairs.
    """
    tables, published = frame.tables(runs), published or {}
    groups = by_label(tables, without=("fixed",)) if runs else {name: [] for name in published}
    panels = list[Panel]()
    for method, rows in groups.items():
        at_fixed = [row for row in rows if row.settings["fixed"] is not None]
        adaptive = [row for row in rows if row.settings["fixed"] is None]
        printed = published.get(method, {})
        pairs = [p for p in pairs_of(tables) if runs_on(at_fixed, p)] if runs else [*printed]
        lines = list[Series]()
        for metric in ACCURACIES:
            head = METRICS[metric].head
            measured = _along(head, at_fixed, pairs, metric, lambda row: row.settings["fixed"])
            levels = {"adaptive": average(by_pair(adaptive, pairs, metric))}
            levels["published"] = average(_printed(printed, pairs, metric))
            lines += measured
            for called, level in levels.items():
                if not math.isnan(level.mean) and (measured or not runs):  # across all thresholds
                    name = called if measured else head  # of published numbers alone
                    line = _series(name, {0.0: level, 1.0: level})
                    lines.append(replace(line, std=(), look=head, is_published=True))
        if lines:
            title = f"{method}, published" if not runs else method
            panels.append(Panel(title, "fixed threshold", "mean (%)", tuple(lines)))
    return figure_of(
        panels, (),
        "no matching kept run has a fixed threshold on all of its sets: zsntta simulate --method "
        "zs-clip --threshold adaptive --threshold 0.5",
    )  # fmt: skip


# Methods compared over ID-OOD pairs.

Source = tuple[str, dict[str, dict[str, ByPair]], bool]  # title, by method and metric, published?


def means(runs: Sequence[Record], metric: str = "", published: Cells | None = None) -> Figure:
    """Mean accuracies of each method over pairs, or one metric's means, ± their deviation.

    Raises:
        SettingsError: fewer than two methods have all pairs.
    """
    metrics = [metric] if metric else [*ACCURACIES]
    sources, notes = _compared(runs, metrics, published)
    panels = []
    for title, methods, is_published in sources:
        lines = []
        for method, by_metric in methods.items():
            line = _series(method, {METRICS[m].head: average(by_metric[m]) for m in metrics})
            lines.append(replace(line, shape=POINTS, is_published=is_published))
        name = METRICS[metric].head if metric else "mean"
        panels.append(Panel(title, "metric", f"{name} (%)", tuple(lines)))
    return figure_of(panels, notes)


def ranks(runs: Sequence[Record], metric: str = "acc_h", published: Cells | None = None) -> Figure:
    """The share of pairs on which each method has a rank or better; equal values share a rank.

    The legend has the mean rank of each method; 1 is the best.

    Raises:
        SettingsError: fewer than two methods have all pairs.
    """
    sources, notes = _compared(runs, [metric], published)
    sign = -1 if METRICS[metric].lower_is_better else 1
    panels = []
    for title, methods, is_published in sources:
        values = {  # by pair; without rounding errors, so that equal means are equal
            name: [sign * round(fold(seeds).mean, 12) for seeds in of[metric].values()]
            for name, of in methods.items()
        }
        places = tuple(range(1, 1 + len(values)))
        lines = []
        for name in values:
            of_name = []
            for value, *of_all in zip(values[name], *values.values(), strict=True):
                better = sum(other > value for other in of_all)
                of_name.append(better + (of_all.count(value) + 1) / 2)
            shares = [100 * sum(r <= place for r in of_name) / len(of_name) for place in places]
            legend = f"{name} (mean {statistics.fmean(of_name):.2f})"
            lines.append(Series(legend, places, tuple(shares), LINE, (), name, is_published))
        name = f"rank by {METRICS[metric].head}"
        panels.append(Panel(title, name, "pairs with this rank or better (%)", tuple(lines)))
    return figure_of(panels, notes)


def _compared(
    runs: Sequence[Record], metrics: Sequence[str], published: Cells | None
) -> tuple[list[Source], list[str]]:
    """The methods that have all pairs, measured and published, and notes on the others.

    Published numbers are over the measured pairs if those are printed, else over all of their own.
    A method has a pair if it has the last of the metrics there; what has it nowhere is a score that
    decides nothing.
    """
    tables, last = frame.tables(runs), metrics[-1]
    pairs, (groups, notes) = pairs_of(tables), lines_of(tables)
    measured = {
        name: {metric: by_pair(rows, pairs, metric) for metric in metrics}
        for name, rows in groups.items()
        if any(not math.isnan(run.metric(last)) for row in rows for run in row.records)
    }
    lacking = list[str]()
    for name in [*measured]:
        value = average(measured[name][last])
        if math.isnan(value.mean):
            del measured[name]
            lacks = f"it has {value.lacks}" if value.lacks else "it is undefined on one of its sets"
            lacking.append(f"{name} has no average: {lacks}")
    over = counted(len(pairs), "ID-OOD pair")
    if (lacking or measured) and len(measured) < 2:
        only = next((f"only {name}" for name in measured), "none")
        what = f"methods are compared over {over}, but {only} has an average"
        raise SettingsError(
            f"{'; '.join([what, *lacking])}: zsntta simulate runs what is missing, or select "
            f"others with --id, --ood and --method"
        )
    sources: list[Source] = [(over, measured, False)] if measured else []
    if published:
        first, *rest = published.values()
        common = [pair for pair in first if all(pair in of for of in rest)]
        on = [pair for pair in pairs if pair in common] or common
        printed = {n: {m: _printed(of, on, m) for m in metrics} for n, of in published.items()}
        sources.append((f"{counted(len(on), 'ID-OOD pair')}, published", printed, True))
    if not sources:
        raise SettingsError(f"no matching kept run has {METRICS[last].head} on a noisy stream.")
    return sources, [*notes, *lacking]
