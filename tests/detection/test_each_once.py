"""One image by several names is judged once: folders given twice, nested and by links; files."""

import os
import random
from pathlib import Path

import numpy as np
import pytest
from made import TINY
from PIL import Image

from zsntta_cli.datasets.left_out import LeftOut
from zsntta_cli.detection.sources import Scan, batches


def write_image(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (32, 32, 3), np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def photos(tmp_path):
    """Eight images in a folder and one within it; a link to the folder, and links to files."""
    folder = tmp_path / "photos"
    for i in range(4):
        write_image(folder / f"{i}.png", i)
        write_image(folder / "within" / f"{i}.png", 10 + i)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "one.png").symlink_to(folder / "0.png")
    os.link(folder / "1.png", tmp_path / "hard.png")
    return tmp_path


SOURCES = (
    "photos", "photos", "photos/within", "photos/../photos", "link", "link/within", "one.png",
    "hard.png", "photos/2.png", "photos/*.png", "list.txt",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_each_image_comes_once_whatever_names_it(photos, seed, monkeypatch):
    monkeypatch.chdir(photos)
    (photos / "list.txt").write_text("photos/3.png\nlink/3.png\nphotos/within/0.png\n")
    chosen = random.Random(seed).sample(SOURCES, 4)
    left_out = LeftOut()
    given = [i for source in chosen for items in batches([source]) for i in items]
    shown = [i for items in batches(chosen, Scan(left_out=left_out)) for i in items]
    real = [os.path.realpath(item.file) for item in shown]
    assert len(real) == len(set(real))
    assert set(real) == {os.path.realpath(item.file) for item in given}
    within_a_source = sum(
        len(items) for source in chosen for items in batches([source], Scan(left_out=LeftOut()))
    )
    assert left_out.again >= within_a_source - len(shown)


def test_hard_links_are_images_of_their_own(photos):
    sources = [str(photos / "hard.png"), str(photos / "photos")]
    assert sum(len(items) for items in batches(sources)) == 9


def test_a_member_of_an_archive_is_one_image_and_two_members_are_two(photos, tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("0.png", "1.png"):
            archive.write(photos / "photos" / name, name)
    path = str(tmp_path / "a.zip")
    assert sum(len(items) for items in batches([path])) == 2
    assert sum(len(items) for items in batches([path, path])) == 2


@pytest.fixture
def detect(zsntta):
    def run(*sources, more=()):
        words = ("detect", *sources, *TINY, "--classes", "circle,square", "--out", "verdicts.csv")
        done = zsntta(*words, *more)
        assert done.exit_code == 0, done.output
        rows = Path("verdicts.csv").read_text().splitlines()[1:]
        return rows, [line for line in done.stderr.splitlines() if "given more than once" in line]

    return run


def test_the_command_says_once_how_many_there_were(photos, detect):
    rows, said = detect("photos", "link", "one.png")
    assert len(rows) == 8
    assert said == [
        "note: 9 images are given more than once, by a folder, a name or a link: each is judged "
        "once."
    ]
    assert detect("photos")[1] == []
