"""LSUN's variants, NINCO, OpenOOD's and CoOp's sets, from small files in the originals' formats."""

import hashlib
import io
import json
import shutil
import sys
import tarfile

import numpy as np
import pytest
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.cache import hdf5
from zsntta_cli.datasets import sizes, status
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.images import limited
from zsntta_cli.errors import DatasetError


def picture(path, size=(8, 6), colour=(200, 0, 0)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


def pack(top, archive):
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(top, top.name)
    shutil.rmtree(top)


def webp(size, colour):
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, "webp", lossless=True)
    return content.getvalue()


def write_database(path, values):
    import lmdb

    path.mkdir(parents=True)
    with lmdb.open(str(path), map_size=2**24) as database, database.begin(write=True) as writing:
        for key, value in values.items():
            writing.put(key, value)
    (path / "lock.mdb").unlink()  # what is published has none


KEYS = [hashlib.sha1(bytes([i])).hexdigest().encode() for i in range(5)]


@pytest.fixture
def values():
    return {key: webp((20 + i, 16), (40 * i, 0, 0)) for i, key in enumerate(KEYS)}


# --- LSUN ---


@pytest.mark.parametrize("place", ["lsun", "lsun/test_lmdb", "test_lmdb"])
def test_lsun_as_it_is_published_is_an_lmdb(tmp_path, values, place):
    write_database(tmp_path / place, values)
    images = datasets.load_images("lsun", tmp_path)
    assert images.sample_ids == sorted(key.decode() for key in KEYS)
    assert images.labels.tolist() == [-1] * 5
    assert images.class_names == ()
    by_id = {key.decode(): i for i, key in enumerate(KEYS)}
    for row, sample_id in enumerate(images.sample_ids):
        i = by_id[sample_id]
        assert images.read(row).size == (20 + i, 16)
        assert images.read(row).getpixel((3, 3)) == (40 * i, 0, 0)
    assert not [p for p in tmp_path.rglob("*") if p.name == "lock.mdb"]  # read, never written


def test_a_database_loaded_twice_is_one_set_and_another_value_another(tmp_path, values):
    write_database(tmp_path / "lsun", values)
    first, again = (datasets.load_images("lsun", tmp_path) for _ in range(2))
    assert first.identity() == again.identity() == first.reload().identity()
    assert again.read(2).tobytes() == first.read(2).tobytes()
    write_database(tmp_path / "b", values | {KEYS[0]: webp((90, 80), (1, 2, 3))})
    other = datasets.load_images(f"mine={tmp_path / 'b'}", tmp_path)
    assert other.identity()["digest"] != first.identity()["digest"]
    assert other.sample_ids == first.sample_ids


def test_a_database_is_read_by_several_threads(tmp_path, values):
    write_database(tmp_path / "lsun", values)
    assert list(status.broken(datasets.load_images("lsun", tmp_path), lambda _: None, 4)) == []


def test_a_value_that_is_no_image_is_a_broken_image(tmp_path, values):
    write_database(tmp_path / "lsun", values | {KEYS[1]: b"no image"})
    images = datasets.load_images("lsun", tmp_path)
    [line] = status.broken(images, lambda _: None, 1)
    assert line.startswith(KEYS[1].decode())


@pytest.mark.parametrize("cut", [100, 5000, -4096])
def test_a_database_that_is_cut_off_is_refused(tmp_path, values, cut):
    write_database(tmp_path / "lsun", values)
    file = tmp_path / "lsun" / "data.mdb"
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(DatasetError, match="is no whole LMDB"):
        datasets.load_images("lsun", tmp_path)


def test_and_so_are_one_of_zeros_and_one_without_images(tmp_path):
    (tmp_path / "lsun").mkdir()
    (tmp_path / "lsun" / "data.mdb").write_bytes(bytes(16_384))
    with pytest.raises(DatasetError, match="is no whole LMDB"):
        datasets.load_images("lsun", tmp_path)
    write_database(tmp_path / "b" / "lsun", {})
    with pytest.raises(DatasetError, match="no image in"):
        datasets.load_images("lsun", tmp_path / "b")


