"""Axes of figures: ends and ticks."""

import math

import pytest

from zsntta_cli.report.figure import Axis, Panel, Series, with_ends


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
