"""`zsntta datasets` as a user has it: tables, one line a finding, exit codes."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import fails, row
from PIL import Image
from served import serving

from zsntta_cli import datasets
from zsntta_cli.datasets import CATALOGUE, download, verify
from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.known_sets import folder_set

PETS = DatasetEntry("id", 12, 2, "test", folder_set,
                    layout="pets/ with <class>/*.png and list.txt",
                    home="https://example.org/pets", megabytes=1_234,
                    licence="research use")  # fmt: skip
CONTENT = bytes(range(256)) * 2000


def picture(path):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path)


@pytest.fixture
def pets(zsntta, monkeypatch):
    """A set in the catalogue that is a folder: two classes with six images each."""
    read = lambda name, root: folder_set(name, root / "pets")  # noqa: E731
    monkeypatch.setitem(CATALOGUE, "pets", replace(PETS, read=read))
    for i in range(12):
        picture(f"data/pets/{'cat' if i % 2 else 'dog'}/{i}.png")
    Path("data/pets/list.txt").touch()
    return zsntta


def test_list_names_all_sets(zsntta):
    result = zsntta("datasets", "list")
    assert (result.exit_code, result.stderr) == (0, "")
    assert row(result, "cifar10") == ["cifar10", "ID", "10,000", "10", "no", ""]
    assert row(result, "digits") == ["digits", "both", "1,797", "10", "built in", ""]
    for name, entry in CATALOGUE.items():
        assert row(result, name)[2] == f"{entry.images:,}"


def test_show_says_where_a_set_lies(pets):
    page = " ".join(pets("datasets", "show", "pets").stdout.split())
    assert "https://example.org/pets" in page
    assert "on disk │ data/pets │" in page
    assert "to get it" not in page


def test_verify_compares_with_the_catalogue(pets):
    verify = ("datasets", "verify", "pets")
    result = pets(*verify)
    assert result.stdout == "pets: 12 images, 2 classes: ok\n"
    notes = [line.rpartition(" ")[0] for line in result.stderr.splitlines()]
    assert notes == ["note: sha256 of its sample ids:", "note: sha256 of its class names:"]
    deep = pets(*verify, "--deep").stdout
    assert deep == "pets: 12 images, 2 classes, every image opened: ok\n"
    picture("data/pets/ox/12.png")
    fails(pets(*verify), "13 of 12 images", "3 classes, must be 2")
    fails(pets(*verify, "--data-root", "nowhere"), "nowhere/pets")


def test_verify_deep_names_what_is_broken(pets):
    broken = Path("data/pets/cat/1.png")
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 30), np.uint8)).save(broken)
    broken.write_bytes(broken.read_bytes()[:500])
    Path("data/pets/dog/0.png").write_text("no image")
    assert pets("datasets", "verify", "pets").exit_code == 0
    result = pets("datasets", "verify", "pets", "--deep", "--workers", 2)
    fails(result, "2 broken images", "cat/1.png", stdout=None)
    one, two = result.stdout.splitlines()
    assert one.startswith("broken: cat/1.png: ")
    assert two.startswith("broken: dog/0.png: ")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [({"labels": np.array([0, 1, 2])}, "1 labels are not between 0 and 1"),
     ({"labels": np.array([0, 1, -1])}, "1 labels are not between 0 and 1"),
     ({"labels": np.array([0, 0, 0])}, "1 class without an image (the first is 'b')"),
     ({"sample_ids": ["x", "x", "y"]}, "1 sample ids are duplicates")],
)  # fmt: skip
def test_problems_of_labels_and_ids(changes, problem):
    images = datasets.images.ImageSet("x", lambda _: None, np.array([0, 1, 1]), ["x", "y", "z"],
                                      ["a", "b"])  # fmt: skip
    assert list(verify.problems(images, None)) == []
    assert list(verify.problems(replace(images, **changes), None)) == [problem]


def test_get_downloads_each_set_once_though_another_one_fails(zsntta, monkeypatch):
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    [file] = CATALOGUE["svhn"].files
    known = replace(file, checksum=f"md5:{hashlib.md5(CONTENT).hexdigest()}")
    monkeypatch.setitem(CATALOGUE, "svhn", replace(CATALOGUE["svhn"], files=(known,)))
    line = "svhn: data/svhn/test_32x32.mat: 512,000 bytes, md5 as published\n"
    with serving(content=CONTENT, statuses=[404], cuts=[1000]) as served:
        result = zsntta("datasets", "get", "cub200", "svhn", "--mirror", served.address + "/")
        asked = len(served.asked)
        again = zsntta("datasets", "get", "svhn", "--mirror", served.address)
    assert (result.exit_code, result.stdout) == (1, line)
    assert "HTTP Error 404" in result.stderr
    assert result.stderr.endswith("cub200.\n")
    assert (again.exit_code, again.stdout, again.stderr) == (0, line, "")
    assert served.paths.count("/test_32x32.mat") == 2, "it is resumed once"
    assert len(served.asked) == asked
    assert Path("data/svhn/test_32x32.mat").read_bytes() == CONTENT