def test_without_the_package_a_line_says_what_to_type(tmp_path, values, monkeypatch):
    write_database(tmp_path / "lsun", values)
    monkeypatch.setitem(sys.modules, "lmdb", None)
    monkeypatch.setattr(
        "zsntta_cli.datasets.readers.databases.find_spec",
        lambda name: None if name == "lmdb" else 1,
    )
    with pytest.raises(DatasetError) as error:
        datasets.load_images("lsun", tmp_path)
    assert "pip install 'zsntta[lsun]'" in str(error.value)


def test_a_database_in_a_zip_is_to_be_unpacked(tmp_path, values):
    (tmp_path / "lsun").mkdir()
    (tmp_path / "lsun" / "test_lmdb.zip").write_bytes(b"PK")
    with pytest.raises(DatasetError) as error:
        datasets.load_images("lsun", tmp_path)
    folder = tmp_path / "lsun"
    assert str(error.value).endswith(f"unzip {folder / 'test_lmdb.zip'} -d {folder}")
    write_database(folder / "test_lmdb", values)
    assert len(datasets.load_images("lsun", tmp_path)) == 5


ODIN = [("lsun-c", "LSUN/test", 36), ("lsun-r", "LSUN_resize/LSUN_resize", 32)]


@pytest.mark.parametrize(("name", "path", "side"), ODIN)
def test_odins_variants_as_folder_as_archive_and_without_the_inner_folder(
    tmp_path, name, path, side
):
    top = path.partition("/")[0]
    for place in ("a", "b"):
        for i in range(4):
            picture(tmp_path / place / path / f"{i}.png", (side, side), (i, 0, 0))
    pack(tmp_path / "b" / top, tmp_path / "b" / f"{top}.tar.gz")
    for i in range(4):
        picture(tmp_path / "c" / top / f"{i}.png", (side, side), (i, 0, 0))
    sets = [datasets.load_images(name, tmp_path / place) for place in "abc"]
    assert len({json.dumps(images.identity()) for images in sets}) == 1
    for images in sets:
        assert images.sample_ids == ["0.png", "1.png", "2.png", "3.png"]
        assert images.class_names == []
        assert images.read(3).tobytes() == bytes([3, 0, 0] * side * side)
        assert list(status.problems(images, CATALOGUE[name])) == ["4 images, must be 10,000"]


@pytest.mark.parametrize(
    ("side", "variant"), [(36, "lsun-c"), (32, "lsun-r"), (33, None), (None, None)]
)
def test_what_lies_at_lsun_is_told_by_its_sizes(tmp_path, side, variant):
    for i in range(3):
        picture(tmp_path / "lsun" / f"{i}.png", (side or 256, side or 300 + i), (i, 0, 0))
    images = datasets.load_images("lsun", tmp_path)
    said = "; ".join(status.problems(images, CATALOGUE["lsun"]))
    expected = f"its images are {side} x {side}: they are those of '{variant}'"
    assert (expected in said) == (variant is not None)
    assert ("its images" in said) == (variant is not None)


@pytest.mark.parametrize(
    ("name", "sides", "reason"),
    [("lsun-c", (32, 32), "32 x 32: they are those of 'lsun-r'"),
     ("lsun-r", (36, 36), "36 x 36: they are those of 'lsun-c'"),
     ("lsun-c", (36, 32), "32 x 32 to 36 x 36, must be 36 x 36"),
     ("lsun-r", (300, 300), "300 x 300, must be 32 x 32"),
     ("lsun-c", (36, 36), None)],
)  # fmt: skip
def test_and_so_is_what_lies_at_the_others(tmp_path, name, sides, reason):
    for i, side in enumerate(sides):
        picture(tmp_path / {n: p for n, p, _ in ODIN}[name] / f"{i}.png", (side, side))
    said = list(status.problems(datasets.load_images(name, tmp_path), CATALOGUE[name]))
    assert [line for line in said if "its images" in line] == (
        [f"its images are {reason}"] if reason else []
    )


