"""Workers of one machine: each run once, nothing lost at a kill, live runs are locked."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st
from made import Notes
from replayed import grid

from zsntta_cli.errors import EncoderError, StoreError
from zsntta_cli.progress import Silent
from zsntta_cli.results import executor
from zsntta_cli.results.executor import _Queue, lock_folder, run_all
from zsntta_cli.results.grid import Grid
from zsntta_cli.results.keeping import Keeper, Keeping, kept_before
from zsntta_cli.results.store import RecordStore
from zsntta_cli.settings import EncoderChoice, LiveSettings
from zsntta_cli.simulation import LiveDevices, live_session
from zsntta_cli.simulation.runs import build_run

ROOT = Path(__file__).parents[2]
TINY = EncoderChoice("tiny")


def live_runs(root, method="tent", **axes):
    axes = {"limit": [64], "seed": [0], "batch_size": [8], **axes}
    return Grid([method], TINY, ["shapes"], ["glyphs"], axes=axes).runs(root)


class Stopping(Silent):
    """A reporter that stops a run, as Ctrl-C does, after so many batches."""

    def __init__(self, after):
        self.left = after

    @contextmanager
    def track(self, _name, _total, _unit=""):
        def advance(images, status=""):
            del images, status
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


# The queue


class Idle:
    def __init__(self, name):
        self.name = name


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("uvw"), st.integers(1, 12)), min_size=1
    ),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["end", "lose"])), max_size=60),
)
def test_workers_do_each_run_once_and_stay_with_their_sets(grids, turns):
    runs = [
        build_run("zs-clip", "made", id_set, ood_set, "", seed=100 * i + seed)
        for i, (id_set, ood_set, count) in enumerate(grids)
        for seed in range(count)
    ]
    queue, last, done = _Queue(runs), {}, []

    def sets(run):
        return run.id_set, run.ood_set

    def take(worker):
        if (run := queue.take(Idle(worker))) is None:
            return None
        waiting = {sets(one) for one in queue.left if one not in (run, *done)}
        left_off = last.get(worker, sets(run))
        assert sets(run) == left_off or left_off not in waiting, "it has read those"
        last[worker] = sets(run)
        return run

    for worker, outcome in turns:  # in any order
        if (run := take(worker)) is None:
            continue
        if outcome == "lose":
            queue.put_back(run)
        else:
            done.append(run)
            queue.end(run)
    for worker in range(5):  # and then to the end
        while run := take(worker):
            done.append(run)
            queue.end(run)
    assert sorted(done, key=repr) == sorted(runs, key=repr)
    assert not queue.left
    assert queue.share == 1


# Several processes


def many(features, methods=("zs-clip", "adand")):
    return grid(features, methods, ratio=[0.25, 0.5], seed=[0, 1, 2])


def plain(records):
    return [
        json.dumps(dataclasses.replace(r, seconds=0, memory=0, created="").to_dict(), default=str)
        for r in records
    ]


def test_several_processes_give_and_keep_what_one_does(features, tmp_path):
    runs, keeping = many(features), Keeping(tmp_path / "r.sqlite")
    records = run_all(features, runs, 2, keeping=keeping)
    assert plain(records) == plain(run_all(features, runs))
    kept = kept_before(features, runs, keeping)
    assert [kept[run].record for run in runs] == records


def test_a_run_whose_process_is_killed_is_made_by_another(features, tmp_path, dying):
    runs, notes = many(features, ["dying", "zs-clip"]), Notes()
    records = run_all(features, runs, 2, reporter=notes)
    assert dying.with_name("death").exists(), "a process was killed"
    assert [record.settings for record in records] == runs
    [note] = notes.notes
    assert note.startswith("note: process ")
    assert "died at dying on pets against sky" in note
    assert "exit code -9" in note


def test_when_all_processes_are_killed_what_was_finished_is_kept(features, tmp_path, dying):
    [killer] = grid(features, ["dying"], cut=[0.9])
    runs, keeping = (
        [*many(features, ["zs-clip"]), killer, *many(features)],
        Keeping(tmp_path / "r.sqlite"),
    )
    runs = list(dict.fromkeys(runs))
    with pytest.raises(EncoderError, match="what was finished is kept; the same command goes on"):
        run_all(features, runs, 2, keeping=keeping)
    others = [run for run in runs if run != killer]
    assert kept_before(features, runs, keeping).keys() <= set(others)
    assert len(run_all(features, others, 2, keeping=keeping)) == len(others)


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_finished_is_kept_at_ctrl_c(features, tmp_path, monkeypatch, jobs):
    runs, keeping, plain_add, added = many(features), Keeping(tmp_path / "r.sqlite"), Keeper.add, []

    def add(self, kept):
        added.append(kept)
        if len(added) == 4:
            raise KeyboardInterrupt
        return plain_add(self, kept)

    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "add", add)
        with pytest.raises(KeyboardInterrupt):
            run_all(features, runs, jobs, keeping=keeping)
    before = kept_before(features, runs, keeping)
    assert 3 <= len(before) < 12
    assert plain(run_all(features, runs, jobs, keeping=keeping)) == plain(run_all(features, runs))
    after = kept_before(features, runs, keeping)
    assert all(after[run].record == one.record for run, one in before.items())


@pytest.mark.slow
def test_no_process_is_left_when_the_command_is_killed(features, tmp_path):
    """Whatever its workers do, and whatever they inherited."""
    script = f"""
