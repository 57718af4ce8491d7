"""Rows: in hindsight and on arrival, whatever the images come from."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from zsntta_cli import Detector
from zsntta_cli.detection import run
from zsntta_cli.detection.run import Request, rows_of
from zsntta_cli.detection.sources import Photo
from zsntta_cli.detection.verdicts import FIELDS
from zsntta_cli.errors import SettingsError

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/verdict.schema.json").read_text())
NAMES = ("cat", "dog")


def detector():
    return Detector(np.eye(2, 8, dtype=np.float32), 20.0, NAMES)


def some(count):
    rows = np.random.default_rng(0).standard_normal((count, 8)).astype(np.float16)
    return [Photo(f"{i}.png", bytes, features=row) for i, row in enumerate(rows)]


def features(photos):
    return np.array([p.features for p in photos if p.features is not None], np.float32)


def arrivals(*parts):
    online, margins = detector(), []
    return [
        row
        for photos in parts
        for row in rows_of(photos, run._on_arrival(online, features(photos), margins), "made")
    ]


def hindsight(photos):
    rows = features(photos)
    return rows_of(photos, detector().decide_all(rows).rows() if len(rows) else [], "made")


def test_rows_are_in_the_order_of_the_images_and_keep_to_the_schema():
    photos = some(40)
    photos[3].content = b"\1" * 32
    photos.insert(7, Photo("none.png", bytes, content=b"\2" * 32, error="gone"))
    rows = hindsight(photos)
    assert [row["source"] for row in rows] == [one.source for one in photos]
    for row in rows:
        jsonschema.validate(json.loads(json.dumps(row)), SCHEMA)
        assert list(row) == list(FIELDS)
        if row["error"] is None:
            is_flagged = row["answer"] in ("noise", "unsure")
            assert is_flagged == (row["score"] > row["threshold"]) == (row["margin"] > 0)
    assert rows[7]["error"] == "gone"
    assert {rows[7][name] for name in FIELDS[2:15]} == {None}
    assert [row["content"] for row in rows[3:5]] == ["01" * 32, None]
    by_margin = sorted((r for r in rows if r["rank"]), key=lambda row: -row["margin"])
    assert [row["rank"] for row in by_margin] == list(range(1, 41))


def test_on_arrival_the_pieces_do_not_matter():
    photos = some(150)
    photos[20] = Photo("none.png", bytes, error="gone")
    whole = arrivals(photos)
    assert arrivals(*([one] for one in photos)) == whole
    expected, judged = detector().update(features(photos)), [r for r in whole if not r["error"]]
    assert [r["score"] for r in judged] == pytest.approx(expected.score, abs=1e-12, rel=0)
    margins = expected.margin
    ranks = [1 + int((margins[:i] > margins[i]).sum()) for i in range(len(margins))]
    assert [r["rank"] for r in judged] == ranks, "among those so far"


def test_nothing_but_errors_has_rows_and_one_image_too():
    [row] = hindsight([Photo("a", bytes, error="gone")])
    assert row["error"] == "gone"
    [row] = hindsight(some(1))
    assert (row["rank"], row["stage"]) == (1, "warm-up")


def request(**values):
    return Request(**{"classes": NAMES, "sources": ("f",), **values})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sources": ()}, "say which images"),
        ({"set_name": "pets"}, "one of the two"),
        ({"classes": ()}, "there are no class names"),
        ({"classes": ("cat", "cat")}, "the class name 'cat' is there twice"),
        ({"classes": ("big_cat", "big cat")}, "'big_cat' and 'big cat' are one"),
        ({"method": "tda"}, "method is 'tda', must be one of: zs-clip, adand, cull"),
        ({"prompt": "a photo"}, "prompt 'a photo' is neither"),
        ({"flag": 5, "sources": ("-",)}, "on arrival nobody knows"),
    ],
)
def test_what_cannot_be_asked_for(given, said):
    with pytest.raises(SettingsError, match=said):
        request(**given)


def test_what_is_decided_on_arrival():
    assert not request(sources=("f", "a.tar", "list.txt")).on_arrival
    assert request(sources=("f", "-")).on_arrival
