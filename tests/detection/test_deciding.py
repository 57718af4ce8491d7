"""Rows: in hindsight and on arrival, whatever the images come from."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from zsntta_cli.detection.detecting.request import Request
from zsntta_cli.detection.detecting.run import in_hindsight, on_arrival, rows_of
from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.encoding import Encoded
from zsntta_cli.detection.flags import Flag
from zsntta_cli.detection.sources.item import Item, failed
from zsntta_cli.detection.verdicts import FIELDS, FORMAT, row_schema
from zsntta_cli.errors import SettingsError

SCHEMA_FILE = Path(__file__).parents[2] / "docs/verdict.schema.json"
SCHEMA = json.loads(SCHEMA_FILE.read_text())
NAMES = ("cat", "dog")


def detector(**settings):
    return OnlineDetector(np.eye(2, 8, dtype=np.float32), 20.0, class_names=NAMES, **settings)


def some(count, seed=0):
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((count, 8)).astype(np.float16)
    return [Encoded(Item(f"{i}.png", None), row) for i, row in enumerate(rows)]


PLAIN = Flag()


def arrivals(one):
    decide = on_arrival(one)
    return lambda images: rows_of(images, decide, "made")


def hindsight(images, flag=PLAIN):
    return rows_of(images, in_hindsight(detector(), flag), "made")


def test_the_fields_are_those_of_format_1():
    assert FORMAT == 1
    assert tuple(SCHEMA["required"]) == tuple(SCHEMA["properties"]) == FIELDS
    assert SCHEMA["properties"]["format"]["const"] == FORMAT
    assert ",".join(FIELDS) == (
        "format,source,class,class_index,answer,noise,rank,score,threshold,margin,"
        "stage,evidence,level,top,content,note,error,encoder"
    ), "frozen: a change is another format"


def test_the_published_schema_is_that_of_the_row():
    """json.dumps(row_schema(), indent=2, ensure_ascii=False) makes the file."""
    text = json.dumps(row_schema(), indent=2, ensure_ascii=False) + "\n"
    assert SCHEMA_FILE.read_text() == text


def test_rows_are_in_the_order_of_the_images_and_keep_to_the_schema():
    images = some(40)
    images.insert(7, Encoded(failed("none.png", "gone"), None, "gone"))
    rows = hindsight(images)
    assert [row["source"] for row in rows] == [one.item.source for one in images]
    for row in rows:
        jsonschema.validate(json.loads(json.dumps(row)), SCHEMA)
        assert list(row) == list(FIELDS)
        if row["error"] is None:
            is_flagged = row["answer"] in ("noise", "unsure")
            assert is_flagged == (row["score"] > row["threshold"]) == (row["margin"] > 0)
            assert row["noise"] == (row["answer"] == "noise")
            assert (row["evidence"], row["level"]) == (None, None)
            margin = row["score"] - row["threshold"]
            assert row["margin"] == (round(margin, 12) or margin)
            assert row["class"] == NAMES[row["class_index"]]
    assert rows[7]["error"] == "gone"
    assert {rows[7][name] for name in FIELDS[2:15]} == {None}
    assert sorted(row["rank"] for row in rows if row["rank"]) == list(range(1, 41))
    by_margin = sorted((r for r in rows if r["rank"]), key=lambda row: -row["margin"])
    assert [row["rank"] for row in by_margin] == list(range(1, 41))


def test_a_row_has_the_digest_of_its_own_file():
    images = [one._replace(digest=bytes([i]) * 32) for i, one in enumerate(some(8))]
    assert [row["content"] for row in hindsight(images)] == [f"{i:02x}" * 32 for i in range(8)]
    assert [row["content"] for row in hindsight(some(2))] == [None, None]


def test_on_arrival_the_pieces_do_not_matter():
    images = some(150)
    images[20] = Encoded(failed("none.png", "gone"), None, "gone")
    whole, pieces = arrivals(detector())(images), arrivals(detector())
    rows = [row for one in images for row in pieces([one])]
    assert rows == whole
    features = np.stack([one.features for one in images if one.features is not None])
    expected = detector().update(features)
    assert [r["score"] for r in whole if not r["error"]] == pytest.approx(
        expected.score, abs=1e-12, rel=0
    )
    assert [r["stage"] for r in whole if not r["error"]] == expected.stage
    margins = expected.margin
    ranks = [1 + int((margins[:i] > margins[i]).sum()) for i in range(len(margins))]
    assert [r["rank"] for r in whole if not r["error"]] == ranks, "among those so far"


def test_nothing_but_errors_has_rows_and_one_image_too():
    [row] = hindsight([Encoded(failed("a", "gone"), None, "gone")])
    assert row["error"] == "gone"
    [row] = hindsight(some(1))
    assert (row["rank"], row["stage"]) == (1, "warm-up")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sources": ()}, "say which images"),
        ({"set_name": "pets"}, "one of the two"),
        ({"classes": ()}, "there are no class names"),
        ({"classes": ("cat", "cat")}, "the class name 'cat' is there twice"),
        ({"classes": ("cat", "")}, "class name 2 is empty"),
        ({"classes": ("big_cat", "big cat")}, "'big_cat' and 'big cat' are one"),
        ({"method": "tda"}, "method is 'tda', must be one of: zs-clip, adand, cull"),
        ({"prompt": "a photo"}, "prompt 'a photo' is neither"),
        ({"flag": Flag(count=5), "sources": ("-",)}, "on arrival nobody knows"),
    ],
)
def test_what_cannot_be_asked_for(given, said):
    with pytest.raises(SettingsError, match=said):
        request(**{"sources": ("f",), **given})


def request(**values):
    return Request(**{"classes": NAMES, **values})


def test_what_is_decided_on_arrival():
    def on_arrival(*sources, **more):
        return request(sources=sources, **more).on_arrival

    assert not on_arrival("f", "a.tar", "list.txt")
    assert on_arrival("f", "-")