# --- sizes ---


def test_sizes_in_words():
    assert sizes.in_words({(36, 36): 9}) == "36 x 36"
    assert sizes.in_words({(30, 50): 1, (40, 20): 1}) == "30 x 20 to 40 x 50"
    assert sizes.in_words({(30, 50): 1, (40, 20): 2}) == "30 x 20 to 40 x 50, most 40 x 20"
    assert sizes.in_words({}) == ""


def test_sizes_are_those_of_some_images_first_and_last_parts_among_them(tmp_path):
    for i in range(130):
        picture(tmp_path / "p" / f"{i:03d}.png", (8 if i < 65 else 9, 7))
    (tmp_path / "p" / "000.png").write_bytes(b"broken")
    images = datasets.load_images(f"mine={tmp_path / 'p'}", tmp_path)
    assert sizes.image_sizes(images) == {(8, 7): 31, (9, 7): 32}
    assert sizes.image_sizes(limited(images, 3)).keys() == {(8, 7), (9, 7)}


# --- NINCO ---

OTHERS = ("NINCO_popular_datasets_subsamples/SVHN", "NINCO_OOD_unit_tests/black")


def ninco(top):
    for i, name in enumerate(("amphiuma", "caracal")):
        picture(top / "NINCO_OOD_classes" / name / f"{i}.png", colour=(i, 9, 9))
    for place in OTHERS:
        picture(top / place / "x.png")


@pytest.mark.parametrize("place", ["NINCO", ".", "NINCO/NINCO", "NINCO_all", "NINCO_all/NINCO"])
def test_ninco_is_its_ood_classes_wherever_they_lie(tmp_path, place):
    ninco(tmp_path / place)
    images = datasets.load_images("ninco", tmp_path)
    assert images.sample_ids == ["amphiuma/0.png", "caracal/1.png"]
    assert images.class_names == ["amphiuma", "caracal"]


@pytest.mark.parametrize("file", ["NINCO.tar.gz", "NINCO_all.tar.gz"])
@pytest.mark.parametrize("inner", ["NINCO", "NINCO_all/NINCO"])
def test_and_so_it_is_of_its_archive(tmp_path, file, inner):
    ninco(tmp_path / "a" / inner)
    ninco(tmp_path / "b" / "NINCO")
    pack(tmp_path / "a" / inner.partition("/")[0], tmp_path / "a" / file)
    (tmp_path / "a" / "NINCO.txt").write_text("no archive")
    packed, unpacked = (datasets.load_images("ninco", tmp_path / d) for d in "ab")
    assert packed.identity() == unpacked.identity()
    assert [packed.read(i).getpixel((0, 0)) for i in range(2)] == [(0, 9, 9), (1, 9, 9)]


def test_an_archive_of_the_classes_alone_is_all_of_it(tmp_path):
    for name in ("amphiuma", "caracal"):
        picture(tmp_path / "NINCO" / name / "0.png")
    pack(tmp_path / "NINCO", tmp_path / "NINCO.tar.gz")
    assert datasets.load_images("ninco", tmp_path).class_names == ["amphiuma", "caracal"]


# --- OpenOOD's ---


