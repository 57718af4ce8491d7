"""Verdict rows made up, for what looks at them."""

from zsntta_cli.detection.verdicts import FIELDS, FORMAT
from zsntta_cli.report.review.review import review
from zsntta_cli.report.verdicts import Facts

HOSTILE = "<img src=x onerror=alert(1)>"


def verdict(source, margin, name="cat", threshold=1.0, **values):
    """The row of an image; noise if its margin is above 0, unless an `answer` says otherwise."""
    answer = values.get("answer", "noise" if margin > 0 else "clean")
    known = {
        "format": FORMAT, "source": source, "class": name,
        "class_index": 0, "answer": answer, "noise": answer == "noise", "rank": 1,
        "score": threshold + margin, "threshold": threshold, "margin": margin, "stage": "adapted",
        "evidence": 1.5 if answer == "noise" else 4.0, "level": 2.0,
        "top": [{"class": name, "score": 1.0}],
        "content": None, "note": None, "error": None, "encoder": "tiny",
    }  # fmt: skip
    assert tuple(known) == FIELDS
    return known | values


def unread(source, error="it is a folder"):
    """The row of what could not be read."""
    return dict.fromkeys(FIELDS) | {
        "format": FORMAT, "source": source, "error": error, "encoder": "tiny",
    }  # fmt: skip


def page(rows, shown=None, files=None, hindsight=True):
    """The review of rows as cull decided on them."""
    classes = list(dict.fromkeys(row["class"] for row in rows if row["class"] is not None))
    facts = Facts("cull", len(classes), 64, hindsight)
    return review(rows, classes, facts, shown or {}, files or {})
