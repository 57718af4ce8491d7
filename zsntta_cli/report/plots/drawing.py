"""Figures drawn by matplotlib: the only module that imports it.

The same figure gives the same bytes: no clock, no random names, no settings of the user's, and one
backend a format.
"""

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from zsntta_cli.errors import short
from zsntta_cli.report.plots.figure import BARS, LEVEL, RANKS, Figure, Panel
from zsntta_cli.report.plots.looks import Look, looks_of
from zsntta_cli.report.plots.marks import DRAWINGS, MEAN, Place, labelled

COLUMN = 3.25  # inches: a column of a paper
_FONT = 8  # points
_HEIGHT = 1.9  # inches of a row of panels …
_LOW, _LOWEST = 1.4, 1.1  # … where there are several, and with one panel each
_MARGIN = 0.45  # of the legend and the names of axes
_LEGEND_ROW = 0.15
_WIDEST_ROW = 3
_DPI = 300
_LONGEST, _LETTERS_OF_A_TITLE = 80, 15  # letters of a title: in all, and to an inch
_LETTERS_AN_INCH, _LETTERS_OF_A_HANDLE = 17, 6

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


def drawn(figure: Figure, form: str, width: float = COLUMN) -> bytes:
    """A figure as a file's bytes; `form` is pdf, svg or png, `width` in inches."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        content = io.BytesIO()
        _canvas(figure, width).savefig(content, format=form, metadata=_METADATA[form], dpi=_DPI)
    return content.getvalue()


def _canvas(figure: Figure, width: float) -> Canvas:
    """All panels on their axes, with one legend above them."""
    count = len(figure.panels)
    columns = _columns(count, width)
    rows = math.ceil(count / columns)
    height = (_HEIGHT if rows == 1 else _LOW if columns > 1 else _LOWEST) * rows + _MARGIN
    canvas = Canvas(figsize=(width, height), layout="constrained")
    grid = canvas.subplots(rows, columns, squeeze=False, **_shared(figure))
    flat = list(grid.flat)
    looks = looks_of(figure)
    for axes, panel in zip(flat, figure.panels, strict=False):
        _draw(axes, panel, looks, width / columns)
    for axes, panel in zip(flat, figure.panels, strict=False):
        _scale(axes, panel, alone=columns == 1)
    for i, axes in enumerate(flat[count:], count):
        axes.set_visible(False)
        flat[i - columns].tick_params(labelbottom=True)  # which shared axes leave to the last row
    _name_axes(canvas, flat, figure)
    _legend(canvas, flat[:count], figure, width)
    return canvas


def _columns(panels: int, width: float) -> int:
    """Panels in a row."""
    if width >= 2 * COLUMN:
        return 2 if panels == 4 else min(panels, _WIDEST_ROW)
    return 1 if panels in (1, 3) else 2


def _shared(figure: Figure) -> Any:
    """Axes are shared where all panels show the same, so that they can be compared."""
    across = {(panel.x.name, panel.x.low, panel.x.high) for panel in figure.panels}
    up = {(panel.x.name, panel.y.name, panel.y.low, panel.y.high) for panel in figure.panels}
    return {"sharex": len(across) == 1, "sharey": len(up) == 1}


def _draw(axes: Axes, panel: Panel, looks: dict[str, Look], width: float) -> None:
    """A panel's series on its axes, which are `width` inches wide."""
    lines = textwrap.wrap(short(panel.title, _LONGEST), int(width * _LETTERS_OF_A_TITLE))
    axes.set_title("\n".join(lines), pad=3)
    beside = [series for series in panel.series if series.mark in (BARS, RANKS)]
    places = {name: i for i, name in enumerate(dict.fromkeys(series.name for series in beside))}
    halved = len({series.is_published for series in panel.series}) > 1
    for series in panel.series:
        place = Place(places.get(series.name, 0), len(places), halved)
        DRAWINGS[series.mark](axes, series, looks[series.look or series.name], place)
    if any(series.mark == RANKS for series in beside):
        names = [name.replace(", ", "\n") for name in places]
        is_tight = max(map(len, names)) * len(names) > width * _LETTERS_AN_INCH
        turned: Any = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if is_tight else {}
        axes.set_xticks(range(len(names)), names, **turned)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.set_yticks(panel.x.ticks)


def _scale(axes: Axes, panel: Panel, alone: bool) -> None:
    """Limits and ticks, once all panels have their data: what is not set follows from these."""
    if any(series.mark == RANKS for series in panel.series):
        return
    if panel.y.is_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlim(panel.x.low, panel.x.high)
    axes.set_ylim(panel.y.low, panel.y.high)
    if panel.x.ticks:
        axes.set_xticks(panel.x.ticks)
    elif not any(series.mark == BARS for series in panel.series):
        axes.xaxis.set_major_locator(ticker.MaxNLocator(5 if alone else 3))


def _name_axes(canvas: Canvas, flat: Sequence[Axes], figure: Figure) -> None:
    """Names of axes: once for all panels where they are the same."""
    across = [panel.x.name for panel in figure.panels]
    up = [panel.y.name for panel in figure.panels]
    marks = {series.mark for series in figure.panels[0].series}
    if RANKS in marks:
        across, up = [""], across  # ranks go upwards
    elif BARS in marks:
        across = [""]  # groups are named
    for names, of_all, of_one in (
        (across, "supxlabel", "set_xlabel"),
        (up, "supylabel", "set_ylabel"),
    ):
        if len(set(names)) == 1 and len(names) > 1:
            getattr(canvas, of_all)(names[0], fontsize=_FONT)
        else:
            for axes, name in zip(flat, names, strict=False):
                getattr(axes, of_one)(name)


def _legend(canvas: Canvas, all_axes: Sequence[Axes], figure: Figure, width: float) -> None:
    """One legend above all panels."""
    handles: dict[str, Any] = {}
    for axes in all_axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    names = [one for one in _in_order(figure) if one in handles]
    if not names:
        return
    columns = _in_a_row(names, width)
    rows = math.ceil(len(names) / columns)
    canvas.set_figheight(canvas.get_figheight() + (rows - 1) * _LEGEND_ROW)
    canvas.legend(
        [handles[name] for name in names], names, loc="outside upper center", ncols=columns,
        handlelength=2.2, columnspacing=1.2, borderaxespad=0.1,
    )  # fmt: skip


def _in_order(figure: Figure) -> list[str]:
    """What may be in the legend, in the order in which it is drawn; dashed lines last."""
    every = [series for panel in figure.panels for series in panel.series]
    last = sorted(every, key=lambda series: series.mark == LEVEL)
    names = [labelled(series, halved) for halved in (False, True) for series in last]
    return list(dict.fromkeys([*names, MEAN]))


def _in_a_row(names: Sequence[str], width: float) -> int:
    """How many names of a legend there is room for, beside their handles."""
    lengths = [(len(name) + _LETTERS_OF_A_HANDLE) / _LETTERS_AN_INCH for name in names]
    if sum(lengths) <= width:
        return len(names)
    return max(1, min(len(names), int(width / max(lengths))))
