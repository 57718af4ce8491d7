"""What tests of `zsntta detect` share: classes to judge by, rows, corrections; none is a test."""

import hashlib
import json
from pathlib import Path

from made import TINY

from zsntta_cli.datasets.drawn.builtin import render

NAMES = ",".join(render("shapes").class_names)
SHAPES = ("--classes", NAMES, *TINY)


def rows(result):
    """The rows on standard output."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def by_source(result):
    return {row["source"]: row for row in rows(result)}


def correction(source, noise, name=None, **values):
    """What the page writes where a person says that an image is noise, or a class."""
    said = {"noise": not noise, "class": "star", "stage": "adapted"}
    path = Path(source)
    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
    return {
        "format": 1, "source": str(source), "content": content, "noise": noise, "class": name,
        "verdict": said, **values,
    }  # fmt: skip


def write(*corrections, path="c.jsonl"):
    Path(path).write_text("".join(json.dumps(one) + "\n" for one in corrections))
