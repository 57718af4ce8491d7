"""Verdict rows made up, for what looks at them."""

from types import SimpleNamespace

from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection.flags import Flag
from zsntta_cli.detection.verdicts import FIELDS, FORMAT
from zsntta_cli.report.review.review import review
from zsntta_cli.report.verdicts import Tally

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


def page(rows, *shown, **values):
    """The review of rows as cull decided on them."""
    classes = list(dict.fromkeys(row["class"] for row in rows if row["class"] is not None))
    tally = Tally("cull", len(classes), 64)
    tally.add(rows)
    return review(rows, classes, tally, *shown, **values)


def run_of(*class_names, on_arrival=False, sources=()):
    """What a sink is told of a run with these classes."""
    detector = SimpleNamespace(class_names=class_names, method="cull", warm_up=64)
    request = SimpleNamespace(on_arrival=on_arrival, flag=Flag(), sources=sources)
    encoding = SimpleNamespace(name="clip-vit-b-16-openai")
    return SimpleNamespace(
        detector=detector, request=request, encoding=encoding, left_out=LeftOut()
    )
