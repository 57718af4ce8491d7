"""Sorting that is killed at each of its steps: no photo is lost, the next run ends it."""

import contextlib
import errno
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import pytest
from made import Notes
from sorted_photos import dies_at, sort, tree, write

from zsntta_cli.report.undoing import undo

# Photos with one name, two with one content, in folders and not.
PHOTOS = {
    "1.png": b"one", "a/1.png": b"two", "b/1.png": b"two", "b/2.png": b"three", "b/c/2.png": b"4",
}  # fmt: skip
FIRST = {
    "1.png": "cat",
    "a/1.png": "cat",
    "b/1.png": "dog",
    "b/2.png": "_noise",
    "b/c/2.png": "cat",
}
# All change places with each other.
SECOND = {
    "1.png": "dog", "a/1.png": "_noise", "b/1.png": "cat", "b/2.png": "cat", "b/c/2.png": "dog",
}  # fmt: skip
MINE = {"out/cat/2.png": b"mine", "out/_noise/mine.txt": b"my notes"}


def answers(folder, names):
    return {folder / "photos" / name: answer for name, answer in names.items()}


def first(folder, how):
    sort(folder / "out", answers(folder, FIRST), how)


def second(folder, how):
    sort(folder / "out", answers(folder, SECOND), how)


def fewer(folder, how):
    sort(folder / "out", answers(folder, {"1.png": "dog", "b/2.png": "_noise"}), how)


def edited(folder, how):
    write(folder / "photos", {"a/1.png": b"two, and again"})
    second(folder, how)


def undone(folder, _):
    undo(folder / "out", Notes())


@contextlib.contextmanager
def without_links(error, where):
    """Have hard links fail, between some places."""
    link = os.link

    def linked(old, new, **values):
        if where(str(old), str(new)):
            raise OSError(error, os.strerror(error))
        link(old, new, **values)

    os.link = linked
    try:
        yield
    finally:
        os.link = link


def is_across(old, new):
    return ("/photos/" in old) != ("/photos/" in new)


def across(act):
    """Act where photos lie on another file system."""

    def acted(folder, how):
        with without_links(errno.EXDEV, is_across):
            act(folder, how)

    return acted


def plainly(act):
    """Act on a file system that has no hard links."""

    def acted(folder, how):
        with without_links(errno.EPERM, lambda *_: True):
            act(folder, how)

    return acted


CASES = {
    "copy": ("copy", [], first),
    "copy, other verdicts": ("copy", [first], second),
    "copy, fewer images": ("copy", [first], fewer),
    "copy, an edited original": ("copy", [first], edited),
    "copy, undone": ("copy", [first], undone),
    "link": ("link", [], first),
    "link, other verdicts": ("link", [first], second),
    "link, undone": ("link", [first], undone),
    "move": ("move", [], first),
    "move, other verdicts": ("move", [first], second),
    "move, to another file system": ("move", [], across(first)),
    "move, back from another file system": ("move", [first], across(undone)),
    "move, no hard links": ("move", [], plainly(first)),
    "move, no hard links, other verdicts": ("move", [first], plainly(second)),
    "copy, no hard links": ("copy", [], plainly(first)),
    "move, undone": ("move", [first], undone),
    "move, undone after other verdicts": ("move", [first, second], undone),
}


@pytest.fixture
def quick():
    """A folder in memory, where there is one: thousands of files come and go."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


kills = dict.fromkeys(CASES, 0)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_whatever_is_killed_no_photo_is_lost_and_the_next_run_ends_it(quick, monkeypatch, name):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # which takes most of the time
    how, before, act = CASES[name]
    place = quick / "at"  # the list has absolute paths: all is done in one place

    def begin():
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(quick / "begun", place, symlinks=True)

    place.mkdir()
    write(place / "photos", PHOTOS)
    write(place, MINE)
    for step in before:
        step(place, how)
    place.rename(quick / "begun")
    begin()
    act(place, how)
    ended = tree(place)
    contents = {*PHOTOS.values()} - ({b"two"} if act is edited else set())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        for number in range(1, 1000):
            begin()
            if not dies_at(number, lambda: act(place, how)):
                break
            kills[name] += 1
            there = tree(place)
            assert contents <= {*there.values()}, f"lost at {number}: {there}"
            assert MINE.items() <= there.items(), number
            if how != "move":
                originals = {f"photos/{one}": content for one, content in PHOTOS.items()}
                if act is not edited:
                    assert originals.items() <= there.items()
            listed = there.get("out/verdicts.csv")
            assert listed is None or listed.startswith(b"source,copy,"), number
            assert listed is None or listed.endswith(b"\r\n"), number
            try:
                act(place, how)
            except Exception as error:  # an undo that had ended, but for the list
                raise AssertionError(f"{name}, killed at {number}") from error
            assert tree(place) == ended, f"other than unkilled at {number}"
    assert tree(place) == ended
    assert kills[name] > 5


def test_so_many_kills():
    """The figure that docs give; where the cases above were all run."""
    if all(kills.values()):
        assert sum(kills.values()) >= 200, kills
