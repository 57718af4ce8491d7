"""Splits of a cached set by its classes."""

import json
from pathlib import Path

import numpy as np
import pytest
from feature_files import write_pets
from made import TINY, refused

from zsntta_cli.cache import store
from zsntta_cli.cache.split import split


def test_the_two_halves_are_the_set(cached):
    result = cached("cache", "split", "shapes", "--id-classes", 6, "--seed", 3)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == [
        "features/tiny/shapes-6-s3-id.h5", "features/tiny/shapes-6-s3-ood.h5"
    ]  # fmt: skip
    whole = store.read(Path("features/tiny/shapes.h5"))
    halves = [store.read(Path(line)) for line in result.stdout.split()]
    assert [len(half.class_names) for half in halves] == [6, 4]
    ids = [store.read_sample_ids(half.path) for half in halves]
    assert sorted(ids[0] + ids[1]) == sorted(store.read_sample_ids(whole.path))
    rows = {name: i for i, name in enumerate(store.read_sample_ids(whole.path))}
    for half, names in zip(halves, ids, strict=True):
        of_whole = [rows[name] for name in names]
        assert np.array_equal(half.image_features, whole.image_features[of_whole])
        assert [half.class_names[i] for i in half.labels] == [
            whole.class_names[i] for i in whole.labels[of_whole]
        ]
    [(template, text)] = halves[0].texts.items()
    kept = [whole.class_names.index(name) for name in halves[0].class_names]
    assert np.array_equal(text.features, whole.texts[template].features[kept])
    assert halves[1].texts == {}
    assert cached("cache", "verify").exit_code == 0
    assert cached("cache", "split", "shapes", "--id-classes", 6, "--seed", 3).exit_code == 0
    other = cached("cache", "split", "shapes", "--id-classes", 5, "--name", "shapes-6-s3")
    assert other.exit_code == 1
    assert "holds a different split or set: choose another --name" in other.stderr


def test_a_split_is_an_id_set_with_its_partner(cached):
    cached("cache", "split", "shapes", "--id-classes", 7, "--name", "near")
    result = cached("simulate", "--method", "adand", "--id", "near-id", "--ratio", 0.25,
                    "--format", "json", *TINY)  # fmt: skip
    [record] = json.loads(result.stdout)
    assert record["settings"]["ood_set"] == "near-ood"
    half = store.read(Path("features/tiny/near-id.h5"))
    assert record["counts"]["id"] == len(half) < 300
    live = cached("simulate", "--method", "tent", "--id", "near-id", "--limit", 30, *TINY)
    assert live.exit_code == 0, live.stderr


def test_a_list_of_classes(cached, tmp_path):
    known = store.read(Path("features/tiny/shapes.h5")).class_names
    (tmp_path / "mine.txt").write_text("\n".join(known[2:4]))
    result = cached("cache", "split", "shapes", "--id-classes", "mine.txt")
    assert result.exit_code == 0, result.stderr
    assert store.read(Path("features/tiny/shapes-mine-id.h5")).class_names == known[2:4]
    (tmp_path / "mine.txt").write_text("unheard of\n")
    other = cached("cache", "split", "shapes", "--id-classes", "mine.txt", "--name", "x")
    assert (other.exit_code, "'unheard of' is not a class" in other.stderr) == (2, True)


@pytest.mark.parametrize("count", [0, 10, 11])
def test_some_classes_not_all(cached, count):
    result = cached("cache", "split", "shapes", "--id-classes", count)
    assert result.exit_code == 2
    assert f"id-classes is {count}, must be in [1, 9]" in result.stderr


def test_what_has_no_labels_cannot_be_split(cached, tmp_path):
    result = cached("cache", "split", "noise-gaussian", "--id-classes", 2)
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.stderr
    write_pets(tmp_path / "pets.h5")  # the fourth of its images has none
    with refused("'pets' has 1 image without a label"):
        list(split(tmp_path / "pets.h5", "1", 0))
