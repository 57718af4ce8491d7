"""Which images of watched folders are finished and new, whatever happens in the folders."""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.detection.runs import growing as module
from zsntta_cli.detection.runs.growing import Growing

NAMES = ["a.png", "b.png", "x/a.png", "x/y/c.png", "x/y/d.png"]
CONTENTS = [b"", b"1", b"22", b"333"]
ACTIONS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(CONTENTS)),
    st.tuples(st.just("replace"), st.sampled_from(NAMES), st.sampled_from(CONTENTS)),
    st.tuples(st.just("remove"), st.sampled_from(NAMES)),
    st.tuples(st.just("rename"), st.sampled_from(["x", "x/y", "z"]), st.sampled_from(["z", "x/w"])),
    st.tuples(st.just("look")),
)


class Folder:
    """A folder whose files' times go up with every change, however quickly these come."""

    def __init__(self, path):
        self.path, self.time = Path(path), 10**18

    def do(self, action, name="", *more):
        path = self.path / name
        if action in ("write", "replace"):
            path.parent.mkdir(parents=True, exist_ok=True)
            target = path.with_name("new.tmp") if action == "replace" else path
            target.write_bytes(more[0])
            self.time += 10**9
            os.utime(target, ns=(self.time, self.time))
            target.replace(path)
        elif action == "remove":
            path.unlink(missing_ok=True)
        elif path.exists() and not (self.path / more[0]).exists():
            target = self.path / more[0]
            if path not in target.parents:
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)

    def versions(self):
        """What is there, but for empty files: name, size, time."""
        files = [path for path in self.path.rglob("*.png") if path.stat().st_size]
        stats = [(path, path.stat()) for path in files]
        return {(str(p), status.st_size, status.st_mtime_ns) for p, status in stats}


def look(growing):
    """Images that are ready at a look, taken; as versions."""
    ready = growing.look()
    taken = growing.take(ready)
    return [(item.source, *status) for item, (_, status) in zip(ready, taken, strict=True)]


@given(st.lists(ACTIONS, max_size=30), st.booleans())
def test_every_version_that_stays_is_taken_once(actions, is_again):
    with TemporaryDirectory() as root:
        folder, taken = Folder(root), []
        growing = Growing({0: folder.path}, interval=1.0)
        for action, *more in actions:
            if action == "look":
                taken += look(growing)
            else:
                folder.do(action, *more)
        if is_again:  # a watch that was stopped and goes on
            growing = Growing({0: folder.path}, growing.seen, interval=1.0)
        for _ in range(4):
            taken += look(growing)
        assert len(taken) == len(set(taken)), "twice"
        assert folder.versions() <= set(taken), "left out"
        for _ in range(8):
            assert look(growing) == []


def test_what_stands_still_for_three_looks_is_ready(tmp_path):
    growing, path = Growing({0: tmp_path}), tmp_path / "a.png"
    path.write_bytes(b"1")
    assert look(growing) == look(growing) == []
    path.write_bytes(b"12")
    assert look(growing) == look(growing) == []
    assert [source for source, *_ in look(growing)] == [str(path)]


def test_links_end_and_each_folder_is_looked_into_once(tmp_path):
    inbox, other = tmp_path / "inbox", tmp_path / "other"
    (inbox / "x").mkdir(parents=True)
    other.mkdir()
    (other / "a.png").write_bytes(b"1")
    for name, target in (("loop", inbox), ("one", other), ("two", other)):
        (inbox / "x" / name).symlink_to(target)
    growing = Growing({0: inbox, 1: other, 2: inbox / "x"})
    taken = [pair for _ in range(4) for pair in look(growing)]
    assert [source for source, *_ in taken] == [str(inbox / "x" / "one" / "a.png")]


def test_a_folder_that_goes_and_comes_again(tmp_path):
    inbox = tmp_path / "inbox"
    growing = Growing({0: inbox})
    assert look(growing) == []
    for content in (b"1", b"22"):
        inbox.mkdir()
        (inbox / "a.png").write_bytes(content)
        assert [size for _ in range(4) for _, size, _ in look(growing)] == [len(content)]
        shutil.rmtree(inbox)
        assert look(growing) == []


