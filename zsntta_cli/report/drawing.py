"""Draw figures with matplotlib: the only module that imports it.

The same figure gives the same bytes: it uses no clock, no random names, no settings of the user's,
and one backend for each format.
"""

import io
import math
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import matplotlib
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.figure import FigureBase

from zsntta_cli.errors import printable, short
from zsntta_cli.report.figure import (
    HISTOGRAM,
    LEVEL,
    LINE,
    MEAN_RANK,
    MEANS,
    POINTS,
    RANKS,
    UPRIGHT,
    Figure,
    Panel,
    Series,
    tick_text,
    with_ends,
)
from zsntta_cli.report.looks import BLACK, DASHED, DOTTED, SOLID, Look, looks_of

COLUMN, PAGE = 3.3, 6.9  # inches: a column and the width of a paper's page
_FONT = 8  # points
_HEIGHT = 1.9  # inches of a row of panels …
_LOW, _LOWEST = 1.4, 1.1  # … where there are several, and with one panel each
_MARGIN = 0.45  # of the legend and the names of axes
_LEGEND_ROW = 0.15
_WIDEST_ROW, _MOST_ROWS = 3, 4  # panels of a file; more are split over several
_DPI = 300
_LONGEST, _LETTERS_OF_A_TITLE = 80, 15  # letters of a title: in all, and to an inch
_LETTERS_AN_INCH, _LETTERS_OF_A_HANDLE = 17, 6
_LETTERS_OF_A_SIDE = 12  # of the name of an upright axis, where there is one a panel
_FEW_POINTS = 12  # of a line: each has its marker

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": _FONT,
    "axes.titlesize": _FONT,
    "axes.labelsize": _FONT,
    "xtick.labelsize": _FONT - 1,
    "ytick.labelsize": _FONT - 1,
    "legend.fontsize": _FONT - 1,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,  # letters that can be searched and edited
    "svg.hashsalt": "zsntta",
    "text.parse_math": False,  # names come from anywhere
}
_METADATA: dict[str, dict[str, None]] = {  # without clocks and versions
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def drawn(
    figure: Figure, form: str, width: float = COLUMN, looks: Mapping[str, Look] | None = None
) -> bytes:
    """The bytes of a figure's file; `form` is pdf, svg or png, `width` in inches.

    A part of a figure gets the looks of the whole.
    """
    with _style():
        canvas = _canvas(_printable(figure), width, looks or series_looks(figure))
        content = io.BytesIO()
        canvas.savefig(content, format=form, metadata=_METADATA[form], dpi=_DPI)
    return content.getvalue()


def split(figure: Figure, width: float) -> list[Figure]:
    """The parts of a figure that fit in a file each, about equally large, on the same scales."""
    columns = _columns(len(figure.panels), width)
    count = math.ceil(len(figure.panels) / (columns * _MOST_ROWS))
    if count < 2:
        return [figure]
    size = math.ceil(len(figure.panels) / count / columns) * columns
    panels = with_ends(figure.panels)
    return [
        replace(figure, panels=tuple(panels[start : start + size]))
        for start in range(0, len(panels), size)
    ]


def series_looks(figure: Figure) -> dict[str, Look]:
    """The look of each series of a figure."""
    return looks_of(s.look or s.name for panel in figure.panels for s in panel.series)


@contextmanager
def _style() -> Iterator[None]:
    """Draw with our own settings and with none of the user's."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _printable(figure: Figure) -> Figure:
    """A figure without characters that cannot be drawn: half of one raises an error in the font."""
    return replace(figure, panels=tuple(map(_printable_panel, figure.panels)))


def _printable_panel(panel: Panel) -> Panel:
    x, y = (replace(axis, name=printable(axis.name)) for axis in (panel.x, panel.y))
    series = tuple(
        replace(
            one,
            name=printable(one.name),
            look=one.look or one.name,
            x=tuple(map(_printable_place, one.x)),
        )
        for one in panel.series
    )
    return replace(panel, title=printable(panel.title), x=x, y=y, series=series)


def _printable_place(place: Any) -> Any:
    """A place on an axis: a number, or the name of a group."""
    return printable(place) if isinstance(place, str) else place


def _canvas(figure: Figure, width: float, looks: Mapping[str, Look]) -> Canvas:
    """Draw all panels on their axes, with one legend above them."""
    panels = with_ends(figure.panels)
    columns = _columns(len(panels), width)
    rows = math.ceil(len(panels) / columns)
    height = (_HEIGHT if rows == 1 else _LOW if columns > 1 else _LOWEST) * rows + _MARGIN
    canvas = Canvas(figsize=(width, height), layout="constrained")
    grid = canvas.subplots(rows, columns, squeeze=False, **_shared(panels))
    flat = list(grid.flat)
    for axes, panel in zip(flat, panels, strict=False):
        _draw(axes, panel, looks, width / columns)
    for axes, panel in zip(flat, panels, strict=False):
        _scale(axes, panel, alone=columns == 1)
    for i, axes in enumerate(flat[len(panels) :], len(panels)):
        axes.set_visible(False)
        flat[i - columns].tick_params(labelbottom=True)  # which shared axes leave to the last row
    _name_axes(canvas, flat, panels, columns)
    _legend(canvas, flat[: len(panels)], panels, width)
    return canvas


def _columns(panels: int, width: float) -> int:
    """The number of panels in a row."""
    if width >= 2 * COLUMN:
        return 2 if panels == 4 else min(panels, _WIDEST_ROW)
    return 1 if panels in (1, 3) else 2


def _shared(panels: Sequence[Panel]) -> Any:
    """Which axes are shared: those that are equal in all panels, to make them comparable."""
    xs, ys = {panel.x for panel in panels}, {panel.y for panel in panels}
    return {"sharex": len(xs) == 1, "sharey": len(xs) == len(ys) == 1}


def _has(panel: Panel, mark: str) -> bool:
    return any(series.mark == mark for series in panel.series)


def _draw(axes: Axes, panel: Panel, looks: Mapping[str, Look], width: float) -> None:
    """Draw a panel's series on axes that are `width` inches wide."""
    lines = textwrap.wrap(short(panel.title, _LONGEST), int(width * _LETTERS_OF_A_TITLE))
    axes.set_title("\n".join(lines), pad=3)
    beside = [series for series in panel.series if series.mark in (MEANS, RANKS)]
    places = {name: i for i, name in enumerate(dict.fromkeys(series.name for series in beside))}
    halved = len({series.is_published for series in panel.series}) > 1
    for series in panel.series:
        side = (1 if series.is_published else -1) * halved
        place = _Place(places.get(series.name, 0), len(places), side, _labelled(series, halved))
        _MARKS[series.mark](axes, series, looks[series.look or series.name], place)
    if _has(panel, RANKS):
        names = [name.replace(" (", "\n(") for name in places]
        is_tight = max(map(len, names)) * len(names) > width * _LETTERS_AN_INCH
        turned: Any = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if is_tight else {}
        axes.set_xticks(range(len(names)), names, **turned)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.set_yticks(panel.x.ticks)


def _scale(axes: Axes, panel: Panel, alone: bool) -> None:
    """Set the limits, and ticks at round numbers."""
    if _has(panel, RANKS):
        return
    if panel.y.is_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    else:
        ticks = panel.y.round_ticks(6)
        axes.set_yticks(ticks, list(map(tick_text, ticks)))
        axes.set_ylim(panel.y.low, panel.y.high)
    if not _has(panel, MEANS):
        ticks = panel.x.round_ticks(5 if alone else 3)
        axes.set_xticks(ticks, list(map(tick_text, ticks)))
        axes.set_xlim(panel.x.low, panel.x.high)


def _name_axes(
    canvas: FigureBase, flat: Sequence[Axes], panels: Sequence[Panel], columns: int = 1
) -> None:
    """Name the axes, once for all panels if the names are the same."""
    across = [panel.x.name for panel in panels]
    up = [panel.y.name for panel in panels]
    if _has(panels[0], RANKS):
        across, up = up, across  # ranks go upwards
    elif _has(panels[0], MEANS):
        across = [""]  # groups are named
    for names, of_all, of_one in (
        (across, "supxlabel", "set_xlabel"),
        (up, "supylabel", "set_ylabel"),
    ):
        if len(set(names)) == 1 and len(names) > 1:
            getattr(canvas, of_all)(names[0], fontsize=_FONT)
        else:
            is_side = of_one == "set_ylabel"
            wraps = is_side and len(panels) > 1  # or it runs into the next panel's
            for i, (axes, name) in enumerate(zip(flat, names, strict=False)):
                if is_side and i % columns and names[i - 1] == name:
                    continue  # its neighbour on the left says it
                getattr(axes, of_one)(textwrap.fill(name, _LETTERS_OF_A_SIDE) if wraps else name)


def _legend(
    canvas: Canvas, all_axes: Sequence[Axes], panels: Sequence[Panel], width: float
) -> None:
    """Draw one legend above all panels."""
    handles: dict[str, Any] = {}
    for axes in all_axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    names = [name for name in _in_order(panels) if name in handles]
    if not names:
        return
    columns = _in_a_row(names, width)
    rows = math.ceil(len(names) / columns)
    canvas.set_figheight(canvas.get_figheight() + (rows - 1) * _LEGEND_ROW)
    canvas.legend(
        [handles[name] for name in names], names, loc="outside upper center", ncols=columns,
        handlelength=2.2, columnspacing=1.2, borderaxespad=0.1,
    )  # fmt: skip


def _in_order(panels: Sequence[Panel]) -> list[str]:
    """The names that the legend may have, in the order of drawing; dashed lines come last."""
    every = [series for panel in panels for series in panel.series]
    in_order = sorted(every, key=lambda series: series.mark == LEVEL)
    names = [_labelled(series, halved) for halved in (False, True) for series in in_order]
    return list(dict.fromkeys([*names, _MEAN]))


def _in_a_row(names: Sequence[str], width: float) -> int:
    """How many names with their handles fit in a row of the legend."""
    lengths = [(len(name) + _LETTERS_OF_A_HANDLE) / _LETTERS_AN_INCH for name in names]
    if sum(lengths) <= width:
        return len(names)
    return max(1, min(len(names), int(width / max(lengths))))


# Marks: how the points of a series are drawn on a pair of axes.

_MEAN, _PUBLISHED = "mean", "published"  # in a legend


class _Place(NamedTuple):
    """The place of a series among those that are side by side."""

    at: int
    of: int
    side: int  # -1 of measured and 1 of published ones, 0 where all are of one kind
    label: str  # in the legend


def _line(axes: Axes, series: Series, look: Look, place: _Place) -> None:
    colour, marker, dashes = look
    every = max(1, len(series.x) // 6) if len(series.x) > _FEW_POINTS else 1
    axes.plot(
        series.x, series.y, color=colour, marker=marker, linestyle=dashes, markevery=every,
        label=place.label, clip_on=False,
    )  # fmt: skip
    if series.std:
        both = list(zip(series.y, series.std, strict=True))
        low, high = [y - std for y, std in both], [y + std for y, std in both]
        axes.fill_between(series.x, low, high, color=colour, alpha=0.15, linewidth=0)


def _histogram(axes: Axes, series: Series, look: Look, place: _Place) -> None:
    colour, _, dashes = look
    half = (series.x[1] - series.x[0]) / 2
    edges = [series.x[0] - half, *(x + half for x in series.x)]
    alpha = 0.35 if dashes == SOLID else 0.15
    axes.stairs(series.y, edges, fill=True, color=colour, alpha=alpha)
    axes.stairs(
        series.y, edges, color=colour, linestyle=dashes, linewidth=0.9,
        label=place.label,
    )  # fmt: skip


def _points(axes: Axes, series: Series, look: Look, place: _Place) -> None:
    colour, marker, _ = look
    axes.plot(
        series.x, series.y, color=colour, marker=marker, linestyle="none", markersize=2.2,
        markeredgewidth=0.6, clip_on=False, label=place.label,
    )  # fmt: skip


def _means(axes: Axes, series: Series, look: Look, place: _Place) -> None:
    """Draw a mean ± its deviation in each group; published ones are hollow and further right."""
    colour, marker, _ = look
    room = 0.84 / place.of
    beside = 0.2 * place.side * room
    at = [i - 0.42 + (place.at + 0.5) * room + beside for i in range(len(series.x))]
    axes.errorbar(
        at, series.y, yerr=series.std or None, fmt=marker, color=colour, capsize=2, elinewidth=0.9,
        markerfacecolor="none" if series.is_published else colour, markersize=4,
        label=place.label,
    )  # fmt: skip
    axes.set_xticks(range(len(series.x)), series.x)
    axes.set_xlim(-0.5, len(series.x) - 0.5)
    axes.tick_params("x", length=0)


def _ranks(axes: Axes, series: Series, look: Look, place: _Place) -> None:
    """Draw a box for each rank, as wide as its share; published ones right of measured ones."""
    boxes = [(x, 0.46 * y / 100) for x, y in zip(series.x, series.y, strict=True) if y]
    at, half = [x for x, _ in boxes], [h for _, h in boxes]
    starts = [place.at - (0 if place.side > 0 else h) for h in half]
    width = [h if place.side else 2 * h for h in half]
    face: dict[str, Any] = {"facecolor": look[0], "edgecolor": "white", "linewidth": 0.4}
    if series.is_published:
        face = {"facecolor": "none", "edgecolor": look[0], "linewidth": 0.8}
    # Methods are named below their ranks: a legend tells published ones alone.
    name = _PUBLISHED if place.side > 0 else "_"
    height = 0.9 if all(x % 1 == 0 for x in series.x) else 0.45  # ties share a rank in between
    axes.barh(at, width, height, starts, **face, label=name)


def _mean_rank(axes: Axes, series: Series, _look: Look, place: _Place) -> None:
    axes.plot(
        place.at + 0.2 * place.side, series.x[0], marker="D", markersize=3.5, markeredgecolor=BLACK,
        markerfacecolor="white", markeredgewidth=0.7, linestyle="none", label=_MEAN,
    )  # fmt: skip


def _level(axes: Axes, series: Series, look: Look, place: _Place) -> None:
    """Draw a dashed level line, or a dotted one for published values."""
    dashes = DOTTED if series.is_published else DASHED
    for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
        if x is None:
            axes.axhline(y, color=look[0], linestyle=dashes, linewidth=0.9)
        else:
            axes.hlines(y, i - 0.47, i + 0.47, look[0], dashes, linewidth=0.8, zorder=1)
    colour = look[0] if series.look == series.name else BLACK  # in a legend, of all colours
    axes.plot([], [], color=colour, linestyle=dashes, linewidth=0.9, label=place.label)


def _upright(axes: Axes, series: Series, look: Look, place: _Place) -> None:
    colour, _, dashes = look
    axes.axvline(series.x[0], color=colour, linestyle=dashes, linewidth=1, label=place.label)


def _labelled(series: Series, halved: bool) -> str:
    """The name of a series in the legend; published points beside measured ones share one name."""
    if not (halved and series.is_published):
        return series.name
    return f"{series.name}, published" if series.mark == LEVEL else _PUBLISHED


_MARKS = {
    LINE: _line,
    HISTOGRAM: _histogram,
    POINTS: _points,
    MEANS: _means,
    RANKS: _ranks,
    MEAN_RANK: _mean_rank,
    LEVEL: _level,
    UPRIGHT: _upright,
}
