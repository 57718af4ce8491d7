"""Folders within class folders: when they are taken for the classes that were meant."""

import tarfile

import pytest
from made import TINY

from zsntta_cli.datasets.readers.levels import DeeperClasses, deeper_classes


def ids(*folders, each=1):
    return [f"{folder}/{i}.png" for folder in folders for i in range(each)]


@pytest.mark.parametrize(("sample_ids", "deeper"), [
    (ids("train/cat", "train/dog", "val/cat", "val/dog"), DeeperClasses("val", ["cat", "dog"])),
    (ids("train/cat", "train/dog", "val/cat"), DeeperClasses("val", ["cat"])),
    (ids("all/cat", "all/dog"), DeeperClasses("all", ["cat", "dog"])),
    (ids("all/x/cat", "all/x/dog"), DeeperClasses("all/x", ["cat", "dog"])),
    (ids("all/train/cat", "all/val/cat"), DeeperClasses("all", ["train", "val"])),
    ([*ids("train/cat", "train/dog", each=9), "train/stray.png"],
     DeeperClasses("train", ["cat", "dog"])),
    (ids("cat", "dog"), None),
    (ids("cat/a", "dog/a"), None),  # as many folders as class folders
    (ids("cat", "dog", "dog/more", "dog/others"), None),  # some images lie deeper
    (ids(*(f"class{i}/video{j}" for i in range(20) for j in range(3))), None),
    (ids("all/cat"), None),
    (["1.png", "2.png"], None),
    ([], None),
])  # fmt: skip
def test_folders_that_look_more_like_classes(sample_ids, deeper):
    assert deeper_classes(sample_ids) == deeper


def test_it_is_said_before_images_are_encoded(zsntta, picture_folder, tmp_path):
    """Of an archive too; a broken image ends the extraction behind the note."""
    with tarfile.open(tmp_path / "own.tar", "w") as archive:
        for part in ("train", "val"):
            archive.add(picture_folder, f"{part}")
        broken = tmp_path / "broken.png"
        broken.write_bytes(b"no image")
        archive.add(broken, "val/dog/broken.png")
    result = zsntta("extract", *TINY, "--dataset", "own=own.tar", "--noise", "none")
    assert result.exit_code == 1
    assert "own: 25 images, labels from the folders, 2 classes: train, val\n" in result.stderr
    assert "hold 2 folders of images (big_cat, dog)" in result.stderr
    assert "name the folders above them: --dataset own=own.tar/val\n" in result.stderr
