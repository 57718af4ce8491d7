"""Copies of photos: as private and as old as these are, under names that can be written."""

import errno
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from made import TINY
from PIL import Image

from zsntta_cli.report import verdict_folders
from zsntta_cli.report.verdict_folders import numbered_name, writable_name, write_copy

LONG = "ü" * 125 + "x"  # 251 bytes, and an ending: as long as a name may be


def write_image(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (32, 32, 3), np.uint8)
    Image.fromarray(pixels).save(path, "PNG")


@pytest.fixture
def sort(zsntta):
    """Sort photos into `sorted` of the working folder: the photos there, and what was said."""

    def run(*sources):
        done = zsntta("detect", *sources, *TINY, "--classes", "circle", "--copy-to", "sorted")
        assert done.exit_code == 0, done.output
        placed = [p for p in Path("sorted").rglob("*") if p.is_file() and p.suffix != ".csv"]
        return sorted(placed), done.stderr

    return run


def mode(path):
    return path.stat().st_mode & 0o777


def test_a_private_photo_stays_private_and_keeps_its_time(tmp_path, sort):
    for number, rights in enumerate((0o600, 0o640, 0o444)):
        path = tmp_path / "photos" / f"{number}.png"
        write_image(path, number)
        path.chmod(rights)
        os.utime(path, ns=(10**18 + number, 10**18 + number))
    placed, _ = sort("photos")
    copies = sorted(placed, key=lambda copy: copy.name)
    assert [mode(p) for p in copies] == [0o600, 0o640, 0o444]
    assert [p.stat().st_mtime_ns for p in copies] == [10**18 + n for n in range(3)]


def test_a_member_of_a_private_archive_is_as_private(tmp_path, sort):
    write_image(tmp_path / "0.png", 0)
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.write(tmp_path / "0.png", "0.png")
    (tmp_path / "photos.zip").chmod(0o600)
    [placed], _ = sort("photos.zip")
    assert mode(placed) == 0o600


def test_nobody_else_can_read_a_photo_while_it_is_written(tmp_path, monkeypatch):
    original, seen = tmp_path / "private.png", []
    original.write_bytes(b"private")
    original.chmod(0o600)
    copystat = verdict_folders.shutil.copystat
    monkeypatch.setattr(
        verdict_folders.shutil, "copystat",
        lambda old, new: (seen.append(mode(new)), copystat(old, new)),
    )  # fmt: skip
    write_copy(b"private", tmp_path / "copy.png", original, True)
    assert [*seen, mode(tmp_path / "copy.png")] == [0o600, 0o600]


def test_a_photo_goes_to_a_file_system_without_permissions(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    original = tmp_path / "private.png"
    original.write_bytes(b"private")
    monkeypatch.setattr(os, "chmod", refuse)
    write_copy(b"private", tmp_path / "copy.png", original, True)
    assert (tmp_path / "copy.png").read_bytes() == b"private"


def test_long_names_that_collide_are_cut(tmp_path, sort):
    for number in range(12):
        write_image(tmp_path / f"photos/{number}/{LONG}.png", number)
    placed, _ = sort("photos")
    assert len(placed) == 12
    assert len({p.read_bytes() for p in placed}) == 12
    assert all(len(os.fsencode(p.name)) <= 255 for p in placed)


@pytest.mark.parametrize("number", [2, 10, 123456])
@pytest.mark.parametrize(
    "name",
    [f"{LONG}.png", "a.png", "ab", f"{'y' * 255}", "a." + "x" * 253, "\udcff" * 250 + ".jpeg"],
)
def test_a_numbered_name_can_be_written_and_keeps_its_ending(tmp_path, name, number):
    numbered = numbered_name(name, number)
    (tmp_path / numbered).touch()
    stem, suffix = os.path.splitext(name)
    end = f"-{number}{suffix[:40]}"
    assert numbered.endswith(end)
    assert stem.startswith(numbered.removesuffix(end))


@pytest.mark.parametrize(
    "name", ["a:b?.png", "ä\udcff.jpg", "CON .png", "x" * 300, "..", ".png", "*"]
)
def test_a_writable_name_is_plain_and_short(name):
    written = writable_name(name, "0123456789abcdef")
    assert "0123456789ab" in written
    assert written.isascii()
    assert not set(written) & set('\\/:*?"<>| ')
    assert len(written) < 100
    assert not written.startswith(".")
    assert not written.endswith(".")


@pytest.mark.parametrize("reason", [errno.EINVAL, errno.ENAMETOOLONG, errno.EILSEQ])
def test_a_name_that_the_target_has_not_is_another_and_the_list_says_so(
    tmp_path, monkeypatch, sort, reason
):
    def as_on_fat(content, path, *original):
        if ":" in path.name:
            raise OSError(reason, os.strerror(reason), str(path))
        write_copy(content, path, *original)

    monkeypatch.setattr(verdict_folders, "write_copy", as_on_fat)
    for number, name in enumerate(("at 12:30.png", "plain.png")):
        write_image(tmp_path / "photos" / name, number)
    sort("photos")
    names = sorted(p.name for p in (tmp_path / "sorted").rglob("*.png"))
    assert len(names) == 2
    assert names[0].startswith("at_12_30-")
    assert names[1] == "plain.png"
    listed = (tmp_path / "sorted/verdicts.csv").read_text()
    assert "at 12:30.png" in listed
    assert names[0] in listed
