"""The benchmark's sets, from small files in the exact formats of the originals."""

import json
import os
import tarfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import open_clip
import pytest
import scipy.io
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.cache import hdf5
from zsntta_cli.datasets import fetching
from zsntta_cli.datasets.catalogue import BUILTIN, CATALOGUE
from zsntta_cli.datasets.readers import corruptions, imagenet
from zsntta_cli.errors import DatasetError

WNIDS = [row.wnid for row in imagenet.classes()]


def picture(path, colour="red"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 6), colour).save(path)


def class_folders(root, names, file="x.JPEG", seed=None):
    """One image in each folder; all but the first are links to it."""
    first = root / names[0] / file
    picture(first)
    for name in names[1:]:
        (root / name).mkdir(parents=True)
        os.link(first, root / name / file)


def named_labels(images):
    """The class name of each image, by its id."""
    return {
        sample_id: images.class_names[label]
        for sample_id, label in zip(images.sample_ids, images.labels.tolist(), strict=True)
    }


def timm_list(name):
    return (files("timm") / "data" / "_info" / name).read_text().split()


# --- Fine-grained sets ---


@pytest.fixture
def cub(tmp_path):
    """Three images of 200 classes' first and last, listed out of order, ids and classes from 1."""
    base = tmp_path / "CUB_200_2011"
    birds = {1: "001.Black_footed_Albatross", 2: "002.Laysan_Albatross",
             10: "010.Red_winged_Blackbird"}  # fmt: skip
    rows = {7: (10, "Red_winged_1.jpg"), 2: (1, "Black_1.jpg"), 5: (2, "Laysan_1.jpg")}
    for class_id, file in rows.values():
        picture(base / "images" / birds[class_id] / file)
    lines = [f"{i} {birds[class_id]}/{file}" for i, (class_id, file) in rows.items()]
    (base / "images.txt").write_text("\n".join(lines) + "\n")
    labels = [f"{i} {rows[i][0]}" for i in sorted(rows)]  # in another order
    (base / "image_class_labels.txt").write_text("\n".join(labels) + "\n")
    classes = [f"{i} {birds[i]}" for i in (10, 2, 1)]
    (base / "classes.txt").write_text("\n".join(classes) + "\n")
    return base


def test_cub_joins_its_tables_by_id_and_counts_classes_from_one(cub):
    images = datasets.load_images("cub200", cub.parent)
    assert list(images.class_names) == [
        "Black footed Albatross", "Laysan Albatross", "Red winged Blackbird"
    ]  # fmt: skip
    assert named_labels(images) == {
        "010.Red_winged_Blackbird/Red_winged_1.jpg": "Red winged Blackbird",
        "001.Black_footed_Albatross/Black_1.jpg": "Black footed Albatross",
        "002.Laysan_Albatross/Laysan_1.jpg": "Laysan Albatross",
    }
    assert images.read(0).size == (8, 6)
    assert datasets.has_text(images)


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [("image_class_labels.txt", "7 10\n2 1\n", "do not fit: id 5 is not in all of them"),
     ("image_class_labels.txt", "7 10\n2 1\n5 201\n", "do not fit: id 201 is not"),
     ("classes.txt", "albatross\n", "classes.txt is not made of lines of an id and a value")],
)  # fmt: skip
def test_cub_tables_that_do_not_fit(cub, file, text, line):
    (cub / file).write_text(text)
    with pytest.raises(DatasetError, match=line):
        datasets.load_images("cub200", cub.parent)


def test_listed_images_that_are_missing(cub):
    (cub / "images" / "002.Laysan_Albatross" / "Laysan_1.jpg").unlink()
    with pytest.raises(DatasetError, match=r"1 of 3 images are missing, such as .*Laysan_1.jpg"):
        datasets.load_images("cub200", cub.parent)


