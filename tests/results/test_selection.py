"""Which kept runs a figure or a page has: those that are wanted, the usual ones, the latest."""

import dataclasses

import pytest
from kept import run_of

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.figures import usual
from zsntta_cli.results.frame import chosen, latest


def test_filters_leave_what_fits_and_a_clean_stream_is_of_all_ood_sets():
    runs = [run_of("adand", ratio=r, seed=s) for r in (0.0, 0.25) for s in (0, 1)]
    runs += [run_of("zs-clip", ood_set="textures")]
    assert chosen(runs, {"method": ["adand"], "seed": [1]}) == [runs[1], runs[3]]
    assert chosen(runs, {"ood": ["glyphs"]}) == runs[:4]
    assert chosen(runs, {"warmup": ["10"]}) == runs[:4]
    assert chosen(runs, {"fixed": ["adaptive"]}) == runs


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"method": ["tent"]}, "no kept run that fits has method tent: there is adand"),
        ({"ratio": [0.3]}, "has ratio 0.3: there is 0.0, 0.25"),
        ({"ood": ["svhn"]}, "has ood svhn: there is glyphs"),
        ({"ratio": [0.25], "seed": [7]}, "has seed 7: there is 2"),
        ({"warmup": ["11"]}, "has warmup 11: there is 10"),
        ({"views": ["8"]}, "has views 8: there is none"),
    ],
)
def test_where_nothing_fits_the_error_says_what_is_there(filters, message):
    runs = [run_of("adand", ratio=0.0), run_of("adand", ratio=0.25, seed=2)]
    with pytest.raises(SettingsError, match=message):
        chosen(runs, filters)


def test_unasked_a_plot_has_the_papers_ratio_and_adaptive_thresholds():
    runs = [run_of("adand", ratio=r) for r in (0.25, 0.5)] + [run_of("adand", fixed=0.3)]
    assert usual(runs, {}) == [runs[1]]
    assert usual(runs, {}, keep=("ratio",)) == runs[:2]
    assert usual(runs, {}, keep=("fixed",)) == runs[1:]
    assert usual(runs[:1], {}) == runs[:1]
    assert usual(runs[2:], {}) == runs[2:]  # nothing else is there
    assert usual(runs, {"ratio": [0.25, 0.5]}) == runs[:2]


def test_older_runs_do_not_stand_beside_newer_ones_on_other_features():
    old, other = made_at("2026-01", "adand"), made_at("2026-02", "zs-clip")
    new = made_at("2026-03", "adand", digests={"shapes": "e"})
    for runs in ([old, other, new], [new, other, old]):
        newest, [note] = latest(runs)
        assert newest == [new]
        assert note == "2 older runs are left out: their features or methods were made anew since"
    assert latest([old, other]) == ([old, other], [])


def made_at(created, method, **given):
    kept = run_of(method, **given)
    return dataclasses.replace(kept, created=created)
