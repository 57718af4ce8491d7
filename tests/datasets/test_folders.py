"""Folders of images, NAME=PATH: their classes and names, what is left out, and what is said."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import TINY, pack, refused
from originals import pictures, write
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.datasets.class_names import twins, with_class_names
from zsntta_cli.datasets.images import account, limited
from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection.sources import photos_of

[PNG] = pictures(["1.png"], form="png").values()


def load(path, name="own"):
    return datasets.load_images(f"{name}={path}", Path())


def place(base, *names):
    write(base, dict.fromkeys(names, PNG))
    return base


def said(images):
    return " ".join([account(images), *images.notes])


def test_folders_are_classes_and_a_flat_folder_has_none(picture_folder):
    images = load(picture_folder)
    assert list(images.class_names) == ["big_cat", "dog"]
    assert images.sample_ids[0] == "big_cat/1.png"
    assert images.labels.tolist() == [0] * 6 + [1] * 6
    assert datasets.has_text(images)
    flat = load(picture_folder / "dog")
    assert flat.labels.tolist() == [-1] * 6
    assert not flat.class_names


@pytest.mark.parametrize("change", [
    lambda picture: Image.new("RGB", (9, 9)).save(picture),
    lambda picture: Image.new("RGB", (9, 9)).save(picture.with_name("new.png")),
    lambda picture: picture.unlink(),
    lambda picture: picture.rename(picture.parents[1] / "big_cat" / "0.jpg"),
])  # fmt: skip
def test_a_changed_folder_is_another_source(picture_folder, change):
    before = load(picture_folder).identity()
    assert load(picture_folder).identity() == before
    change(picture_folder / "dog" / "0.jpg")
    assert load(picture_folder).identity() != before


@pytest.mark.parametrize(
    ("spec", "line"),
    [("x=stray", "beside class folders, such as stray.png"),
     ("x=shards", "skipped: 1 .tar"),
     ("cifar10=.", "'cifar10' cannot name a folder"),
     ("a/b=.", "'a/b' cannot name a folder"),
     ("noise-x=.", "'noise-x' cannot name a folder"),
     ("mine:fog:5=hf:ORG/NAME:test", "'mine:fog:5' cannot name a folder of images"),
     ("svhn:fog:5", "no data set 'svhn:fog:5' (did you mean 'svhn'?)"),
     ("mine:fog:5", "no data set 'mine:fog:5'")],
)  # fmt: skip
def test_what_is_no_data_set(tmp_path, monkeypatch, spec, line):
    monkeypatch.chdir(tmp_path)
    place(Path("stray"), "cat/1.png", "dog/1.png", "stray.png")
    Path("shards").mkdir()
    pack(Path("shards/0.tar"), {"a.png": PNG})
    with refused(line):
        datasets.load_images(spec, tmp_path)


def test_a_limit_takes_the_same_images_of_all_classes():
    images = datasets.load_images("shapes", Path())
    few = limited(images, 200)
    assert few.sample_ids == limited(images, 200).sample_ids
    assert set(few.labels.tolist()) == set(range(10))
    assert np.array_equal(few.read(5), images.read(images.sample_ids.index(few.sample_ids[5])))
    assert limited(images, 10**9) is images
    assert few.identity() != images.identity()


@pytest.mark.parametrize("name", [
    ".git", ".Trash-1000", "@eaDir", "#recycle", "$Recycle.Bin", "lost+found", "__MACOSX",
    "System Volume Information", "node_modules", "Catalog Previews.lrdata",
])  # fmt: skip
def test_folders_archives_and_detect_leave_out_the_same(tmp_path, name):
    """All hidden folders are counted, and the classes are those of the images that are seen."""
    base, expected = tmp_path / "set", ["cat/1.png", "cat/small/2.png", "dog/1.png"]
    hidden = [f"{where}{name}/deeper/9.png" for where in ("", "cat/", "cat/small/")]
    files = [*hidden, *expected, "cat/._1.png"]
    place(base, *files)
    for path in (base, pack(base.with_suffix(".zip"), dict.fromkeys(files, PNG))):
        images = load(path)
        assert (list(images.sample_ids), list(images.class_names)) == (expected, ["cat", "dog"])
        assert images.left_out.startswith("1 hidden, 3 hidden folders (")
        left_out = LeftOut()
        [items] = photos_of([str(path)], left_out)
        assert [str(Path(item.source).relative_to(path)) for item in items] == expected
        assert left_out.words() == images.left_out


@pytest.mark.parametrize(("folders", "names"), [
    (("001.Black_footed_Albatross", "002.Crow"), ("Black footed Albatross", "Crow")),
    (("00_cat", "01_dog"), ("cat", "dog")),
    (("AnnualCrop", "Forest", "SeaLake"), ("Annual Crop", "Forest", "Sea Lake")),
    (("n02085620-Chihuahua", "n02085782-Japanese_spaniel"), ("Chihuahua", "Japanese spaniel")),
    (("n01440764", "n01443537"), ("tench", "goldfish")),
    (("2_door", "4_door"), ("2_door", "4_door")),  # without the numbers they are one
    (("McDonalds", "iPhone"), ("McDonalds", "iPhone")),
    (("big_cat", "dog"), ("big_cat", "dog")),
])  # fmt: skip
def test_folders_are_read_as_words_and_it_is_said(tmp_path, folders, names):
    images = load(place(tmp_path, *(f"{folder}/1.png" for folder in folders)))
    assert list(images.class_names) == list(names)
    assert bool(images.notes) == (folders != names)
    (tmp_path / "n.txt").write_text("\n".join(f"{f} {f}" for f in folders))
    assert list(with_class_names(images, tmp_path / "n.txt").class_names) == list(folders)


@pytest.mark.parametrize("form", ["{}", "class_{}", "{}.th"])
def test_numbered_folders_are_in_the_order_of_their_numbers_and_take_names_in_it(tmp_path, form):
    folders = [form.format(i) for i in range(1, 13)]
    images = load(place(tmp_path / "set", *(f"{folder}/1.png" for folder in folders)))
    assert list(images.folder_names or images.class_names) == folders
    assert ("class folders are numbers" in said(images)) == (form == "{}")
    names = [f"word{chr(97 + i)}" for i in range(12)]
    (tmp_path / "n.txt").write_text("\n".join(names))
    assert list(with_class_names(images, tmp_path / "n.txt").class_names) == names


def test_labels_from_1_take_names_from_the_first_line(tmp_path):
    images = load(place(tmp_path, "set/1.png", "set/2.png") / "set")
    (tmp_path / "n.txt").write_text("cat\ndog\n")
    named = with_class_names(replace(images, labels=np.array([2, 1])), tmp_path / "n.txt")
    assert (named.labels.tolist(), list(named.class_names)) == ([1, 0], ["cat", "dog"])
    assert "labels start at 1, which means 'cat'" in said(named)


@pytest.mark.parametrize("names", [
    ("Crane", "dog", "crane"), ("big cat", "dog", "big_cat"), ("BigCat", "dog", "Big-cat"),
    ("Mango 0", "dog", "mango_1"),
])  # fmt: skip
def test_classes_with_one_name_are_said(names):
    [line] = twins(names)
    assert f"({names[0]} at 0, {names[2]} at 2)" in line
    assert "(n1, n3)" in next(twins(names, ["n1", "n2", "n3"]))
    assert not list(twins(["cat", "dog", "DC-3", "DC-10", "C", "C++"]))


def test_splits_that_are_taken_for_classes_are_said(tmp_path):
    images = load(place(tmp_path, "train/cat/1.png", "Val/cat/1.png"))
    assert list(images.class_names) == ["Val", "train"]
    assert (
        "classes are named Val, train: if these hold the classes, name one, own=PATH/Val"
        in said(images)
    )


def test_what_was_read_and_left_out_is_one_line(zsntta, picture_folder):
    """A broken image ends the extraction behind the note."""
    for name in ("broken.png", "film.mp4", "notes"):
        (picture_folder / "dog" / name).write_bytes(b"no image")
    (picture_folder / "owl").mkdir()
    result = zsntta("extract", *TINY, "--dataset", f"own={picture_folder}", "--noise", "none")
    assert result.exit_code == 1
    line = "own: 13 images, labels from its folders, 2 classes: big_cat, dog; skipped: "
    left_out = "1 .mp4, 1 without an ending, 1 folder without images (owl)\n"
    assert line + left_out in result.stderr


@pytest.mark.parametrize(("dtype", "reading"), [(np.uint16, {"bits": "8 of more bits"}),
                                               (np.uint8, {})])  # fmt: skip
def test_images_of_more_than_8_bits_are_of_the_identity(tmp_path, dtype, reading):
    Image.fromarray(np.full((8, 8), 200, dtype)).save(tmp_path / "1.png")
    (tmp_path / "0.png").write_bytes(b"damaged")
    assert load(tmp_path).reading == reading
