"""Draw a critical-difference diagram with matplotlib or as SVG; its panel has all positions.

Names are in rows left and right of one axis of mean ranks; a line leads from each name to its rank.
"""

from html import escape
from typing import Any

from zsntta_cli.errors import printable, short
from zsntta_cli.report.figure import GROUP, NAME_LEFT, NAME_RIGHT, RULER, Panel, Series

ROW = 0.15  # inches of a row of names
_LETTERS = 6.5  # of a name, to an inch of the figure: two names and the axis share its width
_BESIDE = 0.02  # of the axis: between its end and a name

_WIDTH, _LEFT, _RIGHT, _ROW = 520, 175, 345, 15  # of an SVG, in its own units
_LONGEST = 28  # letters of a name in it


def is_diagram(panel: Panel) -> bool:
    """Whether a panel is a critical-difference diagram."""
    return any(series.mark == RULER for series in panel.series)


def rows_of(panel: Panel) -> float:
    """The height of a diagram, in rows of names."""
    assert panel.y.low is not None
    assert panel.y.high is not None
    return panel.y.high - panel.y.low


def draw_on(axes: Any, panel: Panel, width: float) -> None:
    """Draw a diagram on axes that are `width` inches wide including their names."""
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.spines["top"].set(visible=True, position=("data", 0))
    axes.xaxis.set_ticks_position("top")
    axes.set(
        xticks=panel.x.ticks, yticks=[],
        xlim=(panel.x.low, panel.x.high), ylim=(panel.y.low, panel.y.high),
    )  # fmt: skip
    for series in panel.series:
        if series.mark in (NAME_LEFT, NAME_RIGHT):
            _name(axes, series, panel, int(width * _LETTERS))
        else:
            thick = series.mark == GROUP
            axes.plot(
                series.x, series.y, color="black", linewidth=2.6 if thick else 1,
                solid_capstyle="round", marker="" if thick else "|", clip_on=False,
            )  # fmt: skip
            if not thick:
                axes.text(series.x[0], series.y[0] + 0.35, series.name, fontsize="small")


def _name(axes: Any, series: Series, panel: Panel, letters: int) -> None:
    """Draw a name beside the axis, and the line from it to its rank."""
    assert panel.x.low is not None
    assert panel.x.high is not None
    is_left, [rank], [y] = series.mark == NAME_LEFT, series.x, series.y
    room = _BESIDE * (panel.x.high - panel.x.low)
    end = panel.x.low - room if is_left else panel.x.high + room
    axes.plot([rank, rank, end], [0, y, y], color="black", linewidth=0.6, clip_on=False)
    axes.text(
        end - room if is_left else end + room, y, f"{short(series.name, letters)}",
        ha="right" if is_left else "left", va="center", fontsize="small",
    )  # fmt: skip


def draw_diagram(panel: Panel) -> str:
    """A diagram as SVG; the page's style sheet has the colours."""
    assert panel.y.high is not None
    drawn = "".join(_drawn(series, panel) for series in panel.series)
    ticks = "".join(
        f'<path class="t0" d="M{_x(tick, panel)} {_y(0, panel)}v-4"/>'
        f'<text class="m" x="{_x(tick, panel)}" y="{_y(0, panel) - 7}">{tick:g}</text>'
        for tick in panel.x.ticks
    )
    height = round(_ROW * rows_of(panel))
    return (
        f'<svg role="img" class="plot" viewBox="0 0 {_WIDTH} {height}">'
        f"<title>{escape(printable(f'{panel.title}: {panel.x.name}'))}</title>"
        f'<path class="t0" d="M{_LEFT} {_y(0, panel)}H{_RIGHT}"/>{ticks}{drawn}</svg>'
    )


def _drawn(series: Series, panel: Panel) -> str:
    x, y = [_x(value, panel) for value in series.x], _y(series.y[0], panel)
    if series.mark == GROUP:
        return f'<path class="bar" d="M{x[0] - 3} {y}H{x[1] + 3}"/>'
    if series.mark == RULER:
        name = escape(printable(series.name))
        ends = f"M{x[0]} {y - 3}v6m0-3H{x[1]}m0-3v6"
        return f'<path class="t0" d="{ends}"/><text x="{x[0]}" y="{y - 6}">{name}</text>'
    is_left, name = series.mark == NAME_LEFT, escape(printable(short(series.name, _LONGEST)))
    end, at, side = (_LEFT - 6, _LEFT - 9, "e") if is_left else (_RIGHT + 6, _RIGHT + 9, "s")
    return (
        f'<path class="stem" d="M{x[0]} {_y(0, panel)}V{y}H{end}"/>'
        f'<text class="{side}" x="{at}" y="{y + 3}">{name}</text>'
    )


def _x(value: float, panel: Panel) -> int:
    assert panel.x.low is not None
    assert panel.x.high is not None
    share = (value - panel.x.low) / (panel.x.high - panel.x.low)
    return round(_LEFT + (_RIGHT - _LEFT) * share)


def _y(value: float, panel: Panel) -> int:
    assert panel.y.high is not None
    return round(_ROW * (panel.y.high - value))
