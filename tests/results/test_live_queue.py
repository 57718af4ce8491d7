"""Live runs as a queue: claims, checkpoints that a stopped run goes on from, several processes."""

import dataclasses
import itertools
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.progress import Silent
from zsntta_cli.results import claims as claims_module
from zsntta_cli.results.claims import Claims
from zsntta_cli.results.grid import Grid
from zsntta_cli.results.keeping import Keeping, kept_before
from zsntta_cli.results.live_queue import checkpoint_path, live_folder
from zsntta_cli.results.obtain import run_all
from zsntta_cli.results.store import RecordStore
from zsntta_cli.settings import EncoderChoice, LiveSettings
from zsntta_cli.simulation import LiveDevices, checkpoints, live_session
from zsntta_cli.simulation.simulator import Simulator

ROOT = Path(__file__).parents[2]
TINY = EncoderChoice("tiny")
CASES = {
    "tent": {"batch_size": [8]},
    "sotta": {"memory": [12], "update_every": [8], "confidence": [0.4]},
    "unient": {"batch_size": [8], "learning_rate": [0.01]},
    "ostta": {"batch_size": [8], "learning_rate": [0.01]},
    "rosita": {"rosita_neighbours": [1], "learning_rate": [0.01]},
    "frozen": {"tent_batch_size": [8], "update_every": [8], "warmup": [2]},
    "adapted": {
        "tent_batch_size": [8], "update_every": [8], "warmup": [2],
        "detector_features": ["adapted"],
    },
}  # fmt: skip


def runs_of(root, case="tent", **axes):
    method = case if case in METHODS else "adand+tent"
    axes = {"limit": [64], "seed": [0], **CASES[case], **axes}
    return Grid([method], TINY, ["shapes"], ["glyphs"], axes=axes).runs(root)


class Stopping(Silent):
    """A reporter that stops a run, as Ctrl-C does, after so many batches; it keeps the notes."""

    def __init__(self, after):
        self.left, self.notes, self.items = after, [], []

    def note(self, text):
        self.notes.append(text)

    @contextmanager
    def track(self, _name, _total, _unit=""):
        def advance(images, status=""):
            del status
            self.items.append(images)
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1

        yield advance


@pytest.fixture
def session(tiny):
    """A live session on the loaded encoder, with a reporter of its own."""

    def make(reporter=None):
        made = live_session(LiveSettings(device="cpu", workers=1), reporter or Silent())
        made._encoders[TINY] = tiny
        return made

    return make


@pytest.fixture
def at_once(monkeypatch):
    """Checkpoints are taken after each batch."""
    monkeypatch.setattr(checkpoints, "_TAKEN_EVERY", 0)
    monkeypatch.setattr(checkpoints, "_WRITTEN_EVERY", 0)


def replayed(cache, live, run, path=None):
    simulator = Simulator(cache, lambda: live, lambda _: path)
    return simulator.replay(run, analyse=True)


def equal(one, other):
    """Whether two replays agree in each bit."""
    pairs = [(vars(one.decisions), vars(other.decisions)), (one.columns, other.columns)]
    for columns, others in pairs:
        assert columns.keys() == others.keys()
        for name, column in columns.items():
            np.testing.assert_array_equal(column, others[name], err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "batches"), [*itertools.product(CASES, (1, 6)), ("rosita", 45)])
def test_a_stopped_run_goes_on_where_it_was_bit_for_bit(
    cache, session, at_once, tmp_path, case, batches
):
    [run], path = runs_of(cache, case), tmp_path / "run.pt"
    whole = replayed(cache, session(), run)
    stopping, resuming = Stopping(batches), Stopping(-1)
    part = replayed(cache, session(stopping), run, path)
    assert part.unfinished
    rest = replayed(cache, session(resuming), run, path)
    assert not resuming.notes
    first, *others = resuming.items  # what the checkpoint had is told at once
    assert first == sum(stopping.items[:batches])
    assert sum(others) == len(whole.decisions.class_index) - first
    equal(rest, whole)


def broken(path):
    path.write_bytes(path.read_bytes()[:-300])


def of_another_device(path):
    content = torch.load(path)
    content["origin"]["device"] = "NVIDIA A100"
    torch.save(content, path)


