"""Rows: in hindsight and on arrival, whatever the images come from."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from zsntta_cli import Detector
from zsntta_cli.detection.run import Request, detect_run, rank_so_far, rows_of
from zsntta_cli.detection.sources import Photo
from zsntta_cli.detection.verdicts import FIELDS

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/verdict.schema.json").read_text())
NAMES = ("cat", "dog")


def detector():
    return Detector(np.eye(2, 8, dtype=np.float32), 20.0, NAMES)


def some(count):
    rows = np.random.default_rng(0).standard_normal((count, 8)).astype(np.float16)
    return [Photo(f"{i}.png", bytes, features=row) for i, row in enumerate(rows)]


def features(photos):
    return np.array([p.features for p in photos if p.features is not None], np.float32)


def test_rows_are_in_the_order_of_the_images_and_keep_to_the_schema():
    photos = some(40)
    photos[3].content = b"\1" * 32
    photos.insert(7, Photo("none.png", bytes, content=b"\2" * 32, error="gone"))
    rows = rows_of(photos, detector().decide_all(features(photos)).rows(), "made")
    assert [row["source"] for row in rows] == [one.source for one in photos]
    for row in rows:
        jsonschema.validate(json.loads(json.dumps(row)), SCHEMA)
        assert list(row) == list(FIELDS) == SCHEMA["required"] == list(SCHEMA["properties"])
        if row["error"] is None:
            is_flagged = row["answer"] in ("noise", "unsure")
            assert is_flagged == (row["score"] > row["threshold"]) == (row["margin"] > 0)
    assert rows[7]["error"] == "gone"
    assert {rows[7][name] for name in FIELDS[2:15]} == {None}
    assert [row["content"] for row in rows[3:5]] == ["01" * 32, None]
    by_margin = sorted((r for r in rows if r["rank"]), key=lambda row: -row["margin"])
    assert [row["rank"] for row in by_margin] == list(range(1, 41))


@pytest.mark.parametrize("pieces", [1, 7, 150])
def test_on_arrival_ranks_are_among_those_so_far_and_the_pieces_do_not_matter(pieces):
    rows, online, margins = features(some(150)), detector(), []
    decided = []
    for part in np.array_split(rows, pieces):
        new = online.update(part).rows()
        rank_so_far(new, margins)
        decided += new
    expected = detector().update(rows)
    assert [row["score"] for row in decided] == pytest.approx(expected.score, abs=1e-12, rel=0)
    ranks = [1 + int((expected.margin[:i] > m).sum()) for i, m in enumerate(expected.margin)]
    assert [row["rank"] for row in decided] == ranks


def test_names_that_are_the_same_words_to_the_encoder_have_a_warning(encoding):
    request = Request(sources=(".",), classes=("big_cat", "dog", "big cat"))
    detect_run(request, encoding)
    [warning] = [note for note in encoding.reporter.notes if note.startswith("warning: ")]
    assert "'big_cat' and 'big cat'" in warning
