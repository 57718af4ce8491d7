"""A figure as plain values: its drawing and its CSV have the same numbers.

All figures of the program are such values: those of `plot`, of the paper and of the page. Nothing
is computed while a figure is drawn; forms/matplotlib.py draws it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Protocol

# How the points of a series are drawn.
LINE = "line"  # x, y and a band of ± std
HISTOGRAM = "histogram"  # x: middles of cells of one width
POINTS = "points"
MEANS = "means"  # x: names of groups; a point with a bar of ± std in each, series side by side
RANKS = "ranks"  # x: a rank, upwards, y: the share of pairs that have it; series side by side
MEAN_RANK = "mean-rank"  # x: one of a series
LEVEL = "level"  # a dashed line: at y across all, or over the group of points that is named x
UPRIGHT = "upright"  # a dashed line at x

Places = tuple[Any, ...]  # numbers, names of groups, or None
_ROUND = (1, 2, 2.5, 5, 10)  # a step between ticks is one of these times a power of ten


class Result(Protocol):
    """A result that a point represents."""

    def tidy(self) -> Mapping[str, Any]:
        """The row of the result in the schema of results."""


@dataclass(frozen=True)
class Series:
    """Points of one kind; a point whose x or y is None is not on that axis."""

    name: str  # in the legend
    x: Places
    y: Places
    mark: str = LINE
    std: tuple[float, ...] = ()  # of y, where it is a mean; nan of a single run
    look: str = ""  # whose colour and marker it has; of its name where empty
    is_published: bool = False  # a number of the paper's, drawn hollow or dotted
    results: tuple[Result, ...] = ()  # that the points stand for, if these are results


@dataclass(frozen=True)
class Axis:
    """An axis: its name and its ends."""

    name: str
    low: float | None = None
    high: float | None = None
    is_log: bool = False
    is_count: bool = False  # of whole numbers
    ticks: tuple[float, ...] = ()  # where there are few values

    def round_ticks(self, most: int = 5) -> tuple[float, ...]:
        """About `most` round numbers between the ends, or the ticks that the axis has."""
        if self.ticks:
            return self.ticks
        assert self.low is not None
        assert self.high is not None
        least = (self.high - self.low) / most
        least = max(least, 1) if self.is_count else least
        size = 10.0 ** math.floor(math.log10(least))
        steps = (size * k for k in _ROUND if not self.is_count or size * k % 1 == 0)
        step = next(step for step in steps if step >= least * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return tuple(i * step for i in range(first, last + 1))


@dataclass(frozen=True)
class Panel:
    """One pair of axes with its series."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with notes on what they show and what they leave out."""

    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()  # on what is not in it, without a full stop
    caption: tuple[str, ...] = ()  # sentences on what is

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is to be known of it: none of it is drawn, it stands beside the figure."""
        return (*(f"{note[:1].upper()}{note[1:]}." for note in self.notes), *self.caption)


def tick_text(value: float) -> str:
    """The text of a number on an axis."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def with_ends(panels: Sequence[Panel]) -> list[Panel]:
    """The panels with ends for all linear axes: equal axes get the same ends."""
    xs = _ends(panels, lambda panel: panel.x, lambda series: series.x)
    ys = _ends(panels, lambda panel: panel.y, _heights)
    return [replace(panel, x=x, y=y) for panel, x, y in zip(panels, xs, ys, strict=True)]


def _ends(
    panels: Sequence[Panel],
    axis: Callable[[Panel], Axis],
    values: Callable[[Series], Iterable[Any]],
) -> list[Axis]:
    numbers: dict[Axis, list[float]] = {axis(panel): [] for panel in panels}
    for panel in panels:
        every = (value for series in panel.series for value in values(series))
        numbers[axis(panel)] += [v for v in every if isinstance(v, int | float) and v == v]
    return [_fitted(axis(panel), numbers[axis(panel)]) for panel in panels]


def _heights(series: Series) -> Iterator[Any]:
    yield from series.y
    for y, std in zip(series.y, series.std, strict=bool(series.std)):
        if y is not None:
            yield from (y - std, y + std)


def _fitted(axis: Axis, values: Sequence[float]) -> Axis:
    """An axis on which all values lie, with a small margin."""
    if axis.is_log:
        return axis
    low = min(values, default=0) if axis.low is None else axis.low
    high = max(values, default=1) if axis.high is None else axis.high
    margin = max(0.05 * (high - low), 0.01 * max(abs(high), 1e-9))
    return replace(
        axis,
        low=low - margin if axis.low is None else low,
        high=high + margin if axis.high is None else high,
    )


_PANEL_COLUMNS = ("panel", "series", "mark", "x_name", "x", "y_name", "y", "std")


def point_rows(figure: Figure) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Every drawn point as a row, and the columns: those of results come first."""
    rows = [row for panel in figure.panels for one in panel.series for row in _rows(panel, one)]
    of_results = dict.fromkeys(name for row in rows for name in row if name not in _PANEL_COLUMNS)
    return rows, (*of_results, *_PANEL_COLUMNS)


def _rows(panel: Panel, series: Series) -> Iterator[dict[str, Any]]:
    deviations = series.std or (None,) * len(series.x)
    source = {"source": "published" if series.is_published else "measured"}
    results = (result.tidy() for result in series.results) if series.results else repeat(source)
    for x, y, std, result in zip(series.x, series.y, deviations, results, strict=False):
        point = (panel.title, series.name, series.mark, panel.x.name, x, panel.y.name, y, std)
        yield {**result, **dict(zip(_PANEL_COLUMNS, map(_shown, point), strict=True))}


def _shown(value: float | str | None) -> object:
    """A value in a CSV: six significant digits, None without a value."""
    if value is None or value != value:
        return None
    return f"{value:.6g}" if isinstance(value, float) else value