def of_other_parts(path):
    content = torch.load(path)
    tower = content["snapshot"]["mapping"]["states"]["mapping"]["tower"]["mapping"]
    tower["adapted"]["mapping"]["masters"].pop()
    torch.save(content, path)


def with_code(path):
    torch.save({"format": 1, "origin": Path("x")}, path)  # a type that weights alone do not have


@pytest.mark.parametrize("spoil", [broken, of_another_device, of_other_parts, with_code])
def test_a_checkpoint_of_something_else_is_discarded_with_a_note(
    cache, session, at_once, tmp_path, spoil
):
    [run], path = runs_of(cache), tmp_path / "run.pt"
    replayed(cache, session(Stopping(3)), run, path)
    spoil(path)
    reporter = Stopping(-1)
    again = replayed(cache, session(reporter), run, path)
    [note] = reporter.notes
    assert "begins anew" in note
    assert reporter.items[-8:] == [8] * 8, "from the first item on"
    equal(again, replayed(cache, session(), run))


def test_a_stopped_queue_is_resumed_and_leaves_nothing(cache, session, at_once, tmp_path):
    runs = [*runs_of(cache, seed=[0, 1]), *runs_of(cache, "sotta")]
    keeping = Keeping(tmp_path / "r.sqlite")
    stopping = session(Stopping(12))
    records = run_all(cache, runs, live=lambda: stopping, keeping=keeping)
    assert [bool(record.unfinished) for record in records] == [False, True]
    [left] = live_folder(keeping.path).iterdir()
    assert left.suffix == ".pt"
    resuming = Stopping(-1)
    resumed = session(resuming)
    records = run_all(cache, runs, live=lambda: resumed, keeping=keeping)
    assert resuming.items[0] > 8
    assert not live_folder(keeping.path).exists()
    assert [record.settings for record in records] == runs
    plain = session()
    alone = run_all(cache, runs, live=lambda: plain)
    assert [r.accuracies for r in records] == [r.accuracies for r in alone]


def test_what_another_process_finishes_is_read_and_not_made(
    cache, session, tmp_path, monkeypatch, counted
):
    runs, keeping = runs_of(cache, seed=[0, 1]), Keeping(tmp_path / "r.sqlite")
    live, plain = session(), Claims.take

    def take(claims, keys):
        if len(keys) == 1 and not begun:  # between two runs
            begun.append(True)
            other.extend(run_all(cache, runs, live=lambda: session(), keeping=keeping))
        return plain(claims, keys)

    begun, other = [], []
    monkeypatch.setattr(Claims, "take", take)
    records = run_all(cache, runs, live=lambda: live, keeping=keeping)
    assert len(counted) == 2
    assert records == other


def test_fresh_makes_again_what_is_kept_once(cache, session, tmp_path, counted):
    [run], keeping = runs_of(cache), Keeping(tmp_path / "r.sqlite")
    live = session()
    run_all(cache, [run], live=lambda: live, keeping=keeping)
    fresh = dataclasses.replace(keeping, fresh=True)
    run_all(cache, [run], live=lambda: live, keeping=fresh)
    assert len(counted) == 2
    with_gradients = dataclasses.replace(keeping, gradients=True)
    run_all(cache, [run], live=lambda: live, keeping=with_gradients)
    run_all(cache, [run], live=lambda: live, keeping=with_gradients)
    assert len(counted) == 3
    assert kept_before(cache, [run], with_gradients)


def test_a_checkpoint_and_a_claim_that_a_kill_left_of_a_finished_run_are_removed(
    cache, session, tmp_path
):
    [run], keeping = runs_of(cache), Keeping(tmp_path / "r.sqlite")
    live = session()
    run_all(cache, [run], live=lambda: live, keeping=keeping)
    [key] = RecordStore(keeping.path).keys()
    live_folder(keeping.path).mkdir()
    checkpoint_path(keeping.path, key).write_bytes(b"")
    claim(keeping.path, key, pid=dead_pid())
    run_all(cache, [run], live=lambda: live, keeping=keeping)
    assert not live_folder(keeping.path).exists()
    assert not claimed(keeping.path)


def dead_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def claim(path, key, pid, host=None, heartbeat=0.0):
    with sqlite3.connect(path) as database:
        row = (key, "other", pid, host or claims_module._host(), heartbeat)
        database.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)", row)
    database.close()


def claimed(path):
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT key FROM claims").fetchall()
    database.close()
    return [key for (key,) in rows]