def test_known_files_are_looked_at_in_turns_and_quiet_folders_are_not_listed(tmp_path, monkeypatch):
    for number in range(300):
        folder = tmp_path / f"{number % 10}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.png").write_bytes(b"1")
    monkeypatch.setattr(module, "_FILES", 100)
    monkeypatch.setattr(Growing, "_list_in_turns", lambda _: None)
    growing = Growing({0: tmp_path})
    assert sum(len(look(growing)) for _ in range(3)) == 300
    for _ in range(8):  # the folders settle
        look(growing)
    stats, lists = [], []
    stat, scandir = os.stat, os.scandir
    monkeypatch.setattr(os, "stat", lambda *a, **k: stats.append(a[0]) or stat(*a, **k))
    monkeypatch.setattr(os, "scandir", lambda *a: lists.append(a[0]) or scandir(*a))
    for _ in range(3):
        before = len(stats)
        assert look(growing) == []
        assert len(stats) - before == 100 + 11, "100 files, and the folders"
    assert lists == []
    assert len({path for path in stats if str(path).endswith(".png")}) == 300
    monkeypatch.undo()
    monkeypatch.setattr(module, "_FILES", 100)
    (tmp_path / "7" / "7.png").write_bytes(b"in place")
    taken = [source for _ in range(6) for source, *_ in look(growing)]
    assert taken == [str(tmp_path / "7" / "7.png")]


@pytest.mark.parametrize("seconds", [-(10**6), 10**6])
def test_clocks_that_differ(tmp_path, seconds):
    growing = Growing({0: tmp_path})
    look(growing)
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"1")
        now = tmp_path.stat().st_mtime + seconds
        os.utime(tmp_path / name, (now, now))
        os.utime(tmp_path, (now, now))  # the same for both: a coarse stamp
    assert sum(len(look(growing)) for _ in range(4)) == 2


def test_a_file_system_without_time_stamps_of_folders(tmp_path):
    inbox = tmp_path / "inbox"
    (inbox / "x").mkdir(parents=True)
    growing = Growing({0: inbox})
    for _ in range(10):  # the folders settle
        look(growing)
    for folder in (inbox, inbox / "x"):
        before = folder.stat().st_mtime_ns
        (folder / "a.png").write_bytes(b"1")
        os.utime(folder, ns=(before, before))
    assert sum(len(look(growing)) for _ in range(4)) == 2


def test_links_that_lead_somewhere_only_later(tmp_path):
    inbox, away = tmp_path / "inbox", tmp_path / "away"
    inbox.mkdir()
    (inbox / "camera").symlink_to(away / "photos")
    (inbox / "a.png").symlink_to(away / "a.png")
    growing = Growing({0: inbox})
    for _ in range(10):
        assert look(growing) == []
    (away / "photos").mkdir(parents=True)
    (away / "a.png").write_bytes(b"1")
    (away / "photos" / "b.png").write_bytes(b"1")
    taken = {source for _ in range(5) for source, *_ in look(growing)}
    assert taken == {str(inbox / "a.png"), str(inbox / "camera" / "b.png")}


def test_a_large_folder_is_listed_as_often_as_that_is_cheap(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BUSY", 64)
    monkeypatch.setattr(module, "_LISTED", 64)
    for number in range(640):
        (tmp_path / f"{number}.png").write_bytes(b"1")
    growing = Growing({0: tmp_path})
    assert sum(len(look(growing)) for _ in range(3)) == 640
    lists, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda *a: lists.append(a[0]) or scandir(*a))
    for number in range(22):  # one arrives at each look
        (tmp_path / f"new-{number}.png").write_bytes(b"1")
        growing.take(growing.look())
    assert 1 <= len(lists) <= 5
    for _ in range(40):
        growing.take(growing.look())
    assert len(growing.seen) == 662
    lists.clear()
    for _ in range(22):  # nothing changes: in its turn alone
        look(growing)
    assert len(lists) <= 3
