"""Figures drawn by matplotlib: the only module that imports it.

The same figure gives the same bytes: no clock, no random names, no settings of the user's, and one
backend a format. Colours are Okabe and Ito's, which colour-blind readers tell apart; markers and
dashes say the same again for who prints in black.
"""

import io
import math
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

import matplotlib
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from zsntta_cli.report.plots.figure import (
    BARS,
    HISTOGRAM,
    LEVEL,
    LINE,
    MARK,
    POINTS,
    RANKS,
    UPRIGHT,
    Axis,
    Figure,
    Panel,
    Series,
)

COLUMN = 3.25  # inches: a column of a paper
_FONT = 8  # points
_HEIGHT = 1.9  # inches of a row of panels …
_LOW = 1.45  # … where there are several
_WIDEST_ROW = 3
_DPI = 300
_FEW_POINTS = 12  # of a line: each has its marker

_BLACK, _ORANGE, _SKY, _GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
_YELLOW, _BLUE, _RED, _PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
Look = tuple[str, str, Any]  # colour, marker, dashes
_SOLID, _DASHED, _DOTTED, _MIXED = "-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5))

# What has a colour of its own in all figures; others take those that are left, in turn.
_LOOKS: dict[str, Look] = {
    "ID": (_BLUE, "o", _SOLID),
    "OOD": (_RED, "x", _DASHED),
    "threshold": (_BLACK, "", _DOTTED),
    "Acc_S": (_BLUE, "o", _SOLID),
    "Acc_N": (_ORANGE, "s", _SOLID),
    "Acc_H": (_BLACK, "D", _SOLID),
    "zs-clip": (_BLACK, "o", _SOLID),
    "adand": (_RED, "s", _SOLID),
    "ridge": (_BLUE, "D", _DASHED),
    "tent": (_ORANGE, "^", _MIXED),
    "sotta": (_GREEN, "v", _DASHED),
    "tpt": (_PURPLE, "P", _DOTTED),
    "tda": (_SKY, "X", _MIXED),
}
_OTHERS: list[Look] = [
    (_SKY, "<", _DASHED), (_GREEN, ">", _MIXED), (_PURPLE, "h", _SOLID), (_ORANGE, "p", _DOTTED),
    (_BLUE, "*", _MIXED), (_RED, "d", _DOTTED), (_YELLOW, "H", _SOLID), (_BLACK, "+", _DASHED),
]  # fmt: skip

