"""The tables and summaries of `detect` that pages show are those of today."""

import json
import os
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
    given = ("--classes-file", "shapes.txt", "--flag", "10%")
    check_shown(page, pictures("detect", "pictures", *given, *TINY))


def test_the_weekly_script_of_the_tutorial_runs_each_week(tmp_path):
    page = (DOCS / "tutorials" / "photos.md").read_text("utf-8")
    for kind, pattern in (("python", r"^```python\n(.*?)^```$"), ("sh", r"^```\n(#!.*?)^```$")):
        [text] = re.findall(pattern, page, re.M | re.S)
        (tmp_path / f"weekly.{kind}").write_text(text)
    subprocess.run([sys.executable, "weekly.python"], check=True, cwd=tmp_path)
    environment = {
        **os.environ, "PYTHONPATH": str(DOCS.parent),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    script, wide = ("sh", str(tmp_path / "weekly.sh")), {"capture_output": True, "text": True}
    first = subprocess.run(script, env=environment, check=True, **wide)
    assert first.stdout == ""
    assert {path.suffix for path in tmp_path.glob("20*")} == {".csv", ".html", ".log"}
    answer = {"source": "pictures/09.png", "noise": True}
    (tmp_path / "corrections.jsonl").write_text(json.dumps(answer))
    again = subprocess.run(script, env=environment, check=False, **wide)
    assert again.returncode == 1, "the folder of this day is there"
    assert "is there already" in again.stdout
    [sorted_photos] = tmp_path.glob("sorted-*")
    sorted_photos.rename(tmp_path / "last week")
    later = subprocess.run(script, env=environment, check=True, **wide)
    assert later.stdout.startswith("look at "), "noise was found"
    assert (next(tmp_path.glob("sorted-*")) / "_noise" / "09.png").is_file()
