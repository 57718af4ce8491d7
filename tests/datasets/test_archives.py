"""Archives of images, made here in each kind, against the folder they were made of."""

import contextlib
import io
import stat
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from made import damaged, pack, refused
from originals import picture
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.datasets.images import UNREADABLE
from zsntta_cli.errors import DatasetError

PNG = picture(form="png")


def load(path):
    return datasets.load_images(f"pets={path}", Path())


@pytest.fixture(params=[".tar", ".zip"])
def kind(request):
    return request.param


def test_an_archive_is_what_its_folder_is(tmp_path, picture_folder, kind):
    files = {f"top/{p.relative_to(picture_folder)}": p.read_bytes()
             for p in sorted(picture_folder.rglob("*.*"), reverse=True)}  # fmt: skip
    images, folder = load(pack(tmp_path / f"a{kind}", files)), load(picture_folder)
    assert list(images.class_names) == ["big_cat", "dog"]
    assert images.identity() == folder.identity()
    for i in range(len(folder)):
        assert np.array_equal(images.read(i), folder.read(i))


def test_what_is_no_image_is_left_out(tmp_path, kind):
    files = {"a/1.png": PNG, "b/2.png": PNG, "README": b"x", "a/notes.txt": b"x",
             "__MACOSX/a/1.png": b"x", "a/._1.png": b"x", "../evil.png": PNG,
             "/abs/evil.png": PNG, "a/../../evil.png": PNG}  # fmt: skip
    before = set(tmp_path.rglob("*"))
    images = load(pack(tmp_path / f"a{kind}", files))
    assert list(images.sample_ids) == ["a/1.png", "b/2.png"]
    for count in ("3 outside", "1 .txt", "1 without an ending", "1 hidden folder (__MACOSX)"):
        assert count in images.left_out
    assert images.read(1).size == (8, 8)
    assert set(tmp_path.rglob("*")) - before == {tmp_path / f"a{kind}"}


def test_links_are_not_followed(tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(PNG)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        forms = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)
        for name, form in zip(("soft.png", "hard.png", "fifo.png", "dir.png"), forms, strict=True):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = form, str(secret)
            archive.addfile(entry)
        archive.add(secret, "real.png")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        link = zipfile.ZipInfo("soft.png")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, str(secret))
        archive.writestr("dir.png/", "")
        archive.write(secret, "real.png")
    for suffix, left_out in ((".tar", "2 linked, 1 unreadable"), (".zip", "1 linked")):
        images = load(tmp_path / f"a{suffix}")
        assert (list(images.sample_ids), images.left_out) == (["real.png"], left_out)


def test_many_threads_read_at_once(tmp_path, kind):
    files = {f"{i % 3}/{i:03d}.png": picture(i, (9 + i % 7, 30), "png") for i in range(200)}
    images = load(pack(tmp_path / f"a{kind}", files))
    rows = np.random.default_rng(1).integers(len(images), size=1_000).tolist()
    with ThreadPoolExecutor(8) as threads:
        shown = list(threads.map(images.read, rows))
    for i, image in zip(rows, shown, strict=True):
        assert np.array_equal(image, Image.open(io.BytesIO(files[images.sample_ids[i]])))


@pytest.mark.parametrize("share", [0, 0.5, 0.97])
def test_an_archive_that_is_cut_off_is_refused(tmp_path, kind, share):
    path = pack(tmp_path / f"a{kind}", {f"{i}.png": picture(i, (40, 40), "png") for i in range(12)})
    content = path.read_bytes().rstrip(b"\0")  # a tar's end is padding
    path.write_bytes(content[: int(share * len(content))])
    with refused(path.name, "complete"):
        load(path)


def test_300_damaged_archives_are_read_or_refused(tmp_path, kind):
    path = pack(tmp_path / f"a{kind}", {f"{i % 2}/{i}.png": PNG for i in range(6)})
    content, generator = path.read_bytes(), np.random.default_rng(2)
    for _ in range(300):
        path.write_bytes(damaged(content, generator))
        with contextlib.suppress(DatasetError):
            images = load(path)
            for i in range(len(images)):
                with contextlib.suppress(*UNREADABLE):
                    images.read(i)


def test_a_compressed_tar_is_refused_with_the_command_that_unpacks_it(tmp_path):
    with refused("tar -xzf"):
        load(pack(tmp_path / "f.tar.gz", {"x.png": PNG}))
