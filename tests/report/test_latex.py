"""LaTeX tables: what they say, and that they fit, by a compiler where there is one."""

import re
import shutil
import subprocess

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sheets import sheets_of_any_size
from typed import typed

from zsntta_cli.report.forms import in_form
from zsntta_cli.report.sheet import AVERAGE, Best, Sheet

compiled = pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
NARROW = r"\documentclass{article}\textwidth%s\hsize\textwidth\linewidth\hsize\columnwidth\hsize"
TEXTS = {  # the text of article, a text of 5.5 inches, and one of two columns
    "article": r"\documentclass{article}",
    "conference": NARROW % "397pt",
    "column": NARROW % "252pt",
}
if shutil.which("kpsewhich") and not subprocess.call(
    ["kpsewhich", "IEEEtran.cls", "ptmr7t.tfm"], stdout=subprocess.DEVNULL
):
    TEXTS["ieee"] = r"\documentclass[conference]{IEEEtran}"


def overfull(folder, *tables, size="article"):
    """What LaTeX says of tables that are wider or higher than their text."""
    packages = ",".join({p for t in tables for p in re.findall(r"% Needs .*{(.*)}", t)})
    text = "\n".join([
        TEXTS[size], rf"\usepackage{{{packages}}}", r"\begin{document}", *tables, r"\end{document}",
    ])  # fmt: skip
    (folder / "t.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:]
    return re.findall(r"Overfull .*", done.stdout)


def demo_like(spread="", rows=15):
    """A table as the README's: methods at some ratios, four sets, three metrics."""
    names = ("glyphs", "textures", "other-shapes", "digits", AVERAGE)
    columns = dict.fromkeys(names, ("Acc_S", "Acc_N", "Acc_H"))
    sheet = Sheet("ID: shapes, tiny, preset paper", ("Method", "Noise"), columns)
    for row in range(rows):
        values = dict.fromkeys(columns, [Best(f"7{row % 10}.21{spread}")] * 3)
        sheet.add(("zs-clip", f"{row}%"), values, row % 5 == 0)
    sheet.notes.append("'digits' is smaller than the streams need: shown up to 5.56 times.")
    return sheet


@compiled
@pytest.mark.parametrize("size", TEXTS)
def test_the_tables_of_the_readme_and_of_the_paper_fit(tmp_path, size):
    published = ["--published", "--format", "latex"]
    papers = [typed("paper", n, *published).stdout for n in ("20", "2")]
    papers.append(typed("methods", "list", "--format", "latex").stdout)
    assert all(r"\begin{tabular}" in text for text in papers)
    drawn = in_form("latex", [demo_like(), demo_like("±0.25", rows=120)])
    assert overfull(tmp_path, *papers, drawn, size=size) == []


@compiled
@settings(max_examples=3, phases=[Phase.generate])  # to shrink takes minutes
@given(st.lists(sheets_of_any_size(), min_size=30, max_size=30))
def test_every_table_fits(tmp_path_factory, sheets):
    for size in ("article", "column"):
        assert overfull(tmp_path_factory.mktemp("tex"), in_form("latex", sheets), size=size) == []


def test_what_the_marks_mean_stands_in_the_text():
    printed = [line for line in in_form("latex", [demo_like()]).splitlines() if line[0] != "%"]
    assert "A bold value is the best mean of the rows" in printed[-2]
    assert "shown up to 5.56 times" in printed[-2]
