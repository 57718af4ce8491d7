"""Verdict rows made up, for what looks at them."""

from zsntta_cli.detection.runs.rows import FIELDS

HOSTILE = "<img src=x onerror=alert(1)>"


def verdict(source, margin, name="cat", threshold=1.0, **values):
    """The row of an image; noise if its margin is above 0."""
    known = {
        "format": 1, "source": source, "frame": None, "time_s": None, "class": name,
        "class_index": 0, "noise": margin > 0, "rank": 1, "score": threshold + margin,
        "threshold": threshold, "margin": margin, "stage": "adapted",
        "top": [{"class": name, "score": 1.0}], "error": None, "encoder": "tiny",
    }  # fmt: skip
    assert tuple(known) == FIELDS
    return known | values


def unread(source, error="it is a folder"):
    """The row of what could not be read."""
    return dict.fromkeys(FIELDS) | {
        "format": 1, "source": source, "error": error, "encoder": "tiny",
    }  # fmt: skip
