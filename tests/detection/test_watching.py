"""Folders that fill up: each image once, whatever stops the watch."""

import contextlib
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made import TINY, ZSNTTA, Notes, fails

from zsntta_cli import NoiseDetector, OnlineDetector
from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.owners import owned
from zsntta_cli.detection.runs import watching
from zsntta_cli.detection.runs.detecting import detect_run
from zsntta_cli.detection.runs.request import DecisionRule, Images, Request, Watch
from zsntta_cli.detection.runs.watching import Watching, WatchState, resumed
from zsntta_cli.detection.sources.item import of_file
from zsntta_cli.errors import StoreError
from zsntta_cli.report.verdict_files import GrowingFile
from zsntta_cli.settings import EncoderChoice

NAMES = tuple(render("shapes").class_names)
OPTIONS = ("--classes", ",".join(NAMES), *TINY, "--watch")


class Script:
    """What happens between the looks, one thing after another; then the watch ends."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def is_set(self):
        return False

    def wait(self, timeout):
        assert timeout == 1.0
        if self.steps and (step := self.steps.pop(0)):
            step()
        return not self.steps


@pytest.fixture
def inbox(drawn, tmp_path, monkeypatch):
    """An empty folder beside features that are known; pictures come from `drawn`."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(drawn / "features", tmp_path / "features")
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def job(*folders, **more):
    images = Images(sources=tuple(folders or ["inbox"]))
    request = Request(images=images, classes=NAMES, watch=Watch(), **more)
    encoding = Encoding(EncoderChoice("tiny"), Path("features"), "cpu", 2, Notes())
    return detect_run(request, encoding)


def watched(*steps, known=None):
    found = job()
    watching = Watching(found, Watch(), known or WatchState())
    stop = Script(*steps)
    return [row for batch in watching.batches(None, stop) for row in batch.rows]


