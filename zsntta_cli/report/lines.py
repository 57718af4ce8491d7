"""The lines and panels of a figure: which rows of the frame stand in it, under which names.

A figure has at most MOST_LINES lines in a panel and MOST_PANELS panels. Where there are more, it
has those of the settings that most runs share, and a note says what is left out and how to see it.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zsntta_cli.errors import first_of
from zsntta_cli.report.figure import LINE, STAIRS, Figure, Panel, Series
from zsntta_cli.report.tables import usual_rows
from zsntta_cli.results import frame
from zsntta_cli.results.frame import CLEAN, ResultRow, ResultTable, Value, average
from zsntta_cli.simulation.metrics import METRICS, Metric

MOST_LINES = 8  # of one panel: there are no more colours that everybody can tell apart
MOST_PANELS = 12
_NAMED = 4  # of the lines that are left out

Pair = tuple[str, str]  # ID set, OOD set; CLEAN of a clean stream
Groups = Mapping[str, Sequence[ResultRow]]  # rows by what a legend calls them
BySeed = Mapping[int, float]


def lines_of(
    tables: Sequence[ResultTable], without: Collection[str] = ()
) -> tuple[Groups, list[str]]:
    """At most MOST_LINES groups of rows, and a note on those that are left out."""
    every = by_label(tables, without)
    if len(every) <= MOST_LINES:
        return every, []
    groups = by_label([replace(t, rows=tuple(usual_rows(t.rows))) for t in tables], without)
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
    of_streams = [name for name in frame.OF_STREAM if name in frame.differing(rows)]
    of_methods = frame.varying(rows)
    groups: dict[str, list[ResultRow]] = {}
    for row in rows:
        names = dict.fromkeys([*of_streams, *of_methods[row.method]])
        whole = [name for name in names if name != "limit" or row.settings[name] is not None]
        groups.setdefault(frame.label(row, whole, [*without]), []).append(row)
    return groups


def figure_of(panels: Sequence[Panel], notes: Sequence[str] = ()) -> Figure:
    """A figure of the panels that have a point, of the first where there are too many."""
    having = [panel for panel in panels if any(_has_points(one) for one in panel.series)]
    left = having[MOST_PANELS:]
    said = f"{len(left)} of {len(having)} panels are left out: --id, --ood and --method choose"
    return Figure(tuple(having[:MOST_PANELS]), (*notes, *[said] * bool(left)))


def _has_points(series: Series) -> bool:
    if series.look == "threshold":
        return False
    return any(series.y) if series.shape == STAIRS else any(y == y for y in series.y)


def series_of(name: str, values: Mapping[Any, Value], metric: Metric) -> Series:
    """A line through means, shares in percent."""
    times = 100 if metric.is_percent else 1
    stds = tuple(times * value.std for value in values.values())
    y = tuple(times * value.mean for value in values.values())
    return Series(name, tuple(values), y, LINE, () if all(map(math.isnan, stds)) else stds)


def axis_name(metric: str) -> str:
    """A metric with its unit, as the name of an axis."""
    return METRICS[metric].head + " (%)" * METRICS[metric].is_percent


def pairs_of(tables: Sequence[ResultTable]) -> list[Pair]:
    """All ID-OOD pairs; clean streams only if there are no pairs."""
    every = [(table.id_set, name) for table in tables for name in table.columns]
    noisy = dict.fromkeys(pair for pair in every if pair[1] != CLEAN)
    return list(noisy or dict.fromkeys(every))


def titles_of(pairs: Sequence[Pair]) -> dict[Pair, str]:
    """Titles for the pairs of one figure: the sets in which they differ, both of a single pair."""
    varies = [len({*names}) > 1 or len(pairs) == 1 for names in zip(*pairs, strict=True)]
    return {
        pair: " / ".join(name for name, told in zip(pair, varies, strict=True) if told and name)
        for pair in pairs
    }


def titled(by_pair: Mapping[Pair, BySeed]) -> dict[str, BySeed]:
    """Values by the OOD set, or by the pair where there are several ID sets."""
    several = len({id_set for id_set, _ in by_pair}) > 1
    return {" / ".join(pair) if several else pair[1]: of for pair, of in by_pair.items()}


def rows_on(rows: Sequence[ResultRow], pair: Pair) -> list[ResultRow]:
    """The rows that have runs on a pair."""
    return [row for row in rows if row.stream.id_set == pair[0] and row.on(pair[1])]


def seeds_of(rows: Sequence[ResultRow], pair: Pair, metric: str) -> dict[int, float]:
    """A metric on a pair, by seed."""
    on_pair = (row.by_seed(pair[1], metric) for row in rows_on(rows, pair))
    return {seed: value for values in on_pair for seed, value in values.items()}


def value_over(rows: Sequence[ResultRow], pairs: Sequence[Pair], metric: str) -> Value:
    """The average of a metric over some pairs, by the rules of the frame."""
    return average(titled({pair: seeds_of(rows, pair, metric) for pair in pairs}))
