"""`zsntta datasets` as a user has it: tables, one line a finding, exit codes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import fails, row
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.datasets import CATALOGUE, verify
from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.known_sets import folder_set

PETS = DatasetEntry("id", 12, 2, "test", folder_set,
                    layout="pets/ with <class>/*.png and list.txt",
                    home="https://example.org/pets", megabytes=1_234,
                    licence="research use")  # fmt: skip


def picture(path, **options):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path, **options)


@pytest.fixture
def pets(zsntta, monkeypatch):
    """A set in the catalogue that is a folder: two classes with six images each."""
    read = lambda name, root: folder_set(name, root / "pets")  # noqa: E731
    monkeypatch.setitem(CATALOGUE, "pets", replace(PETS, read=read))
    for i in range(12):
        picture(f"data/pets/{'cat' if i % 2 else 'dog'}/{i}.png")
    Path("data/pets/list.txt").touch()
    return zsntta


@pytest.mark.parametrize("command", [(), ("list",)])
def test_list_names_all_sets(zsntta, command):
    result = zsntta("datasets", *command)
    assert (result.exit_code, result.stderr) == (0, "")
    assert row(result, "cifar10") == ["cifar10", "ID", "10,000", "10", "no", ""]
    assert row(result, "digits") == ["digits", "both", "1,797", "10", "built in", ""]
    for name, entry in CATALOGUE.items():
        assert row(result, name)[2] == f"{entry.images:,}"


def test_show_says_where_a_set_comes_from_and_what_to_type(pets, cached):
    for words, parts in {
        ("cifar10", "--data-root", "sets"): (
            "svhn, lsun, texture, places", "170 MB", "sets/cifar-10-batches-py/", "no encoder",
            "download it to sets", "zsntta extract --dataset cifar10",
        ),
        ("pets",): ("https://example.org/pets", "on disk │ data/pets │"),
        ("pets", "--data-root", "nowhere"): ("download it from its home",),
        ("glyphs",): (
            "OOD", "built in", "nothing to do", "tiny", "zsntta extract --dataset glyphs",
        ),
        ("sun",): ("zsntta datasets get sun",),
        ("cifar10-c:fog:1",): ("zsntta datasets get cifar10-c │",),
    }.items():  # fmt: skip
        output = " ".join(cached("datasets", "show", *words).stdout.split())
        assert [part for part in parts if part not in output] == [], words
    assert "to get it" not in pets("datasets", "show", "pets").stdout
    assert "zsntta simulate" not in cached("datasets", "show", "glyphs").stdout


def test_verify_says_what_a_sets_lists_are(zsntta):
    result = zsntta("datasets", "verify", "digits")
    assert result.exit_code == 0
    notes = [line.rpartition(" ")[0] for line in result.stderr.splitlines()]
    sha256 = "note: sha256 of its"
    assert notes == [f"{sha256} sample ids:", f"{sha256} class names:"]
    assert result.stdout == "digits: 1,797 images, 10 classes: ok\n"


def test_verify_compares_with_the_catalogue(pets):
    verify = ("datasets", "verify", "pets")
    assert pets(*verify).stdout == "pets: 12 images, 2 classes: ok\n"
    deep = pets(*verify, "--deep").stdout
    assert deep == "pets: 12 images, 2 classes, every image opened: ok\n"
    picture("data/pets/ox/12.png")
    fails(
        pets(*verify),
        "pets: 13 of 12 images; 3 classes, must be 2.",
    )
    fails(pets(*verify, "--data-root", "nowhere"), "no folder, .tar or .zip at nowhere/pets")


def test_verify_deep_names_what_is_broken(pets):
    broken = Path("data/pets/cat/1.png")
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 30), np.uint8)).save(broken)
    broken.write_bytes(broken.read_bytes()[:500])
    Path("data/pets/dog/0.png").write_text("no image")
    assert pets("datasets", "verify", "pets").exit_code == 0
    result = pets("datasets", "verify", "pets", "--deep", "--workers", 2)
    fails(result, "pets: 2 broken images (the first is cat/1.png: ", stdout=None)
    one, two = result.stdout.splitlines()
    assert one.startswith("broken: cat/1.png: ")
    assert two.startswith("broken: dog/0.png: it is not a picture in a known format")


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
