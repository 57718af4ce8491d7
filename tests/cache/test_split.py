"""Splits of a cached set by its classes."""

import json
from pathlib import Path

import numpy as np
import pytest
from feature_files import write_pets
from made import TINY, refused

from zsntta_cli.cache import store
from zsntta_cli.cache.split import split


def items(path):
    """The class name and the features of each image, by its id."""
    features = store.read(path)
    names = [features.class_names[label] for label in features.labels]
    rows = zip(names, features.image_features.tolist(), strict=True)
    return dict(zip(store.read_sample_ids(path), rows, strict=True))


def test_the_two_halves_are_the_set(cached):
    command = ("cache", "split", "shapes", "--id-classes", 6, "--seed", 3)
    paths = [Path(line) for line in cached(*command).stdout.split()]
    assert [str(path) for path in paths] == [
        "features/tiny/shapes-6-s3-id.h5", "features/tiny/shapes-6-s3-ood.h5"
    ]  # fmt: skip
    whole, id_set, ood_set = map(store.read, (Path("features/tiny/shapes.h5"), *paths))
    assert items(id_set.path) | items(ood_set.path) == items(whole.path)
    assert (len(id_set.class_names), len(ood_set.class_names)) == (6, 4)
    assert {*id_set.class_names, *ood_set.class_names} == {*whole.class_names}
    [(template, text)] = id_set.texts.items()
    kept = [whole.class_names.index(name) for name in id_set.class_names]
    assert np.array_equal(text.features, whole.texts[template].features[kept])
    assert ood_set.texts == {}
    assert cached("cache", "verify").exit_code == 0
    assert cached(*command).exit_code == 0
    other = cached("cache", "split", "shapes", "--id-classes", 5, "--name", "shapes-6-s3")
    assert (other.exit_code, "choose another --name" in other.stderr) == (1, True)


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


def test_a_list_names_the_classes(tmp_path):
    listed = tmp_path / "mine.txt"
    listed.write_text("dog\n")
    write_pets(tmp_path / "toy/pets.h5", labels=np.array([0, 1, 0, 1, 1, 0], np.int32))
    id_set, ood_set = split(tmp_path / "toy/pets.h5", str(listed), 0)
    assert [path.stem for path in (id_set, ood_set)] == ["pets-mine-id", "pets-mine-ood"]
    assert store.read(id_set).class_names == ("dog",)


@pytest.mark.parametrize(
    ("changes", "part"),
    [({}, "'pets' has 1 image without a label"),  # its fourth
     ({"class_names": (), "texts": ()}, "'pets' has no images with class labels"),
     ({"kind": "words", "blocks": [np.empty((0, 4), np.float16)], "sample_ids": [],
       "labels": np.empty(0, np.int32)}, "'pets' has no images with class labels")],
)  # fmt: skip
def test_what_has_no_labelled_images_is_not_split(tmp_path, changes, part):
    path = tmp_path / "toy/pets.h5"
    write_pets(path, **changes)
    with refused(part):
        list(split(path, "1", 0))
    assert [file.name for file in path.parent.iterdir()] == ["pets.h5"]
