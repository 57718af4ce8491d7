"""Known sets in the formats of their originals: labels, names and pixels, wherever they may lie."""

import hashlib
import json
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import PurePosixPath

import open_clip
import originals
import pytest
from made import pack, refused
from originals import ROWS, lines, pictures, write

from zsntta_cli import datasets
from zsntta_cli.datasets import known_sets
from zsntta_cli.datasets.catalogue import CATALOGUE

WNIDS = list(originals.WNIDS)
EXPECTED = {  # of the sets whose labels are hardest to join: the label of each image, in order
    "cub200": {"010.Red_winged_Blackbird/Red_winged_1.jpg": "Red winged Blackbird",
               "001.Black_footed_Albatross/Black_1.jpg": "Black footed Albatross",
               "002.Laysan_Albatross/Laysan_1.jpg": "Laysan Albatross"},
    "food101": {"ceviche/1.jpg": "ceviche", "cheesecake/2.jpg": "cheesecake",
                "cheese_plate/3.jpg": "cheese plate", "cheese_plate/4.jpg": "cheese plate"},
    "pets37": {"american_bulldog_10.jpg": "American Bulldog", "Bengal_1.jpg": "Bengal",
               "Abyssinian_9.jpg": "Abyssinian", "Abyssinian_1.jpg": "Abyssinian",
               "Bengal_2.jpg": "Bengal", "american_bulldog_3.jpg": "American Bulldog"},
    "coop-aircraft": {"1514522.jpg": "A300B4", "0747566.jpg": "707-320", "0099000.jpg": "727-200"},
    "coop-pets": {"b/1.jpg": "second_name", "a/0.jpg": "first", "c/2.jpg": "third name"},
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_each_image_has_its_label(original, tmp_path, name):
    """test_known_table.py has all sets, and pixels."""
    original(name)
    images = datasets.load_images(originals.spec_of(name), tmp_path / "data")
    named = [images.class_names[label] for label in images.labels]
    assert list(zip(images.sample_ids, named, strict=True)) == [*EXPECTED[name].items()]
    assert datasets.has_text(images)


@pytest.mark.parametrize(
    ("name", "files"),
    [("coop-pets", ["split_zhou_OxfordPets.json"]), ("coop-imagenet", ["classnames.txt"]),
     ("coop-aircraft", ["variants.txt", "images_variant_test.txt"])],
)  # fmt: skip
def test_lists_are_told_by_digests_that_are_no_identity(original, tmp_path, name, files):
    tree = original(name)
    images = datasets.load_images(name, tmp_path / "data")
    digests = {PurePosixPath(p).name: hashlib.sha256(c).hexdigest() for p, c in tree.items()}
    assert images.facts == {"lists": {file: digests[file] for file in files}}
    assert "lists" not in images.identity()


# --- ImageNet's classes, as they are


def test_imagenets_classes_are_timms_wnids_with_open_clips_names():
    def timm_list(name):
        return (files("timm") / "data" / "_info" / name).read_text().split()

    named = known_sets.names_by_wnid()
    assert [*named] == timm_list("imagenet_synsets.txt")
    assert [*named.values()] == [*open_clip.IMAGENET_CLASSNAMES]
    for subset in "ar":
        names = known_sets.names_by_wnid(subset)
        assert [*names] == timm_list(f"imagenet_{subset}_synsets.txt")
        assert names.items() <= named.items()
        assert CATALOGUE[f"imagenet-{subset}"].classes == len(names) == 200


def test_v2s_folders_are_numbers_and_not_strings(tmp_path):
    root = tmp_path / "imagenetv2-matched-frequency-format-val"
    [content] = pictures(["x"]).values()
    write(root, {f"{i}/x.jpeg": content for i in range(1000)})
    images = datasets.load_images("imagenet-v2", tmp_path)
    assert images.sample_ids == [f"{i}/x.jpeg" for i in range(1000)]
    assert images.labels.tolist() == list(range(1000))
    assert (images.class_names[2], images.class_names[10]) == ("great white shark", "brambling")


# --- The same set, elsewhere and in another form

BESIDE = {
    "ninco": pictures(["NINCO/NINCO_popular_datasets_subsamples/SVHN/x.png",
                       "NINCO/NINCO_OOD_unit_tests/black/x.png"]),
    "imagenet-a": {"imagenet-a/README.txt": b"x", "__MACOSX/imagenet-a/._1.jpg": b"x"},
}  # fmt: skip


def same(one, other):
    assert one.identity() == other.identity()
    assert list(one.class_names) == list(other.class_names)
    for i in range(len(one)):
        assert one.read(i).tobytes() == other.read(i).tobytes()


@pytest.mark.parametrize(
    ("name", "usual", "elsewhere"),
    [("ninco", "NINCO/", ""), ("ninco", "NINCO/", "NINCO_all/"),
     ("lsun-c", "LSUN/test/", "LSUN/"),
     ("lsun-r", "LSUN_resize/LSUN_resize/", "LSUN_resize/"),
     ("coop-imagenet", "images/val/", "val/"),
     ("ssb-hard", "ssb_hard/", "images_largescale/ssb_hard/")],
)  # fmt: skip
def test_a_set_may_lie_elsewhere(original, tmp_path, name, usual, elsewhere):
    tree = original(name) | BESIDE.get(name, {})
    moved = {path.replace(usual, elsewhere, 1): content for path, content in tree.items()}
    assert moved.keys() != tree.keys()
    write(tmp_path / "moved", moved)
    same(*(datasets.load_images(name, tmp_path / at) for at in ("data", "moved")))
    assert CATALOGUE[name].is_there(tmp_path / "moved")


ARCHIVES = [  # also a plain tar for all that its name says, and one that is one folder deeper
    *((name, file, "") for name, entry in CATALOGUE.items() for file in entry.packed
      if name not in ("imagenet", "imagenet-v2")),
    ("imagenet-v2", "imagenetv2-matched-frequency.tar.gz", ""), ("ninco", "NINCO.tar", ""),
    ("ninco", "NINCO_all.tar", "NINCO_all/"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "file", "above"), ARCHIVES)
def test_an_archive_is_the_set_that_its_folder_is(original, tmp_path, name, file, above):
    tree, spec = original(name) | BESIDE.get(name, {}), originals.spec_of(name)
    files = {above + path: tree[path] for path in reversed(tree)}
    write(tmp_path / "packed", {file: originals.packed(file.removesuffix(".gz"), files)})
    packed = datasets.load_images(spec, tmp_path / "packed")
    same(packed, datasets.load_images(spec, tmp_path / "data"))
    if file in CATALOGUE[name].packed:
        assert CATALOGUE[name].place(tmp_path / "packed") == tmp_path / "packed" / file


def test_the_validation_set_is_made_of_its_archives_once(original, tmp_path):
    tree = original("imagenet")
    images = datasets.load_images("imagenet", tmp_path / "data")
    for path in tree:
        (tmp_path / "data" / path).unlink()
    same(datasets.load_images("imagenet", tmp_path / "data"), images)
    assert not [p for p in (tmp_path / "data" / "imagenet").iterdir() if p.name[0] == "."]


@pytest.mark.parametrize(
    ("name", "listed", "lines_of", "ids"),
    [("openimage-o", "openimage_o.txt", "2.jpg 0.jpg", ["0.jpg", "2.jpg"]),
     ("openimage-o", "test_openimage_o.txt", "openimage_o/images/2.jpg", ["2.jpg"]),
     ("openimage-o", "benchmark_imglist/imagenet/openimage_o.txt", "images/2.jpg", ["2.jpg"]),
     ("ssb-hard", "benchmark_imglist/imagenet/test_ssb_hard.txt", f"ssb_hard/{WNIDS[1]}/1.JPEG",
      [f"{WNIDS[1]}/1.JPEG"])],
)  # fmt: skip
def test_openoods_list_of_a_set_selects_its_images(original, tmp_path, name, listed, lines_of, ids):
    original(name)
    content = lines(*(f"{path} -1" for path in lines_of.split()))
    write(tmp_path / "data", {listed: content})
    images = datasets.load_images(name, tmp_path / "data")
    assert images.sample_ids == ids
    digest = hashlib.sha256(content).hexdigest()
    assert images.facts == {"lists": {PurePosixPath(listed).name: digest}}


# --- What is wrong, in a line

CUB, COOP = "CUB_200_2011/", "oxford_pets/split_zhou_OxfordPets.json"
WRONG = [  # what is changed of a set, None where a file is gone; what is said
    ("cifar10", {"cifar-10-batches-py/test_batch": b"?"}, "pickles"),
    ("cifar10", {"cifar-10-batches-py/test_batch": None}, "test_batch; .* has batches"),
    ("svhn", {"svhn/test_32x32.mat": b"<html>"}, "expected svhn/"),
    ("cub200", {f"{CUB}image_class_labels.txt": lines("7 10", "2 1")}, "expected CUB_200_2011/"),
    ("cub200", {f"{CUB}images/002.Laysan_Albatross/Laysan_1.jpg": None}, "1 of 3 .*Laysan_1.jpg"),
    ("texture", {"dtd/dtd/images/": None}, "dtd/dtd has labels"),
    ("coop-pets", {COOP: json.dumps({**ROWS, "val": [["x.jpg", 7, "far"]]}).encode()}, "0, 1, 2"),
    ("ssb-hard", {"test_ssb_hard.txt": lines("ssb_hard/n01440764/9.JPEG -1")},
     "1 of 1 .* n01440764/9.JPEG"),
    ("imagenet-a", {f"imagenet-a/{WNIDS[1]}/": None}, f"1 of 2 classes .*{WNIDS[1]}"),
    ("imagenet-a", {"imagenet-a/n01440764/0.jpg": b"x"}, "not classes: n01440764"),
    ("imagenet-a", {"imagenet-a/": None, "imagenet-a.tar": b"cut off"},
     r"imagenet-a\.tar .*expected imagenet-a/<wnid>.*zsntta datasets get"),
    ("imagenet", {"imagenet/ILSVRC2012_img_val.tar": b"cut off"}, "img_val.tar"),
    ("imagenet", {"imagenet/ILSVRC2012_devkit_t12.tar.gz": b"cut off"}, "devkit_t12.tar.gz"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "said"), WRONG)
def test_what_is_wrong_with_a_set_is_one_line(original, tmp_path, name, changes, said):
    """What was wanted where, what is there, and where to get it."""
    tree = original(name)
    gone = tuple(path for path, content in changes.items() if content is None)
    kept = {path: content for path, content in tree.items() if not path.startswith(gone or "-")}
    write(tmp_path / "changed", kept | {path: c for path, c in changes.items() if c is not None})
    with refused(CATALOGUE[name].home) as caught:
        datasets.load_images(name, tmp_path / "changed")
    assert re.search(said, str(caught.value))
    assert not (tmp_path / "changed" / "imagenet" / "val").exists()


@pytest.mark.parametrize("name", ["svhn", "imagenet-a"])
def test_a_file_that_is_not_the_published_one_is_read_with_a_note(
    original, tmp_path, monkeypatch, name
):
    tree, root = original(name), tmp_path / "data"
    if name == "imagenet-a":
        root = tmp_path / "packed"
        root.mkdir()
        pack(root / "imagenet-a.tar", tree)
    entry = CATALOGUE[name]
    digest = hashlib.md5((root / entry.files[0].file).read_bytes()).hexdigest()
    for checksum in (digest, "0" * 32):
        file = replace(entry.files[0], checksum=f"md5:{checksum}")
        monkeypatch.setitem(CATALOGUE, name, replace(entry, files=(file,)))
        notes = datasets.load_images(name, root).notes
        assert [digest in note for note in notes] == [True] * (checksum != digest)
