"""Kill a watch at random moments while its folder fills up; look at the rows that it wrote.

Children are forked from a process that has all loaded. After each kill the next one goes on from
the state. When all images came, every one must be in the file once, and each verdict must be what
an undisturbed detector says in the order of the rows.
Usage: kill_watches.py FOLDER WORK [KILLS], FOLDER with `pictures` and their `features`.
"""

import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

import numpy as np

from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.owners import owned
from zsntta_cli.detection.runs.detecting import detect_run
from zsntta_cli.detection.runs.request import Images, Request, Watch
from zsntta_cli.detection.runs.watching import Watching, resumed
from zsntta_cli.detection.sources.item import of_file
from zsntta_cli.progress import Silent
from zsntta_cli.report.verdict_files import GrowingFile
from zsntta_cli.settings import EncoderChoice

FOLDER, WORK = Path(sys.argv[1]), Path(sys.argv[2])
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 200
PICTURES = sorted((FOLDER / "pictures").rglob("*.png"))
NAMES = tuple(render("shapes").class_names)
INTERVAL = 0.004  # seconds between two looks
FEW_OR_MANY = [*range(5)] * 4 + [150]  # images that come at once: mostly a batch, or several


def made(inbox):
    images = Images(sources=(str(inbox),))
    request = Request(images=images, classes=NAMES, watch=Watch(interval=INTERVAL))
    encoding = Encoding(EncoderChoice("tiny"), FOLDER / "features", "cpu", 1, Silent())
    return detect_run(request, encoding)


def child(inbox, state, out, looks):
    """A watch as the command runs it."""
    status = 1
    try:
        with owned(state):
            job = made(inbox)
            known = resumed(state, job.detector, True)
            file = GrowingFile(out).begin(known.written)
            watching = Watching(job, Watch(interval=INTERVAL, looks=looks), known, state)
            for batch in watching.batches(file, threading.Event()):
                file.take(batch)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def arrive(inbox, count):
    """Some more images, written in two pieces."""
    for _ in range(count):
        number = len(list(inbox.iterdir()))
        content = PICTURES[number % len(PICTURES)].read_bytes()
        with (inbox / f"{number:05}.png").open("wb", buffering=0) as file:
            file.write(content[:50])
            file.write(content[50:])


def rows_of(out):
    """All whole rows; a watch may be killed within the last one."""
    lines = out.read_text().splitlines(keepends=True) if out.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def check(inbox, out):
    """Every image once, and the verdicts of one undisturbed stream."""
    rows = rows_of(out)
    sources = [row["source"] for row in rows]
    names = {str(path) for path in inbox.iterdir()}
    assert len(sources) == len(set(sources)), "twice"
    assert set(sources) == names, f"left out: {sorted(names - set(sources))[:3]}"
    assert not [row["error"] for row in rows if row["error"]]
    job = made(inbox)
    encoded = job.encoding.images([of_file(Path(source)) for source in sources])
    expected = job.detector.update(np.stack([one.features for one in encoded]))
    scores = [row["score"] for row in rows]  # products of other shapes have other last bits
    assert np.allclose(scores, expected.score, rtol=0, atol=1e-5), "wrong"
    assert [row["noise"] for row in rows] == expected.noise.tolist(), "wrong"
    return len(rows)


def started(*paths, looks=None):
    if not (pid := os.fork()):
        child(*paths, looks)
    return pid


def killed(pid):
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "a child failed"


def until_all(inbox, out):
    """Seconds until there is a row of each image."""
    began = time.monotonic()
    while len(rows_of(out)) < len(list(inbox.iterdir())):
        assert time.monotonic() < began + 120, "left out"
        time.sleep(0.01)
    return time.monotonic() - began


def main():
    generator = random.Random(0)
    inbox, state, out = WORK / "inbox", WORK / "state.h5", WORK / "rows.jsonl"
    shutil.rmtree(inbox, ignore_errors=True)
    inbox.mkdir(parents=True)
    made(inbox).detector.update(np.ones((1, made(inbox).detector.text_features.shape[1])))
    arrive(inbox, 80)
    pid = started(inbox, state, out)
    duration = until_all(inbox, out)  # of a watch, from its start to its first rows
    killed(pid)
    patience = duration
    kills, moved = 1, 0  # kills, and those of them with new rows since the last one
    while kills < KILLS:
        before = len(rows_of(out))
        arrive(inbox, generator.choice(FEW_OR_MANY))
        pid = started(inbox, state, out)
        time.sleep(generator.uniform(0, patience))
        arrive(inbox, generator.randint(0, 4))
        time.sleep(generator.uniform(0, patience))
        killed(pid)
        wrote = len(rows_of(out)) != before
        patience *= 0.8 if wrote else 1.5  # a state that grows takes longer to read
        kills, moved = kills + 1, moved + wrote
    _, status = os.waitpid(started(inbox, state, out, looks=5), 0)
    assert status == 0, "the last one failed"
    images = check(inbox, out)
    assert moved > KILLS / 5, f"only {moved} kills were of a watch that had written something"
    print(f"{kills} kills, {moved} after new rows, {images} images: 0 left out, 0 twice, 0 wrong")


main()
