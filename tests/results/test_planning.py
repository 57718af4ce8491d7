"""What runs would come to, before any is run."""

import pytest
from replayed import grid

from zsntta_cli.results.executor import run_all
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.results.planning import foresee
from zsntta_cli.results.store import RecordStore


@pytest.fixture
def keeping(tmp_path):
    return Keeping(tmp_path / "kept.sqlite")


def took(keeping, seconds):
    """Say of all kept runs how long their methods took."""
    with RecordStore(keeping.path) as store:
        store._connection.execute(
            "UPDATE contents SET record = json_set(record, '$.seconds', ?)", (seconds,)
        )


def test_an_estimate_is_the_seconds_an_item_of_runs_with_equal_settings(features, keeping):
    [record] = run_all(features, grid(features, ["adand"]), keeping=keeping)
    took(keeping, 3.0)
    items = sum(record.counts.values())
    [wanted] = run_all(features, grid(features, ["adand"], ratio=[0.25], seed=[4]))
    runs = grid(features, ["adand", "zs-clip"], ratio=[0.25, 0.5], seed=[4])
    estimate = foresee(features, runs, keeping).estimate
    expected = 3.0 + 3.0 / items * sum(wanted.counts.values())
    assert estimate.seconds == pytest.approx(expected)
    assert (estimate.runs, estimate.unknown, estimate.basis) == (2, 2, 1)
    other = grid(features, ["adand"], warmup=[3], ratio=[0.25])
    assert foresee(features, other, keeping).estimate.runs == 0, "of other settings it says nothing"


def test_the_median_of_several_counts(features, keeping):
    runs = grid(features, ["zs-clip"], seed=range(3))
    for i, run in enumerate(runs):
        run_all(features, [run], keeping=keeping)
        with RecordStore(keeping.path) as store:
            store._connection.execute(
                "UPDATE contents SET record = json_set(record, '$.seconds', ?) WHERE key = ?",
                ((1.0, 2.0, 90.0)[i], store.keys()[-1]),
            )
    estimate = foresee(features, grid(features, ["zs-clip"], seed=[7]), keeping).estimate
    assert estimate.seconds == pytest.approx(2.0)
    assert estimate.basis == 3


def test_nothing_is_known_without_a_store_and_none_is_made(features, keeping):
    foresight = foresee(features, grid(features), keeping)
    assert (len(foresight.left), foresight.estimate.runs) == (1, 0)
    assert not keeping.path.exists()


def test_kept_runs_are_left_out_of_it(features, keeping):
    runs = grid(features, seed=range(3))
    run_all(features, runs[:2], keeping=keeping)
    foresight = foresee(features, runs, keeping)
    assert foresight.kept == frozenset(runs[:2])
    assert foresight.left == runs[2:]
