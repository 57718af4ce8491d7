"""Whole runs that workers of a Ray cluster make: the records of one process, kept as they come."""

import json

import pytest
from made import TINY, Notes, fails
from replayed import grid, many, plain, run_all

from zsntta_cli.errors import SettingsError
from zsntta_cli.extraction import connection
from zsntta_cli.results import runner
from zsntta_cli.results.runner import Runner
from zsntta_cli.results.store import Keeping, kept_before
from zsntta_cli.simulation.sources import Library


@pytest.fixture(scope="module")
def ray_cluster():
    """A Ray of this machine with two cores, for all tests of this file."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("OMP_NUM_THREADS", "1")  # live records are those of as many threads
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


def on_ray(features, path, reporter=None):
    return Runner(features, None, "ray", None, reporter or Notes(), Keeping(path))


@pytest.mark.slow
def test_a_sweep_gives_the_records_of_one_process(ray_cluster, features, tmp_path):
    runs, path, notes = many(features), tmp_path / "ray.sqlite", Notes()
    records = on_ray(features, path).run(runs)
    assert plain(records) == plain(run_all(features, runs))
    kept = kept_before(features, runs, Keeping(path))
    assert [kept[run] for run in runs] == records, "as they were kept"
    assert on_ray(features, path, notes).run(runs) == records
    assert notes.notes == ["12 of 12 runs were already kept"]


@pytest.mark.slow
def test_runs_of_a_lost_worker_are_made_again(ray_cluster, features, tmp_path, dying, monkeypatch):
    runs, path = many(features, ["dying", "zs-clip"]), tmp_path / "ray.sqlite"
    records = on_ray(features, path).run(runs)
    assert dying.with_name("death").exists(), "a worker was killed"
    assert plain(records) == plain(run_all(features, runs))
    assert len(kept_before(features, runs, Keeping(path))) == 12
    # And a run that kills its worker each time ends alone, with workers that know the script.
    monkeypatch.setattr(runner, "_RETRIES", 1)
    [killer] = grid(features, ["dying"], cut=[0.9])
    runs = [killer, *many(features, ["zs-clip"])]
    found = dict(on_ray(features, tmp_path / "more.sqlite").outcomes(runs, goes_on=True))
    assert found[killer].startswith("the Ray cluster lost the run 2 times as a worker died")
    assert plain(found[run] for run in runs[1:]) == plain(run_all(features, runs[1:]))


@pytest.mark.slow
def test_a_worker_with_other_features_or_other_code(ray_cluster, features, tmp_path, monkeypatch):
    look = Library.look
    elsewhere = lambda self, run: {**look(self, run), "sky": "f" * 64}  # noqa: E731
    monkeypatch.setattr(Library, "look", elsewhere)  # in this process alone
    runs = many(features, ["zs-clip"])
    found = dict(on_ray(features, tmp_path / "ray.sqlite").outcomes(runs, goes_on=True))
    assert [*map(type, found.values())] == [str] * len(runs)
    assert "other features for zs-clip on pets against sky at 0.25" in found[runs[0]]
    monkeypatch.setattr(Library, "look", look)
    monkeypatch.setattr(runner, "revision", lambda method: "0.0")
    found = dict(on_ray(features, tmp_path / "ray.sqlite").outcomes(runs[:1], goes_on=True))
    assert "other code for zs-clip on pets against sky at 0.25" in found[runs[0]]


def test_the_command_line(ray_cluster, cached, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", ray_cluster)
    words = ["simulate", *TINY, "--method", "zs-clip", "--ood", "glyphs", "--format", "json"]
    swept = cached(*words, "--engine", "ray", "--jobs", 1)
    assert swept.exit_code == 0, swept.output
    alone = cached(*words, "--fresh")
    values = [json.loads(result.stdout)[0]["accuracies"] for result in (swept, alone)]
    assert values[0] == values[1]
    device = ("--fresh", "--method", "tent", "--device", "cuda:1")
    refused = cached(*words, "--engine", "ray", *device)
    fails(refused, "device is 'cuda:1', must be auto, cpu or cuda: Ray chooses which.", code=2)


def test_ray_that_is_not_there(features, monkeypatch):
    monkeypatch.setattr(connection, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"the engine ray needs Ray: .*zsntta\[ray\]"):
        Runner(features, engine="ray").run(grid(features))