def annotations(rows):
    """As in the original: a struct array with boxes, a class from 1 and a file name."""
    kind = [(n, object) for n in ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")]
    array = np.empty((1, len(rows)), kind)
    for i, (class_id, file) in enumerate(rows):
        array[0, i] = (*(np.uint16(9),) * 4, np.uint8(class_id), file)
    return {"annotations": array}


def test_cars_are_train_and_test_with_classes_from_one(tmp_path):
    base = tmp_path / "stanford_cars"
    names = ["AM General Hummer SUV 2000", "Acura RL Sedan 2012", "smart fortwo Convertible 2012"]
    parts = {"cars_train": [(3, "00001.jpg"), (1, "00002.jpg")],
             "cars_test": [(2, "00001.jpg"), (3, "00002.jpg")]}  # fmt: skip
    for part, rows in parts.items():
        for _, file in rows:
            picture(base / part / file)
    (base / "devkit").mkdir()
    meta = np.empty((1, 3), object)
    meta[0, :] = names
    scipy.io.savemat(base / "devkit" / "cars_meta.mat", {"class_names": meta})
    train = annotations(parts["cars_train"])
    scipy.io.savemat(base / "devkit" / "cars_train_annos.mat", train)
    scipy.io.savemat(base / "cars_test_annos_withlabels.mat", annotations(parts["cars_test"]))
    images = datasets.load_images("cars196", tmp_path)
    assert list(images.class_names) == names
    assert named_labels(images) == {
        "cars_train/00001.jpg": names[2], "cars_train/00002.jpg": names[0],
        "cars_test/00001.jpg": names[1], "cars_test/00002.jpg": names[2],
    }  # fmt: skip


def test_food_in_torchvisions_order(tmp_path):
    # The original lists cheesecake before cheese_plate; torchvision sorts '_' before 'c'.
    base = tmp_path / "food-101"
    test = {"ceviche": ["ceviche/1"], "cheesecake": ["cheesecake/2"],
            "cheese_plate": ["cheese_plate/3", "cheese_plate/4"]}  # fmt: skip
    for path in (path for paths in test.values() for path in paths):
        picture(base / "images" / f"{path}.jpg")
    (base / "meta").mkdir()
    (base / "meta" / "test.json").write_text(json.dumps(test))
    (base / "meta" / "classes.txt").write_text("\n".join(test))
    images = datasets.load_images("food101", tmp_path)
    assert list(images.class_names) == ["ceviche", "cheese plate", "cheesecake"]
    assert named_labels(images) == {
        "ceviche/1.jpg": "ceviche", "cheesecake/2.jpg": "cheesecake",
        "cheese_plate/3.jpg": "cheese plate", "cheese_plate/4.jpg": "cheese plate",
    }  # fmt: skip


def write_pets(root, trainval, test):
    notes = root / "oxford-iiit-pet" / "annotations"
    notes.mkdir(parents=True)
    for split, rows in (("trainval", trainval), ("test", test)):
        lines = [f"{image} {class_id} 1 1" for image, class_id in rows]
        (notes / f"{split}.txt").write_text("\n".join(lines) + "\n")
        for image, _ in rows:
            picture(root / "oxford-iiit-pet" / "images" / f"{image}.jpg")


def test_pets_are_trainval_and_test_in_the_order_of_their_ids(tmp_path):
    # Ids follow the names without regard to case: 'american_bulldog' is 2, before 'Bengal'.
    write_pets(
        tmp_path,
        [("american_bulldog_10", 2), ("Bengal_1", 3), ("Abyssinian_9", 1)],
        [("Abyssinian_1", 1), ("Bengal_2", 3), ("american_bulldog_3", 2)],
    )
    images = datasets.load_images("pets37", tmp_path)
    assert list(images.class_names) == ["Abyssinian", "American Bulldog", "Bengal"]
    assert named_labels(images) == {
        "american_bulldog_10.jpg": "American Bulldog", "Bengal_1.jpg": "Bengal",
        "Abyssinian_9.jpg": "Abyssinian", "Abyssinian_1.jpg": "Abyssinian",
        "Bengal_2.jpg": "Bengal", "american_bulldog_3.jpg": "American Bulldog",
    }  # fmt: skip


def test_pets_whose_splits_name_different_breeds(tmp_path):
    write_pets(tmp_path, [("Abyssinian_9", 1), ("Bengal_1", 2)], [("Abyssinian_1", 1)])
    with pytest.raises(DatasetError, match="name different breeds"):
        datasets.load_images("pets37", tmp_path)


def test_labels_without_a_class_name(tmp_path):
    write_pets(tmp_path, [("Bengal_1", 6)], [("Bengal_2", 6)])
    with pytest.raises(DatasetError, match="labels run from 5 to 5, but there are 1 class names"):
        datasets.load_images("pets37", tmp_path)


# --- The ImageNet family ---


def test_imagenets_classes_are_timms_wnids_with_open_clips_names():
    classes = imagenet.classes()
    assert timm_list("imagenet_synsets.txt") == WNIDS
    assert tuple(row.name for row in classes) == tuple(open_clip.IMAGENET_CLASSNAMES)
    for subset in "ar":
        wnids = [row.wnid for row in imagenet.classes(subset)]
        assert wnids == timm_list(f"imagenet_{subset}_synsets.txt")
        assert wnids == [wnid for wnid in WNIDS if wnid in wnids]  # in ImageNet's order


@pytest.mark.parametrize(
    ("name", "folder", "subset"),
    [("imagenet", "imagenet/val", ""), ("imagenet-sketch", "sketch", ""),
     ("imagenet-a", "imagenet-a", "a"), ("imagenet-r", "imagenet-r", "r")],
)  # fmt: skip
def test_folders_by_wnid(tmp_path, name, folder, subset):
    classes = imagenet.classes(subset)
    class_folders(tmp_path / folder, [row.wnid for row in reversed(classes)])
    (tmp_path / folder / "README.txt").write_text("as in -A and -R")
    images = datasets.load_images(name, tmp_path)
    assert named_labels(images) == {f"{row.wnid}/x.JPEG": row.name for row in classes}
    assert images.labels.tolist() == list(range(len(classes)))
    assert CATALOGUE[name].classes == len(classes)


def test_known_names_of_known_wnids(tmp_path):
    named = {row.wnid: row.name for row in imagenet.classes()}
    assert [named[w] for w in ("n01440764", "n02123045", "n02123159", "n15075141")] == [
        "tench", "tabby cat", "tiger cat", "toilet paper"
    ]  # fmt: skip
    assert imagenet.classes("a")[0] == ("n01498041", "stingray", "ar")
    assert imagenet.classes("r")[0] == ("n01443537", "goldfish", "r")


def test_v2s_folders_are_numbers_and_not_strings(tmp_path):
    root = tmp_path / "imagenetv2-matched-frequency-format-val"
    class_folders(root, [str(i) for i in range(1000)], "x.jpeg")
    images = datasets.load_images("imagenet-v2", tmp_path)
    names = open_clip.IMAGENET_CLASSNAMES
    assert named_labels(images) == {f"{i}/x.jpeg": names[i] for i in range(1000)}
    assert images.sample_ids[2:11:8] == ["2/x.jpeg", "10/x.jpeg"]
    assert (names[2], names[10]) == ("great white shark", "brambling")


def test_folders_that_are_missing_unknown_or_empty(tmp_path):
    root = tmp_path / "imagenet-a"
    wnids = [row.wnid for row in imagenet.classes("a")]
    class_folders(root, wnids[2:])
    with pytest.raises(DatasetError, match=r"2 of 200 class folders are missing in .*n01498041"):
        datasets.load_images("imagenet-a", tmp_path)
    for wnid in wnids[:2]:
        (root / wnid).mkdir()
    assert len(datasets.load_images("imagenet-a", tmp_path)) == 198  # a part of the set will do
    (root / "n01440764").mkdir()  # tench is not in ImageNet-A
    with pytest.raises(DatasetError, match=r"1 of 201 folders in .* no class of it.*n01440764"):
        datasets.load_images("imagenet-a", tmp_path)
    (root / "n01440764").rmdir()
    for path in root.glob("*/*"):
        path.unlink()
    with pytest.raises(DatasetError, match=r"class folders in .*imagenet-a are empty"):
        datasets.load_images("imagenet-a", tmp_path)


# --- OOD sets ---


@pytest.mark.parametrize(
    ("name", "folder"),
    [("inaturalist", "iNaturalist/images"), ("sun", "SUN/images"), ("places", "Places/images"),
     ("lsun", "lsun")],
)  # fmt: skip
def test_flat_folders_have_no_labels(tmp_path, name, folder):
    for file in ("b.jpg", "a.jpg"):
        picture(tmp_path / folder / file)
    (tmp_path / folder / "._a.jpg").write_bytes(b"what macOS adds")
    images = datasets.load_images(name, tmp_path)
    assert images.sample_ids == ["a.jpg", "b.jpg"]
    assert images.labels.tolist() == [-1, -1]
    assert not datasets.has_text(images)


@pytest.mark.parametrize(
    ("name", "folder"), [("ninco", "NINCO/NINCO_OOD_classes"), ("lsun", "lsun")]
)
def test_ood_class_folders_are_labels_without_text(tmp_path, name, folder):
    class_folders(tmp_path / folder, ["zoo", "amphiuma_means"], "x.jpg")
    images = datasets.load_images(name, tmp_path)
    assert named_labels(images) == {"amphiuma_means/x.jpg": "amphiuma_means", "zoo/x.jpg": "zoo"}
    assert not datasets.has_text(images)


# --- Corrupted sets ---


@pytest.fixture
def cifar_c(tmp_path):
    """Four images of each corruption at five severities; a pixel says which is which."""
    root = tmp_path / "CIFAR-10-C"
    root.mkdir()
    np.save(root / "labels.npy", np.tile(np.array([3, 0, 9, 5]), 5))
    for number, corruption in enumerate((*corruptions.CORRUPTIONS, *corruptions.EXTRA)):
        images = np.zeros((20, 32, 32, 3), np.uint8)
        images[:, 0, 0, 0] = number
        images[:, 0, 0, 1] = np.repeat(np.arange(1, 6), 4)
        images[:, 0, 0, 2] = np.tile(np.arange(4), 5)
        np.save(root / f"{corruption}.npy", images)
    return root


def first_pixel(images, i):
    return images.read(i).getpixel((0, 0))


def test_cifar_c_is_a_block_of_its_severity(cifar_c):
    images = datasets.load_images("cifar10-c:fog:3", cifar_c.parent)
    fog = corruptions.CORRUPTIONS.index("fog")
    assert [first_pixel(images, i) for i in range(4)] == [(fog, 3, i) for i in range(4)]
    assert [images.class_names[label] for label in images.labels] == ["cat", "airplane", "truck",
                                                                      "dog"]  # fmt: skip
    assert images.name == "cifar10-c:fog:3"
    assert images.sample_ids[1] == "fog/00001"
    assert datasets.has_text(images)
    assert datasets.partners(images.name) == ("svhn",)
    assert datasets.default_prompt(images.name) == datasets.default_prompt("cifar10")


def test_all_is_the_15_corruptions_one_after_the_other(cifar_c):
    images = datasets.load_images("cifar10-c:all:1", cifar_c.parent)
    assert len(images) == 15 * 4
    assert [first_pixel(images, i) for i in range(60)] == [
        (number, 1, i) for number in range(15) for i in range(4)
    ]
    assert images.labels.tolist() == [3, 0, 9, 5] * 15
    assert len(set(images.sample_ids)) == 60


def test_corruption_and_severity_are_part_of_the_identity(cifar_c):
    specs = ("cifar10-c:fog:1", "cifar10-c:fog:2", "cifar10-c:saturate:1")
    digests = {datasets.load_images(s, cifar_c.parent).identity()["digest"] for s in specs}
    assert len(digests) == 3


def test_cifar100_c_has_its_own_classes(cifar_c):
    cifar_c.rename(cifar_c.with_name("CIFAR-100-C"))
    images = datasets.load_images("cifar100-c:snow:5", cifar_c.parent)
    assert [images.class_names[label] for label in images.labels] == ["bear", "apple", "bottle",
                                                                      "bed"]  # fmt: skip
    assert images.class_names[99] == "worm"


def test_the_lists_of_classes_and_corruptions():
    assert sorted(corruptions.CIFAR10) == list(corruptions.CIFAR10)
    assert sorted(corruptions.CIFAR100) == list(corruptions.CIFAR100)
    assert (len(set(corruptions.CIFAR10)), len(set(corruptions.CIFAR100))) == (10, 100)
    assert (len(corruptions.CORRUPTIONS), len(corruptions.EXTRA)) == (15, 4)


@pytest.mark.parametrize(
    "spec",
    ["cifar10-c", "cifar10-c:fog", "cifar10-c:fog:6", "cifar10-c:fog:0", "cifar10-c:mist:1",
     "cifar10-c:fog:1:2", "cifar10-c:../fog:1"],
)  # fmt: skip
def test_what_is_no_corruption_or_severity(cifar_c, spec):
    with pytest.raises(DatasetError) as error:
        datasets.load_images(spec, cifar_c.parent)
    line = str(error.value)
    assert f"'{spec}' must be cifar10-c:CORRUPTION:SEVERITY, as in cifar10-c:fog:1" in line
    assert all(name in line for name in ("all", *corruptions.CORRUPTIONS, *corruptions.EXTRA))


@pytest.mark.parametrize(
    ("name", "line"),
    [("svhn:fog:5", "'svhn:fog:5': svhn is read as it is, without ':'."),
     ("shapes:fog:1:before", "published sets, such as cifar10-c:fog:1, or a folder, NAME=PATH"),
     ("mine:fog:5=photos", "'mine:fog:5' cannot name a folder of images"),
     ("mine:fog:5=shards-{0..4}.tar", "'mine:fog:5' cannot name a folder of images"),
     ("mine:fog:5=hf:ORG/NAME:test", "'mine:fog:5' cannot name a folder of images"),
     ("mine:fog:5", "no data set 'mine:fog:5'"),
     ("clip-benchmark/wds_cars:fog:5", "no data set 'clip-benchmark/wds_cars:fog:5'")],
)  # fmt: skip
def test_other_sets_take_no_corruption(name, line, tmp_path):
    with pytest.raises(DatasetError) as error:
        datasets.load_images(name, tmp_path)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("file", "array", "line"),
    [("fog", np.zeros((20, 32, 32, 3)), "not CIFAR-C's"),
     ("fog", np.zeros((15, 32, 32, 3), np.uint8), "not CIFAR-C's"),
     ("labels", np.zeros((20, 1), np.uint8), "not CIFAR-C's"),
     ("labels", np.full(20, 10), "labels.npy has label 10, but there are 10 classes"),
     ("fog", np.array([{}]), "broken or no .npy")],
)  # fmt: skip
def test_arrays_that_are_not_cifar_c(cifar_c, file, array, line):
    np.save(cifar_c / f"{file}.npy", array)
    with pytest.raises(DatasetError, match=line):
        datasets.load_images("cifar10-c:fog:1", cifar_c.parent)


