"""The table and summary of `detect` that the tutorial shows are those of today."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from made import TINY

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "photos.md"
ROW = re.compile(r"^ +(\d+) +([+-]\d+\.\d\d) +(\w+) +(\w+) +(\S+)$", re.MULTILINE)


def test_the_tutorial_on_photos(zsntta):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    [program] = [text for language, text in blocks if language == "python"]
    subprocess.run([sys.executable, "-c", program], check=True)
    result = zsntta("detect", "pictures", "--classes", "circle,square", *TINY)
    assert result.exit_code == 0, result.output

    [shown] = [text for language, text in blocks if not language and ROW.search(text)]
    rows = sorted(map(json.loads, result.stdout.splitlines()), key=lambda row: row["rank"])
    flagged = [row for row in rows if row["answer"] != "clean"]
    for (rank, margin, *words), row in zip(ROW.findall(shown), flagged, strict=True):
        assert int(rank) == row["rank"]
        assert float(margin) == pytest.approx(row["margin"], abs=0.02), row["source"]
        assert words == [row["answer"], row["class"], row["source"]]
    below = ROW.split(shown)[-1].strip().splitlines()
    assert below
    assert result.stderr.splitlines()[-len(below) :] == below
