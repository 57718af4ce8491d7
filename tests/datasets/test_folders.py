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


@pytest.mark.parametrize(("name", "word"), [("cat/1.png", "0.png"), ("0.tar", "1 .tar")])
def test_images_beside_class_folders_and_none_are_refused_with_what_is_there(tmp_path, name, word):
    place(tmp_path, name, *["0.png", "dog/1.png"] * name.startswith("cat"))
    with refused(word):
        load(tmp_path)


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
        assert "3 hidden folders" in images.left_out
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
    assert ("numbers" in said(images)) == (form == "{}")
    names = [f"word{chr(97 + i)}" for i in range(12)]
    (tmp_path / "n.txt").write_text("\n".join(names))
    assert list(with_class_names(images, tmp_path / "n.txt").class_names) == names


@pytest.mark.parametrize("labels", [[2, 1], [1, 0]])
def test_labels_that_are_numbers_take_names_from_the_first_line(tmp_path, labels):
    images = load(place(tmp_path, "set/1.png", "set/2.png") / "set")
    (tmp_path / "n.txt").write_text("cat\ndog\n")
    named = with_class_names(replace(images, labels=np.array(labels)), tmp_path / "n.txt")
    assert (named.labels.tolist(), list(named.class_names)) == ([1, 0], ["cat", "dog"])
    assert ("start at 1" in said(named)) == (2 in labels)
    (tmp_path / "n.txt").write_text("cat\ndog\nox\n")
    with refused("n.txt has 3 lines"):
        with_class_names(load(place(tmp_path / "two", "a/1.png", "b/1.png")), tmp_path / "n.txt")


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
    assert "own=PATH/Val" in said(images)


def test_what_was_read_and_left_out_is_one_line_and_a_broken_image_ends_it(zsntta, picture_folder):
    for name in ("broken.png", "film.mp4", "notes"):
        (picture_folder / "dog" / name).write_bytes(b"no image")
    (picture_folder / "owl").mkdir()
    result = zsntta("extract", *TINY, "--dataset", f"own={picture_folder}", "--noise", "none")
    assert result.exit_code == 1
    for part in ("13 images", "2 classes: big_cat, dog", "1 .mp4", "1 without an ending", "(owl)"):
        assert part in result.stderr.splitlines()[0]


@pytest.mark.parametrize(("dtype", "reading"), [(np.uint16, {"bits": "8 of more bits"}),
                                               (np.uint8, {})])  # fmt: skip
def test_images_of_more_than_8_bits_are_of_the_identity(tmp_path, dtype, reading):
    Image.fromarray(np.full((8, 8), 200, dtype)).save(tmp_path / "1.png")
    (tmp_path / "0.png").write_bytes(b"damaged")
    assert load(tmp_path).reading == reading
