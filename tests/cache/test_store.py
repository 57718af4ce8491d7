import shutil

import h5py
import numpy as np
import pytest

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, Text
from zsntta_cli.errors import StoreError

FEATURES = np.arange(12, dtype=np.float16).reshape(4, 3)
LABELS = np.array([0, 1, 0, -1], np.int32)
TEXT = Text("a photo of a {}.", np.eye(2, 3, dtype=np.float32))


@pytest.fixture
def path(tmp_path):
    target = tmp_path / "tiny" / "pets.h5"
    write(target)
    return target


def write(path, **changes):
    content = {
        "kind": DATASET, "name": "pets", "encoder": {"model": "tiny", "logit_scale": 100.0},
        "source": {"images": 4}, "blocks": [FEATURES[:3], FEATURES[3:]], "labels": LABELS,
        "sample_ids": ["a.jpg", "ü/ß.jpg", "猫.png", "d"], "class_names": ["cat", "dog"],
        "texts": [TEXT],
    }  # fmt: skip
    return hdf5.write_features(path, **(content | changes))


def test_what_is_written_is_read(path):
    features = hdf5.read_features(path)
    assert np.array_equal(features.image_features, FEATURES)
    assert features.image_features.dtype == np.float16
    assert np.array_equal(features.labels, LABELS)
    assert features.class_names == ("cat", "dog")
    assert np.array_equal(features.text_features[TEXT.template], TEXT.features)
    assert (features.kind, features.name, features.identity) == (
        "dataset", "pets", {"model": "tiny", "logit_scale": 100.0}
    )  # fmt: skip
    assert hdf5.read_sample_ids(path) == ("a.jpg", "ü/ß.jpg", "猫.png", "d")
    assert [p.name for p in path.parent.iterdir()] == ["pets.h5"]


def test_the_digest_depends_on_content_alone(path):
    other = path.with_name("again.h5")
    assert write(other, blocks=[FEATURES]) == hdf5.read_features(path).digest
    assert write(other, labels=LABELS + 0 * LABELS) == hdf5.read_features(path).digest
    assert write(other, labels=np.zeros(4, np.int32)) != hdf5.read_features(path).digest


def test_text_is_added_and_the_rest_stays(path):
    hdf5.add_texts(path, [Text("art of a {}.", -TEXT.features)])
    features = hdf5.read_features(path)
    assert set(features.text_features) == {"a photo of a {}.", "art of a {}."}
    assert np.array_equal(features.image_features, FEATURES)


def test_a_missing_file(tmp_path):
    with pytest.raises(StoreError, match="no features at"):
        hdf5.read_features(tmp_path / "none.h5")


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file(path, keep):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(StoreError, match="not a whole zsntta feature file"):
        hdf5.read_features(path)


def test_a_foreign_hdf5_file(tmp_path):
    path = tmp_path / "foreign.h5"
    with h5py.File(path, "w") as file:
        file["data"] = np.zeros(3)
    with pytest.raises(StoreError, match="format is None, must be 1"):
        hdf5.read_features(path)


@pytest.mark.parametrize("name", ["image_features", "labels", "text_features"])
def test_changed_content_is_noticed(path, name):
    with h5py.File(path, "r+") as file:
        data = next(iter(file["text"].values()))[name] if name == "text_features" else file[name]
        data[0] = 1 - data[0]
    with pytest.raises(StoreError, match="match"):
        hdf5.read_features(path)


def test_a_label_without_a_class_name(path):
    write(path, labels=np.array([0, 1, 2, -1], np.int32))
    with pytest.raises(StoreError, match="a label has no class name"):
        hdf5.read_features(path)


def fail_at(monkeypatch, function, error):
    def failing(*_args, **_kwargs):
        raise error

    monkeypatch.setattr(function, failing)


@pytest.mark.parametrize("where", ["os.fsync", "os.replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(path, monkeypatch, where):
    before = path.read_bytes()
    fail_at(monkeypatch, where, OSError(28, "No space left on device"))
    with pytest.raises(StoreError, match="No space left on device"):
        write(path, labels=np.zeros(4, np.int32))
    with pytest.raises(StoreError, match="No space left on device"):
        hdf5.add_texts(path, [Text("x {}", TEXT.features)])
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["pets.h5"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot write"):
        write(tmp_path / "file" / "pets.h5")


def test_a_copied_file_is_the_same(path, tmp_path):
    copy = tmp_path / "copy.h5"
    shutil.copy(path, copy)
    assert hdf5.read_features(copy).digest == hdf5.read_features(path).digest
