"""Kill two workers at random that share a queue of live runs; compare with undisturbed runs.

Children are forked from a process that has all loaded, and has started no thread. A trigger in the
store counts what is kept: each run once, whoever made it, and in the end no lock is left.
Usage: kill_live.py FEATURES FOLDER [KILLS]
"""

import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path

import torch
from forks import TINY, forked, was_killed

from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.progress import Silent
from zsntta_cli.results import executor
from zsntta_cli.results.executor import lock_folder, run_all
from zsntta_cli.results.grid import Grid
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.results.store import RecordStore
from zsntta_cli.settings import LiveSettings
from zsntta_cli.simulation import live_session

FEATURES, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 200
STREAM = {"ratio": [0.5], "seed": [0], "limit": [96]}
STAGE1 = {"tent_batch_size": [16], "update_every": [16], "warmup": [2]}
GRIDS = [
    Grid(["tent"], TINY, ["shapes"], ["glyphs"], axes=STREAM | {"batch_size": [8]}),
    Grid(["sotta"], TINY, ["shapes"], ["glyphs"],
         axes=STREAM | {"memory": [16], "update_every": [16], "confidence": [0.5]}),
    Grid(["adand+tent"], TINY, ["shapes"], ["glyphs"],
         axes=STREAM | STAGE1 | {"detector_features": ["frozen", "adapted"]}),
]  # fmt: skip
RUNS = [run for grid in GRIDS for run in grid.runs(FEATURES)]
torch.set_num_threads(1)  # a thread that a fork leaves behind would be waited for
SESSION = live_session(LiveSettings(device="cpu", workers=1), Silent())
SESSION._encoders[TINY] = load_encoder(TINY, "cpu")
COUNT = """
    CREATE TABLE made (key TEXT);
    CREATE TRIGGER first AFTER INSERT ON contents BEGIN INSERT INTO made VALUES (NEW.key); END;
    CREATE TRIGGER again AFTER UPDATE ON contents BEGIN INSERT INTO made VALUES (NEW.key); END;
"""


def numbers(kept):
    record = kept.record
    return record.settings, record.accuracies, record.detection, record.counts, kept.curves


def kept_runs(path):
    with RecordStore(path) as store:
        return {kept.key: numbers(kept) for kept in store.all()}


def child(path, order):
    """Make all runs, in an order of its own."""
    executor._POLL = 0.01  # as if seconds were milliseconds
    runs = random.Random(order).sample(RUNS, len(RUNS))
    records = run_all(FEATURES, runs, live=lambda: SESSION, keeping=Keeping(path))
    assert [record.settings for record in records] == runs


def started(path, order):
    return forked(lambda: child(path, order))


def new_store(number):
    path = FOLDER / f"{number}.sqlite"
    RecordStore(path, create=True).close()
    with sqlite3.connect(path) as database:
        database.executescript(COUNT)
    database.close()
    return path


def check_finished(path, expected):
    """Each run is there once and right, and nothing is left of the work on it."""
    assert kept_runs(path) == expected, "lost or wrong"
    with sqlite3.connect(path) as database:
        made = [key for (key,) in database.execute("SELECT key FROM made")]
    database.close()
    assert sorted(made) == sorted(expected), "made twice"
    assert not lock_folder(path).exists(), list(lock_folder(path).iterdir())


def main():
    cached = Grid(["zs-clip"], TINY, ["shapes"], ["glyphs"], axes=STREAM).runs(FEATURES)
    run_all(FEATURES, cached, keeping=Keeping(FOLDER / "cached.sqlite"))  # imports and compiles
    started_at = time.monotonic()
    whole = new_store("whole")
    assert not was_killed(started(whole, 0))
    duration = time.monotonic() - started_at
    expected = kept_runs(whole)
    check_finished(whole, expected)
    assert len(expected) == len(RUNS)
    kills = stores = 0
    path = new_store(0)
    while kills < KILLS or stores == 0:
        pids = [started(path, random.random()) for _ in "ab"]
        # The last ones of all are left alone.
        if kills < KILLS:
            time.sleep(random.uniform(0.05, duration / 2))
            for pid in pids[: random.choice([1, 2])]:
                os.kill(pid, signal.SIGKILL)
        kills += sum(map(was_killed, pids))
        if len(kept_runs(path)) == len(RUNS):
            assert not was_killed(started(path, 0))  # which removes what a kill left
            check_finished(path, expected)
            stores, path = stores + 1, new_store(stores + 1)
    print(f"{kills} kills, {stores} stores finished: 0 lost, 0 made twice")


main()
