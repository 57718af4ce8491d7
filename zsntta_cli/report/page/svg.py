"""Drawings as inline SVG: what they show is told by marker and dash, not by colour alone.

Colours, dashes and fonts stand in page.css; the numbers of each drawing stand in a table below it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zsntta_cli.report.page.markup import NOTHING, details, number, row, table, text

COLOURS, MARKERS, DASHES = 7, 6, 4  # page.css has so many: 84 looks that differ
_WIDTH, _HEIGHT = 340, 200  # of a drawing, in its own units
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 14, 8, 32  # around what is plotted
_MARKS = 4  # on a long line, or some more

# Shapes of markers around (0, 0), about 8 wide.
SHAPES = (
    '<circle r="3.4"/>',
    '<path d="M-3.2-3.2h6.4v6.4h-6.4z"/>',
    '<path d="M0-4.2 4 3.2H-4z"/>',
    '<path d="M0-4.6 4.6 0 0 4.6-4.6 0z"/>',
    '<path d="M0 4.2 4-3.2H-4z"/>',
    '<path d="M-4-1.2h2.8V-4h2.4v2.8H4v2.4H1.2V4h-2.4V1.2H-4z"/>',
)


@dataclass(frozen=True)
class Line:
    """A curve; a value that is None is a gap."""

    name: str
    look: int  # which colour, marker and dash
    xs: Sequence[float]
    ys: Sequence[float | None]
    dashed: bool = False  # a companion of the line with this look


@dataclass(frozen=True)
class Axis:
    """What an axis says and from where to where it goes."""

    name: str
    low: float
    high: float

    def ticks(self) -> list[float]:
        """Four to six round numbers on it."""
        width = (self.high - self.low) / 5
        size = 10.0 ** math.floor(math.log10(width))
        step = next(size * k for k in (1, 2, 2.5, 5, 10) if size * k >= width * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def symbols() -> str:
    """The markers, once a page, for all drawings and legends."""
    shapes = "".join(
        f'<symbol id="k{i}" overflow="visible">{s}</symbol>' for i, s in enumerate(SHAPES)
    )
    return f'<svg class="symbols" aria-hidden="true" width="0" height="0">{shapes}</svg>\n'


def look(number_: int, dashed: bool = False) -> str:
    """The classes of a look: a colour and a dash; a companion is dotted and thin."""
    return f"c{number_ % COLOURS} {'dots' if dashed else f'd{number_ % DASHES}'}"


def legend(names: Sequence[tuple[str, int, bool]]) -> str:
    """Names with their looks: (name, look, dashed)."""
    items = "".join(
        f'<li><svg class="{look(n, dashed)}" viewBox="0 0 28 10" width="28" height="10" '
        f'aria-hidden="true"><path d="M0 5h28"/>{"" if dashed else _marker(n, 14, 5)}</svg>'
        f"{text(name)}"
        for name, n, dashed in names
    )
    return f'<ul class="key">{items}</ul>\n'


def lines_chart(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    """A figure of curves, with its numbers in a table: a row a place, a column a curve."""
    drawn = "".join(_curve(one, x, y) for one in lines)
    places = sorted({value for one in lines for value in one.xs})
    columns = [dict(zip(one.xs, one.ys, strict=True)) for one in lines]
    rows = [
        row(f'<th scope="row">{_short(place)}', *(number(_shown(c.get(place))) for c in columns))
        for place in places
    ]
    head = row("", *(f'<th scope="col">{text(n)}' for n in [x.name, *(o.name for o in lines)]))
    return _figure(
        title, _frame(x, y) + drawn, table(f"{text(title)}: {text(y.name)}", head, ["".join(rows)])
    )


def histogram(
    title: str, axis: Axis, counts: Mapping[str, Sequence[int]], marks: Mapping[str, float]
) -> str:
    """A figure of shares in equal cells, one outline a kind, with thresholds as upright lines."""
    shares = {name: [n / max(1, sum(some)) for n in some] for name, some in counts.items()}
    top = max(max(some, default=0) for some in shares.values()) or 1
    y = Axis("share", 0, top * 1.05)
    outlines = "".join(_outline(some, axis, y, i) for i, some in enumerate(shares.values()))
    upright = "".join(_upright(value, axis, i) for i, value in enumerate(marks.values()))
    cells = len(next(iter(counts.values())))
    edges = [axis.low + i * (axis.high - axis.low) / cells for i in range(cells)]
    rows = [
        row(f'<th scope="row">{edge:.4g}', *(number(str(some[i])) for some in counts.values()))
        for i, edge in enumerate(edges)
        if any(some[i] for some in counts.values())
    ]
    head = row("", *(f'<th scope="col">{text(n)}' for n in [f"{axis.name} from", *counts]))
    said = "".join(f"<p>{text(name)}: {value:.4g}</p>" for name, value in marks.items())
    caption = f"{text(title)}: samples by {text(axis.name)}, empty cells left out"
    content = table(caption, head, ["".join(rows)]) + said
    return _figure(title, _frame(axis, y, y_ticks=False) + outlines + upright, content)


def _figure(title: str, inner: str, numbers: str) -> str:
    """A drawing with its name, and its numbers below."""
    return (
        f'<figure><figcaption>{text(title)}</figcaption><svg role="img" class="plot" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}"><title>{text(title)}</title>{inner}</svg>'
        f"{details('Numbers', numbers)}</figure>\n"
    )


def _x(value: float, axis: Axis) -> float:
    inner = _WIDTH - _LEFT - _RIGHT
    return _LEFT + inner * (value - axis.low) / (axis.high - axis.low)


def _y(value: float, axis: Axis) -> float:
    inner = _HEIGHT - _TOP - _BOTTOM
    return _HEIGHT - _BOTTOM - inner * (value - axis.low) / (axis.high - axis.low)


def _frame(x: Axis, y: Axis, y_ticks: bool = True) -> str:
    """Grid, ticks and the names of both axes."""
    bottom = _HEIGHT - _BOTTOM
    parts = [f'<path class="grid" d="M{_LEFT} {bottom}H{_WIDTH - _RIGHT}"/>']
    parts += [_tick(_x(tick, x), bottom + 12, _short(tick)) for tick in x.ticks()]
    for tick in y.ticks() if y_ticks else ():
        at = _y(tick, y)
        parts.append(f'<path class="grid" d="M{_LEFT} {at:.0f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 4}" y="{at + 3:.0f}" class="e">{_short(tick)}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 5}" class="m">{text(x.name)}</text>')
    parts.append(
        f'<text transform="translate(10 {(_TOP + bottom) / 2:.0f}) rotate(-90)" class="m">'
        f"{text(y.name)}</text>"
    )
    return "".join(parts)


def _tick(x: float, y: float, words: str) -> str:
    """A number below an axis, which does not leave the drawing."""
    at = min(x, _WIDTH - 3 * len(words))
    return f'<text x="{at:.0f}" y="{y}" class="m">{words}</text>'


def _curve(line: Line, x: Axis, y: Axis) -> str:
    points = [
        None if value is None else (_x(place, x), _y(value, y))
        for place, value in zip(line.xs, line.ys, strict=True)
    ]
    path, is_open = "", False
    for point in points:
        if point is not None:
            path += f"{'L' if is_open else 'M'}{point[0]:.0f} {point[1]:.0f}"
        is_open = point is not None
    there = [point for point in points if point is not None]
    every = -(-len(there) // _MARKS)
    marks = (
        "" if line.dashed else "".join(_marker(line.look, *point) for point in there[:: every or 1])
    )
    return f'<g class="{look(line.look, line.dashed)}"><path d="{path}"/>{marks}</g>'


def _marker(number_: int, x: float, y: float) -> str:
    return f'<use href="#k{number_ % MARKERS}" x="{x:.0f}" y="{y:.0f}"/>'


def _outline(shares: Sequence[float], x: Axis, y: Axis, kind: int) -> str:
    """The steps of a histogram, from the floor to the floor."""
    width, at = (x.high - x.low) / len(shares), _y(0, y)
    path = f"M{_x(x.low, x):.0f} {at:.0f}"
    for i, share in enumerate(shares):
        path += f"V{_y(share, y):.0f}H{_x(x.low + (i + 1) * width, x):.0f}"
    return f'<path class="h{kind}" d="{path}V{at:.0f}z"/>'


def _upright(value: float, x: Axis, kind: int) -> str:
    if not x.low <= value <= x.high:
        return ""
    return f'<path class="t{kind}" d="M{_x(value, x):.0f} {_TOP}V{_HEIGHT - _BOTTOM}"/>'


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _shown(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4g}"
