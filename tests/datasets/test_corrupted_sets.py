"""CIFAR-C and ImageNet-C: one corruption and severity, or all corruptions, by the name."""

import numpy as np
import pytest
from made import pack, refused
from originals import WNIDS, by_class, npy, write

from zsntta_cli import datasets
from zsntta_cli.datasets import known_sets

ALL = (*known_sets.CORRUPTIONS, *known_sets.EXTRA)
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
    """Make the set, some of its files otherwise, and load some of it."""

    def load(spec, **changes):
        files = CIFAR_C | {f"{name}.npy": content for name, content in changes.items()}
        tree = {f"CIFAR-10-C/{name}": content for name, content in files.items()}
        if request.param == "folder":
            write(tmp_path, tree)
        else:
            pack(tmp_path / "CIFAR-10-C.tar", tree)
        return datasets.load_images(f"cifar10-c:{spec}", tmp_path)

    return load


@pytest.mark.parametrize(
    ("spec", "shown"), [("fog:3", [ALL.index("fog")]), ("all:3", range(15)), ("spatter:3", [17])]
)
def test_a_severity_is_a_block_of_a_file_and_all_are_15_in_turn(cifar_c, spec, shown):
    images = cifar_c(spec)
    pixels = [images.read(i).getpixel((0, 0)) for i in range(len(images))]
    assert pixels == [(number, 3, i) for number in shown for i in range(4)]
    named = [images.class_names[label] for label in images.labels]
    assert named == ["cat", "airplane", "truck", "dog"] * len(shown)
    assert images.name == f"cifar10-c:{spec}"
    assert images.sample_ids == [f"{ALL[number]}/{i:05d}" for number in shown for i in range(4)]
    assert datasets.has_text(images)
    assert datasets.partners(images.name) == ("svhn",)
    assert datasets.default_prompt(images.name) == datasets.default_prompt("cifar10")


@pytest.mark.parametrize(
    "changes",
    [{"fog": CIFAR_C["fog.npy"][:-1]}, {"fog": npy(np.array([{}], object))},
     {"fog": npy(np.zeros((20, 32, 32, 3)))}, {"fog": npy(blocks()[:0])},
     {"labels": npy(np.zeros(40, np.uint8))}],
)  # fmt: skip
def test_arrays_that_are_broken_or_do_not_fit_are_one_line(cifar_c, changes):
    with refused("cifar10-c:fog:1", "expected CIFAR-10-C/"):
        cifar_c("fog:1", **changes)


def test_imagenet_c_all_keeps_the_corruption_in_the_id(original, tmp_path, monkeypatch):
    original("imagenet-c")
    monkeypatch.setattr(known_sets, "CORRUPTIONS", ("snow", "fog"))
    with refused("imagenet-c/snow/1"):
        datasets.load_images("imagenet-c:all:1", tmp_path / "data")
    write(tmp_path / "data", by_class("imagenet-c/snow/1", WNIDS))
    images = datasets.load_images("imagenet-c:all:1", tmp_path / "data")
    assert images.sample_ids[0] == "imagenet-c/snow/1/n01440764/0.JPEG"
    assert images.sample_ids[6] == "imagenet-c/fog/1/n01440764/0.JPEG"
    assert images.labels.tolist() == [0, 0, 1, 1, 2, 2] * 2
    assert datasets.partners(images.name) == ("inaturalist",)