@pytest.mark.parametrize("within", ["", "images_largescale"])
def test_ssb_hard_is_what_its_list_has(tmp_path, within):
    for wnid in ("n00466377", "n01324431"):
        for i in range(3):
            picture(tmp_path / within / "ssb_hard" / wnid / f"{wnid}_{i}.JPEG")
    assert len(datasets.load_images("ssb-hard", tmp_path)) == 6
    lists = tmp_path / "benchmark_imglist" / "imagenet"
    lists.mkdir(parents=True)
    chosen = ["n01324431/n01324431_2.JPEG", "n00466377/n00466377_0.JPEG"]
    content = "".join(f"ssb_hard/{path} -1\n" for path in chosen).encode()
    (lists / "test_ssb_hard.txt").write_bytes(content)
    images = datasets.load_images("ssb-hard", tmp_path)
    assert images.sample_ids == sorted(chosen)
    assert images.labels.tolist() == [0, 1]
    assert images.facts == {"lists": {"test_ssb_hard.txt": hashlib.sha256(content).hexdigest()}}
    assert "lists" not in images.identity()


def test_openimage_o_has_no_classes_and_its_list_may_lie_beside(tmp_path):
    for i in range(3):
        picture(tmp_path / "openimage_o" / "images" / f"{i} a.jpg")
    assert datasets.load_images("openimage-o", tmp_path).class_names == []
    for prefix in ("openimage_o/images/", "images/", ""):
        (tmp_path / "openimage_o.txt").write_text(f"{prefix}2 a.jpg -1\n{prefix}0 a.jpg -1\n")
        images = datasets.load_images("openimage-o", tmp_path)
        assert images.sample_ids == ["0 a.jpg", "2 a.jpg"]


def test_an_image_of_a_list_that_is_missing_is_told(tmp_path):
    picture(tmp_path / "ssb_hard" / "n00466377" / "a.JPEG")
    listed = tmp_path / "test_ssb_hard.txt"
    listed.write_text("ssb_hard/n00466377/a.JPEG -1\nssb_hard/n00466377/b.JPEG -1\n")
    with pytest.raises(DatasetError, match=r"but 1 of 2 images .* such as n00466377/b.JPEG"):
        datasets.load_images("ssb-hard", tmp_path)
    listed.write_text("\n")
    with pytest.raises(DatasetError, match="0 of 0 images"):
        datasets.load_images("ssb-hard", tmp_path)


def test_imagenet_o_is_a_folder_a_wnid(tmp_path):
    picture(tmp_path / "imagenet-o" / "n01443537" / "a.JPEG")
    picture(tmp_path / "imagenet-o" / "n01704323" / "b.JPEG")
    assert datasets.load_images("imagenet-o", tmp_path).labels.tolist() == [0, 1]


# --- CoOp's ---

SPLITS = {
    "coop-caltech101": ("caltech-101", "split_zhou_Caltech101.json", "101_ObjectCategories"),
    "coop-pets": ("oxford_pets", "split_zhou_OxfordPets.json", "images"),
    "coop-cars": ("stanford_cars", "split_zhou_StanfordCars.json", ""),
    "coop-flowers102": ("oxford_flowers", "split_zhou_OxfordFlowers.json", "jpg"),
    "coop-food101": ("food-101", "split_zhou_Food101.json", "images"),
    "coop-sun397": ("sun397", "split_zhou_SUN397.json", "SUN397"),
    "coop-dtd": ("dtd", "split_zhou_DescribableTextures.json", "images"),
    "coop-eurosat": ("eurosat", "split_zhou_EuroSAT.json", "2750"),
    "coop-ucf101": ("ucf101", "split_zhou_UCF101.json", "UCF-101-midframes"),
}
ROWS = {
    "train": [["c/0.jpg", 2, "third name"], ["a/9.jpg", 0, "first"]],
    "val": [["b/8.jpg", 1, "second_name"]],
    "test": [["b/1.jpg", 1, "second_name"], ["/a/0.jpg", 0, "first"]],
}


def split(tmp_path, name, content=ROWS):
    top, file, within = SPLITS[name]
    picture(tmp_path / top / within / "a" / "0.jpg", colour="blue")
    picture(tmp_path / top / within / "b" / "1.jpg")
    written = content if isinstance(content, bytes) else json.dumps(content).encode()
    (tmp_path / top / file).write_bytes(written)
    return written


