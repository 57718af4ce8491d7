"""LSUN's test set: the LMDB that is published, its images, and ODIN's variants, told by sizes."""

import hashlib
import io
import sys

import pytest
from made import refused
from originals import pictures, write
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.datasets import sizes, status
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.images import limited

lmdb = pytest.importorskip("lmdb")


def webp(size, colour):
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, "webp", lossless=True)
    return content.getvalue()


KEYS = [hashlib.sha1(bytes([i])).hexdigest() for i in range(5)]
VALUES = {key: webp((20 + i, 16), (40 * i, 0, 0)) for i, key in enumerate(KEYS)}


def write_database(path, values=VALUES):
    path.mkdir(parents=True)
    with lmdb.open(str(path), map_size=2**24) as database, database.begin(write=True) as writing:
        for key, value in values.items():
            writing.put(key.encode(), value)
    (path / "lock.mdb").unlink()  # what is published has none
    return path


@pytest.mark.parametrize("place", ["lsun", "lsun/test_lmdb", "test_lmdb"])
def test_it_is_published_as_an_lmdb(tmp_path, place):
    write_database(tmp_path / place)
    images = datasets.load_images("lsun", tmp_path)
    assert images.sample_ids == sorted(KEYS)
    assert (images.labels.tolist(), images.class_names) == ([-1] * 5, ())
    for row, sample_id in enumerate(images.sample_ids):
        i = KEYS.index(sample_id)
        assert images.read(row).size == (20 + i, 16)
        assert images.read(row).getpixel((3, 3)) == (40 * i, 0, 0)
    assert list(status.broken(images, lambda _: None, 4)) == [], "four threads read at once"
    assert not list(tmp_path.rglob("lock.mdb")), "it is read, never written"
    assert status.on_disk(CATALOGUE["lsun"], tmp_path) == "yes"
    assert datasets.look("lsun", tmp_path).flaw == "5 images, must be 10,000"


def test_a_database_loaded_twice_is_one_set_and_another_value_another(tmp_path):
    write_database(tmp_path / "lsun")
    first, again = (datasets.load_images("lsun", tmp_path) for _ in range(2))
    assert first.identity() == again.identity() == first.reload().identity()
    assert again.read(2).tobytes() == first.read(2).tobytes()
    write_database(tmp_path / "b", VALUES | {KEYS[0]: webp((90, 80), (1, 2, 3))})
    other = datasets.load_images(f"mine={tmp_path / 'b'}", tmp_path)
    assert other.identity()["digest"] != first.identity()["digest"]
    assert other.sample_ids == first.sample_ids


def test_a_value_that_is_no_image_is_a_broken_image(tmp_path):
    write_database(tmp_path / "lsun", VALUES | {KEYS[1]: b"no image"})
    [line] = status.broken(datasets.load_images("lsun", tmp_path), lambda _: None, 1)
    assert line.startswith(KEYS[1])


@pytest.mark.parametrize("cut", [100, 5000, -4096, None])
def test_a_database_that_is_cut_off_or_zeros_is_refused(tmp_path, cut):
    file = write_database(tmp_path / "lsun") / "data.mdb"
    file.write_bytes(bytes(16_384) if cut is None else file.read_bytes()[:cut])
    with refused("is no whole LMDB"):
        datasets.load_images("lsun", tmp_path)


def test_an_empty_one_and_one_without_the_package_are_one_line(tmp_path, monkeypatch):
    write_database(tmp_path / "lsun", {})
    with refused("no image in"):
        datasets.load_images("lsun", tmp_path)
    monkeypatch.setitem(sys.modules, "lmdb", None)
    monkeypatch.setattr(
        "zsntta_cli.datasets.readers.databases.find_spec",
        lambda name: None if name == "lmdb" else 1,
    )
    with refused("pip install 'zsntta[lsun]'"):
        datasets.load_images("lsun", tmp_path)


def test_a_database_in_a_zip_is_to_be_unpacked(tmp_path):
    folder = tmp_path / "lsun"
    write(folder, {"test_lmdb.zip": b"PK"})
    with refused(f"unzip {folder / 'test_lmdb.zip'} -d {folder}"):
        datasets.load_images("lsun", tmp_path)
    write_database(folder / "test_lmdb")
    assert len(datasets.load_images("lsun", tmp_path)) == 5


# --- which of the three it is


ODIN = {"lsun": "lsun", "lsun-c": "LSUN/test", "lsun-r": "LSUN_resize/LSUN_resize"}


@pytest.mark.parametrize(
    ("name", "sides", "reason"),
    [("lsun", (36, 36), "36 x 36: they are those of 'lsun-c'"),
     ("lsun", (32, 32), "32 x 32: they are those of 'lsun-r'"),
     ("lsun", (33, 33), ""), ("lsun", (300, 301), ""),
     ("lsun-c", (32, 32), "32 x 32: they are those of 'lsun-r'"),
     ("lsun-r", (36, 36), "36 x 36: they are those of 'lsun-c'"),
     ("lsun-c", (36, 32), "32 x 32 to 36 x 36, must be 36 x 36"),
     ("lsun-r", (300, 300), "300 x 300, must be 32 x 32"),
     ("lsun-c", (36, 36), "")],
)  # fmt: skip
def test_what_lies_there_is_told_by_its_sizes(tmp_path, name, sides, reason):
    for i, side in enumerate(sides):
        write(tmp_path, pictures([f"{ODIN[name]}/{i}.png"], size=(side, side)))
    images = datasets.load_images(name, tmp_path)
    said = "; ".join(status.problems(images, CATALOGUE[name]))
    assert "2 images, must be 10,000" in said
    assert f"its images are {reason}" in said if reason else "its images are" not in said


def test_odins_images_may_be_taken_for_lsun_by_a_link(tmp_path):
    write(tmp_path, pictures([f"LSUN/test/{i}.png" for i in range(3)], size=(36, 36)))
    (tmp_path / "lsun").symlink_to(tmp_path / "LSUN" / "test")
    as_lsun, as_itself = (datasets.load_images(name, tmp_path) for name in ("lsun", "lsun-c"))
    assert as_lsun.identity()["digest"] == as_itself.identity()["digest"]


def test_sizes_in_words():
    assert sizes.in_words({(36, 36): 9}) == "36 x 36"
    assert sizes.in_words({(30, 50): 1, (40, 20): 1}) == "30 x 20 to 40 x 50"
    assert sizes.in_words({(30, 50): 1, (40, 20): 2}) == "30 x 20 to 40 x 50, most 40 x 20"
    assert sizes.in_words({}) == ""


def test_sizes_are_those_of_some_images_first_and_last_parts_among_them(tmp_path):
    for width in (8, 9):
        some = range(65) if width == 8 else range(65, 130)
        write(tmp_path, pictures([f"{i:03d}.png" for i in some], size=(width, 7)))
    (tmp_path / "000.png").write_bytes(b"broken")
    images = datasets.load_images(f"mine={tmp_path}", tmp_path)
    assert sizes.image_sizes(images) == {(8, 7): 31, (9, 7): 32}
    assert sizes.image_sizes(limited(images, 3)).keys() == {(8, 7), (9, 7)}
