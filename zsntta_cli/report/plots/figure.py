"""A figure as plain values: what is drawn, and what its CSV holds, are the same numbers.

Nothing is worked out while a figure is drawn: shares, means and ranks are found before, in
distributions.py, streams.py and comparisons.py.
"""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# How the points of a series are drawn.
LINE = "line"  # x, y and a band of ± std
HISTOGRAM = "histogram"  # x: middles of cells of one width
POINTS = "points"
BARS = "bars"  # x: names of groups
RANKS = "ranks"  # x: a rank, upwards, y: the share of pairs that have it; series side by side
MEAN_RANK = "mean-rank"  # x: one of a series
LEVEL = "level"  # a dashed line: at y across all, or over the group of bars that is named x
UPRIGHT = "upright"  # a dashed line at x

Number = float | int
Places = tuple[Any, ...]  # numbers, names of groups, or None
_HEADS = ("panel", "series", "source", "mark", "x_name", "x", "y_name", "y", "std")


@dataclass(frozen=True)
class Series:
    """Points of one kind; an x or y of None has no place on its axis."""

    name: str  # in the legend
    x: Places
    y: Places
    mark: str = LINE
    std: Places = ()  # of y, where it is a mean
    look: str = ""  # whose colour and marker it has; of its name where empty
    is_published: bool = False  # a number of the paper's, drawn hollow or dotted


@dataclass(frozen=True)
class Axis:
    """An axis: what it shows, and how far."""

    name: str
    low: float | None = None
    high: float | None = None
    is_log: bool = False
    ticks: tuple[Number, ...] = ()  # where there are few values


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Figure:
    """Panels side by side, and what a reader must know of what is not in them."""

    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()


def to_csv(figure: Figure) -> str:
    """Every point that is drawn, one a line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADS)
    for panel in figure.panels:
        for series in panel.series:
            writer.writerows(_rows(panel, series))
    return text.getvalue()


def _rows(panel: Panel, series: Series) -> Iterable[tuple[object, ...]]:
    source = "published" if series.is_published else "measured"
    deviations = series.std or (None,) * len(series.x)
    for x, y, std in zip(series.x, series.y, deviations, strict=True):
        yield (
            panel.title, series.name, source, series.mark, panel.x.name, _shown(x), panel.y.name,
            _shown(y), _shown(std),
        )  # fmt: skip


def _shown(value: Number | str | None) -> object:
    """A value of a CSV: six significant digits, nothing for what has none."""
    if value is None or value != value:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value
