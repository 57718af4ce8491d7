import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import TINY, fails

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, PartOf, Shard, Text
from zsntta_cli.cache.folder import part_path
from zsntta_cli.cache.parts import PartsIdentity, claim_parts, join_parts
from zsntta_cli.detection.runs import by_part

SIZES = (150, 0, 90, 60)
SOURCE = {"dataset": "pets", "images": sum(SIZES), "digest": "1"}


@pytest.fixture
def pets(cache, tmp_path):
    """The features of 300 shapes as a set in four parts, one of them empty, and as a plain one."""
    shapes = hdf5.read_features(cache / "tiny" / "shapes.h5")
    path = tmp_path / "features" / "tiny" / "pets.h5"
    shutil.copytree(cache / "tiny", path.parent)
    claim_parts(path, PartsIdentity(shapes.identity, SOURCE, len(SIZES)))
    ids, start = hdf5.read_sample_ids(shapes.path), 0
    for index, size in enumerate(SIZES, 1):
        rows = slice(start, start + size)
        shard = (Shard(str(index), 0, ""),) if size else ()
        hdf5.write_features(
            part_path(path, index), kind=DATASET, name="pets", encoder=shapes.identity,
            source=SOURCE, blocks=[shapes.image_features[rows]], labels=shapes.labels[rows],
            sample_ids=ids[rows], class_names=shapes.class_names,
            texts=[Text(t, f) for t, f in shapes.text_features.items()] if index == 1 else (),
            part=PartOf(index, len(SIZES), "1", shard),
        )  # fmt: skip
        start += size
    join_parts(path)
    return ("detect", "--set", "pets", *TINY)


def rows(place):
    return list(csv.DictReader(Path(place).read_text().splitlines()))


def without_rank(rows):
    return [{k: v for k, v in row.items() if k != "rank"} for row in rows]


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).glob("0*")}


def test_parts_in_order_are_the_whole_set(zsntta, pets):
    whole = zsntta(*pets, "--decide", "arrival", "--out", "whole.csv")
    assert whole.exit_code == 0, whole.stderr
    result = zsntta(*pets, "--decide", "arrival", "--out", "in/{part}.csv")
    assert result.exit_code == 0, result.stderr
    assert [line.split(",")[0] for line in result.stdout.splitlines()] == [
        f"in/0000{i}.csv: {size} images" for i, size in enumerate(SIZES, 1)
    ]
    parts = [row for i in range(1, 5) for row in rows(f"in/0000{i}.csv")]
    assert without_rank(parts) == without_rank(rows("whole.csv"))
    ranks = sorted(int(row["rank"]) for row in rows("in/00004.csv"))
    assert ranks[0] >= 1
    assert ranks[-1] <= SIZES[3]


def test_in_order_again_from_where_it_was_ended(zsntta, pets, monkeypatch):
    zsntta(*pets, "--decide", "arrival", "--out", "in/{part}.jsonl")
    undisturbed = contents("in")
    write, calls = by_part.kept.write, []

    def killed(*given):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        write(*given)

    with monkeypatch.context() as patched:
        patched.setattr(by_part.kept, "write", killed)
        assert zsntta(*pets, "--decide", "arrival", "--out", "out/{part}.jsonl").exit_code == 130
    assert set(contents("out")) == {"00001.jsonl", "00002.jsonl"}
    result = zsntta(*pets, "--decide", "arrival", "--out", "out/{part}.jsonl")
    assert "out/00002.jsonl: 0 images, there already" in result.stdout
    assert contents("out") == undisturbed
    again = zsntta(*pets, "--decide", "arrival", "--out", "out/{part}.jsonl")
    assert again.stdout.count("there already") == 4


def test_a_state_without_its_verdicts_is_made_again(zsntta, pets):
    zsntta(*pets, "--decide", "arrival", "--out", "in/{part}.csv")
    undisturbed = contents("in")
    Path("in/00004.csv").unlink()
    Path("in/.00004.csv.state").rename("in/.00003.csv.state")
    fails(
        zsntta(*pets, "--decide", "arrival", "--out", "in/{part}.csv"), "of part 4",
        stdout=None,
    )  # fmt: skip
    Path("in/.00003.csv.state").unlink()
    assert zsntta(*pets, "--decide", "arrival", "--out", "in/{part}.csv").exit_code == 0
    assert contents("in") == undisturbed


