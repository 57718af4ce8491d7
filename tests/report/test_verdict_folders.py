"""Copies in a folder a class: absent or complete, in a new folder, as private as the photos are."""

import csv
import errno
import hashlib
import os

import pytest
from made import pack
from reviewed import unread, verdict
from sorted_photos import pairs, photos_in, sort, tree, write

from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection.sources import Photo, photos_of
from zsntta_cli.errors import StoreError
from zsntta_cli.report import verdict_folders
from zsntta_cli.report.verdict_folders import folder_names, write_copy

PHOTOS = {"a/1.png": b"one", "b/1.png": b"two", "c/1.png": b"one", "d/2.png": b"noise"}
ANSWERS = {"a/1.png": "cat", "b/1.png": "cat", "c/1.png": "_unsure", "d/2.png": "_noise"}
COPIES = {"cat/1.png": b"one", "cat/1-2.png": b"two", "_unsure/1.png": b"one",
          "_noise/2.png": b"noise"}  # fmt: skip


@pytest.fixture
def here(tmp_path):
    write(tmp_path / "in", PHOTOS)
    return tmp_path


def answers(here):
    """Where photos are from, and what they are."""
    return {here / "in" / name: answer for name, answer in ANSWERS.items()}


def rows(here):
    """The list, as any reader of CSV has it."""
    with (here / "out/verdicts.csv").open(newline="", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def listed(here):
    """The contents of the photos that the list names, as a source."""
    [photos] = photos_of([str(here / "out/verdicts.csv")], LeftOut())
    return [photo.read() for photo in photos]


def test_safe_folders_for_classes():
    names = folder_names([
        "cat", "a/b", "a_b", "../x", "..", "_noise", "_Unsure", "CAT", "ö ä", "x" * 300,
        "verdicts.csv",
    ])  # fmt: skip
    assert list(names.values()) == [
        "cat", "a_b", "a_b-2", "_x", "class", "_noise-2", "_Unsure-2", "CAT-2", "ö ä", "x" * 80,
        "verdicts.csv-2",
    ]  # fmt: skip


def test_images_are_copied_and_the_list_says_from_where(here):
    (here / "out").mkdir()  # an empty folder may be there
    assert sort(here / "out", answers(here)) == [f"{here / 'out'}: 4 copied."]
    assert photos_in(here / "out") == COPIES
    assert photos_in(here / "in") == PHOTOS
    assert sorted(here.iterdir()) == [here / "in", here / "out"]
    assert [(row["copy"], row["answer"], row["class"]) for row in rows(here)] == [
        ("cat/1.png", "clean", "cat"), ("cat/1-2.png", "clean", "cat"),
        ("_unsure/1.png", "unsure", "cat"), ("_noise/2.png", "noise", "cat"),
    ]  # fmt: skip
    assert listed(here) == [*PHOTOS.values()]


ODD = [b"two\nlines.png", b"a\rb.png", b' "q", .png', b"\xff\xfe.png", "ä b.png".encode(),
       b"=1.png"]  # fmt: skip


def test_names_of_any_bytes_survive_the_list(tmp_path):
    paths = [tmp_path / "in" / os.fsdecode(name) for name in ODD]
    write(tmp_path, {path: bytes([n]) for n, path in enumerate(paths)})
    sort(tmp_path / "out", dict.fromkeys(paths, "cat"))
    assert [row["source"] for row in rows(tmp_path)] == [str(path) for path in paths]
    assert listed(tmp_path) == [bytes([n]) for n in range(len(ODD))]


def test_what_cannot_be_copied_is_told(here):
    given = pairs(answers(here))
    (here / "in/a/1.png").unlink()
    write(here / "in", {"b/1.png": b"changed since"})
    given += [
        (Photo("cached", bytes), verdict("cached", -1.0)),
        (Photo("none", bytes, error="gone"), unread("none")),
        member(here / "in", b"noise"),
    ]
    copied, gone, changed, none = sort(here / "out", {}, given)
    assert copied == f"{here / 'out'}: 3 copied."
    assert "1 not copied: gone" in gone
    assert f"1 not copied: changed after they were judged, the first: {here}/in/b/1.png" in changed
    assert "1 not copied: no separate files" in none
    assert {*photos_in(here / "out")} == {"_unsure/1.png", "_noise/2.png", "cat/a.png"}


def test_what_is_there_is_never_written_to(here, monkeypatch):
    write(here, {"file": b"x", "out/cat/mine.png": b"mine"})
    (here / "nowhere").symlink_to("none")
    before = tree(here)
    for root in ("file", "out", "nowhere"):
        with pytest.raises(StoreError, match="already exists, but copies need a new folder"):
            sort(here / root, answers(here))
    assert tree(here) == before

    def slow(*arguments):  # something comes to its place meanwhile
        write(here, {"late/mine.png": b"mine"})
        write_copy(*arguments)

    monkeypatch.setattr(verdict_folders, "write_copy", slow)
    with pytest.raises(StoreError, match="already exists"):
        sort(here / "late", answers(here))
    assert tree(here / "late") == {"mine.png": b"mine"}


def test_a_full_disk_is_one_line_and_leaves_nothing(here, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(verdict_folders, "sync", full)
    with pytest.raises(StoreError, match=r"cannot write .*No space left on device"):
        sort(here / "out", answers(here))
    assert sorted(here.iterdir()) == [here / "in"]


def test_a_copy_is_as_private_and_as_old_as_its_photo_or_its_archive(here):
    rights = {"a/1.png": 0o600, "b/1.png": 0o444}
    for number, (name, mode) in enumerate(rights.items()):
        (here / "in" / name).chmod(mode)
        os.utime(here / "in" / name, ns=(10**18 + number, 10**18 + number))
    archive = pack(here / "photos.zip", {"a.png": b"packed"})
    archive.chmod(0o600)
    placed = pairs({here / "in" / name: "cat" for name in rights})
    sort(here / "out", {}, [*placed, member(archive, b"packed")])
    first, second, packed = ((here / "out/cat" / n).stat() for n in ("1.png", "1-2.png", "a.png"))
    assert [copy.st_mode & 0o777 for copy in (first, second, packed)] == [0o600, 0o444, 0o600]
    assert [first.st_mtime_ns, second.st_mtime_ns] == [10**18, 10**18 + 1]


def member(archive, content):
    """A photo within an archive, and its row."""
    row = verdict("a.png", -1.0, content=hashlib.sha256(content).hexdigest())
    return Photo(f"{archive}/a.png", lambda: content, archive, "a.png"), row


def test_a_name_that_the_target_cannot_have_is_told(tmp_path):
    long = "ü" * 125 + "x.png"  # as long as a name may be: there is no room for a number
    write(tmp_path / "in", {f"1/{long}": b"one", f"2/{long}": b"two"})
    _, told = sort(tmp_path / "out", {tmp_path / "in" / n / long: "cat" for n in "12"})
    assert "1 not copied: the file system refuses such a name" in told
    assert photos_in(tmp_path / "out") == {f"cat/{long}": b"one"}


@pytest.mark.parametrize("step", [0, 3, 8, 9])  # the first copy, within one, the list, the name
def test_killed_at_any_step_it_leaves_no_folder_and_the_next_run_a_whole_one(here, step):
    if not (child := os.fork()):
        left = [step]

        def die(act):
            def called(*arguments):
                if left[0] == 0:
                    os._exit(77)
                left[0] -= 1
                return act(*arguments)

            return called

        for name in ("write_copy", "sync", "take_name"):
            setattr(verdict_folders, name, die(getattr(verdict_folders, name)))
        sort(here / "out", answers(here))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 77
    assert not (here / "out").exists()
    sort(here / "out", answers(here))
    assert photos_in(here / "out") == COPIES
    assert not [*here.glob(".zsntta-*")], "what was left is removed by the next run"
