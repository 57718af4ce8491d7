"""Sorting that is killed at each of its steps: no photo is lost, the next run ends it."""

import contextlib
import errno
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import pytest
from sorted_photos import dies_at, sort, tree, write

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


def first(folder):
    sort(folder / "out", answers(folder, FIRST))


def second(folder):
    sort(folder / "out", answers(folder, SECOND))


def fewer(folder):
    sort(folder / "out", answers(folder, {"1.png": "dog", "b/2.png": "_noise"}))


def edited(folder):
    write(folder / "photos", {"a/1.png": b"two, and again"})
    second(folder)


@contextlib.contextmanager
def without_links(error):
    """Have hard links fail."""
    link = os.link

    def linked(*_, **__):
        raise OSError(error, os.strerror(error))

    os.link = linked
    try:
        yield
    finally:
        os.link = link


def plainly(act):
    """Act on a file system that has no hard links."""

    def acted(folder):
        with without_links(errno.EPERM):
            act(folder)

    return acted


CASES = {
    "copied": ([], first),
    "other verdicts": ([first], second),
    "fewer images": ([first], fewer),
    "an edited original": ([first], edited),
    "no hard links": ([], plainly(first)),
    "no hard links, other verdicts": ([first], plainly(second)),
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
    before, act = CASES[name]
    place = quick / "at"  # the list has absolute paths: all is done in one place

    def begin():
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(quick / "begun", place, symlinks=True)

    place.mkdir()
    write(place / "photos", PHOTOS)
    write(place, MINE)
    for step in before:
        step(place)
    place.rename(quick / "begun")
    begin()
    act(place)
    ended = tree(place)
    contents = {*PHOTOS.values()} - ({b"two"} if act is edited else set())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        for number in range(1, 1000):
            begin()
            if not dies_at(number, lambda: act(place)):
                break
            kills[name] += 1
            there = tree(place)
            assert contents <= {*there.values()}, f"lost at {number}: {there}"
            assert MINE.items() <= there.items(), number
            originals = {f"photos/{one}": content for one, content in PHOTOS.items()}
            if act is not edited:
                assert originals.items() <= there.items()
            listed = there.get("out/verdicts.csv")
            assert listed is None or listed.startswith(b"source,copy,"), number
            assert listed is None or listed.endswith(b"\r\n"), number
            act(place)
            assert tree(place) == ended, f"other than unkilled at {number}"
    assert tree(place) == ended
    assert kills[name] > 5


def test_so_many_kills():
    """The figure that docs give; where the cases above were all run."""
    if all(kills.values()):
        assert sum(kills.values()) >= 200, kills