def test_in_hindsight_by_one_calibration(zsntta, pets):
    result = zsntta(*pets, "--out", "one/{part}.csv", "--calibrate-on", 3)
    assert result.exit_code == 0, result.stderr
    assert len(contents("one")) == 4
    assert len(rows("one/00001.csv")) == SIZES[0]
    assert sorted(int(row["rank"]) for row in rows("one/00001.csv")) == list(range(1, 151))
    for index in (4, 1):  # in any order, by workers that know of no other
        options = ("--calibrate-on", 3, "--part", index)
        assert zsntta(*pets, "--out", "each/{part}.csv", *options).exit_code == 0
    both = zsntta(*pets, "--out", "each/{part}.csv", "--calibrate-on", 3, "--jobs", 2)
    assert both.exit_code == 0, both.stderr
    assert both.stdout.count("there already") == 2
    assert contents("each") == contents("one")
    other = zsntta(*pets, "--out", "other/{part}.csv", "--calibrate-on", 1)
    assert other.exit_code == 0
    assert contents("other") != contents("one")
    fails(
        zsntta(*pets, "--out", "one/{part}.csv", "--calibrate-on", 1), "or of part 3",
    )  # fmt: skip


def test_a_share_is_flagged_in_each_part(zsntta, pets):
    options = ("--calibrate-on", 1, "--flag", "10%", "--out", "flagged/{part}.csv")
    assert zsntta(*pets, *options).exit_code == 0
    for index, size in enumerate(SIZES, 1):
        noise = [row for row in rows(f"flagged/0000{index}.csv") if row["answer"] == "noise"]
        assert len(noise) == round(size / 10)


def test_rows_of_one_answer(zsntta, pets):
    options = ("--calibrate-on", 1, "--only", "noise", "--out", "only/{part}.jsonl")
    assert zsntta(*pets, *options).exit_code == 0
    answers = [
        json.loads(line)["answer"] for line in Path("only/00001.jsonl").read_text().splitlines()
    ]
    assert set(answers) == {"noise"}


def test_a_missing_part_of_the_set(zsntta, pets):
    part_path(Path("features/tiny/pets.h5"), 3).unlink()
    fails(zsntta(*pets, "--out", "x/{part}.csv", "--calibrate-on", 1), "00003.h5 is missing")


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        (("--out", "x/{part}.csv"), "--calibrate-on 1, or take --decide arrival", 2),
        (("--out", "x/{part}.csv", "--calibrate-on", 5), "must be 1 to 4", 2),
        (("--out", "x/{part}.csv", "--calibrate-on", 1, "--part", 0), "must be 1 to 4", 2),
        (("--out", "x/{part}.csv", "--decide", "arrival", "--jobs", 2), "one process", 2),
        (("--out", "x/{part}.csv", "--calibrate-on", 1, "--jobs", 0), "jobs is 0", 2),
        (("--out", "x.csv", "--calibrate-on", 1), "one verdict file per part", 2),
        (("--out", "x/{part}.csv", "--calibrate-on", 1, "--ask", 3), "leave --ask", 2),
        (("--out", "x/{part}.csv", "--calibrate-on", 1, "--review", "r.html"), "--review out", 2),
    ],
)
def test_what_does_not_go_together(zsntta, pets, options, words, code):
    fails(zsntta(*pets, *options), words, code=code)


def test_a_set_that_is_not_in_parts(zsntta, pets):
    plain = [option if option != "pets" else "shapes" for option in pets]
    options = ("--out", "x/{part}.csv", "--calibrate-on", 1)
    fails(zsntta(*plain, *options), "'shapes' was not made in parts", code=2)


def test_features_of_a_set_in_parts_are_read_as_they_are_judged(zsntta, pets):
    """Whole, too: without a file a part the verdicts are those of the plain set."""
    plain = [option if option != "pets" else "shapes" for option in pets]
    for line, place in ((pets, "a.csv"), (plain, "b.csv")):
        assert zsntta(*line, "--out", place).exit_code == 0
    assert rows("a.csv") == rows("b.csv")
    features = hdf5.read_features(Path("features/tiny/pets.h5"))
    assert np.array_equal(np.stack(list(features.image_features)), features.image_features[:])
    assert replace(features).parts == features.parts
