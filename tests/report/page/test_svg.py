"""Drawings: places of ticks, curves and steps by hand."""

import re

import pytest

from zsntta_cli.report.page.svg import Axis, Line, histogram, legend, lines_chart, look


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (83.2, 86.9, [84, 85, 86]),
        (0, 20_000, [0, 5000, 10_000, 15_000, 20_000]),
        (-1.2, 2.5, [-1, 0, 1, 2]),
    ],
)
def test_ticks_are_round_and_on_the_axis(low, high, ticks):
    assert Axis("x", low, high).ticks() == pytest.approx(ticks)


def test_a_curve_goes_through_its_values_and_has_gaps():
    # Drawn between 40 and 326 across, 168 and 8 up.
    line = Line("a", 0, [0, 1, 2, 3], [0.0, 1.0, None, 0.5])
    html = lines_chart("t", Axis("x", 0, 3), Axis("y", 0, 1), [line])
    assert '<g class="c0 d0"><path d="M40 168L135 8M326 88"/>' in html
    assert re.findall(r'<use href="#k0" x="(\d+)" y="(\d+)"/>', html) == [
        ("40", "168"), ("135", "8"), ("326", "88"),
    ]  # fmt: skip
    assert '<th scope="row">2<td>–' in html


def test_a_histogram_has_shares_as_steps_and_thresholds_where_they_are():
    html = histogram("t", Axis("s", 0, 1), {"ID": [1, 3], "OOD": [0, 2]}, {"zero-shot": 0.5})
    # 160 high for 1.05: shares 1/4, 3/4; 0, 1.
    assert '<path class="h0" d="M40 168V130H183V54H326V168z"/>' in html
    assert '<path class="h1" d="M40 168V168H183V16H326V168z"/>' in html
    assert '<path class="t0" d="M183 8V168"/>' in html
    assert "<p>zero-shot: 0.5</p>" in html
    outside = histogram("t", Axis("s", 0, 1), {"ID": [1]}, {"detector": 1.5})
    assert 'class="t0"' not in outside


def test_looks_differ_in_more_than_colour_and_do_not_soon_repeat():
    names = [look(i) + legend([("a", i, False)]).split("#k")[1][0] for i in range(84)]
    assert len(set(names)) == 84
    assert look(0, dashed=True) == "c0 dots"
    for i in range(83):
        assert look(i) != look(i + 1)
