"""Runs of one machine: one process gives what several do, and nothing is lost at a kill."""

import dataclasses
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from replayed import grid, many, plain, run_all

from zsntta_cli.errors import EncoderError
from zsntta_cli.progress import Reporter
from zsntta_cli.results.grid import Grid
from zsntta_cli.results.runner import Runner
from zsntta_cli.results.store import Keeping, RecordStore, kept_before
from zsntta_cli.settings import EncoderChoice, LiveSettings

ROOT = Path(__file__).parents[2]
TINY = EncoderChoice("tiny")


def live_runs(root, method="tent", **axes):
    axes = {"limit": [64], "seed": [0], "batch_size": [8], **axes}
    return Grid([method], TINY, ["shapes"], ["glyphs"], axes=axes).runs(root)


class Stopping(Reporter):
    """A reporter that stops a run, as Ctrl-C does, after so many batches."""

    def __init__(self, after):
        self.batches = iter(range(after))

    @contextmanager
    def track(self, _name, _total, _unit=""):
        def advance(_images, _status=""):
            if next(self.batches, None) is None:
                raise KeyboardInterrupt

        yield advance


LIVE = LiveSettings(device="cpu", workers=1)


def test_several_processes_give_and_keep_what_one_does(features, tmp_path):
    runs, keeping = many(features), Keeping(tmp_path / "r.sqlite")
    records = run_all(features, runs, 2, keeping=keeping)
    assert plain(records) == plain(run_all(features, runs))
    kept = kept_before(features, runs, keeping)
    assert [kept[run] for run in runs] == records


def test_a_process_that_dies_is_one_line_and_the_next_command_goes_on(features, tmp_path, dying):
    runs, keeping = many(features, ["zs-clip", "dying"]), Keeping(tmp_path / "r.sqlite")
    with pytest.raises(EncoderError, match="finished runs are kept; the same command resumes"):
        run_all(features, runs, 2, keeping=keeping)
    assert dying.with_name("death").exists(), "a process was killed"
    assert plain(run_all(features, runs, 2, keeping=keeping)) == plain(run_all(features, runs))


def test_what_changes_between_two_calls_is_read_anew(features, tmp_path):
    """Processes outlive a call, and keep what they have read."""
    root = tmp_path / "features"
    shutil.copytree(features, root)
    before = run_all(root, many(root), 2)
    [sky] = root.glob("*/sky.h5")
    shutil.copy(sky.with_name("pets.h5"), sky)
    after = run_all(root, many(root), 2)
    assert plain(after) == plain(run_all(root, many(root)))
    assert all(a.digests != b.digests for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_finished_is_kept_at_ctrl_c(features, tmp_path, monkeypatch, jobs):
    runs, keeping, add, added = many(features), Keeping(tmp_path / "r.sqlite"), RecordStore.add, []

    def add_three(self, records):
        added.append(records)
        if len(added) == 4:
            raise KeyboardInterrupt
        add(self, records)

    with monkeypatch.context() as patch:
        patch.setattr(RecordStore, "add", add_three)
        with pytest.raises(KeyboardInterrupt):
            run_all(features, runs, jobs, keeping=keeping)
    before = kept_before(features, runs, keeping)
    assert 3 <= len(before) < 12
    assert plain(run_all(features, runs, jobs, keeping=keeping)) == plain(run_all(features, runs))
    after = kept_before(features, runs, keeping)
    assert all(after[run] == one for run, one in before.items())


@pytest.mark.slow
def test_no_process_is_left_when_the_command_is_killed(features, tmp_path):
    """Whatever its workers do, and whatever they inherited."""
    script = f"""
import os, sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT / "tests")!r})
from replayed import grid, many, plain, run_all
from zsntta_cli.plugins import load_script
load_script(Path("sleeping.py"))
run_all(Path({str(features)!r}), grid(Path({str(features)!r}), ["sleeping"], seed=range(9)), 2)
"""
    (tmp_path / "sleeping.py").write_text(
        "import os, time\nfrom pathlib import Path\n"
        "from zsntta_cli.methods import METHODS, Method\n\n"
        "class Sleeping(Method):\n    def push(self, items, learn=True):\n"
        "        Path(f'{os.getpid()}.pid').touch()\n        time.sleep(999)\n\n"
        "METHODS['sleeping'] = Sleeping\n"
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


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_an_error_ends_is_reported_and_the_others_go_on(features, jobs):
    runs = grid(features, ["adand"], seed=range(9))
    broken = dataclasses.replace(runs[0], ood_set="gone")
    found = dict(Runner(features, jobs).outcomes([broken, *runs], goes_on=True))
    assert "no features of 'gone'" in found.pop(broken)
    assert plain(found[run] for run in runs) == plain(run_all(features, runs))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_programming_error_ends_all_and_what_is_done_stays_kept(features, tmp_path, dying, jobs):
    [wrong], keeping = grid(features, ["failing"]), Keeping(tmp_path / "r.sqlite")
    runs = [*many(features), wrong]
    assert dying
    with pytest.raises(Exception, match="division by zero"):
        dict(Runner(features, jobs, keeping=keeping).outcomes(runs, goes_on=True))
    assert len(kept_before(features, runs, keeping)) > 8


# Live runs


def test_a_run_that_ctrl_c_stops_is_the_last_one_and_is_made_again(cache, tmp_path):
    runs, keeping = live_runs(cache, seed=[0, 1, 2]), Keeping(tmp_path / "r.sqlite")
    records = run_all(cache, runs, live=LIVE, reporter=Stopping(12), keeping=keeping)
    assert [bool(record.unfinished) for record in records] == [False, True]
    records = run_all(cache, runs, 2, live=LIVE, keeping=keeping)  # all in this process
    assert [record.settings for record in records] == runs
    assert not any(record.unfinished for record in records)
    assert plain(records) == plain(run_all(cache, runs, live=LIVE))


def test_gradients_that_a_kept_run_lacks_make_it_run_again_once(cache, tmp_path, counted):
    [run], keeping = live_runs(cache), Keeping(tmp_path / "r.sqlite")
    with_gradients = dataclasses.replace(keeping, gradients=True)
    for one in (keeping, with_gradients, with_gradients):
        run_all(cache, [run], live=LIVE, keeping=one)
    assert len(counted) == 2
    assert kept_before(cache, [run], with_gradients)