@pytest.mark.parametrize("name", SPLITS)
def test_coops_sets_are_the_test_part_of_their_splits(tmp_path, name):
    written = split(tmp_path, name)
    images = datasets.load_images(name, tmp_path)
    assert images.sample_ids == ["b/1.jpg", "a/0.jpg"]
    assert images.labels.tolist() == [1, 0]
    assert images.class_names == ["first", "second_name", "third name"]
    assert images.read(1).getpixel((3, 3))[2] > 200
    assert images.facts == {"lists": {SPLITS[name][1]: hashlib.sha256(written).hexdigest()}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"\xff\xfe", "is no text in UTF-8"),
     (b"[]", "is no split as CoOp has them"),
     (b"{", "is no split as CoOp has them"),
     ({"train": [], "test": []}, "'val'"),
     ({**ROWS, "val": [["x.jpg", "1", "a"]]}, "a row is"),
     ({**ROWS, "val": [["x.jpg", 1]]}, "is no split as CoOp has them"),
     ({**ROWS, "val": [["x.jpg", 1, "another"]]}, "a label with two class names"),
     ({**ROWS, "val": [["x.jpg", 7, "far"]]}, "are not 0, 1, 2"),
     ({**ROWS, "test": [["../../a.jpg", 0, "first"]]}, "which is outside of it"),
     ({**ROWS, "test": [["gone.jpg", 0, "first"]]}, "1 of 1 images are missing")],
)  # fmt: skip
def test_a_split_that_is_none(tmp_path, content, reason):
    split(tmp_path, "coop-pets", content)
    with pytest.raises(DatasetError) as error:
        datasets.load_images("coop-pets", tmp_path)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_aircraft_come_from_their_own_files(tmp_path):
    base = tmp_path / "fgvc_aircraft"
    for number in ("1514522", "0747566"):
        picture(base / "images" / f"{number}.jpg")
    (base / "variants.txt").write_text("707-320\n727-200\nA300B4\n")
    (base / "images_variant_test.txt").write_text("1514522 A300B4\n0747566 707-320\n")
    images = datasets.load_images("coop-aircraft", tmp_path)
    assert images.sample_ids == ["1514522.jpg", "0747566.jpg"]
    assert images.labels.tolist() == [2, 0]
    assert images.class_names == ["707-320", "727-200", "A300B4"]
    assert {*images.facts["lists"]} == {"variants.txt", "images_variant_test.txt"}
    (base / "images_variant_test.txt").write_text("1514522 Concorde\n")
    with pytest.raises(DatasetError, match="'Concorde'"):
        datasets.load_images("coop-aircraft", tmp_path)


@pytest.mark.parametrize("place", ["images/val", "val"])
def test_coops_imagenet_has_its_own_names(tmp_path, place):
    base = tmp_path / "imagenet"
    picture(base / place / "n01443537" / "b.JPEG")
    picture(base / place / "n01440764" / "a.JPEG")
    (base / "classnames.txt").write_text("n01440764 tench\nn01443537 gold fish\n")
    images = datasets.load_images("coop-imagenet", tmp_path)
    assert images.labels.tolist() == [0, 1]
    assert images.class_names == ["tench", "gold fish"]


def test_counts_and_prompts_of_coops_eleven():
    coop = {name: entry for name, entry in CATALOGUE.items() if name.startswith("coop-")}
    images = {name.removeprefix("coop-"): entry.images for name, entry in coop.items()}
    assert images == {  # CoOp, table of the appendix
        "imagenet": 50_000, "caltech101": 2_465, "pets": 3_669, "cars": 8_041, "flowers102": 2_463,
        "food101": 30_300, "aircraft": 3_333, "sun397": 19_850, "dtd": 1_692, "eurosat": 8_100,
        "ucf101": 3_783,
    }  # fmt: skip
    assert datasets.default_prompt("coop-dtd") == "{} texture."
    assert all(entry.prompt.count("{}") == 1 for entry in coop.values())


