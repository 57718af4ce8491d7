"""Panels as SVG: places of ticks, curves, bands and steps by hand."""

import math
import re

import pytest

from zsntta_cli.report.figure import HISTOGRAM, UPRIGHT, Axis, Panel, Series, with_ends
from zsntta_cli.report.forms.svg import draw, legend, look


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (83.2, 86.9, [84, 85, 86]),
        (0, 20_000, [0, 5000, 10_000, 15_000, 20_000]),
        (-1.2, 2.5, [-1, 0, 1, 2]),
        (0, 11, [0, 2.5, 5, 7.5, 10]),
    ],
)
def test_ticks_are_round_and_on_the_axis(low, high, ticks):
    assert Axis("x", low, high).round_ticks() == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("high", "most", "ticks"),
    [
        (4, 3, [0, 2, 4]), (3, 5, [0, 1, 2, 3]), (11, 5, [0, 5, 10]), (2, 5, [0, 1, 2]),
        (100, 4, [0, 25, 50, 75, 100]),
    ],
)  # fmt: skip
def test_ticks_of_counts_are_whole_numbers(high, most, ticks):
    assert list(Axis("step", 0, high, is_count=True).round_ticks(most)) == ticks


def test_an_axis_without_ends_is_as_long_as_its_values_and_their_deviations_need():
    line = Series("a", (0, 10), (20, 40), std=(10, math.nan))
    panel = Panel("t", Axis("x", 0, 10), Axis("y"), (line,))
    [one] = with_ends([panel])
    assert (one.y.low, one.y.high) == pytest.approx((10 - 1.5, 40 + 1.5))
    other = Panel("u", Axis("x", 0, 10), Axis("y"), (Series("a", (0,), (70,)),))
    assert [p.y.high for p in with_ends([panel, other])] == pytest.approx([73, 73])
    apart = Panel("u", Axis("x", 0, 10), Axis("z"), (Series("a", (0,), (70,)),))
    assert [p.y.high for p in with_ends([panel, apart])] == pytest.approx([41.5, 70.7])


def panel(*series):
    return Panel("t", Axis("x", 0, 3), Axis("y", 0, 1), series)


def test_a_curve_goes_through_its_values_and_has_gaps():
    # Drawn between 46 and 326 across, 168 and 8 up.
    line = Series("a", (0, 1, 2, 3), (0.0, 1.0, None, 0.5))
    svg = draw(panel(line), {"a": 0})
    assert '<g class="c0 d0"><path d="M46 168L139 8M326 88"/>' in svg
    assert re.findall(r'<use href="#k0" x="(\d+)" y="(\d+)"/>', svg) == [
        ("46", "168"), ("139", "8"), ("326", "88"),
    ]  # fmt: skip


def test_a_band_goes_along_what_is_a_deviation_above_and_back_below():
    line = Series("a", (0, 1, 3), (0.5, 0.5, 0.5), std=(0.25, math.nan, 0.5))
    svg = draw(panel(line), {"a": 0})
    assert '<path class="band" d="M46 48L326 8L326 168L46 128z"/>' in svg
    assert "band" not in draw(panel(Series("a", (0,), (0.5,), std=(math.nan,))), {"a": 0})


def test_a_histogram_has_shares_as_steps_and_a_threshold_where_it_is():
    kinds = [
        Series("ID", (0.25, 0.75), (25, 75), HISTOGRAM),
        Series("OOD", (0.25, 0.75), (0, 100), HISTOGRAM),
    ]
    cut = Series("threshold", (0.5,), (None,), UPRIGHT)
    axes = Axis("score", 0, 1), Axis("share (%)", 0, 100)
    svg = draw(Panel("t", *axes, (*kinds, cut)), {})
    assert '<path class="h0" d="M46 168V128H186V48H326V168z"/>' in svg
    assert '<path class="h1" d="M46 168V168H186V8H326V168z"/>' in svg
    assert '<path class="t0" d="M186 8V168"/>' in svg
    outside = Series("threshold", (1.5,), (None,), UPRIGHT)
    assert 'class="t0"' not in draw(Panel("t", *axes, (*kinds, outside)), {})


def test_what_a_drawing_says_becomes_text():
    line = Series("<b>", (0, 1), (0, 1))
    evil = Panel("<i>\u202e", Axis("<u>", 0, 1), Axis("<s>", 0, 1), (line,))
    svg = draw(evil, {"<b>": 3}) + legend(["<b>"], {"<b>": 3})
    assert not re.search("<[biu]>|<s>|\u202e", svg)
    assert "&lt;b&gt;" in svg


def test_looks_differ_in_more_than_colour_and_do_not_soon_repeat():
    names = [look(i) + legend(["a"], {"a": i}).split("#k")[1][0] for i in range(84)]
    assert len(set(names)) == 84
    for i in range(83):
        assert look(i) != look(i + 1)