def test_imagenet_c_by_corruption_and_severity(tmp_path):
    for corruption in corruptions.CORRUPTIONS[:2]:
        class_folders(tmp_path / "imagenet-c" / corruption / "1", WNIDS[::-1])
    images = datasets.load_images("imagenet-c:shot_noise:1", tmp_path)
    assert named_labels(images) == {f"{r.wnid}/x.JPEG": r.name for r in imagenet.classes()}
    assert datasets.partners(images.name) == ("inaturalist",)
    with pytest.raises(DatasetError, match=r"there is no .*imagenet-c/impulse_noise/1"):
        datasets.load_images("imagenet-c:all:1", tmp_path)


def test_imagenet_c_all_keeps_the_corruption_in_the_id(tmp_path, monkeypatch):
    monkeypatch.setattr(corruptions, "CORRUPTIONS", ("snow", "fog"))
    for corruption in ("snow", "fog"):
        class_folders(tmp_path / "imagenet-c" / corruption / "2", WNIDS)
    images = datasets.load_images("imagenet-c:all:2", tmp_path)
    assert images.sample_ids[0] == "imagenet-c/snow/2/n01440764/x.JPEG"
    assert images.sample_ids[1000] == "imagenet-c/fog/2/n01440764/x.JPEG"
    assert images.labels.tolist() == [*range(1000), *range(1000)]


