"""How the points of a series are drawn on a pair of axes."""

from typing import TYPE_CHECKING, Any, NamedTuple

from zsntta_cli.report.plots.figure import (
    BARS,
    HISTOGRAM,
    LEVEL,
    LINE,
    MEAN_RANK,
    POINTS,
    RANKS,
    UPRIGHT,
    Series,
)
from zsntta_cli.report.plots.looks import BLACK, DASHED, DOTTED, SOLID, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALL = 6  # points, of the heights over bars
MEAN, PUBLISHED = "mean", "published"  # in a legend
_FEW_POINTS = 12  # of a line: each has its marker
_FEW_BARS = 6  # of a group: each has its height written over it


class Place(NamedTuple):
    """Where a series stands among those that stand side by side."""

    at: int
    of: int
    halved: bool  # there are measured and published ones


def _line(axes: "Axes", series: Series, look: Look, place: Place) -> None:
    colour, marker, dashes = look
    every = max(1, len(series.x) // 6) if len(series.x) > _FEW_POINTS else 1
    axes.plot(
        series.x, series.y, color=colour, marker=marker, linestyle=dashes, markevery=every,
        label=labelled(series, place.halved),
    )  # fmt: skip
    if series.std:
        pairs = list(zip(series.y, series.std, strict=True))
        low, high = (
            [y - s for y, s in pairs if y is not None],
            [y + s for y, s in pairs if y is not None],
        )
        axes.fill_between(series.x, low, high, color=colour, alpha=0.15, linewidth=0)


def _histogram(axes: "Axes", series: Series, look: Look, place: Place) -> None:
    colour, _, dashes = look
    half = (series.x[1] - series.x[0]) / 2
    edges = [series.x[0] - half, *(x + half for x in series.x)]
    filled = dashes == SOLID
    axes.stairs(series.y, edges, fill=True, color=colour, alpha=0.35 if filled else 0.15)
    axes.stairs(
        series.y,
        edges,
        color=colour,
        linestyle=dashes,
        linewidth=0.9,
        label=labelled(series, place.halved),
    )


def _points(axes: "Axes", series: Series, look: Look, place: Place) -> None:
    colour, marker, _ = look
    axes.plot(
        series.x, series.y, color=colour, marker=marker, linestyle="none", markersize=2.2,
        markeredgewidth=0.6, clip_on=False, label=labelled(series, place.halved),
    )  # fmt: skip


def _face(series: Series, look: Look) -> dict[str, Any]:
    """Published numbers are hollow."""
    if series.is_published:
        return {"facecolor": "none", "edgecolor": look[0], "linewidth": 0.8}
    return {"facecolor": look[0], "edgecolor": "white", "linewidth": 0.4}


def _bars(axes: "Axes", series: Series, look: Look, place: Place) -> None:
    """A bar in each group, with its height written over it; published ones right of measured."""
    room = 0.88 / place.of
    width = room / 2 if place.halved else room
    left = place.at * room - 0.44 + (width if place.halved and series.is_published else 0)
    where = [i + left + width / 2 for i in range(len(series.x))]
    bars = axes.bar(
        where, series.y, width, label=labelled(series, place.halved), **_face(series, look)
    )
    if place.of <= _FEW_BARS and not place.halved:
        axes.margins(y=0.25)
        axes.bar_label(
            bars, fmt="%.1f", rotation=90, fontsize=SMALL, padding=2, zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
        )  # fmt: skip
    axes.set_xticks(range(len(series.x)), series.x)
    axes.tick_params("x", length=0)
    axes.set_yticks(range(0, 101, 20))


def _ranks(axes: "Axes", series: Series, look: Look, place: Place) -> None:
    """A bar a rank, as wide as its share: to both sides, or measured left and published right."""
    there = [(x, 0.46 * y / 100) for x, y in zip(series.x, series.y, strict=True) if y]
    at, half = [x for x, _ in there], [h for _, h in there]
    left = [place.at - (0 if place.halved and series.is_published else h) for h in half]
    width = [h if place.halved else 2 * h for h in half]
    axes.barh(at, width, 0.9, left, **_face(series, look), label=_hollow(series, place))


def _hollow(series: Series, place: Place) -> str:
    """Methods are named below their ranks: a legend tells published ones alone."""
    return PUBLISHED if series.is_published and place.halved else "_"


def _mean_rank(axes: "Axes", series: Series, _look: Look, place: Place) -> None:
    side = (0.2 if series.is_published else -0.2) if place.halved else 0
    axes.plot(
        place.at + side, series.x[0], marker="D", markersize=3.5, markeredgecolor=BLACK,
        markerfacecolor="white", markeredgewidth=0.7, linestyle="none", label=MEAN,
    )  # fmt: skip


def _level(axes: "Axes", series: Series, look: Look, place: Place) -> None:
    """Dashed; dotted beside a measured one, where it is published."""
    dashes = DOTTED if series.is_published else DASHED
    for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
        if x is None:
            axes.axhline(y, color=look[0], linestyle=dashes, linewidth=0.9)
        else:
            axes.hlines(y, i - 0.47, i + 0.47, look[0], dashes, linewidth=0.8)
    colour = look[0] if series.look == series.name else BLACK  # in a legend, of all colours
    axes.plot(
        [], [], color=colour, linestyle=dashes, linewidth=0.9, label=labelled(series, place.halved)
    )


def _upright(axes: "Axes", series: Series, look: Look, place: Place) -> None:
    axes.axvline(
        series.x[0],
        color=look[0],
        linestyle=look[2],
        linewidth=1,
        label=labelled(series, place.halved),
    )


def labelled(series: Series, halved: bool) -> str:
    """What the legend calls a series: hollow bars beside measured ones have one name for all."""
    if not (halved and series.is_published):
        return series.name
    return f"{series.name}, published" if series.mark == LEVEL else PUBLISHED


DRAWINGS = {
    LINE: _line,
    HISTOGRAM: _histogram,
    POINTS: _points,
    BARS: _bars,
    RANKS: _ranks,
    MEAN_RANK: _mean_rank,
    LEVEL: _level,
    UPRIGHT: _upright,
}
