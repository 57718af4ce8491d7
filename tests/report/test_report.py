"""Tables of every form: numbers by hand, and what stands below them."""

import csv
import io
import json
import math
import os
import re
from pathlib import Path
from unittest import mock

import pytest
from kept import kept_run

from zsntta_cli.report import table
from zsntta_cli.report.tables import View, render
from zsntta_cli.results import tidy
from zsntta_cli.simulation.metrics import METRICS, Measures, Metric
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import build_run

NAN = math.nan


def record(method="adand", ood="svhn", acc=(0.5, 0.25, 1 / 3), det=(NAN, NAN, NAN), **values):
    settings = build_run(method, "tiny", "cifar10", ood, "a photo of a {}.", **values)
    counts = {"id": 10_000, "ood": 10_000, "noise": 0}
    return Record(
        settings=settings,
        accuracies=Measures(zip(("acc_s", "acc_n", "acc_h"), acc, strict=True)),
        detection=Measures(zip(("auroc", "fpr95", "aupr"), det, strict=True)), counts=counts,
        digests={}, seconds=0.1, created="now", versions={},
    )  # fmt: skip


def text(records, colours=False, **view):
    """The tables as a terminal shows them, and all notes."""
    clear = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "200"}
    with mock.patch.dict(os.environ, clear if colours else {}):
        return render(records, "table", View(**view))


def test_seeds_fold_into_mean_and_sample_deviation_in_percent():
    assert "50.00 25.00 33.33" in text([record()])
    shown = text([record(seed=0), record(seed=1, acc=(0.6, 0.25, 0.4))])
    assert "55.00±7.07 25.00±0.00 36.67±4.71" in shown
    assert shown.count("adand") == 1
    assert "50.00     -     -" in text([record(acc=(0.5, NAN, NAN), ratio=0.0)])


def test_the_best_of_each_ratio_is_bold():
    values = {(0.25, "adand"): (0.5, 0.2, 0.3), (0.25, "zs-clip"): (0.4, 0.3, 0.3),
              (0.5, "adand"): (0.9, 0.9, 0.9), (0.5, "zs-clip"): (0.1, 0.9, 0.1)}  # fmt: skip
    shown = text([record(m, acc=acc, ratio=r) for (r, m), acc in values.items()], colours=True)
    bold = re.findall(r"\x1b\[1m([\d.]+)\x1b\[0m", shown)
    assert sorted(bold) == ["30.00"] * 3 + ["50.00"] + ["90.00"] * 4


def test_in_a_notebook_a_table_is_a_plain_text(monkeypatch):
    plain = table([record()])
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as its kernel does
    assert table([record()]) == plain
    assert "\x1b" not in plain


def test_aggregated_rows_say_what_they_are_whatever_varies():
    records = [record(ood=o, seed=s) for o in ("svhn", "lsun") for s in (0, 1)]
    other = record("zs-clip", batch_size=4)
    rows = json.loads(table([*records, other], form="json", aggregate=True))
    assert all(tuple(row) == tidy.columns() for row in rows)
    assert {row["preset"] for row in rows} == {"paper"}
    [average] = [row for row in rows if row["aggregate"] and row["method"] == "adand"]
    assert (average["ood_set"], average["seeds"], average["acc_s_std"]) == (None, "0 1", 0)
    [other] = [row for row in rows if row["method"] == "zs-clip" and not row["aggregate"]]
    assert (other["settings"], other["seeds"], other["acc_s_std"]) == ("batch_size=4", "0", None)
    assert [row["complete"] for row in rows if row["aggregate"]] == [False, True]


def test_markdown_has_the_best_of_each_column_in_bold():
    lines = table([record(), record("zs-clip", acc=(0.4, 0.5, 0.4))], form="markdown")
    assert lines.splitlines()[2:] == [
        "| Method | svhn Acc_S | svhn Acc_N | svhn Acc_H |",
        "| --- | ---: | ---: | ---: |",
        "| zs-clip | 40.00 | **50.00** | **40.00** |",
        "| adand | **50.00** | 25.00 | 33.33 |",
    ]


def test_latex_of_chosen_columns_with_labels_and_a_caption():
    view = View(
        metrics=("acc_h",), labels={"adand": "AdaND_1"}, caption="50 % noise",
        reference="tab:main", command="zsntta simulate",
    )  # fmt: skip
    latex = render([record(), record(ood="lsun")], "latex", view)
    assert "\\toprule\nMethod & svhn & lsun & Average \\\\\n\\midrule\n" in latex, "one head line"
    assert r"AdaND\_1 & 33.33 & 33.33 & 33.33 \\" in latex
    begin = "\\begin{table}\n\\centering\n\\caption{50 \\% noise}\n\\label{tab:main}\n"
    assert begin in latex, "it is a float"
    assert "% Made by: zsntta simulate\n" in latex


def test_a_name_changes_no_page_and_does_not_run_in_latex():
    latex = table([record(ood="a\\input{x}\n%$")], form="latex")
    assert r"a\textbackslash{}input\{x\}" in latex
    assert "\\input" not in latex.replace("% ", "").replace("textbackslash{}input", "")
    html = table([record(ood="<b>&"), record("zs-clip", ood="<b>&")], form="html")
    assert html.startswith("<!doctype html>")
    assert "&lt;b&gt;&amp;" in html
    assert "<b>&" not in html


def test_the_documented_columns_are_those_of_every_csv():
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text()

    def documented(head):
        cells = re.findall(r"(?m)^\| ([^|]+) \|", page.split(head)[1].split("\n\n")[0])
        return re.findall(r"`(\w+)`", "".join(cells))

    names = documented("| column | what it holds |")
    assert names == [name for name in tidy.columns() if name in names]
    assert {*documented("| metric | what it is |")} == {*METRICS}
    assert {*tidy.columns()} == {*names, *METRICS, *(f"{name}_std" for name in METRICS)}


def test_a_metric_more_is_one_line_and_stands_in_every_table(monkeypatch):
    half = Metric("half", "Half", "accuracies", ("accuracy",))
    monkeypatch.setitem(METRICS, "half", half)
    measured = record()
    measured.accuracies["half"] = 0.125
    assert measured.to_dict()["accuracies"]["half"] == 0.125
    for form in ("table", "markdown", "latex", "html"):
        shown = table([measured], form=form)
        assert "Half" in shown
        assert "12.50" in shown
    [row] = csv.DictReader(io.StringIO(table([measured], form="csv")))
    assert (row["half"], row["half_std"]) == ("0.125", "")


@pytest.mark.parametrize(
    ("settings", "swept"),
    [
        ([{"fixed": 0.6}, {"fixed": 0.9}], "zs-clip (threshold)"),
        ([{"fixed": 0.6}], ""),
        ([{"fixed": 0.6}, {"method": "cull"}], ""),
        ([{"ratio": r, "seed": s} for r in (0.2, 0.5) for s in (0, 1)], ""),
        ([{"preset": "paper"}, {"preset": "official"}], ""),
        # The best is of another method: no setting of this one is shown off.
        ([{"method": "cull", "known": 9, "caught": 9}, {"fixed": 0.0}, {"fixed": 0.01}], ""),
    ],
)
def test_the_best_of_several_settings_is_noted_where_it_is_marked(settings, swept):
    records = [kept_run(**{"method": "zs-clip"} | values) for values in settings]
    shown = table(records, form="markdown", columns=["acc_h"])
    assert shown.count("Several settings") == bool(swept)
    assert not swept or f"Several settings of {swept} were run on the streams" in shown
