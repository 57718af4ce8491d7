"""Draw figures with matplotlib: the only module that imports it.

The same figure gives the same bytes: it uses no clock, no random names, no settings of the user's,
and one backend for each format. Colours are Okabe and Ito's, which colour-blind readers can
distinguish; markers and dashes say the same for black-and-white prints.
"""

import io
import math
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from zsntta_cli.errors import printable, short
from zsntta_cli.report.figure import POINTS, STAIRS, Figure, Panel, Series

COLUMN, PAGE = 3.3, 6.9  # inches: a column and the width of a paper's page
_HEIGHT, _LEGEND_ROW = 1.6, 0.15  # inches of a row of panels, and of the legend
_LETTERS, _LONGEST = 15, 80  # to an inch; of a title
_FEW_POINTS = 12  # of a line: each has its marker

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize", "figure.labelsize"), 8),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 7),
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
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

Look = tuple[str, str, Any]  # colour, marker, dashes
_BLACK, _ORANGE, _SKY, _GREEN = "#000000", "#e69f00", "#56b4e9", "#009e73"
_BLUE, _RED, _PURPLE, _GREY = "#0072b2", "#d55e00", "#cc79a7", "#777777"
_SOLID, _DASHED, _DOTTED, _MIXED = "-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5))
# What has a look of its own in all figures; others take those that are left, in turn.
_LOOKS: dict[str, Look] = {
    "ID": (_BLUE, "o", _SOLID),
    "OOD": (_RED, "x", _DASHED),
    "threshold": (_BLACK, "", _DOTTED),
    "Acc_S": (_BLUE, "o", _SOLID),
    "Acc_N": (_ORANGE, "s", _SOLID),
    "Acc_H": (_BLACK, "D", _SOLID),
    "zs-clip": (_BLACK, "o", _SOLID),
    "adand": (_RED, "s", _SOLID),
    "cull": (_BLUE, "D", _DASHED),
    "tent": (_ORANGE, "^", _MIXED),
    "sotta": (_GREEN, "v", _DASHED),
    "tpt": (_PURPLE, "P", _DOTTED),
    "tda": (_SKY, "X", _MIXED),
}
_OTHERS: list[Look] = [
    (_SKY, "<", _DASHED), (_GREEN, ">", _MIXED), (_PURPLE, "h", _SOLID), (_ORANGE, "p", _DOTTED),
    (_BLUE, "*", _MIXED), (_RED, "d", _DOTTED), (_GREY, "H", _SOLID), (_BLACK, "+", _DASHED),
]  # fmt: skip


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The look of each name: its own, that of its method, or one with a free colour."""
    looks: dict[str, Look] = {}
    keys = list(dict.fromkeys(names))
    for key in keys:
        look = _LOOKS.get(key.partition(" (")[0])  # "adand (batch size 8)"
        if look and look not in looks.values():
            looks[key] = look
    for key in (key for key in keys if key not in looks):
        used = {look[0] for look in looks.values()}
        free = [look for look in _OTHERS if look not in looks.values()] or _OTHERS
        looks[key] = next((look for look in free if look[0] not in used), free[0])
    return looks


def drawn(figure: Figure, form: str, width: float = COLUMN, has_outlines: bool = True) -> bytes:
    """The bytes of a figure's file; `form` is pdf, svg or png, `width` in inches.

    An SVG has the outlines of its letters or, for a page, letters in the font of its reader.
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        matplotlib.rcParams["svg.fonttype"] = "path" if has_outlines else "none"
        content = io.BytesIO()
        canvas = _canvas(figure.panels, width)
        canvas.savefig(content, format=form, metadata=_METADATA[form], dpi=300)
    return content.getvalue()


def _canvas(panels: Sequence[Panel], width: float) -> Canvas:
    """Draw all panels on their axes, with one legend above them."""
    columns = min(len(panels), 2 if width < 2 * COLUMN or len(panels) == 4 else 3)
    rows = math.ceil(len(panels) / columns)
    canvas = Canvas(figsize=(width, _HEIGHT * rows + 0.5), layout="constrained")
    every = [series for panel in panels for series in panel.series]
    names = {(printable(panel.x), printable(panel.y)) for panel in panels}
    share = len(names) == 1 and all(one.shape != STAIRS for one in every)  # panels are compared
    grid = canvas.subplots(rows, columns, squeeze=False, sharex=share, sharey=share)
    looks = looks_of(one.look or one.name for one in every)
    handles: dict[str, Any] = {}  # of the legend, by the name of a series
    for axes, panel in zip(grid.flat, panels, strict=False):
        title = textwrap.wrap(
            short(printable(panel.title), _LONGEST), int(width / columns * _LETTERS)
        )
        axes.set_title("\n".join(title), pad=3)
        if panel.is_log:
            axes.set_yscale("log")
        if all(isinstance(x, int) for one in panel.series for x in one.x):
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for number, series in enumerate(panel.series):
            _draw(
                axes, series, looks[series.look or series.name], (number + 0.5) / len(panel.series)
            )
        if len(names) > 1:
            axes.set_xlabel(printable(panel.x))
            axes.set_ylabel(textwrap.fill(printable(panel.y), _LETTERS))
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    for i, axes in enumerate(list(grid.flat)[len(panels) :], len(panels)):
        axes.set_visible(False)
        grid.flat[i - columns].tick_params(labelbottom=True)  # left to the last row
    for across, upwards in names if len(names) == 1 else ():
        canvas.supxlabel(across)
        canvas.supylabel(upwards)
    letters = max(map(len, handles)) + 6  # of a handle
    beside = max(1, min(len(handles), int(width * _LETTERS / letters)))
    more_rows = math.ceil(len(handles) / beside) - 1
    canvas.set_figheight(canvas.get_figheight() + more_rows * _LEGEND_ROW)
    canvas.legend(handles.values(), handles, loc="outside upper center", ncols=beside)
    return canvas


def _draw(axes: Axes, series: Series, look: Look, place: float) -> None:
    """Draw a series in its shape; over named groups it has its place in [0, 1] in each."""
    (colour, marker, dashes), x, y, name = look, series.x, series.y, printable(series.name)
    if series.shape == STAIRS:
        half = (x[1] - x[0]) / 2
        edges = [x[0] - half, *(middle + half for middle in x)]
        axes.stairs(y, edges, fill=True, color=colour, alpha=0.25)
        axes.stairs(y, edges, color=colour, linestyle=dashes, label=name)
    elif series.shape == POINTS:
        if x and isinstance(x[0], str):
            axes.set_xticks(range(len(x)), map(printable, x))
            axes.set_xlim(-0.5, len(x) - 0.5)
            x = tuple(i + 0.8 * (place - 0.5) for i in range(len(x)))
        axes.errorbar(
            x, y, yerr=series.std or None, fmt=marker, color=colour, capsize=2, elinewidth=0.9,
            markersize=3, label=name, markerfacecolor="none" if series.is_published else colour,
        )  # fmt: skip
    else:
        every = max(1, len(x) // 6) if len(x) > _FEW_POINTS else 1
        if series.is_published:
            marker, dashes = "", _DOTTED
        axes.plot(x, y, color=colour, marker=marker, linestyle=dashes, markevery=every, label=name)
        if series.std:
            both = list(zip(y, series.std, strict=True))
            low, high = [y - std for y, std in both], [y + std for y, std in both]
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
