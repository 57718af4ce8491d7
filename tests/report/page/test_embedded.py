"""Drawings within a page: matplotlib's SVG without styles, under ids of its own, as text."""

import re
from xml.etree import ElementTree

from zsntta_cli.report.figure import HISTOGRAM, UPRIGHT, Axis, Panel, Series
from zsntta_cli.report.forms.embedded import embedded
from zsntta_cli.report.forms.looks import looks_of
from zsntta_cli.report.forms.matplotlib import key_svg, panel_svg

LEFT, RIGHT, TOP, BOTTOM = 46, 318, 8, 166  # of the axes, in the drawing's own units


def drawing(*series, title="t", x="x", prefix="p"):
    panel = Panel(title, Axis(x, 0, 4), Axis("y", 0, 1), series)
    svg = panel_svg(panel, looks_of([one.look or one.name for one in series]))
    return ElementTree.fromstring(embedded(svg, prefix, title))


def test_a_curve_goes_through_its_values_and_has_gaps():
    # Between 46 and 318 across, 166 and 8 up.
    [line] = [
        path.get("d")
        for path in drawing(Series("zs-clip", (0, 1, 2, 3, 4), (0, 1, None, 0.5, 1))).iter("path")
        if path.get("stroke") == "#000000"
    ]
    assert line == "M 46 166 L 114 8 M 250 87 L 318 8"


def test_a_histogram_has_shares_as_steps_and_a_threshold_where_it_is():
    kinds = [
        Series("ID", (1, 3), (0.25, 0.75), HISTOGRAM),
        Series("OOD", (1, 3), (0, 1), HISTOGRAM),
    ]
    cut = Series("threshold (median)", (2,), (None,), UPRIGHT, look="threshold")
    paths = [path.get("d") for path in drawing(*kinds, cut).iter("path")]
    assert "M 46 166 L 46 126.5 L 182 126.5 L 182 47.5 L 318 47.5 L 318 166" in paths
    assert "M 182 166 L 182 8" in paths


def test_it_has_no_style_and_shares_no_id_with_another():
    line = Series("adand", (0, 2, 4), (0.1, 0.5, 0.2), std=(0.1, 0.1, 0.1))
    first, second = drawing(line, prefix="p0"), drawing(line, prefix="p1")
    assert not any(one.get("style") or one.tag == "style" for one in first.iter())
    ids = [{one.get("id") for one in part.iter()} - {None} for part in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    text = ElementTree.tostring(first, "unicode")
    assert {*re.findall(r"#(p0[\w-]*)", text)} == ids[0]


def test_what_a_drawing_says_becomes_text():
    evil = drawing(Series("<b>", (0, 1), (0, 1)), title="<i>\u202e", x="<u>&\u202e")
    text = ElementTree.tostring(evil, "unicode")
    assert not re.search("<[biu]>|\u202e", text)
    assert [one.text for one in evil.iter("title")] == ["<i>\\u202e"]
    assert "&lt;u&gt;&amp;" in text
    assert (evil.get("role"), evil.get("aria-hidden")) == ("img", None)


def test_a_line_of_a_legend_is_not_read_aloud_and_has_its_marker():
    look = looks_of(["ridge"])["ridge"]
    with_marker, without = (embedded(key_svg(look, has), "k") for has in (True, False))
    assert 'aria-hidden="true"' in with_marker
    assert ("<use " in with_marker, "<use " in without) == (True, False)
    assert all(look[0] in key and "stroke-dasharray" in key for key in (with_marker, without))


def test_eighty_names_have_looks_that_differ():
    names = [f"m{i}" for i in range(80)]
    assert len({*looks_of(names).values()}) == 80