def test_two_processes_never_have_one_claim(tmp_path):
    path = tmp_path / "r.sqlite"
    with Claims(path, {}) as one, Claims(path, {}) as other:
        key = one.take(["a", "b"]).key
        assert key == "a"
        with one.held(key):
            assert other.take(["a", "b"]).key == "b"
            assert other.take(["a", "b"]).key is None
        assert other.take(["a", "b"]).key == "a"


def test_the_claim_of_a_dead_process_is_free_and_that_of_a_living_one_is_not(tmp_path):
    path = tmp_path / "r.sqlite"
    with Claims(path, {}) as claims:
        claim(path, "a", os.getppid())
        assert claims.take(["a"]).key is None
        claim(path, "a", dead_pid())
        assert claims.take(["a"]).key == "a"


def test_elsewhere_a_claim_is_lost_when_its_heartbeat_stands_still(tmp_path, monkeypatch):
    """A process of that number lives here, and clocks do not agree: neither matters."""
    path, now = tmp_path / "r.sqlite", [0.0]
    monkeypatch.setattr(claims_module.time, "monotonic", lambda: now[0])
    with Claims(path, {}) as claims:
        for heartbeat in (-1e9, 1e9, 7.0):
            claim(path, "a", dead_pid(), "elsewhere", heartbeat)
            assert claims.take(["a"]).key is None
            now[0] += claims_module._LOST - 1
            assert claims.take(["a"]).key is None
        now[0] += 1
        assert claims.take(["a"]).key == "a"


def test_a_heart_beats(tmp_path, monkeypatch):
    monkeypatch.setattr(claims_module, "_BEAT", 0.001)
    path = tmp_path / "r.sqlite"
    with Claims(path, {}) as claims:
        key = claims.take(["a"]).key
        with sqlite3.connect(path) as database:
            database.execute("UPDATE claims SET heartbeat = 0")
            database.commit()
            with claims.held(key):
                while database.execute("SELECT heartbeat FROM claims").fetchone() == (0,):
                    pass
        database.close()


@pytest.mark.slow
def test_two_devices_share_the_runs_and_a_failing_one_ends_none(cache, session, tmp_path):
    good = runs_of(cache, seed=[0, 1, 2])
    bad = dataclasses.replace(good[0], ood_set="gone")
    failed, keeping = {}, Keeping(tmp_path / "r.sqlite", items=True)
    live = LiveDevices(LiveSettings(device="cpu,cpu", workers=1))
    records = run_all(
        cache, [bad, *good], live=live, keeping=keeping,
        failures=failed,
    )  # fmt: skip
    assert [record.settings for record in records] == good
    assert failed.keys() == {bad}
    assert not live_folder(keeping.path).exists()
    assert not claimed(keeping.path)
    alone = session()
    one = run_all(cache, good, live=lambda: alone)
    assert [r.accuracies for r in records] == [r.accuracies for r in one]


@pytest.mark.slow
def test_what_a_device_that_is_none_leaves_is_done_by_the_other(cached):
    result = cached(
        "simulate", "--model", "tiny", "--method", "tent", "--ood", "glyphs", "--limit", 32,
        "--seed", 0, "--seed", 1, "--format", "json", "--device", "cpu,none",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "device 'none' cannot be used" in result.stderr
    assert len(json.loads(result.stdout)) == 2


@pytest.mark.slow
def test_kills_make_no_run_twice_and_leave_nothing(cache, tmp_path):
    script, kills = ROOT / "tests" / "whole" / "kill_live.py", os.environ.get("ZSNTTA_KILLS", "12")
    done = subprocess.run(
        [sys.executable, script, cache, tmp_path, kills],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("0 lost, 0 made twice\n")


def test_where_nothing_can_be_written_live_runs_are_made_all_the_same(
    cache, session, tmp_path, monkeypatch
):
    def refuse(*_):
        raise StoreError("no room.")

    monkeypatch.setattr(Claims, "__init__", refuse)
    live, [run] = session(), runs_of(cache)
    keeping = Keeping(tmp_path / "r.sqlite", required=False)
    assert len(run_all(cache, [run], live=lambda: live, keeping=keeping)) == 1
    with pytest.raises(StoreError, match="no room"):
        run_all(cache, [run], live=lambda: live, keeping=Keeping(tmp_path / "s.sqlite"))
