"""Sizes of images and digests of lists: beside what a feature file is told by, and in records."""

import hashlib
import json

import h5py
import numpy as np
import pytest
from made import PROMPT, TINY
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.origin import origin_differences, origin_of
from zsntta_cli.datasets.drawn.builtin import noise_images


@pytest.fixture
def pets(tmp_path):
    """CoOp's pets, of two sizes."""
    base = tmp_path / "data" / "oxford_pets"
    (base / "images").mkdir(parents=True)
    rows = []
    for i in range(6):
        Image.new("RGB", (40 if i else 30, 20), (40 * i, 0, 0)).save(base / "images" / f"{i}.jpg")
        rows.append([f"{i}.jpg", i % 2, ("cat", "dog")[i % 2]])
    content = json.dumps({"train": [], "val": [], "test": rows})
    (base / "split_zhou_OxfordPets.json").write_text(content)
    return datasets.load_images("coop-pets", tmp_path / "data"), content


def forget(path):
    """Make a file that says nothing beside the identity of its images."""
    with h5py.File(path, "r+") as file:
        source = json.loads(file.attrs["source"])
        del source["image_sizes"]
        file.attrs["source"] = np.bytes_(json.dumps(source))
    return source


def test_a_file_says_the_sizes_of_its_images_and_the_digests_of_its_lists(extractor, pets):
    images, content = pets
    features = store.read(extractor().dataset(images, [PROMPT]).path)
    digest = hashlib.sha256(content.encode()).hexdigest()
    assert features.source == {
        **images.identity(),
        "lists": {"split_zhou_OxfordPets.json": digest},
        "image_sizes": "30 x 20 to 40 x 20, most 40 x 20",
    }
    assert origin_of(features)["image_sizes"] == "30 x 20 to 40 x 20, most 40 x 20"


def test_they_are_no_part_of_what_a_file_is_told_by(extractor, pets):
    images, _ = pets
    path = extractor().dataset(images, [PROMPT]).path
    before = store.read(path)
    forget(path)
    again = extractor().dataset(images, [PROMPT])
    assert again.encoded == 0
    silent = store.read(path)
    assert silent.digest == before.digest
    assert "image_sizes" not in origin_of(silent)
    assert origin_differences(origin_of(silent), origin_of(before)) == []


def test_images_of_other_sizes_are_a_difference_of_origins(extractor, pets):
    features = store.read(extractor().dataset(pets[0]).path)
    here = origin_of(features)
    [difference] = origin_differences(here, {**here, "image_sizes": "36 x 36"})
    assert difference.key == "image_sizes"


@pytest.mark.parametrize("strange", [3, None, ["36 x 36"], "", "\x1b[2J", "9" * 100, "{one}"])
def test_what_a_stranger_says_of_sizes_is_not_repeated(extractor, pets, strange):
    path = extractor().dataset(pets[0]).path
    source = forget(path)
    with h5py.File(path, "r+") as file:
        file.attrs["source"] = np.bytes_(json.dumps({**source, "image_sizes": strange}))
    assert "image_sizes" not in origin_of(store.read(path))


def test_noise_has_the_encoders_size_and_says_nothing(extractor, tmp_path):
    extractor().noise("uniform", lambda size: noise_images("uniform", 9, size), 9)
    path = feature_path(tmp_path / "features", "tiny", "noise-uniform")
    assert "image_sizes" not in store.read(path).source


def test_records_say_sizes_and_live_methods_find_the_images(cached):
    result = cached("simulate", *TINY, "--method", "zs-clip", "--method", "tent", "--ood", "glyphs",
                    "--limit", 24, "--format", "json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    for record in json.loads(result.stdout):
        origins = record["features"]
        sizes = {n: {**origins["shared"], **o}["image_sizes"] for n, o in origins["sets"].items()}
        assert sizes == {"shapes": "32 x 32", "glyphs": "32 x 32"}
