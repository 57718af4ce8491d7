"""Runs that end with an error: reported, and the others go on."""

import sys

import pytest
from replayed import grid

from zsntta_cli.results.runner import run_all
from zsntta_cli.simulation.simulator import Simulator


def with_a_missing_set(features):
    import dataclasses

    runs = grid(features, ["adand"], seed=range(9))
    return [dataclasses.replace(runs[0], ood_set="gone"), *runs]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_an_error_ends_is_reported_and_the_others_go_on(features, jobs):
    runs, failed = with_a_missing_set(features), {}
    records = run_all(features, runs, jobs, failures=failed)
    assert [record.settings for record in records] == runs[1:]
    assert failed.keys() == {runs[0]}
    assert "no features of 'gone'" in failed[runs[0]]


def test_what_filled_the_memory_is_let_go_of_before_the_next_run(features, monkeypatch):
    torch = pytest.importorskip("torch")
    assert "torch" in sys.modules
    events, runs = [], grid(features, ["adand"], seed=range(2))
    plain = Simulator.replay

    def replay(self, run, analyse=False):
        events.append(run)
        if run == runs[0]:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return plain(self, run, analyse)

    monkeypatch.setattr(Simulator, "replay", replay)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: events.append("emptied"))
    failed = {}
    [record] = run_all(features, runs, failures=failed)
    assert record.settings == runs[1]
    assert failed == {runs[0]: "CUDA out of memory."}
    assert events == [runs[0], "emptied", runs[1]]
