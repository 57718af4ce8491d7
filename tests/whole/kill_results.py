"""Kill grids at random while two processes share one store; compare it with an undisturbed one.

Children are forked from a process that has all loaded. Each tells through a pipe what was kept, as
soon as it is: of that nothing may be lost, and whatever is in the store must be whole and right.
Usage: kill_results.py FEATURES ENCODER ID OOD FOLDER [KILLS]
"""

import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path

from forks import forked, was_killed

from zsntta_cli.results.grid import Grid
from zsntta_cli.results.keeping import Keeping, kept_before
from zsntta_cli.results.runner import run_all
from zsntta_cli.results.store import RecordStore
from zsntta_cli.settings import EncoderChoice

FEATURES, FOLDER = Path(sys.argv[1]), Path(sys.argv[5])
KILLS = int(sys.argv[6]) if len(sys.argv) > 6 else 200
GRID = Grid(
    ["zs-clip", "adand", "cull"], EncoderChoice(folder=sys.argv[2]), [sys.argv[3]], [sys.argv[4]],
    axes={"ratio": [0.0, 0.25, 0.5], "seed": [0, 1, 2, 3]},
)  # fmt: skip
RUNS = GRID.runs(FEATURES)
ADD = RecordStore.add


def numbers(kept):
    return kept.settings, kept.accuracies, kept.counts, kept.curves


def child(path, order, pipe):
    """The grid, in an order of its own; each key that is kept is told."""

    def add(store, kept):
        kept = list(kept)
        ADD(store, kept)
        os.write(pipe, "".join(f"{one.key}\n" for one in kept).encode())

    RecordStore.add = add
    runs = random.Random(order).sample(RUNS, len(RUNS))
    run_all(FEATURES, runs, keeping=Keeping(path))


def started(path, order):
    reader, writer = os.pipe()
    pid = forked(lambda: child(path, order, writer))
    os.close(writer)
    return pid, reader


def told(reader):
    with os.fdopen(reader) as lines:
        return {line.strip() for line in lines if line.endswith("\n")}


def check(path, expected, kept_keys):
    """Nothing that was told is lost, nothing there is wrong, and SQLite finds the file sound."""
    if not path.exists():
        assert not kept_keys
        return 0
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    with RecordStore(path) as store:
        found = {kept.key: numbers(kept) for kept in store.all()}
        assert store.count() == len(found), "each one can be read"
    assert kept_keys <= set(found), "lost"
    assert found.items() <= expected.items(), "wrong"
    return len(found)


def main():
    started_at = time.monotonic()
    run_all(FEATURES, RUNS, keeping=Keeping(FOLDER / "whole.sqlite"))  # compiles, too
    duration = time.monotonic() - started_at
    with RecordStore(FOLDER / "whole.sqlite") as store:
        expected = {kept.key: numbers(kept) for kept in store.all()}
    assert len(expected) == len(RUNS)
    kills = landed = finished = file = 0
    kept_keys, path = set(), FOLDER / "0.sqlite"
    while kills < KILLS:
        pairs = [started(path, random.random()) for _ in "ab"]
        time.sleep(random.uniform(0, duration / 2))
        for pid, _ in pairs[: random.choice([1, 2])]:
            os.kill(pid, signal.SIGKILL)
        for pid, reader in pairs:
            kills += was_killed(pid)
            kept_keys |= told(reader)
        there = check(path, expected, kept_keys)
        landed += 0 < there < len(RUNS)
        if there == len(RUNS):
            assert len(kept_before(FEATURES, RUNS, Keeping(path))) == len(RUNS)
            finished, file = finished + 1, file + 1
            kept_keys, path = set(), FOLDER / f"{file}.sqlite"
    print(
        f"{kills} kills, {landed} with a store in part, {finished} stores finished: 0 lost, 0 wrong"
    )


main()
