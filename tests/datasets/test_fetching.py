"""Sets are fetched whole or not at all, whatever a server and a connection do."""

import hashlib
import io
import random
import re
import resource
import tarfile
from contextlib import nullcontext

import pytest
from filelock import FileLock
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made import Notes, refused
from originals import packed
from served import serving

from zsntta_cli.datasets import download
from zsntta_cli.datasets.catalogue import CATALOGUE, DatasetEntry, Download
from zsntta_cli.datasets.known_sets import folder_set
from zsntta_cli.errors import DatasetError, StoreError
from zsntta_cli.progress import Reporter

CONTENT = random.Random(1).randbytes(300_000)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    monkeypatch.setattr(download, "_BLOCK", 10_000)


def md5(content):
    return f"md5:{hashlib.md5(content).hexdigest()}"


def fetch(served, root, file="photos.bin", checksum=None, unpacks="", reporter=None):
    checksum = md5(served.content) if checksum is None else checksum
    source = Download(f"{served.address}/{file}", checksum, unpacks)
    entry = DatasetEntry("ood", 2, 2, "all", folder_set, layout=unpacks or file, files=(source,))
    return [*download.fetch("photos", entry, root, reporter or Reporter())]


# --- One file ---

NEWER = CONTENT[::-1] + b"and more"
SERVERS = st.fixed_dictionaries({
    "ranges": st.booleans(), "length": st.booleans(),
    "more": st.sampled_from([0, 0, 0, 10]),
    "cuts": st.lists(st.integers(0, len(CONTENT) + 1), max_size=3),
    "statuses": st.lists(st.sampled_from([503, 429]), max_size=1),  # the fifth try is the last
})  # fmt: skip
AFTER = {"same": CONTENT, "longer": NEWER, "shorter": NEWER[:10], "other": CONTENT[::-1]}


@settings(max_examples=50)
@given(how=SERVERS, after=st.sampled_from(["same", *AFTER]))
@example(how={"cuts": [50_000, 5_000]}, after="longer")
@example(how={"cuts": [50_000, 0]}, after="shorter")
@example(how={"cuts": [50_000, 60_000], "length": False}, after="same")
def test_a_file_is_the_same_to_the_bit_or_not_there(tmp_path_factory, how, after):
    """Wherever connections break off, whatever a server tells, and if the file changes then.

    A server that tells what it does gives the file; of any, the next good one gives it whole, the
    second time at the latest.
    """
    root = tmp_path_factory.mktemp("data")
    expected = AFTER[after]
    checksum = md5(expected)
    with serving(content=CONTENT, **how) as served:
        served.after_cut = lambda served: setattr(served, "content", expected)
        try:
            fetch(served, root, checksum=checksum)
        except DatasetError:
            tells = how.get("length", True) and not how.get("more")
            assert after != "same" or not tells
            assert not (root / "photos.bin").exists()
            (root / "photos.bin.differs").unlink(missing_ok=True)
    with serving(content=expected) as served:
        try:
            fetch(served, root, checksum=checksum)
        except DatasetError:  # what came before was of another file
            (root / "photos.bin.differs").unlink()
            fetch(served, root, checksum=checksum)
    assert (root / "photos.bin").read_bytes() == expected
    assert [path.name for path in root.iterdir()] == ["photos.bin"]


def test_what_was_fetched_is_said_and_not_fetched_again(tmp_path):
    with serving(content=CONTENT) as served:
        lines = fetch(served, tmp_path)
        assert fetch(served, tmp_path) == lines
        [without_checksum] = fetch(served, tmp_path / "b", checksum="")
        assert len(served.asked) == 2
        (tmp_path / "photos.bin").write_bytes(b"mine")
        assert hashlib.md5(b"mine").hexdigest() in fetch(served, tmp_path)[0]
    assert lines == [f"{tmp_path}/photos.bin: 300,000 bytes, md5 as published"]
    assert hashlib.sha256(CONTENT).hexdigest() in without_checksum


