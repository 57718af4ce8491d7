"""All views of the same results give one answer, whatever is missing and in whatever order.

A view is read back into {method: text of its average Acc_H} and the methods that it marks as best.
"""

import csv
import dataclasses
import io
import json
import math
import random
import re
import statistics
from pathlib import Path

import pytest
from grids import (
    RATIO,
    SEEDS,
    Cell,
    best_averages,
    expected_averages,
    finished,
    methods_of,
    partial_grids,
    run_of,
    sets_of,
)
from hypothesis import HealthCheck, assume, given, settings
from kept import kept_run

from zsntta_cli.errors import SettingsError
from zsntta_cli.report import plots, table
from zsntta_cli.report.board.contenders import contenders
from zsntta_cli.report.board.lines import COLUMNS, board_rows
from zsntta_cli.report.board.plan import Pair, Plan, Spot
from zsntta_cli.report.figure import MEAN_RANK, MEANS, point_rows
from zsntta_cli.report.forms import draw
from zsntta_cli.report.page.page import page
from zsntta_cli.report.sheet import Best
from zsntta_cli.report.tables import View, sheets
from zsntta_cli.simulation.metrics import METRICS

many = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def records_of(cells):
    return [run_of(cell).record for cell in cells]


def read_terminal(cells):
    lines = table(records_of(cells), columns=["acc_h"]).splitlines()
    rows = [[part.strip() for part in line.split("│")[1:-1]] for line in lines if "│" in line]
    return {row[0]: row[-1] for row in rows}, None


def read_markdown(cells):
    lines = table(records_of(cells), form="markdown", columns=["acc_h"]).splitlines()
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in lines if "|" in line][2:]
    best = {row[0] for row in rows if row[-1].startswith("**")}
    return {row[0]: row[-1].strip("*") for row in rows}, best


def read_latex(cells):
    lines = table(records_of(cells), form="latex", columns=["acc_h"]).splitlines()
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    rows = [line.removesuffix(r" \\").split(" & ") for line in body]
    best = {row[0] for row in rows if row[-1].startswith(r"\textbf")}
    plain = {row[0]: re.sub(r"\\textbf{(.*)}|\\underline{(.*)}", r"\1\2", row[-1]) for row in rows}
    return {name: text.replace(r" $\pm$ ", "±") for name, text in plain.items()}, best


def read_html(cells):
    page = table(records_of(cells), form="html", columns=["acc_h"])
    rows = page.split("<tbody>")[1].split("<tr>")
    texts = [re.findall(r"<td>([^<]*(?:<[bu]>[^<]*</[bu]>)?)", row) for row in rows[1:]]
    best = {row[0] for row in texts if row[-1].startswith("<b>")}
    return {row[0]: re.sub("<[^>]*>", "", row[-1]).strip() for row in texts}, best


def _of_tidy(rows):
    texts = {}
    for row in (row for row in rows if row["aggregate"] == "ood_sets"):
        mean, std = row["acc_h"], row["acc_h_std"]
        spread = f"±{100 * float(std):.2f}" if std not in ("", None) else ""
        is_there = mean not in ("", None)
        texts[row["method"]] = f"{100 * float(mean):.2f}{spread}" if is_there else "-"
        assert row["complete"] in ((True, "True") if is_there else (False, "False"))
    return texts, None


def read_csv(cells):
    text = table(records_of(cells), form="csv", aggregate=True)
    return _of_tidy(csv.DictReader(io.StringIO(text)))


def read_json(cells):
    return _of_tidy(json.loads(table(records_of(cells), form="json", aggregate=True)))


def read_sheet(cells):
    [sheet] = sheets([run_of(cell) for cell in cells], View(metrics=("acc_h",)))
    texts = {row.labels[0]: str(row.values["Average"][0]) for row in sheet.rows}
    best = {row.labels[0] for row in sheet.rows if isinstance(row.values["Average"][0], Best)}
    return texts, best


def _of_page(cells):
    """The text of each method's average on the report's page, with its mark."""
    html = page([run_of(cell) for cell in cells], lambda *_: "").html
    [body] = re.findall(r"accuracies in %</div>.*?<tbody>(.*?)</tbody>", html, re.DOTALL)
    rows = [re.findall(r"<t[hd][^>]*>([^<\n]*)", row) for row in body.split("<tr>")[1:]]
    return {row[0]: row[3] for row in rows}


def read_page(cells):
    return {method: text.rstrip("*") for method, text in _of_page(cells).items()}, None


def read_board(cells):
    """The board's averages at 50 %; its marks are of tests over runs, not of the mean alone."""
    pairs = tuple(Pair("shapes", name) for name in sets_of(cells))
    plan = Plan(Path(), "tiny", pairs, contenders(methods_of(cells)), SEEDS)
    results = {
        Spot(c.method, "none", Pair("shapes", c.ood_set), RATIO, c.seed): run_of(c).record
        for c in cells
    }
    column = COLUMNS.index(("acc_h", RATIO))
    rows = board_rows(plan, results, "none")
    texts = {r.contender.label: COLUMNS[column].text(r.values[column]) for r in rows}
    lacking = {
        r.contender.label for r in rows if r.marked[column] and texts[r.contender.label] == "-"
    }
    assert not lacking
    return texts, None


VIEWS = [
    read_terminal, read_markdown, read_latex, read_html, read_csv, read_json, read_sheet,
    read_board, read_page,
]  # fmt: skip


