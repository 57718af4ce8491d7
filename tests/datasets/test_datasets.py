"""Readers, on small files in the exact formats of the originals."""

import hashlib
import pickle
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.datasets import fetching
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.drawn.builtin import noise_images
from zsntta_cli.datasets.images import limited
from zsntta_cli.datasets.readers import originals
from zsntta_cli.errors import DatasetError
from zsntta_cli.settings import NOISE_TYPES

CIFAR10_NAMES = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
]


def write_pickle(root, path, content, monkeypatch):
    """One of CIFAR's pickles, and its checksum where it is expected."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(pickle.dumps(content))
    checksum = hashlib.md5((root / path).read_bytes()).hexdigest()
    monkeypatch.setitem(originals.CHECKSUMS, path, checksum)


def pixels(count):
    return np.random.default_rng(0).integers(0, 256, (count, 3, 32, 32), np.uint8)


def test_cifar10_from_its_pickles(tmp_path, monkeypatch):
    planes, labels = pixels(5), [3, 0, 9, 9, 1]
    batch = {"data": planes.reshape(5, 3072), "labels": labels}
    write_pickle(tmp_path, "cifar-10-batches-py/test_batch", batch, monkeypatch)
    names = {"label_names": CIFAR10_NAMES}
    write_pickle(tmp_path, "cifar-10-batches-py/batches.meta", names, monkeypatch)
    images = datasets.load_images("cifar10", tmp_path)
    assert list(images.class_names) == CIFAR10_NAMES
    assert images.labels.tolist() == labels
    assert np.array_equal(np.asarray(images.read(2)), planes[2].transpose(1, 2, 0))
    assert datasets.has_text(images)


def test_cifar100_from_its_pickles(tmp_path, monkeypatch):
    batch = {"data": pixels(2).reshape(2, 3072), "fine_labels": [99, 1], "coarse_labels": [0, 1]}
    write_pickle(tmp_path, "cifar-100-python/test", batch, monkeypatch)
    names = {"fine_label_names": [f"name_{i}" for i in range(100)]}
    write_pickle(tmp_path, "cifar-100-python/meta", names, monkeypatch)
    images = datasets.load_images("cifar100", tmp_path)
    assert images.labels.tolist() == [99, 1]
    assert images.class_names[99] == "name_99"


def test_svhn_from_its_mat_file(tmp_path, monkeypatch):
    (tmp_path / "svhn").mkdir()
    planes = pixels(4)
    path = tmp_path / "svhn" / "test_32x32.mat"
    # SVHN stores (32, 32, 3, N) and the digit 0 as label 10.
    scipy.io.savemat(
        path, {"X": planes.transpose(2, 3, 1, 0), "y": np.array([[10], [1], [2], [3]])}
    )
    checksum = hashlib.md5(path.read_bytes()).hexdigest()
    entry = CATALOGUE["svhn"]
    file = replace(entry.files[0], checksum=f"md5:{checksum}")
    monkeypatch.setitem(CATALOGUE, "svhn", replace(entry, files=(file,)))
    images = datasets.load_images("svhn", tmp_path)
    assert images.labels.tolist() == [0, 1, 2, 3]
    assert np.array_equal(np.asarray(images.read(1)), planes[1].transpose(1, 2, 0))
    assert not datasets.has_text(images)


def test_texture_is_all_splits_of_dtd(tmp_path):
    root = tmp_path / "dtd" / "dtd"
    files = {"train1": "banded/banded_0001.jpg", "val1": "zigzagged/zigzagged_0002.jpg",
             "test1": "banded/banded_0003.jpg"}  # fmt: skip
    (root / "labels").mkdir(parents=True)
    for split, name in files.items():
        (root / "labels" / f"{split}.txt").write_text(name + "\n")
        (root / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60, 40), "red").save(root / "images" / name)
    images = datasets.load_images("texture", tmp_path)
    assert len(images) == 3
    assert images.labels.tolist() == [0, 0, 1]
    assert list(images.class_names) == ["banded", "zigzagged"]


@pytest.mark.parametrize("name", [name for name, entry in CATALOGUE.items() if entry.downloads])
def test_what_is_neither_there_nor_to_be_downloaded(tmp_path, monkeypatch, name):
    monkeypatch.setattr(fetching, "fetch", _fail)
    with pytest.raises(DatasetError, match=f"'{name}' is not whole") as error:
        datasets.load_images(name, tmp_path)
    assert error.value.remedy == "data-root"


def _fail(*_args, **_kwargs):
    raise DatasetError("no network in tests")


def test_a_folder_with_classes(picture_folder):
    images = datasets.load_images(f"pets={picture_folder}", Path())
    assert list(images.class_names) == ["big_cat", "dog"]
    assert images.sample_ids[0] == "big_cat/1.png"
    assert images.labels.tolist() == [0] * 6 + [1] * 6
    assert datasets.has_text(images)


def test_a_folder_without_classes(picture_folder):
    images = datasets.load_images(f"dogs={picture_folder / 'dog'}", Path())
    assert images.labels.tolist() == [-1] * 6
    assert not images.class_names


def test_an_unpacked_tar_of_jpegs(tmp_path, picture_folder):
    with tarfile.open(tmp_path / "set.tar", "w") as tar:
        tar.add(picture_folder, "test")
    with tarfile.open(tmp_path / "set.tar") as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    images = datasets.load_images(f"set={tmp_path / 'unpacked' / 'test'}", Path())
    assert len(images) == 12


def test_file_names_in_any_script(tmp_path):
    for name in ("猫/ネコ.png", "ÄÖ/ß è.png", "z/🐈.png"):
        (tmp_path / name).parent.mkdir(parents=True)
        Image.new("L", (8, 8)).save(tmp_path / name)
    images = datasets.load_images(f"all={tmp_path}", Path())
    assert set(images.sample_ids) == {"猫/ネコ.png", "ÄÖ/ß è.png", "z/🐈.png"}
    assert images.read(0).mode == "RGB"


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "I;16", "1", "LA"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    suffix = "tif" if mode in ("CMYK", "I;16") else "png"
    Image.new(mode, (8, 8)).save(tmp_path / f"x.{suffix}")
    image = datasets.load_images(f"all={tmp_path}", Path()).read(0)
    assert (image.mode, image.size) == ("RGB", (8, 8))


def test_a_changed_folder_is_another_source(picture_folder):
    before = datasets.load_images(f"pets={picture_folder}", Path()).identity()
    assert datasets.load_images(f"pets={picture_folder}", Path()).identity() == before
    Image.new("RGB", (9, 9)).save(picture_folder / "dog" / "0.jpg")
    assert datasets.load_images(f"pets={picture_folder}", Path()).identity() != before


@pytest.mark.parametrize(
    ("spec", "line"),
    [("cifar11", "no data set 'cifar11' (did you mean 'cifar10'?): zsntta datasets list has"),
     ("x=/nowhere", "data set 'x': there is no folder"),
     ("x=.", "data set 'x': no image in"),
     ("cifar10=.", "'cifar10' cannot name a folder"),
     ("a/b=.", "'a/b' cannot name a folder"),
     ("noise-x=.", "'noise-x' cannot name a folder")],
)  # fmt: skip
def test_what_is_no_data_set(tmp_path, monkeypatch, spec, line):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError) as error:
        datasets.load_images(spec, tmp_path)
    assert line in str(error.value)


def test_images_beside_class_folders(picture_folder):
    Image.new("RGB", (9, 9)).save(picture_folder / "stray.png")
    with pytest.raises(DatasetError, match=r"beside class folders, such as stray.png"):
        datasets.load_images(f"pets={picture_folder}", Path())


def test_a_limit_takes_the_same_images_of_all_classes():
    images = datasets.load_images("shapes", Path())
    few = limited(images, 200)
    assert few.sample_ids == limited(images, 200).sample_ids
    assert set(few.labels.tolist()) == set(range(10))
    assert np.array_equal(few.read(5), images.read(images.sample_ids.index(few.sample_ids[5])))
    assert limited(images, 10**9) is images
    assert few.identity() != images.identity()


@pytest.mark.parametrize("noise_type", NOISE_TYPES)
def test_noise_images_depend_on_type_seed_and_index_alone(noise_type):
    few, many = noise_images(noise_type, 3, 16), noise_images(noise_type, 9, 16)
    assert np.array_equal(few.read(2), many.read(2))
    assert not np.array_equal(few.read(1), few.read(2))
    assert not np.array_equal(few.read(1), noise_images(noise_type, 3, 16, seed=1).read(1))
    image = np.asarray(many.read(0))
    assert image.shape == (16, 16, 3)
    assert (image.min(), image.max()) == (0, 255)


def test_salt_and_pepper_is_sparse_and_gaussian_is_not():
    salt = np.asarray(noise_images("salt-and-pepper", 1, 224).read(0))
    assert set(np.unique(salt)) == {0, 255}
    assert (salt == 255).mean() == pytest.approx(0.025, abs=0.002)
    gaussian = np.asarray(noise_images("gaussian", 1, 224).read(0)).astype(float)
    assert abs(gaussian.mean() - 127) < 20
    uniform = np.asarray(noise_images("uniform", 1, 224).read(0)).astype(float)
    assert uniform.std() == pytest.approx(255 / 12**0.5, rel=0.02)


def test_the_catalogue_knows_the_counts_of_the_paper():
    known = {name: (e.images, e.classes) for name, e in datasets.CATALOGUE.items()}
    assert known["cifar10"] == (10_000, 10)
    assert known["cifar100"] == (10_000, 100)
    assert known["svhn"] == (26_032, 10)
    assert known["texture"] == (5_640, 47)


@pytest.mark.parametrize(
    ("name", "images", "count"),
    [("cifar10", 10_000, ""), ("cifar10", 2_010, "2,010 of 10,000 images"),
     ("ninco", 5_879, ""), ("ninco", 5_878, ""), ("ninco", 9_986, "9,986 of 5,879 images"),
     ("cifar10-c:fog:1", 10_000, ""), ("cifar10-c:fog:1", 20_000, "20,000 of 10,000 images"),
     ("cifar10-c:all:1", 150_000, ""), ("imagenet-c:all:5", 750_000, ""),
     ("cifar10-c:all:1", 140_000, "140,000 of 150,000 images"),
     ("lsun", 0, "0 of 10,000 images"),
     ("shapes", 40, ""), ("cifar10-tune", 40, ""), ("cifar10:fog", 40, ""), ("mine", 40, ""),
     ("noise-gaussian", 40, ""), ("words-nouns", 40, "")],
)  # fmt: skip
def test_a_count_is_right_or_said(name, images, count):
    assert datasets.miscounted(name, images) == count
