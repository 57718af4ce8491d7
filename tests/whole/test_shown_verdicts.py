"""The tables and summaries of `detect` that pages show are those of today."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from made import TINY

from zsntta_cli.datasets.drawn.builtin import render

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^ +(\d+) +([+-]\d+\.\d\d) +(\w+) +(\w+) +(\S+)$", re.MULTILINE)


def check_shown(page, result):
    """Compare the one table of a page, and the lines below it, with a result."""
    assert result.exit_code == 0, result.output
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.M | re.S)
    [block] = [text for language, text in blocks if not language and ROW.search(text)]
    shown = [(int(a), float(b), c, d, e) for a, b, c, d, e in ROW.findall(block)]
    rows = sorted(map(json.loads, result.stdout.splitlines()), key=lambda row: row["rank"])
    flagged = [row for row in rows if row["answer"] != "clean"]
    assert len(shown) == len(flagged)
    for (rank, margin, *words), row in zip(shown, flagged, strict=True):
        assert rank == row["rank"]
        assert margin == pytest.approx(row["margin"], abs=0.02), row["source"]
        assert words == [row["answer"], row["class"], row["source"]]
    below = ROW.split(block)[-1].strip().splitlines()
    assert below
    assert result.stderr.splitlines()[-len(below) :] == below


def test_the_tutorial_on_photos(zsntta):
    page = (DOCS / "tutorials" / "photos.md").read_text("utf-8")
    [program] = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    subprocess.run([sys.executable, "-c", program], check=True)
    check_shown(page, zsntta("detect", "pictures", "--classes", "circle,square", *TINY))


def test_the_page_of_detect(pictures):
    Path("shapes.txt").write_text("\n".join(render("shapes").class_names))
    page = (DOCS / "detect.md").read_text("utf-8")
    given = ("--classes-file", "shapes.txt", "--flag", "5%")
    check_shown(page, pictures("detect", "pictures", *given, *TINY))
