"""Draw panels of a figure as inline SVG: twenty drawings of a page take 25 kB.

Colours, dashes and fonts come from the page's style sheet, so that a page may be light or dark.
Markers and dashes distinguish lines, not colour alone.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape

from zsntta_cli.errors import printable
from zsntta_cli.report.figure import (
    HISTOGRAM,
    LINE,
    UPRIGHT,
    Axis,
    Panel,
    Series,
    tick_text,
    with_ends,
)

COLOURS, MARKERS, DASHES = 7, 6, 4  # page.css has so many: 84 looks that differ
_WIDTH, _HEIGHT = 340, 200  # of a drawing, in its own units
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 8, 32  # around what is plotted
_MARKS = 4  # on a long line, or some more

# Shapes of markers around (0, 0), about 8 wide.
_SHAPES = (
    '<circle r="3.4"/>',
    '<path d="M-3.2-3.2h6.4v6.4h-6.4z"/>',
    '<path d="M0-4.2 4 3.2H-4z"/>',
    '<path d="M0-4.6 4.6 0 0 4.6-4.6 0z"/>',
    '<path d="M0 4.2 4-3.2H-4z"/>',
    '<path d="M-4-1.2h2.8V-4h2.4v2.8H4v2.4H1.2V4h-2.4V1.2H-4z"/>',
)

Looks = Mapping[str, int]  # by the name of a line: which colour, marker and dash


def symbols() -> str:
    """The markers for all drawings and legends, once per page."""
    shapes = "".join(
        f'<symbol id="k{i}" overflow="visible">{s}</symbol>' for i, s in enumerate(_SHAPES)
    )
    return f'<svg class="symbols" aria-hidden="true" width="0" height="0">{shapes}</svg>\n'


def legend(names: Sequence[str], looks: Looks) -> str:
    """The names of lines with their looks."""
    items = "".join(
        f'<li><svg class="{look(looks[name])}" viewBox="0 0 28 10" width="28" height="10" '
        f'aria-hidden="true"><path d="M0 5h28"/>{_marker(looks[name], 14, 5)}</svg>{_text(name)}'
        for name in names
    )
    return f'<ul class="key">{items}</ul>\n'


def look(number: int) -> str:
    """The classes of a look: a colour and a dash."""
    return f"c{number % COLOURS} d{number % DASHES}"


def draw(panel: Panel, looks: Looks) -> str:
    """Draw a panel of lines, or of a histogram of ID and OOD samples with its threshold."""
    [panel] = with_ends([panel])
    drawn = "".join(_MARKS_DRAWN[one.mark](one, panel.x, panel.y, looks) for one in panel.series)
    return (
        f'<svg role="img" class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f"<title>{_text(panel.title)}</title>{_frame(panel.x, panel.y)}{drawn}</svg>"
    )


def _text(text: str) -> str:
    return escape(printable(text))


def _x(value: float, axis: Axis) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * _share(value, axis)


def _y(value: float, axis: Axis) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * _share(value, axis)


def _share(value: float, axis: Axis) -> float:
    """The position of a value between the ends of an axis, from 0 to 1."""
    assert axis.low is not None
    assert axis.high is not None
    return (value - axis.low) / (axis.high - axis.low)


def _frame(x: Axis, y: Axis) -> str:
    """The grid, the ticks and the names of both axes."""
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = [f'<path class="grid" d="M{_LEFT} {bottom}H{right}"/>']
    for tick in x.round_ticks():
        words = tick_text(tick)
        at = min(_x(tick, x), _WIDTH - 3 * len(words))  # it does not leave the drawing
        parts.append(f'<text x="{at:.0f}" y="{bottom + 12}" class="m">{words}</text>')
    for tick in y.round_ticks():
        at = _y(tick, y)
        parts.append(f'<path class="grid" d="M{_LEFT} {at:.0f}H{right}"/>')
        parts.append(f'<text x="{_LEFT - 4}" y="{at + 3:.0f}" class="e">{tick_text(tick)}</text>')
    across, up = (_LEFT + right) / 2, (_TOP + bottom) / 2
    parts.append(f'<text x="{across:.0f}" y="{_HEIGHT - 5}" class="m">{_text(x.name)}</text>')
    parts.append(
        f'<text transform="translate(10 {up:.0f}) rotate(-90)" class="m">{_text(y.name)}</text>'
    )
    return "".join(parts)


def _line(line: Series, x: Axis, y: Axis, looks: Looks) -> str:
    """A curve with gaps where it has no value, over a band of ± its deviation."""
    number = looks[line.name]
    points = list(zip(line.x, line.y, strict=True))
    path, is_open = "", False
    for place, value in points:
        if value is not None:
            path += f"{'L' if is_open else 'M'}{_point(place, value, x, y)}"
        is_open = value is not None
    present = [(place, value) for place, value in points if value is not None]
    every = -(-len(present) // _MARKS) or 1
    marks = (_marker(number, _x(place, x), _y(value, y)) for place, value in present[::every])
    band = _band(line, x, y)
    return f'<g class="{look(number)}">{band}<path d="{path}"/>{"".join(marks)}</g>'


def _band(line: Series, x: Axis, y: Axis) -> str:
    """The band of ± the standard deviation, where there is one."""
    points = [
        (place, value, std)
        for place, value, std in zip(line.x, line.y, line.std, strict=bool(line.std))
        if value is not None and not math.isnan(std)
    ]
    above = [_point(place, value + std, x, y) for place, value, std in points]
    below = [_point(place, value - std, x, y) for place, value, std in points]
    if above == below:
        return ""
    return f'<path class="band" d="M{"L".join(above + below[::-1])}z"/>'


def _point(place: float, value: float, x: Axis, y: Axis) -> str:
    return f"{_x(place, x):.0f} {_y(value, y):.0f}"


def _marker(number: int, x: float, y: float) -> str:
    return f'<use href="#k{number % MARKERS}" x="{x:.0f}" y="{y:.0f}"/>'


def _histogram(kind: Series, x: Axis, y: Axis, _looks: Looks) -> str:
    """The steps of a histogram, from the floor back to the floor."""
    half = (kind.x[1] - kind.x[0]) / 2
    floor = _y(0, y)
    path = f"M{_x(kind.x[0] - half, x):.0f} {floor:.0f}"
    for middle, share in zip(kind.x, kind.y, strict=True):
        path += f"V{_y(share, y):.0f}H{_x(middle + half, x):.0f}"
    return f'<path class="{"h0" if kind.name == "ID" else "h1"}" d="{path}V{floor:.0f}z"/>'


def _upright(mark: Series, x: Axis, _y_axis: Axis, _looks: Looks) -> str:
    return "".join(
        f'<path class="t0" d="M{_x(value, x):.0f} {_TOP}V{_HEIGHT - _BOTTOM}"/>'
        for value in mark.x
        if 0 <= _share(value, x) <= 1
    )


_MARKS_DRAWN = {LINE: _line, HISTOGRAM: _histogram, UPRIGHT: _upright}