_STYLE = {
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
    "axes.unicode_minus": True,
}
_METADATA: dict[str, dict[str, None]] = {  # without clocks and versions
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def drawn(figure: Figure, form: str, width: float = COLUMN) -> bytes:
    """A figure as a file's bytes; `form` is pdf, svg or png, `width` in inches."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        content = io.BytesIO()
        _canvas(figure, width).savefig(content, format=form, metadata=_METADATA[form], dpi=_DPI)
    return content.getvalue()


def _canvas(figure: Figure, width: float) -> Canvas:
    """All panels on their axes, with one legend above them."""
    columns = _columns(len(figure.panels), width)
    rows = math.ceil(len(figure.panels) / columns)
    looks = _looks(figure)
    names = _legend_names(figure)
    height = (_HEIGHT if rows == 1 else _LOW) * rows + 0.2 * math.ceil(len(names) / 3) + 0.25
    canvas = Canvas(figsize=(width, height), layout="constrained")
    grid = canvas.subplots(rows, columns, squeeze=False, **_shared(figure))
    flat = [axes for row in grid for axes in row]
    for axes, panel in zip(flat, figure.panels, strict=False):
        _draw(axes, panel, looks, canvas)
    for axes in flat[len(figure.panels) :]:
        axes.set_visible(False)
    _label(canvas, grid, figure)
    _legend(canvas, flat[: len(figure.panels)], names, width)
    return canvas


def _columns(panels: int, width: float) -> int:
    if panels == 1:
        return 1
    return 2 if width < 2 * COLUMN or panels in (2, 4) else _WIDEST_ROW


def _shared(figure: Figure) -> dict[str, bool]:
    """Axes are shared where all panels show the same, so that they can be compared."""
    return {
        "sharex": len({panel.x for panel in figure.panels}) == 1,
        "sharey": len({panel.y for panel in figure.panels}) == 1,
    }


def _looks(figure: Figure) -> dict[str, Look]:
    """The look of all that has one: its own, or that of its method, or the next that is left."""
    left = cycle(_OTHERS)
    looks: dict[str, Look] = {}
    taken: set[Look] = set()
    for series in (s for panel in figure.panels for s in panel.series):
        key = series.look or series.name
        if key not in looks:
            own = _LOOKS.get(key) or _LOOKS.get(key.partition(",")[0])
            looks[key] = own if own and own not in taken else next(left)
            taken.add(looks[key])
    return looks


def _draw(axes: Axes, panel: Panel, looks: dict[str, Look], canvas: Canvas) -> None:
    """A panel's series on its axes."""
    axes.set_title(panel.title, pad=3)
    _scale(axes, panel)
    groups = {series.name for series in panel.series if series.mark in (BARS, RANKS)}
    places = {name: i for i, name in enumerate(dict.fromkeys(s.name for s in panel.series)) if name in groups}
    sources = {series.is_published for series in panel.series if series.mark in (BARS, RANKS)}
    for series in panel.series:
        look = looks[series.look or series.name]
        place = places.get(series.name, 0), len(places)
        _DRAWINGS[series.mark](axes, series, look, place, len(sources) > 1)
    if any(series.mark == RANKS for series in panel.series):
        axes.set_xticks(range(len(places)), [n.replace(", ", "\n") for n in places])
        if len(places) * _FONT > canvas.get_figwidth() * 12:
            axes.tick_params("x", rotation=30)


def _scale(axes: Axes, panel: Panel) -> None:
    for axis, spec, limit in (
        (axes.xaxis, panel.x, axes.set_xlim),
        (axes.yaxis, panel.y, axes.set_ylim),
    ):
        if spec.is_log:
            axis._set_axes_scale("log")
        if spec.low is not None or spec.high is not None:
            limit(spec.low, spec.high)
        if spec.is_whole:
            axis.set_major_locator(ticker.MaxNLocator(integer=True))


def _line(axes: Axes, series: Series, look: Look, _place: Any, _halved: bool) -> None:
    colour, marker, dashes = look
    every = max(1, len(series.x) // 6) if len(series.x) > _FEW_POINTS else 1
    axes.plot(
        series.x, series.y, color=colour, marker=marker, linestyle=dashes, markevery=every,
        label=series.name, markerfacecolor="white" if series.is_published else colour,
    )  # fmt: skip
    if series.std:
        pairs = list(zip(series.y, series.std, strict=True))
        low, high = [y - s for y, s in pairs if y is not None], [y + s for y, s in pairs if y is not None]
        axes.fill_between(series.x, low, high, color=colour, alpha=0.15, linewidth=0)


def _histogram(axes: Axes, series: Series, look: Look, _place: Any, _halved: bool) -> None:
    colour, _, dashes = look
    half = (series.x[1] - series.x[0]) / 2
    edges = [series.x[0] - half, *(x + half for x in series.x)]
    filled = dashes == _SOLID
    axes.stairs(series.y, edges, fill=True, color=colour, alpha=0.35 if filled else 0.15)
    axes.stairs(
        series.y, edges, color=colour, linestyle=dashes, linewidth=0.9, label=series.name
    )


def _points(axes: Axes, series: Series, look: Look, _place: Any, _halved: bool) -> None:
    colour, marker, _ = look
    axes.plot(
        series.x, series.y, color=colour, marker=marker, linestyle="none", markersize=2.2,
        markeredgewidth=0.6, label=series.name,
    )  # fmt: skip


def _bars(axes: Axes, series: Series, look: Look, place: tuple[int, int], halved: bool) -> None:
    index, count = place
    room = 0.84 / count
    width = room / 2 if halved else room
    left = -0.42 + index * room + (width if halved and series.is_published else 0)
    where = [i + left + width / 2 for i in range(len(series.x))]
    face = {"facecolor": "none", "edgecolor": look[0], "linewidth": 0.8} if series.is_published else {
        "color": look[0], "edgecolor": "white", "linewidth": 0.4}
    axes.bar(where, series.y, width, label=series.name, **face)
    axes.set_xticks(range(len(series.x)), series.x)


def _ranks(axes: Axes, series: Series, look: Look, place: tuple[int, int], halved: bool) -> None:
    """A bar a rank, as wide as its share: to both sides, or measured left and published right."""
    index, _ = place
    half = [0.43 * y / 100 for y in series.y]
    left = [index - (0 if halved and series.is_published else h) for h in half]
    width = [h if halved else 2 * h for h in half]
    face = {"facecolor": "none", "edgecolor": look[0], "linewidth": 0.8} if series.is_published else {
        "color": look[0], "edgecolor": "white", "linewidth": 0.4}
    axes.barh(series.x, width, 0.86, left, **face)


def _mark(axes: Axes, series: Series, look: Look, place: tuple[int, int], halved: bool) -> None:
    side = 0.0 if not halved else 0.2 if series.is_published else -0.2
    axes.plot(
        place[0] + side, series.y[0], marker="D", markersize=3.5, markeredgecolor=_BLACK,
        markerfacecolor="white", markeredgewidth=0.7, linestyle="none",
    )  # fmt: skip


def _level(axes: Axes, series: Series, look: Look, _place: Any, _halved: bool) -> None:
    dashes = _DOTTED if series.is_published else _DASHED
    for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
        if x is None:
            axes.axhline(y, color=look[0], linestyle=dashes, linewidth=0.9)
        else:
            axes.hlines(y, i - 0.46, i + 0.46, look[0], dashes, linewidth=0.8)


def _upright(axes: Axes, series: Series, look: Look, _place: Any, _halved: bool) -> None:
    axes.axvline(series.x[0], color=look[0], linestyle=look[2], linewidth=1, label=series.name)


_DRAWINGS = {
    LINE: _line,
    HISTOGRAM: _histogram,
    POINTS: _points,
    BARS: _bars,
    RANKS: _ranks,
    MARK: _mark,
    LEVEL: _level,
    UPRIGHT: _upright,
}


def _label(canvas: Canvas, grid: Any, figure: Figure) -> None:
    """Names of axes: once for all panels where they are the same."""
    first = figure.panels[0]
    is_one = len(figure.panels) == 1
    for names, all_of, each in (
        ({panel.x.name for panel in figure.panels}, canvas.supxlabel, "set_xlabel"),
        ({panel.y.name for panel in figure.panels}, canvas.supylabel, "set_ylabel"),
    ):
        if len(names) == 1 and not is_one:
            all_of(names.pop(), fontsize=_FONT)
        else:
            for axes, panel in zip([a for row in grid for a in row], figure.panels, strict=False):
                getattr(axes, each)(panel.x.name if each == "set_xlabel" else panel.y.name)
    del first


def _legend_names(figure: Figure) -> list[str]:
    named = (s.name for panel in figure.panels for s in panel.series if s.mark not in (RANKS, MARK, LEVEL))
    return list(dict.fromkeys(named))


def _legend(canvas: Canvas, all_axes: Sequence[Axes], names: Iterable[str], width: float) -> None:
    """One legend above all panels; none where only one thing is drawn."""
    handles: dict[str, Any] = {}
    for axes in all_axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    if len(handles) > 1:
        canvas.legend(
            handles.values(), handles.keys(), loc="outside upper center",
            ncols=min(len(handles), 3 if width < 2 * COLUMN else 6), handlelength=2.2,
            columnspacing=1.2, borderaxespad=0.1,
        )  # fmt: skip