# --- Through the command line ---


def test_extract_reads_them_by_name(cub, cifar_c, zsntta):
    result = zsntta(
        "extract", "--dataset", "cub200", "--dataset", "cifar10-c:fog:2", "--data-root", ".",
        "--noise", "none", "--no-partners", "--model", "tiny",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    birds = hdf5.read_features(Path("features/tiny/cub200.h5"))
    assert [birds.class_names[label] for label in birds.labels] == [
        "Red winged Blackbird", "Black footed Albatross", "Laysan Albatross"
    ]  # fmt: skip
    fog = hdf5.read_features(Path("features/tiny/cifar10-c:fog:2.h5"))
    assert (fog.name, fog.class_names) == ("cifar10-c:fog:2", corruptions.CIFAR10)
    assert fog.labels.tolist() == [3, 0, 9, 5]
    assert len(fog.text_features) == 1


def test_a_missing_set_is_one_line_and_exit_code_1(zsntta):
    result = zsntta("extract", "--dataset", "cars196", "--model", "tiny")
    assert result.exit_code == 1
    assert "the official download is dead" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


# --- The catalogue ---


def test_the_papers_44_pairs():
    own = {n: e for n, e in CATALOGUE.items() if e.role == "id" and n not in BUILTIN}
    id_sets = {n: e for n, e in own.items() if not n.startswith("coop-")}
    assert len(own) - len(id_sets) == 11
    assert len(id_sets) == 11
    pairs = {(name, ood) for name in id_sets for ood in datasets.partners(name)}
    assert len(pairs) == 44
    assert all(CATALOGUE[ood].role == "ood" for _, ood in pairs)
    assert {n for n, ood in pairs if ood in ("svhn", "lsun")} == {"cifar10", "cifar100"}
    assert CATALOGUE["imagenet"].extra_partners == ("ninco",)


def test_every_set_of_the_benchmark_says_where_to_get_it():
    sets = {name: entry for name, entry in CATALOGUE.items() if name not in BUILTIN}
    assert len(sets) == 21 + 5 + 11
    for name, entry in sets.items():
        assert entry.home, name
        assert entry.layout, name
        assert entry.licence, name
        assert entry.role in ("id", "ood", "shift"), name


MISSING = {name: name for name in CATALOGUE if name not in BUILTIN} | {
    name: f"{name}:fog:1" for name, entry in CATALOGUE.items() if entry.parameters
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_set_says_what_where_and_whence(tmp_path, monkeypatch, name):
    def fail(*_args, **_kwargs):
        raise DatasetError("no network in tests")

    monkeypatch.setattr(fetching, "fetch", fail)
    with pytest.raises(DatasetError) as error:
        datasets.load_images(MISSING[name], tmp_path)
    line = str(error.value)
    assert f"data set '{MISSING[name]}' is not whole" in line
    assert error.value.remedy == "data-root"
    assert CATALOGUE[name].layout in line
    assert CATALOGUE[name].home in line
    assert "\n" not in line


@pytest.mark.parametrize(("name", "top"), [("inaturalist", "iNaturalist"), ("sun", "SUN")])
def test_the_ood_archives_need_no_unpacking(tmp_path, name, top):
    images = tmp_path / "unpacked" / top / "images"
    images.mkdir(parents=True)
    for i in range(5):
        Image.new("RGB", (9, 8), (i, 0, 0)).save(images / f"{i}.jpg")
    (tmp_path / "packed").mkdir()
    with tarfile.open(tmp_path / "packed" / f"{top}.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "unpacked" / top, top)
    packed, unpacked = (datasets.load_images(name, tmp_path / d) for d in ("packed", "unpacked"))
    assert packed.identity() == unpacked.identity()
    assert packed.read(3).tobytes() == unpacked.read(3).tobytes()
