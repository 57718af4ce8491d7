"""A figure as plain values: its drawing and its CSV have the same numbers.

All figures of the program are such values, in `plot`, the paper and the page. Nothing
is computed while a figure is drawn; drawing.py draws it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# The three shapes in which the points of a series are drawn.
LINE = "line"  # x, y and a band of ± std
STAIRS = "stairs"  # x: middles of cells of one width
POINTS = "points"  # with bars of ± std; x: numbers, or names of groups, series side by side

COLUMNS = ("panel", "series", "shape", "x_name", "x", "y_name", "y", "std", "source")


@dataclass(frozen=True)
class Series:
    """Points of one kind."""

    name: str  # in the legend
    x: tuple[Any, ...]  # numbers, or names of groups
    y: tuple[float, ...]
    shape: str = LINE
    std: tuple[float, ...] = ()  # of y, where it is a mean; nan of a single run
    look: str = ""  # whose colour and marker it has; of its name where empty
    is_published: bool = False  # numbers of the paper's, or others to compare with: drawn dotted


@dataclass(frozen=True)
class Panel:
    """One pair of axes with its series."""

    title: str
    x: str  # the names of its axes
    y: str
    series: tuple[Series, ...]
    is_log: bool = False  # upwards


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with notes on what they show and what they leave out."""

    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()  # on what is not in it, without a full stop
    caption: tuple[str, ...] = ()  # sentences on what is

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a reader must know: these sentences are beside the figure, not in the drawing."""
        return (*(f"{note[:1].upper()}{note[1:]}." for note in self.notes), *self.caption)


def point_rows(figure: Figure) -> Iterator[dict[str, Any]]:
    """Every drawn point as a row: numbers with six significant digits, None without a value."""
    for panel in figure.panels:
        for series in panel.series:
            source = "published" if series.is_published else "measured"
            stds = series.std or (None,) * len(series.x)
            for x, y, std in zip(series.x, series.y, stds, strict=True):
                point = panel.title, series.name, series.shape, panel.x, x, panel.y, y, std, source
                yield {
                    name: value if not isinstance(value, float) else
                    None if value != value else f"{value:.6g}"
                    for name, value in zip(COLUMNS, point, strict=True)
                }  # fmt: skip