def test_an_image_that_is_being_written_is_judged_when_it_is_whole(inbox, drawn):
    content = next((drawn / "pictures/star").iterdir()).read_bytes()
    path = inbox / "a.png"

    def append(at, to):
        def step():
            with path.open("ab") as file:
                file.write(content[at:to])

        return step

    fifth = -(-len(content) // 5)
    growing = [append(i * fifth, (i + 1) * fifth) for i in range(5)]
    rows = watched(path.touch, None, None, *growing, None, None, None, None)
    assert [(row["source"], row["error"]) for row in rows] == [("inbox/a.png", None)]


def test_one_that_stood_still_half_written_is_judged_again_when_it_is_whole(inbox, drawn):
    content = next((drawn / "pictures/star").iterdir()).read_bytes()
    path = inbox / "a.png"
    rows = watched(
        lambda: path.write_bytes(content[:100]), *[None] * 4,
        lambda: path.write_bytes(content), *[None] * 4,
    )  # fmt: skip
    assert [row["source"] for row in rows] == ["inbox/a.png"] * 2
    assert rows[0]["error"]
    assert rows[1]["error"] is None


def test_what_comes_is_decided_in_its_order_as_a_stream_is(inbox, drawn):
    pictures = sorted((drawn / "pictures").rglob("*.png"))

    def coming(i):
        def step():
            path = inbox / f"{i % 7}-{i}.png"
            shutil.copyfile(pictures[i], path)
            os.utime(path, (1000 + i, 1000 + i))

        return step

    rows = watched(*[coming(i) for i in range(len(pictures))], None, None, None)
    assert [row["source"] for row in rows] == [f"inbox/{i % 7}-{i}.png" for i in range(60)]
    plain = job()
    encoded = plain.encoding.images([of_file(path) for path in pictures])
    expected = plain.detector.update(np.stack([one.features for one in encoded]))
    assert [row["score"] for row in rows] == expected.score.tolist()


def run(state, out, *steps):
    """A watch as the command runs it; without its end, so as if it were killed."""
    found = job()
    known = resumed(state, found.detector, True)
    file = GrowingFile(out).begin(known.written)
    watching = Watching(found, Watch(), known, state)
    with contextlib.closing(file):
        for batch in watching.batches(file, Script(*steps)):
            file.take(batch)
            yield batch


def test_a_watch_goes_on_where_its_state_says(inbox, drawn, tmp_path):
    state, out = tmp_path / "state.h5", tmp_path / "rows.jsonl"
    pictures = sorted((drawn / "pictures").rglob("*.png"))
    for i, path in enumerate(pictures):
        shutil.copyfile(path, inbox / f"{i:02}.png")
        os.utime(inbox / f"{i:02}.png", (1000 + i, 1000 + i))
    for i in range(60, 140):
        shutil.copyfile(pictures[i % 60], inbox / f"{i:03}.png")
        os.utime(inbox / f"{i:03}.png", (1000 + i, 1000 + i))
    whole = tmp_path / "whole.jsonl"
    for _ in run(tmp_path / "other.h5", whole, *[None] * 4):
        pass
    for _ in range(2):  # stopped after rows were written, and before the state said so
        stopped = run(state, out, *[None] * 4)
        next(stopped)
        stopped.close()
        assert len(out.read_text().splitlines()) == 64
    with out.open("a") as file:
        file.write('{"half')
    for _ in run(state, out, *[None] * 4):
        pass
    assert out.read_text() == whole.read_text()
    assert len(out.read_text().splitlines()) == 140
    assert list(run(state, out, *[None] * 4)) == [], "each once"


def test_a_state_of_something_else_is_refused(inbox, tmp_path, drawn):
    state, out = tmp_path / "state.h5", tmp_path / "rows.jsonl"
    shutil.copyfile(next((drawn / "pictures/star").iterdir()), inbox / "a.png")
    assert len(list(run(state, out, *[None] * 4))) == 1
    with pytest.raises(StoreError, match=r"goes with a file of 1 rows: name it, --out FILE"):
        resumed(state, job().detector, False)
    with pytest.raises(StoreError, match="is of other settings"):
        resumed(state, job(rule=DecisionRule(method="zs-clip")).detector, True)
    size = out.stat().st_size
    out.write_text("")
    with pytest.raises(StoreError, match=f"has 0 bytes, and the state says {size}"):
        list(run(state, out))
    state.write_bytes(state.read_bytes()[:2000])
    with pytest.raises(StoreError, match="is not a whole zsntta state file"):
        resumed(state, job().detector, True)
    out.write_text("mine\n")
    with pytest.raises(StoreError, match="has rows already"):
        list(run(tmp_path / "new.h5", out))
    assert out.read_text() == "mine\n"


def test_rows_of_another_format_are_not_gone_on_with(inbox, tmp_path, drawn, monkeypatch):
    state, out = tmp_path / "state.h5", tmp_path / "rows.jsonl"
    shutil.copyfile(next((drawn / "pictures/star").iterdir()), inbox / "a.png")
    with monkeypatch.context() as older:
        older.setattr(watching, "FORMAT", 1)
        assert len(list(run(state, out, *[None] * 4))) == 1
    with pytest.raises(StoreError, match=r"rows of format 1, .* begin anew with another state and"):
        resumed(state, job().detector, True)


OWNING = """
import sys
from zsntta_cli import OnlineDetector, ZsnttaError
detector = OnlineDetector([[1.0, 0.0], [0.0, 1.0]], 100.0)
try:
    detector.save(sys.argv[1])
except ZsnttaError as error:
    sys.exit(str(error))
print("saved", flush=True)
sys.stdin.readline()
"""


def owner(path):
    command = [sys.executable, "-c", OWNING, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes)


def test_one_process_writes_a_state_at_a_time(inbox, tmp_path):
    path = tmp_path / "s.h5"
    wrong = "is written by another process that runs"
    with owner(path) as first:
        assert first.stdout.readline() == "saved\n"
        with owner(path) as second:
            assert wrong in second.communicate(timeout=60)[1]
        before = path.read_bytes()
        for writes in (lambda: job().detector.save(path), lambda: owned(path).__enter__()):
            with pytest.raises(StoreError, match=wrong):
                writes()
        assert path.read_bytes() == before
        assert OnlineDetector.load(path).seen == 0, "reading is for all"
        first.kill()
    detector, other = job().detector, job().detector
    detector.save(path)
    other.save(path)  # another of this process
    with owner(path) as third:
        assert wrong in third.communicate(timeout=60)[1]
    del detector, other
    gc.collect()
    with owned(path), owned(path):
        pass
    with owner(path) as last:
        assert last.stdout.readline() == "saved\n", "nobody owns it any more"
        last.kill()


def test_the_command_watches_and_goes_on(pictures):
    given = ("detect", "pictures", *OPTIONS, "--interval", "0.01", "--out", "rows.csv")
    first = pictures(*given, "--looks", "3", "--state", "s.h5")
    assert first.exit_code == 0, first.output
    assert "60 images" in first.stderr
    again = pictures(*given, "--looks", "4", "--state", "s.h5")
    assert again.stderr.splitlines() == [
        "s.h5: goes on after 60 images.", "0 images, 0 flagged as noise (ridge, 10 classes).",
    ]  # fmt: skip
    lines = Path("rows.csv").read_text().splitlines()
    assert len(lines) == 61
    assert lines[0].startswith("format,source,frame")
    fails(pictures(*given, "--looks", "1"), "has rows already")
    other = ("detect", "pictures", "--classes", "star,circle", *OPTIONS[2:])
    fails(pictures(*other, "--state", "s.h5"), "s.h5 is of other classes")


def test_ctrl_c_ends_a_watch_well(pictures):
    command = [ZSNTTA, "detect", "pictures", *OPTIONS, "--interval", "0.05", "--state", "s.h5"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        rows = [json.loads(process.stdout.readline()) for _ in range(60)]
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=60)
    assert rest == ""
    assert process.returncode == 0, said
    assert said.startswith("60 images, ")
    assert len({row["source"] for row in rows}) == 60
    again = pictures("detect", "pictures", *OPTIONS, "--looks", "4", "--interval", "0.01",
                     "--state", "s.h5")  # fmt: skip
    assert again.stdout == ""


@pytest.mark.slow
def test_killed_at_any_moment_no_image_is_left_out_or_judged_twice(drawn, tmp_path):
    script = Path(__file__).parents[1] / "whole" / "kill_watches.py"
    kills = "200" if os.environ.get("ZSNTTA_TORTURE") else "12"
    done = subprocess.run(
        [sys.executable, script, drawn, tmp_path, kills], capture_output=True, text=True,
        check=False, env=os.environ | {"PYTHONPATH": str(script.parents[2])},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{kills} kills" in done.stdout
    assert "0 left out, 0 twice, 0 wrong" in done.stdout


def rows_in(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def fill(inbox, drawn, numbers):
    pictures = sorted((drawn / "pictures").rglob("*.png"))
    for i in numbers:
        shutil.copyfile(pictures[i % 60], inbox / f"{i:03}.png")
        os.utime(inbox / f"{i:03}.png", (1000 + i, 1000 + i))


def finish(state, out, *steps):
    for _ in run(state, out, *(steps or [None] * 4)):
        pass


def test_folder_state_and_rows_move_together(inbox, drawn, tmp_path, monkeypatch):
    (tmp_path / "old").mkdir()
    fill(inbox, drawn, range(70))
    finish(tmp_path / "old" / "s.h5", tmp_path / "old" / "rows.jsonl")
    fill(inbox, drawn, range(70, 80))
    finish(tmp_path / "whole.h5", tmp_path / "whole.jsonl")
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "old").rename(elsewhere)
    (elsewhere / "rows.jsonl").rename(elsewhere / "named-anew.jsonl")
    inbox.rename(tmp_path / "box")
    shutil.copytree(tmp_path / "features", elsewhere / "features")
    (tmp_path / "box").rename(elsewhere / "inbox")
    monkeypatch.chdir(elsewhere)
    finish(Path("s.h5"), Path("named-anew.jsonl"))
    assert rows_in("named-anew.jsonl") == rows_in(tmp_path / "whole.jsonl")


def test_folders_named_in_another_order_and_new_ones_beside_them(inbox, drawn, tmp_path):
    (tmp_path / "second").mkdir()
    fill(inbox, drawn, range(3))
    fill(tmp_path / "second", drawn, range(3, 5))

    def sources(*folders):
        watch = job(*folders)
        watching = Watching(watch, Watch(), resumed(state, watch.detector, False), state)
        rows = [r for b in watching.batches(None, Script(*[None] * 4)) for r in b.rows]
        return [row["source"] for row in rows]

    state = tmp_path / "s.h5"
    assert len(sources("inbox", "second")) == 5
    assert sources("second", "inbox") == []
    inbox.rename(tmp_path / "renamed")
    fill(tmp_path / "renamed", drawn, [9])
    (tmp_path / "third").mkdir()
    fill(tmp_path / "third", drawn, [7])
    assert sources("second", "renamed", "third") == ["third/007.png", "renamed/009.png"]
    assert sources("third") == []


def test_a_row_says_which_one_it_replaces(inbox, drawn, tmp_path):
    state, out = tmp_path / "s.h5", tmp_path / "rows.jsonl"
    fill(inbox, drawn, range(3))
    finish(state, out)
    shutil.copyfile(inbox / "002.png", inbox / "001.png")
    os.utime(inbox / "001.png", (5000, 5000))
    finish(state, out)
    shutil.copyfile(inbox / "000.png", inbox / "001.png")
    os.utime(inbox / "001.png", (6000, 6000))
    fill(inbox, drawn, [5])
    finish(state, out)
    rows = rows_in(out)
    assert [(row["source"], row["replaces"]) for row in rows] == [
        ("inbox/000.png", None), ("inbox/001.png", None), ("inbox/002.png", None),
        ("inbox/001.png", 2), ("inbox/005.png", None), ("inbox/001.png", 4),
    ]  # fmt: skip
    superseded = {row["replaces"] for row in rows}
    kept = [row for number, row in enumerate(rows, 1) if number not in superseded]
    assert sorted(row["source"] for row in kept) == [f"inbox/00{i}.png" for i in (0, 1, 2, 5)]


def test_other_rows_and_other_seen_files_are_refused(inbox, drawn, tmp_path):
    state, out = tmp_path / "s.h5", tmp_path / "rows.jsonl"
    fill(inbox, drawn, range(3))
    finish(state, out)
    content = out.read_bytes()
    out.write_bytes(content.replace(b"clean", b"noise") + b"more")
    before = out.read_bytes()
    with pytest.raises(StoreError, match="is not the file of rows that the state goes with"):
        finish(state, out)
    assert out.read_bytes() == before, "nothing is cut off"
    out.write_bytes(content)
    finish(tmp_path / "other.h5", tmp_path / "other.jsonl")
    seen = state.with_name("s.h5.seen")
    for spoil, wrong in (
        (lambda: shutil.copyfile(tmp_path / "other.h5.seen", seen), "is of another state"),
        (lambda: seen.write_bytes(b"no database" * 100), "is not a database"),
        (seen.unlink, "is missing, which goes with"),
    ):
        spoil()
        with pytest.raises(StoreError, match=wrong):
            finish(state, out)
    assert out.read_bytes() == content


def test_rows_that_were_there_are_not_cut_off_by_a_state_without_rows(inbox, drawn, tmp_path):
    state, mine = tmp_path / "s.h5", tmp_path / "mine.jsonl"
    fill(inbox, drawn, range(3))
    watch = job()
    for _ in Watching(watch, Watch(), resumed(state, watch.detector, False), state).batches(
        None, Script(*[None] * 4)
    ):
        pass
    mine.write_text("mine\n")
    with pytest.raises(StoreError, match="has rows already"):
        finish(state, mine)
    assert mine.read_text() == "mine\n"


def test_states_of_watches_and_of_detectors_are_one_format(inbox, drawn, tmp_path):
    state = tmp_path / "s.h5"
    fill(inbox, drawn, range(70))
    finish(state, tmp_path / "rows.jsonl")
    detector, plain = NoiseDetector.load(state), OnlineDetector.load(state)
    assert detector.seen == plain.seen == 70
    assert detector.predict(inbox / "000.png").score == plain.predict(
        detector.encode(inbox / "000.png")
    ).score  # fmt: skip
    detector.update(sorted(inbox.iterdir())[:5])
    again = tmp_path / "again.h5"
    detector.save(again)
    watch = job()
    known = resumed(again, watch.detector, True)
    assert watch.detector.seen == 75
    assert known.seen == {}
    rows = [r for b in Watching(watch, Watch(), known, again).batches(None, Script(*[None] * 4))
            for r in b.rows]  # fmt: skip
    assert len(rows) == 70
    assert {row["stage"] for row in rows} == {"adapted"}
    assert NoiseDetector.load(again).seen == 145


def test_what_is_warm_does_not_begin_with_the_rule_of_zs_clip(pictures):
    watch = ("detect", "pictures/star", *OPTIONS, "--looks", 4, "--interval", 0.01)
    cold = [json.loads(line) for line in pictures(*watch).stdout.splitlines()]
    assert {row["stage"] for row in cold} == {"warm-up"}
    shutil.copytree("pictures", "more")
    for number, path in enumerate(sorted(Path("pictures").rglob("*.png"))):
        shutil.copyfile(path, f"more/{number}.png")
    warm = pictures(*watch, "--warm", "more", "--state", "s.h5")
    assert warm.exit_code == 0, warm.stderr
    rows = [json.loads(line) for line in warm.stdout.splitlines()]
    assert {row["stage"] for row in rows} == {"adapted"}
    assert {Path(row["source"]).parent.name for row in rows} == {"star"}
    again = pictures(*watch, "--warm", "more", "--state", "s.h5")
    assert OnlineDetector.load("s.h5").seen == 120 + len(rows), again.stderr
    arrival = ("detect", "pictures/x/00000.png", *OPTIONS[:-1], "--decide", "arrival")
    assert json.loads(pictures(*arrival, "--warm", "more").stdout)["stage"] == "adapted"
    fails(pictures("detect", "pictures", *OPTIONS[:-1], "--warm", "more"), "on arrival", code=2)


def test_another_folder_with_files_of_the_same_names_replaces_nothing(inbox, drawn, tmp_path):
    state, out = tmp_path / "s.h5", tmp_path / "rows.jsonl"
    fill(inbox, drawn, range(3))
    finish(state, out)
    (tmp_path / "next").mkdir()
    for i in range(3):
        shutil.copyfile(inbox / f"{i:03}.png", tmp_path / "next" / f"{i:03}.png")
        os.utime(tmp_path / "next" / f"{i:03}.png", (2000 + i, 2000 + i))

    def finish_in(*folders):
        watch = job(*folders)
        known = resumed(state, watch.detector, True)
        with contextlib.closing(GrowingFile(out).begin(known.written)) as file:
            for batch in Watching(watch, Watch(), known, state).batches(file, Script(*[None] * 4)):
                file.take(batch)

    finish_in("next")
    finish_in("inbox")
    assert [(row["source"], row["replaces"]) for row in rows_in(out)] == [
        (f"{folder}/00{i}.png", None) for folder in ("inbox", "next") for i in range(3)
    ]


def test_a_copy_of_folder_state_and_rows_goes_on(inbox, drawn, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    inbox.rename(tmp_path / "here" / "inbox")
    (tmp_path / "features").rename(tmp_path / "here" / "features")
    monkeypatch.chdir(tmp_path / "here")
    fill(Path("inbox"), drawn, range(3))
    finish(Path("s.h5"), Path("rows.jsonl"))
    shutil.copytree(tmp_path / "here", tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    fill(Path("inbox"), drawn, [5])
    finish(Path("s.h5"), Path("rows.jsonl"))
    assert [row["source"] for row in rows_in("rows.jsonl")] == [
        f"inbox/00{i}.png" for i in (0, 1, 2, 5)
    ]


def test_a_detector_that_saves_on_features_alone_stays_the_writer(drawn, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s.h5"
    detector = NoiseDetector(NAMES, "tiny")
    detector.online.save(path)
    gc.collect()
    with owner(path) as second:
        assert "is written by another process" in second.communicate(timeout=60)[1]
    del detector
    gc.collect()
    with owner(path) as last:
        assert last.stdout.readline() == "saved\n"
        last.kill()


def test_what_is_no_regular_file_has_no_writer_and_no_lock_beside_it(inbox, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    copy = tmp_path / "copy.h5"  # a pipe between would fill up, and nobody would read it meanwhile
    with copy.open("wb") as file, subprocess.Popen(["cat", pipe], stdout=file) as reader:
        job().detector.save(pipe)
        assert reader.wait(timeout=60) == 0
    assert OnlineDetector.load(copy).seen == 0
    assert not list(tmp_path.glob(".pipe*"))
