"""CIFAR-C and ImageNet-C: one corruption and severity, or all corruptions, by the name."""

import numpy as np
import pytest
from made import pack, refused
from originals import WNIDS, by_class, npy, write

from zsntta_cli import datasets
from zsntta_cli.datasets import corruptions

ALL = (*corruptions.CORRUPTIONS, *corruptions.EXTRA)
LABELS = (3, 0, 9, 5)


def blocks(number=0):
    """Four images at five severities; a pixel says which corruption, severity and image it is."""
    images = np.zeros((20, 32, 32, 3), np.uint8)
    images[:, 0, 0, 0] = number
    images[:, 0, 0, 1] = np.repeat(np.arange(1, 6), 4)
    images[:, 0, 0, 2] = np.tile(np.arange(4), 5)
    return images


CIFAR_C = {"labels.npy": npy(np.tile(LABELS, 5).astype(np.uint8))} | {
    f"{corruption}.npy": npy(blocks(number)) for number, corruption in enumerate(ALL)
}


@pytest.fixture(params=["folder", "tar"])
def cifar_c(request, tmp_path):
    """Make one of the two sets, some of its files otherwise: where it is."""

    def make(top="CIFAR-10-C", **changes):
        files = CIFAR_C | {f"{name}.npy": content for name, content in changes.items()}
        if request.param == "folder":
            write(tmp_path / top, files)
        else:
            pack(tmp_path / f"{top}.tar", {f"{top}/{name}": c for name, c in files.items()})
        return tmp_path

    return make


def first_pixels(images):
    return [images.read(i).getpixel((0, 0)) for i in range(len(images))]


def named(images):
    return [images.class_names[label] for label in images.labels]


def test_a_severity_is_a_block_of_a_file(cifar_c):
    images = datasets.load_images("cifar10-c:fog:3", cifar_c())
    fog = corruptions.CORRUPTIONS.index("fog")
    assert first_pixels(images) == [(fog, 3, i) for i in range(4)]
    assert named(images) == ["cat", "airplane", "truck", "dog"]
    assert images.name == "cifar10-c:fog:3"
    assert images.sample_ids[1] == "fog/00001"
    assert datasets.has_text(images)
    assert datasets.partners(images.name) == ("svhn",)
    assert datasets.default_prompt(images.name) == datasets.default_prompt("cifar10")


def test_all_is_the_15_corruptions_one_after_the_other(cifar_c):
    images = datasets.load_images("cifar10-c:all:1", cifar_c())
    assert first_pixels(images) == [(number, 1, i) for number in range(15) for i in range(4)]
    assert images.labels.tolist() == [*LABELS] * 15
    assert len(set(images.sample_ids)) == 60


def test_the_lists_of_classes_and_corruptions():
    for name, count in (("cifar10-c", 10), ("cifar100-c", 100)):
        names = datasets.CATALOGUE[name].read.values["class_names"]
        assert sorted(set(names)) == names
        assert len(names) == count
    assert (len(corruptions.CORRUPTIONS), len(corruptions.EXTRA)) == (15, 4)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"fog": b""}, "broken"), ({"fog": b"\x93NUMPY\x01\x00v\x00{'descr'"}, "broken"),
     ({"fog": CIFAR_C["fog.npy"][:-1]}, "broken"),
     ({"fog": npy(np.array([{}], object))}, "broken"),
     ({"fog": npy(np.zeros((20, 32, 32, 3)))}, "not CIFAR-C's"),
     ({"fog": npy(np.zeros((15, 32, 32, 3), np.uint8))}, "not CIFAR-C's"),
     ({"labels": npy(np.zeros((20, 1), np.uint8))}, "not CIFAR-C's"),
     ({"labels": npy(np.full(20, 10))}, "labels run from 10 to 10, but there are 10 class names")],
    ids=str,
)  # fmt: skip
def test_arrays_that_are_not_cifar_c(cifar_c, changes, said):
    [name] = changes
    with refused(said, f"{name}.npy" if said == "broken" else ""):
        datasets.load_images("cifar10-c:fog:1", cifar_c(**changes))


# --- ImageNet-C


def test_imagenet_c_all_keeps_the_corruption_in_the_id(original, tmp_path, monkeypatch):
    original("imagenet-c")
    monkeypatch.setattr(corruptions, "CORRUPTIONS", ("snow", "fog"))
    with refused("there is no ", "imagenet-c/snow/1"):
        datasets.load_images("imagenet-c:all:1", tmp_path / "data")
    write(tmp_path / "data", by_class("imagenet-c/snow/1", WNIDS))
    images = datasets.load_images("imagenet-c:all:1", tmp_path / "data")
    assert images.sample_ids[0] == "imagenet-c/snow/1/n01440764/0.JPEG"
    assert images.sample_ids[6] == "imagenet-c/fog/1/n01440764/0.JPEG"
    assert images.labels.tolist() == [0, 0, 1, 1, 2, 2] * 2
    assert datasets.partners(images.name) == ("inaturalist",)


# --- Names


@pytest.mark.parametrize(
    "spec",
    ["cifar10-c", "cifar10-c:fog", "cifar10-c:fog:6", "cifar10-c:fog:0", "cifar10-c:mist:1",
     "cifar10-c:fog:1:2", "cifar10-c:../fog:1"],
)  # fmt: skip
def test_what_is_no_corruption_or_severity(tmp_path, spec):
    with refused(f"'{spec}' must be cifar10-c:CORRUPTION:SEVERITY, as in cifar10-c:fog:1", "all",
                 *ALL):  # fmt: skip
        datasets.load_images(spec, tmp_path)


@pytest.mark.parametrize(
    ("name", "said"),
    [("svhn:fog:5", "'svhn:fog:5': svhn is read as it is, without ':'."),
     ("shapes:fog:1:before", "published sets, such as cifar10-c:fog:1, or a folder, NAME=PATH"),
     ("mine:fog:5=photos", "'mine:fog:5' cannot name a folder of images"),
     ("mine:fog:5=shards-{0..4}.tar", "'mine:fog:5' cannot name a folder of images"),
     ("mine:fog:5=hf:ORG/NAME:test", "'mine:fog:5' cannot name a folder of images"),
     ("mine:fog:5", "no data set 'mine:fog:5'"),
     ("clip-benchmark/wds_cars:fog:5", "no data set 'clip-benchmark/wds_cars:fog:5'")],
)  # fmt: skip
def test_other_sets_take_no_corruption(tmp_path, name, said):
    with refused(said):
        datasets.load_images(name, tmp_path)