# --- what verify says of lists ---


def test_facts_have_digests_that_sha256sum_gives(tmp_path):
    split(tmp_path, "coop-pets")
    said = list(status.facts(datasets.load_images("coop-pets", tmp_path)))
    names = hashlib.sha256(b"first\nsecond_name\nthird name\n").hexdigest()
    ids = hashlib.sha256(b"b/1.jpg\na/0.jpg\n").hexdigest()
    assert said[:3] == [
        "images of 8 x 6", f"sha256 of its sample ids: {ids}", f"sha256 of its class names: {names}"
    ]  # fmt: skip
    assert said[3].startswith("sha256 of split_zhou_OxfordPets.json: ")
    flat = datasets.load_images("coop-pets", tmp_path)
    assert np.array_equal(flat.labels, [1, 0])


# --- as it is typed ---


def test_odins_images_are_taken_for_lsun_by_a_link(zsntta, tmp_path):
    for i in range(3):
        picture(tmp_path / "data" / "LSUN" / "test" / f"{i}.png", (36, 36), (80 * i, 0, 0))
    (tmp_path / "data" / "lsun").symlink_to(tmp_path / "data" / "LSUN" / "test")
    features = ("--model", "tiny", "--features-dir", tmp_path / "f")
    result = zsntta("extract", "--dataset", "lsun", "--dataset", "lsun-c", *features)
    assert result.exit_code == 0, result.stderr
    as_lsun, as_itself = (
        hdf5.read_features(tmp_path / "f" / "tiny" / f"{name}.h5") for name in ("lsun", "lsun-c")
    )
    assert as_lsun.digest == as_itself.digest
    assert as_lsun.source["image_sizes"] == "36 x 36"
    verified = zsntta("datasets", "verify", "lsun")
    assert verified.exit_code == 1
    assert "its images are 36 x 36: they are those of 'lsun-c': " in verified.stderr
    assert "they are those of" not in zsntta("datasets", "verify", "lsun-c").stderr


def test_an_lmdb_is_extracted_and_a_zip_told_of(zsntta, tmp_path, values):
    write_database(tmp_path / "data" / "lsun" / "test_lmdb", values)
    result = zsntta("extract", "--dataset", "lsun", "--model", "tiny", "--features-dir", "f")
    assert result.exit_code == 0, result.stderr
    path = tmp_path / "f" / "tiny" / "lsun.h5"
    assert hdf5.read_features(path).source["image_sizes"] == "20 x 16 to 24 x 16"
    assert set(hdf5.read_sample_ids(path)) == {key.decode() for key in KEYS}
    shutil.rmtree(tmp_path / "data" / "lsun" / "test_lmdb")
    (tmp_path / "data" / "lsun" / "test_lmdb.zip").write_bytes(b"PK")
    zipped = zsntta("datasets", "verify", "lsun")
    assert zipped.exit_code == 1
    assert zipped.stderr.strip().endswith("unzip data/lsun/test_lmdb.zip -d data/lsun")


def test_what_lies_there_is_seen(zsntta, tmp_path):
    split(tmp_path / "data", "coop-pets")
    shown = zsntta("datasets", "show", "coop-pets").stdout
    assert "a photo of a {}, a type of pet." in shown
    assert "3,669" in shown
    assert status.on_disk(CATALOGUE["coop-pets"], tmp_path / "data") == "yes"
    assert status.on_disk(CATALOGUE["coop-dtd"], tmp_path / "data") == "no"
    (tmp_path / "data" / "oxford_pets" / "split_zhou_OxfordPets.json").unlink()
    assert status.on_disk(CATALOGUE["coop-pets"], tmp_path / "data") == "in part"
    write_database(tmp_path / "data" / "lsun", {b"a": b"b"})
    assert status.on_disk(CATALOGUE["lsun"], tmp_path / "data") == "yes"