@pytest.mark.parametrize("read", VIEWS)
@many
@given(cells=partial_grids())
def test_every_view_has_the_averages_of_the_rules(read, cells):
    assume(len(sets_of(cells)) > 1)
    averages, best = read(cells)
    assert averages == expected_averages(cells)
    assert best is None or best == best_averages(cells)


@many
@given(cells=partial_grids(seeds=(0,)))
def test_where_nothing_can_be_tested_the_page_marks_the_best_alone(cells):
    assume(len(sets_of(cells)) > 1)
    marked = {method for method, text in _of_page(cells).items() if text.endswith("*")}
    assert marked == best_averages(cells)


@many
@given(cells=partial_grids())
def test_plots_of_means_and_ranks_have_the_averages_of_the_rules(cells):
    cells = [cell for cell in cells if cell.ood_set != "textures"]  # of fewer sets more are whole
    assume(len(sets_of(cells)) > 1)
    expected = {m: text for m, text in expected_averages(cells).items() if text != "-"}
    if len(expected) < 2:
        with pytest.raises(SettingsError, match="methods are compared over 2 ID-OOD pairs, and"):
            plot(cells, "means")
        return
    figure = plot(cells, "means")
    points = {
        one.name: (one.y[2] / 100, one.std[2] / 100 if one.std else math.nan)
        for one in figure.panels[0].series
        if one.mark == MEANS
    }
    assert {name: METRICS["acc_h"].text(*point) for name, point in points.items()} == expected
    assert {row["method"]: row["acc_h"] for row in point_rows(figure)[0]} == pytest.approx(
        {name: mean for name, (mean, _) in points.items()}
    )
    ranks = plot(cells, "ranks")
    missing = {note.split(" has no average: it has ")[0] for note in figure.notes}
    assert missing == {cell.method for cell in cells} - {*expected}
    assert ranks.notes == figure.notes
    shown = {one.name: one.x[0] for one in ranks.panels[0].series if one.mark == MEAN_RANK}
    assert shown == pytest.approx(expected_ranks(cells, expected))


def plot(cells, kind):
    return plots.plot([run_of(cell) for cell in cells], kind, plots.Filters())


def expected_ranks(cells, methods):
    """The mean rank of each method: 1, and one more for each that is better, a half for equals."""
    sets = sets_of(cells)
    means = {
        method: [statistics.fmean(finished(cells, method, name).values()) for name in sets]
        for method in methods
    }
    return {
        method: statistics.fmean(
            0.5 + sum((other[i] > value) + (other[i] == value) / 2 for other in means.values())
            for i, value in enumerate(values)
        )
        for method, values in means.items()
    }


@many
@given(cells=partial_grids())
def test_the_order_of_the_runs_changes_nothing(cells):
    shuffled = random.Random(0).sample(cells, len(cells))
    for form in ("table", "markdown", "latex", "html"):
        runs = [[run_of(cell) for cell in some] for some in (cells, shuffled)]
        shown = [draw(sheets(some, View()), form) for some in runs]
        assert shown[0] == shown[1]
    if not all(cell.is_stopped for cell in cells):
        first, second = (point_rows(plots.plot(r, "ratio", plots.Filters())) for r in runs)
        assert first == second


UNEQUAL = [
    Cell("zs-clip", "textures", 0, 86), Cell("zs-clip", "textures", 1, 88),
    Cell("zs-clip", "other-shapes", 0, 79), Cell("ridge", "textures", 0, 88),
    Cell("ridge", "other-shapes", 0, 80), Cell("adand", "textures", 0, 95),
]  # fmt: skip


@pytest.mark.parametrize("read", VIEWS)
def test_of_unequal_sets_and_seeds_an_average_is_over_what_all_have(read):
    averages, best = read(UNEQUAL)
    assert averages == {"zs-clip": "82.50", "adand": "-", "ridge": "84.00"}
    assert best in (None, {"ridge"})


@pytest.mark.parametrize("read", VIEWS)
def test_two_seeds_have_a_deviation_and_a_stopped_run_is_no_seed(read):
    cells = [Cell("ridge", o, s, 80 + s) for o in ("textures", "glyphs") for s in (0, 1, 2)]
    averages, best = read([*cells[:-1], Cell("ridge", "glyphs", 2, 1, is_stopped=True)])
    assert averages == {"ridge": "80.50±0.71"}
    assert not best


def test_what_has_no_average_says_what_it_has():
    shown = table(records_of(UNEQUAL))
    assert "adand has no average: it has 1 of 2 sets (textures)." in shown
    apart = [Cell("ridge", "textures", 0, 80), Cell("ridge", "glyphs", 1, 80)]
    shown = table(records_of(apart))
    assert "ridge has no average: it has no seed that all of its sets have." in shown


def test_of_one_run_twice_the_later_one_counts():
    first, second = (run_of(Cell("ridge", "glyphs", 0, known)).record for known in (50, 60))
    later = dataclasses.replace(second, created="2027-01-01T00:00:00+00:00")
    assert table([first, later]) == table([later, first]) == table([later])


def test_a_reference_that_sees_the_whole_stream_is_never_the_best():
    records = [kept_run(m, known=k, caught=k).record for m, k in (("etlt", 9), ("ridge", 8))]
    assert "**" not in table(records, form="markdown").split("etlt")[1]
    third = kept_run("zs-clip", known=7, caught=7).record
    assert "| ridge | **80.00** |" in table([*records, third], form="markdown")
