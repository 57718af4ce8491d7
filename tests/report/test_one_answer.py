"""All views of the same results give one answer, whatever is missing and in whatever order.

A view is read back into {method: text of its average Acc_H} and the methods that it marks: as the
best, and as what cannot be told from it.
"""

import csv
import io
import math
import random
import re
from typing import NamedTuple

import pytest
from grids import Cell, best_averages, expected_averages, partial_grids, run_of, sets_of
from hypothesis import HealthCheck, assume, given, settings
from kept import kept_run

from zsntta_cli.errors import SettingsError
from zsntta_cli.report import figures, table
from zsntta_cli.report.figure import point_rows
from zsntta_cli.report.page.page import page
from zsntta_cli.simulation.metrics import METRICS

many = settings(suppress_health_check=[HealthCheck.too_slow])


class Answer(NamedTuple):
    """What a view says of the averages; None of marks where it has none."""

    texts: dict[str, str]
    best: set[str] | None = None
    close: set[str] | None = None


def answer(averages, best, close):
    """The answer of a view by the text of each method's average and the signs of its marks."""
    texts = {m: re.sub(r"</?[bu]>|[*_]", "", text).strip() for m, text in averages.items()}
    marked = [{m for m, text in averages.items() if sign in text} for sign in (best, close)]
    return Answer(texts, *marked)


def records_of(cells):
    return [run_of(cell) for cell in cells]


def read_markdown(cells):
    lines = table(records_of(cells), form="markdown", columns=["acc_h"]).splitlines()
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in lines if "|" in line][2:]
    return answer({row[0]: row[-1] for row in rows}, "**", "_")


def read_csv(cells):
    texts, text = {}, table(records_of(cells), form="csv", aggregate=True)
    rows = csv.DictReader(io.StringIO(text))
    for row in (row for row in rows if row["aggregate"] == "ood_sets"):
        mean, std = row["acc_h"], row["acc_h_std"]
        spread = f"±{100 * float(std):.2f}" if std not in ("", None) else ""
        is_there = mean not in ("", None)
        texts[row["method"]] = f"{100 * float(mean):.2f}{spread}" if is_there else "-"
        assert row["complete"] == str(is_there)
    return Answer(texts)


def read_page(cells):
    html = page(records_of(cells)).html
    [body] = re.findall(r"<caption>ID: [^<]*</caption>.*?<tbody>(.*?)</tbody>", html, re.DOTALL)[:1]
    rows = [
        re.findall(r"<t[hd][^>]*>([^<]*(?:<[bu]>[^<]*</[bu]>)?)", row) for row in body.split("<tr>")
    ]
    return answer({row[0].strip(): row[3] for row in rows[1:]}, "<b>", "<u>")


VIEWS = (read_markdown, read_csv, read_page)


@pytest.mark.parametrize("read", VIEWS)
@many
@given(cells=partial_grids())
def test_every_view_has_the_averages_of_the_rules(read, cells):
    assume(len(sets_of(cells)) > 1)
    averages, best, close = read(cells)
    assert averages == expected_averages(cells)
    assert best in (None, best_averages(cells))
    assert not close  # of three seeds at most, and without items


CLOSE = [
    Cell(method, name, seed, mean + (seed * step) % 5)
    for method, mean, step in (("zs-clip", 50, 1), ("adand", 60, 3), ("cull", 61, 2))
    for name in ("textures", "glyphs")
    for seed in range(5)
]


@pytest.mark.parametrize("read", VIEWS)
def test_every_view_marks_what_cannot_be_told_from_the_best(read):
    assert read(CLOSE).best in (None, {"cull"})
    assert read(CLOSE).close in (None, {"adand"})


@pytest.mark.parametrize(
    ("form", "sign"),
    [("table", "A value with ~"), ("markdown", "A value in italics")]
    + [(form, "An underlined value") for form in ("latex", "html")],
)
def test_what_the_lighter_mark_means_is_said_where_it_stands(form, sign):
    note = f"{sign} is not distinguishable from the best over seeds (5 % level"
    few = [cell for cell in CLOSE if cell.seed]
    shown, few = (table(records_of(cells), form=form) for cells in (CLOSE, few))
    assert note in shown.replace(r"\%", "%")
    assert "not distinguishable" not in few


@many
@given(cells=partial_grids())
def test_plots_of_means_have_the_averages_of_the_rules(cells):
    cells = [cell for cell in cells if cell.ood_set != "textures"]  # of fewer sets more are whole
    assume(len(sets_of(cells)) > 1)
    expected = {m: text for m, text in expected_averages(cells).items() if text != "-"}
    if len(expected) < 2:
        with pytest.raises(SettingsError, match="methods are compared over 2 ID-OOD pairs, but"):
            figures.plot(records_of(cells), "means", {})
        return
    figure = figures.plot(records_of(cells), "means", {})
    points = {
        one.name: (one.y[2] / 100, one.std[2] / 100 if one.std else math.nan)
        for one in figure.panels[0].series
    }
    assert {name: METRICS["acc_h"].text(*point) for name, point in points.items()} == expected
    rows = [row for row in point_rows(figure) if row["x"] == "Acc_H"]
    assert {row["series"]: float(row["y"]) for row in rows} == pytest.approx(
        {name: 100 * mean for name, (mean, _) in points.items()}, rel=1e-5
    )
    missing = {note.split(" has no average: it has ")[0] for note in figure.notes}
    assert missing == {cell.method for cell in cells} - {*expected}


@many
@given(cells=partial_grids())
def test_the_order_of_the_runs_changes_nothing(cells):
    runs = records_of(cells)
    shuffled = random.Random(0).sample(runs, len(runs))
    for form in ("table", "markdown", "latex", "html"):
        assert table(runs, form=form) == table(shuffled, form=form)
    if not all(cell.is_stopped for cell in cells):
        assert figures.plot(runs, "ratio", {}) == figures.plot(shuffled, "ratio", {})


UNEQUAL = [
    Cell("zs-clip", "textures", 0, 86), Cell("zs-clip", "textures", 1, 88),
    Cell("zs-clip", "other-shapes", 0, 79), Cell("cull", "textures", 0, 88),
    Cell("cull", "other-shapes", 0, 80), Cell("adand", "textures", 0, 95),
]  # fmt: skip


@pytest.mark.parametrize("read", VIEWS)
def test_of_unequal_sets_and_seeds_an_average_is_over_what_all_have(read):
    averages, best, close = read(UNEQUAL)
    assert averages == {"zs-clip": "82.50", "adand": "-", "cull": "84.00"}
    assert best in (None, {"cull"})
    assert not close
    assert "adand has no average: it has 1 of 2 sets (textures)." in table(records_of(UNEQUAL))


@pytest.mark.parametrize(
    ("reference", "why"),
    [({"method": "etlt"}, "etlt sees the whole stream"),
     ({"method": "tent", "pipeline": "gt"}, "tent knows from its pipeline gt")],
)  # fmt: skip
def test_a_reference_is_never_the_best_and_a_note_says_why(reference, why):
    rivals = [kept_run(m, known=k, caught=k) for m, k in (("cull", 8), ("zs-clip", 7))]
    shown = table([kept_run(known=9, caught=9, **reference), *rivals], form="markdown")
    assert re.findall(r"\*\*[0-9.]+\*\*", shown) == ["**80.00**"] * 3
    assert shown.count(why) == 1
