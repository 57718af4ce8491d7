"""LaTeX tables: what they say, and that they fit, by a compiler where there is one."""

import re
import shutil
import subprocess

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sheets import sheets_of_any_size

from zsntta_cli.cli import app
from zsntta_cli.report.forms.latex import abbreviations, latex
from zsntta_cli.report.sheet import AVERAGE, WIDTHS, Sheet, SheetRow

compiled = pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
SIZES = {  # the text of an article, and 6.75 and 3.25 in of a paper with two columns
    "": "",
    "page": r"\textwidth487pt\hsize487pt\linewidth487pt\columnwidth487pt",
    "column": r"\textwidth234pt\hsize234pt\linewidth234pt\columnwidth234pt",
}


def overfull(folder, *tables, width=""):
    """The points by which tables are wider than their text, more than 1 each."""
    text = "\n".join([
        r"\documentclass{article}\usepackage{booktabs}\usepackage{amssymb}", SIZES[width],
        r"\hfuzz1pt\begin{document}", *tables, r"\end{document}",
    ])  # fmt: skip
    (folder / "t.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:]
    return [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", done.stdout)]


def demo_like(seeds):
    """A table as the README's: three methods at five ratios, four sets, three metrics."""
    spread = "±0.25" * seeds
    columns = dict.fromkeys(
        ("glyphs", "textures", "other-shapes", "digits", AVERAGE), ("Acc_S", "Acc_N", "Acc_H")
    )
    rows = [
        SheetRow((m, f"{r}%"), {c: [f"7{r % 10}.21{spread}"] * 3 for c in columns}, r == 0)
        for m in ("zs-clip", "adand", "cull")
        for r in (0, 5, 25, 50, 75)
    ]
    return Sheet("ID: shapes, tiny, preset paper", ("Method", "Noise"), columns, rows)


@compiled
@pytest.mark.parametrize("width", ["", *WIDTHS])
def test_the_tables_of_the_readme_and_of_the_paper_fit(tmp_path, width):
    from typer.testing import CliRunner

    options = ["--published", "--format", "latex", *(["--width", width] if width else [])]
    papers = [CliRunner().invoke(app, ["paper", n, *options]).stdout for n in ("20", "7")]
    sheets = [demo_like(seeds) for seeds in (False, True)]
    for sheet in sheets:
        sheet.width = width
    assert all(r"\begin{tabular}" in text for text in papers)
    assert overfull(tmp_path, *papers, latex(sheets), width=width) == []


@compiled
@settings(max_examples=3, phases=[Phase.generate])  # to shrink takes minutes
@given(st.lists(sheets_of_any_size(), min_size=30, max_size=30))
def test_every_table_fits(tmp_path_factory, sheets):
    assert overfull(tmp_path_factory.mktemp("tex"), latex(sheets)) == []


def body(text):
    return [line for line in text.splitlines() if line.endswith(r"\\")]


def test_where_metrics_do_not_fit_they_are_groups_of_rows():
    lines = body(latex([demo_like(seeds=False)]))
    assert lines[0] == r"Method & Noise & glyphs & textures & other-shapes & digits & Average \\"
    heads = [line for line in lines if "multicolumn" in line]
    assert [re.findall(r"mathrm\{(\w)\}", head) for head in heads] == [["S"], ["N"], ["H"]]
    assert len(lines) == 1 + 3 + 3 * 15


def test_many_rows_are_one_metric_a_table():
    sheet = demo_like(seeds=False)
    sheet.rows *= 2
    text = latex([sheet])
    assert text.count(r"\begin{center}") == text.count(r"\begin{tabular}") == 3


def test_in_a_column_long_names_are_short_with_a_key_below():
    sheet = demo_like(seeds=True)
    sheet.width = "column"
    text = latex([sheet])
    assert "{\\scriptsize OS: other-shapes}" in text, "the others are no longer than their values"


def test_on_a_page_a_float_takes_both_columns():
    sheet = demo_like(seeds=False)
    sheet.width, sheet.caption = "page", "Both."
    assert "\\begin{table*}\n\\centering\n\\caption{Both.}\n" in latex([sheet])


@given(st.lists(st.text("abc-9 ", min_size=1, max_size=8), max_size=8, unique=True))
def test_short_names_are_no_longer_and_tell_the_sets_apart(names):
    short = abbreviations(names)
    assert list(short) == names
    assert len(set(short.values())) == len(names)
    assert all(len(text) <= len(name) for name, text in short.items())


def test_short_names_have_first_letters_and_digits():
    names = ["other-shapes", "cifar100", "texture", "tiny", "Average", "mnist_1k"]
    assert [*abbreviations(names).values()] == ["OS", "C100", "T", "Ti", "Average", "M1K"]