import os, sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT / "tests")!r})
from replayed import grid
from zsntta_cli.plugins import load_script
from zsntta_cli.results.executor import run_all
load_script(Path("sleeping.py"))
run_all(Path({str(features)!r}), grid(Path({str(features)!r}), ["sleeping"], seed=range(9)), 2)
"""
    (tmp_path / "sleeping.py").write_text(
        "import os, time\nfrom pathlib import Path\n"
        "from zsntta_cli.methods import METHODS, Method\n\n"
        "def run(data, options, threshold):\n"
        "    Path(f'{os.getpid()}.pid').touch()\n    time.sleep(999)\n\n"
        "METHODS['sleeping'] = Method(run)\n"
    )
    (tmp_path / "script.py").write_text(script)
    command = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path)
    while len(pids := list(tmp_path.glob("*.pid"))) < 2:
        assert command.poll() is None
    command.send_signal(signal.SIGKILL)
    command.wait()
    for path in pids:
        while is_running(int(path.stem)):
            pass  # the suite's time limit ends a process that stays


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# Live runs


def test_a_run_that_ctrl_c_stops_is_the_last_one_and_is_made_again(cache, session, tmp_path):
    runs, keeping = live_runs(cache, seed=[0, 1, 2]), Keeping(tmp_path / "r.sqlite")
    stopping = session(Stopping(12))
    records = run_all(cache, runs, live=lambda: stopping, keeping=keeping)
    assert [bool(record.unfinished) for record in records] == [False, True]
    assert not lock_folder(keeping.path).exists()
    live = session()
    records = run_all(cache, runs, live=lambda: live, keeping=keeping)
    assert [record.settings for record in records] == runs
    assert not any(record.unfinished for record in records)
    assert plain(records) == plain(run_all(cache, runs, live=lambda: live))


def test_what_another_command_finishes_is_read_and_not_made(
    cache, session, tmp_path, monkeypatch, counted
):
    runs, keeping = live_runs(cache, seed=[0, 1]), Keeping(tmp_path / "r.sqlite")
    live, plain_end, other = session(), _Queue.end, []

    def end(queue, run):
        plain_end(queue, run)
        if queue.ended == 1 and not other:  # between two runs
            other.append("begun")
            other.extend(run_all(cache, runs, live=lambda: session(), keeping=keeping))

    monkeypatch.setattr(_Queue, "end", end)
    records = run_all(cache, runs, live=lambda: live, keeping=keeping)
    assert len(counted) == 2
    assert records == other[1:]


def test_a_run_that_another_command_computes_is_waited_for(
    cache, session, tmp_path, monkeypatch, counted
):
    [run], keeping = live_runs(cache), Keeping(tmp_path / "r.sqlite")
    monkeypatch.setattr(executor, "_POLL", 0.01)
    [key] = executor.runs_by_key(cache, [run])
    lock_folder(keeping.path).mkdir()
    held = FileLock(lock_folder(keeping.path) / f"{key}.lock", is_singleton=False)
    held.acquire()
    looks, plain_take, live = [], executor._Locks.take, session()

    def take(locks, wanted):
        looks.append(wanted)
        if len(looks) == 3:  # the other command ends without a result, as one that is killed
            held.release()
        return plain_take(locks, wanted)

    monkeypatch.setattr(executor._Locks, "take", take)
    [record] = run_all(cache, [run], live=lambda: live, keeping=keeping)
    assert len(looks) == 3
    assert len(counted) == 1
    assert record.settings == run
    assert not lock_folder(keeping.path).exists()


def test_a_lock_that_a_kill_left_of_a_finished_run_is_removed(cache, session, tmp_path):
    [run], keeping, live = live_runs(cache), Keeping(tmp_path / "r.sqlite"), session()
    run_all(cache, [run], live=lambda: live, keeping=keeping)
    lock_folder(keeping.path).mkdir()
    (lock_folder(keeping.path) / "left.lock").touch()
    held = FileLock(lock_folder(keeping.path) / "held.lock", is_singleton=False)
    with held:
        run_all(cache, [run], live=lambda: live, keeping=keeping)
        assert [path.name for path in lock_folder(keeping.path).iterdir()] == ["held.lock"]
    run_all(cache, [run], live=lambda: live, keeping=keeping)
    assert not lock_folder(keeping.path).exists()


def test_fresh_makes_again_what_is_kept_once(cache, session, tmp_path, counted):
    [run], keeping = live_runs(cache), Keeping(tmp_path / "r.sqlite")
    live = session()
    run_all(cache, [run], live=lambda: live, keeping=keeping)
    with_gradients = dataclasses.replace(keeping, gradients=True)
    run_all(cache, [run], live=lambda: live, keeping=with_gradients)
    run_all(cache, [run], live=lambda: live, keeping=with_gradients)
    assert len(counted) == 2
    assert kept_before(cache, [run], with_gradients)


@pytest.mark.slow
def test_two_devices_share_the_runs_and_a_failing_one_ends_none(cache, session, tmp_path):
    good = live_runs(cache, seed=[0, 1, 2])
    bad = dataclasses.replace(good[0], ood_set="gone")
    failed, keeping = {}, Keeping(tmp_path / "r.sqlite")
    live = LiveDevices(LiveSettings(device="cpu,cpu", workers=1))
    records = run_all(cache, [bad, *good], live=live, keeping=keeping, failures=failed)
    assert [record.settings for record in records] == good
    assert failed.keys() == {bad}
    assert not lock_folder(keeping.path).exists()
    alone = session()
    one = run_all(cache, good, live=lambda: alone)
    assert [r.accuracies for r in records] == [r.accuracies for r in one]


def test_where_nothing_can_be_written_live_runs_are_made_all_the_same(
    cache, session, tmp_path, monkeypatch
):
    plain = RecordStore.__init__

    def refuse(store, path, create=False):
        if create:
            raise StoreError("no room.")
        plain(store, path, create)

    monkeypatch.setattr(RecordStore, "__init__", refuse)
    live, [run], notes = session(), live_runs(cache), Notes()
    keeping = Keeping(tmp_path / "none" / "r.sqlite", required=False)
    assert len(run_all(cache, [run], live=lambda: live, keeping=keeping, reporter=notes)) == 1
    assert notes.notes[-1:] == ["note: results are not kept: no room."]
    with pytest.raises(StoreError, match="no room"):
        run_all(cache, [run], live=lambda: live, keeping=Keeping(tmp_path / "s.sqlite"))


def test_a_worker_that_cannot_begin_ends_the_work(features):
    class Absent:
        name = "absent"
        stopped = False

        def begin(self):
            future = Future()
            future.set_exception(EncoderError("not the same code."))
            return future

        def stop(self):
            self.stopped = True

    worker, runs = Absent(), grid(features)
    work = executor._Work(features, Silent(), None, None, {})
    with pytest.raises(EncoderError, match="not the same code"):
        work.do(runs, lambda: [worker])
    assert worker.stopped


@pytest.mark.slow
def test_kills_make_no_run_twice_and_leave_nothing(cache, tmp_path):
    script, kills = ROOT / "tests" / "whole" / "kill_live.py", os.environ.get("ZSNTTA_KILLS", "12")
    done = subprocess.run(
        [sys.executable, script, cache, tmp_path, kills],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("0 lost, 0 made twice\n")