def test_a_second_run_goes_on_with_what_came_and_so_does_its_progress(tmp_path):
    notes = Notes()
    with serving(content=CONTENT, cuts=[60_000, *[0] * 50]) as served:
        with refused("resume"):
            fetch(served, tmp_path)
        held = (tmp_path / ".photos.bin.begun").stat().st_size
        assert 50_000 <= held <= 100_000
        served.cuts.clear()
        served.asked.clear()
        fetch(served, tmp_path, reporter=notes)
    assert served.asked == [f"bytes={held}-"]
    assert (notes.advanced[0], sum(notes.advanced)) == (held // 10_000, 30)
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT


def test_what_came_whole_before_a_kill_is_not_fetched_again(tmp_path):
    (tmp_path / ".photos.bin.begun").write_bytes(CONTENT)
    with serving(content=CONTENT) as served:
        fetch(served, tmp_path)
    assert served.asked == [f"bytes={len(CONTENT)}-"]
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT


def test_a_full_disk_is_told_at_once_and_what_came_is_kept(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with serving(content=CONTENT) as served:
        resource.setrlimit(resource.RLIMIT_FSIZE, (45_000, hard))
        try:
            with refused(".photos.bin.begun", error=StoreError):
                fetch(served, tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        fetch(served, tmp_path)
    assert served.asked == ["", "bytes=45000-"]
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(("status", "asked"), [(404, 1), (403, 1), (503, 5)])
def test_what_a_server_refuses(tmp_path, status, asked):
    with serving(content=CONTENT, statuses=[status] * 9) as served:
        with refused(f"HTTP Error {status}"):
            fetch(served, tmp_path)
        assert len(served.asked) == asked
    assert not (tmp_path / "photos.bin").exists()


def test_what_differs_is_set_aside_and_two_do_not_fetch_one_file(tmp_path):
    with serving(content=CONTENT) as served:
        with refused("photos.bin.differs"):
            fetch(served, tmp_path, checksum="md5:00")
        assert [path.name for path in tmp_path.iterdir()] == ["photos.bin.differs"]
        with FileLock(tmp_path / ".photos.bin.lock"), refused("another process"):
            fetch(served, tmp_path)
    assert not (tmp_path / "photos.bin").exists()


# --- Unpacking ---

PHOTOS = {"top/photos/a/1.png": b"1" * 5000, "top/photos/b/2.png": b"2", "top/other/3.png": b"3"}


def unpacked(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_a_folder_is_unpacked_once_and_an_archive_that_is_none_set_aside(tmp_path):
    whole, how = packed("a.tgz", PHOTOS), {"file": "a.tgz", "unpacks": "set/photos"}
    for content in (whole[:-2000], b"<html>log in</html>"):
        with serving(content=content) as served, refused("a.tgz.differs"):
            fetch(served, tmp_path, checksum="", **how)
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.tgz.differs"]
    with serving(content=whole) as served:
        fetch(served, tmp_path, checksum="", **how)
        assert unpacked(tmp_path / "set") == {"photos/a/1.png": b"1" * 5000, "photos/b/2.png": b"2"}
        served.asked.clear()
        fetch(served, tmp_path, **how)
    assert served.asked == []


UNSOUND = {  # archives, and what is unpacked of them, if anything is
    "a gzip that is cut off": (packed("a.tgz", PHOTOS)[:-700], None),
    "a tar that is cut off": (packed("a.tar", PHOTOS)[:3000], None),
    "nothing": (b"", None),
    "another folder": (packed("a.tgz", {"top/1.png": b"1", "photos": b"1"}), None),
    "a path that leads out": (packed("a.tgz", {**PHOTOS, "photos/../../3.png": b"evil"}), None),
    "a path above": (packed("a.tgz", {**PHOTOS, "../photos/3.png": b"3"}), {"photos/3.png"}),
    "a path from the root": (packed("a.tgz", {**PHOTOS, "/photos/3.png": b"3"}), {"photos/3.png"}),
}


@pytest.mark.parametrize("how", UNSOUND)
def test_an_unsound_archive_gives_no_folder_and_nothing_outside(tmp_path, how):
    archive, (content, more) = tmp_path / "in" / "a.tgz", UNSOUND[how]
    archive.parent.mkdir()
    archive.write_bytes(content)
    with refused("a.tgz") if more is None else nullcontext():
        download.unpack(archive, archive.parent / "photos", Reporter())
    files = {"a.tgz"} if more is None else {"a.tgz", "photos/a/1.png", "photos/b/2.png"} | more
    assert unpacked(archive.parent).keys() == files
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_links_in_an_archive_are_neither_made_nor_followed(tmp_path):
    archive, secret = tmp_path / "a.tar", tmp_path / "secret"
    secret.mkdir()
    with tarfile.open(archive, "w") as tar:
        link, member = tarfile.TarInfo("photos/out"), tarfile.TarInfo("photos/out/1.png")
        link.type, link.linkname, member.size = tarfile.SYMTYPE, str(secret), 1
        tar.addfile(link)
        tar.addfile(member, io.BytesIO(b"x"))
    download.unpack(archive, tmp_path / "photos", Reporter())
    assert list(secret.iterdir()) == []
    assert unpacked(tmp_path / "photos").keys() == {"out/1.png"}


def test_addresses_of_the_catalogue():
    for name, entry in CATALOGUE.items():
        for file in entry.files:
            assert re.match("https?://", file.address), name
            assert re.fullmatch("|md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", file.checksum), name
            assert file.file in (*entry.packed, entry.layout) or file.unpacks, name
