"""What runs come to, before any is run."""

from replayed import grid

from zsntta_cli.results.grid import foresee
from zsntta_cli.results.runner import run_all
from zsntta_cli.results.store import Keeping


def test_kept_runs_are_left_out_of_it_and_no_store_is_made(features, tmp_path):
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features, seed=range(3))
    before = foresee(features, runs, keeping)
    assert (before.kept, before.to_run, before.lacking) == (0, 3, 0)
    assert not keeping.path.exists()
    run_all(features, runs[:2], keeping=keeping)
    after = foresee(features, runs, keeping)
    assert (after.kept, after.to_run, after.lacking) == (2, 1, 0)
