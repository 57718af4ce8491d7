"""Kill two commands at random that make the same live runs; compare with undisturbed runs.

Children are forked from a process that has all loaded, and has started no thread. Whatever is kept
is whole and right, and no later kill takes it away.
Usage: kill_live.py FEATURES FOLDER [KILLS]
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from forks import TINY, forked, was_killed

from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.progress import Silent
from zsntta_cli.results.grid import Grid
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.results.runner import run_all
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


def numbers(kept):
    record = kept
    return record.settings, record.accuracies, record.detection, record.counts, kept.curves


def kept_runs(path):
    with RecordStore(path) as store:
        return {kept.key: numbers(kept) for kept in store.all()}


def child(path, order):
    """Make all runs, in an order of its own."""
    runs = random.Random(order).sample(RUNS, len(RUNS))
    records = run_all(FEATURES, runs, live=lambda: SESSION, keeping=Keeping(path))
    assert [record.settings for record in records] == runs


def started(path, order):
    return forked(lambda: child(path, order))


def main():
    cached = Grid(["zs-clip"], TINY, ["shapes"], ["glyphs"], axes=STREAM).runs(FEATURES)
    run_all(FEATURES, cached, keeping=Keeping(FOLDER / "cached.sqlite"))  # imports and compiles
    started_at = time.monotonic()
    whole = FOLDER / "whole.sqlite"
    assert not was_killed(started(whole, 0))
    duration = time.monotonic() - started_at
    expected = kept_runs(whole)
    assert len(expected) == len(RUNS)
    kills = stores = 0
    path, before = FOLDER / "0.sqlite", {}
    while kills < KILLS or stores == 0:
        pids = [started(path, random.random()) for _ in "ab"]
        # The last ones of all are left alone.
        if kills < KILLS:
            time.sleep(random.uniform(0.05, duration / 2))
            for pid in pids[: random.choice([1, 2])]:
                os.kill(pid, signal.SIGKILL)
        kills += sum(map(was_killed, pids))
        kept = kept_runs(path) if path.exists() else {}
        assert before.items() <= kept.items(), "lost"
        assert kept.items() <= expected.items(), "wrong"
        before = kept
        if len(kept) == len(RUNS):
            stores, before = stores + 1, {}
            path = FOLDER / f"{stores}.sqlite"
    print(f"{kills} kills, {stores} stores finished: 0 lost, 0 wrong")


main()
