"""Which runs make a row of a frame, how it is called, and which rows saw the same samples."""

import math

import pytest
from kept import kept_run

from zsntta_cli.results import frame
from zsntta_cli.simulation.metrics import METRICS


def rows(*kept):
    return [row for table in frame.tables(kept) for row in table.rows]


def labels(made):
    names = frame.varying(made)
    return [frame.label(row, names) for row in made]


def stream_of(kept):
    [row] = rows(kept)
    return row.stream, row.ratio


def test_injection_makes_no_other_stream_and_order_limit_and_ratio_do():
    plain = stream_of(kept_run())
    assert stream_of(kept_run(noise="gaussian", noise_every=2, placement="shuffled")) == plain
    for other in ({"order": "burst"}, {"limit": 7}, {"ood_fill": "cap"}, {"ratio": 0.25}):
        assert stream_of(kept_run(**other)) != plain, other


def test_rounded_odds_make_another_stream_where_there_is_something_to_round():
    assert stream_of(kept_run(rounded_odds=True)) == stream_of(kept_run())
    odds = {"ratio": 0.25, "rounded_odds": True}
    assert stream_of(kept_run(**odds)) != stream_of(kept_run(ratio=0.25))


@pytest.mark.parametrize("name", ["shapes", "glyphs", "text/shapes"])
def test_rows_of_other_features_are_never_ranked_together(name):
    others = {name: "9" * 64}
    made = rows(kept_run("zs-clip"), kept_run("tda"), kept_run("ridge", digests=others),
                kept_run("zs-clip", digests=others))  # fmt: skip
    groups = {}
    for row in made:
        groups.setdefault(row.stream, []).append(row.method)
    assert sorted(map(sorted, groups.values())) == [["ridge", "zs-clip"], ["tda", "zs-clip"]]


def test_other_text_of_the_same_files_is_never_ranked_together_though_each_method_ran_once():
    one, other = rows(kept_run(), kept_run("adand", digests={"text/shapes": "9" * 64}))
    assert one.stream != other.stream


def test_prompts_are_rows_of_one_stream_each_with_its_text():
    other = kept_run(prompt="art of a {}.", digests={"text/shapes": "9" * 64})
    one, two = rows(kept_run(), other)
    assert one.stream == two.stream
    assert set(labels([one, two])) == {
        "zs-clip (prompt a photo of a {}.)", "zs-clip (prompt art of a {}.)",
    }  # fmt: skip


def test_a_row_is_told_apart_by_its_preset_or_by_what_differs_within_it():
    made = rows(
        kept_run("adand"), kept_run("adand", warmup=3), kept_run("adand", preset="tuned"),
        kept_run("zs-clip"),
    )  # fmt: skip
    assert labels(made) == [
        "zs-clip", "adand (paper, warmup 3)", "adand (paper, warmup 10)", "adand (tuned, warmup 3)",
    ]  # fmt: skip


def test_noise_images_of_another_digest_make_another_row():
    others = {"noise-gaussian": "9" * 64}
    made = rows(kept_run("adand"), kept_run("adand", seed=1, digests=others))
    assert labels(made) == [
        f"adand (features of noise-gaussian {digit * 8})" for digit in "49"
    ]  # fmt: skip


def test_a_row_has_mean_and_deviation_over_its_seeds():
    [row] = rows(kept_run(seed=0, known=6), kept_run(seed=1, known=8))
    assert row.value("glyphs", "acc_s").mean == pytest.approx(0.7)
    assert row.value("glyphs", "acc_s").std == pytest.approx(math.sqrt(2) / 10)
    [alone] = rows(kept_run())
    assert math.isnan(alone.value("glyphs", "acc_s").std)


def test_the_worst_tenth_of_runs_by_hand():
    many = {
        "glyphs": {s: 0.5 + s / 100 for s in range(10)},
        "digits": dict.fromkeys(range(10), 0.9),
    }
    assert frame.worst_tenth(many, METRICS["acc_h"]) == pytest.approx((0.50 + 0.51) / 2)
    assert frame.worst_tenth(many, METRICS["fpr95"]) == pytest.approx(0.9), "of errors the largest"
    few = {"glyphs": {0: 0.7, 1: 0.6}, "digits": {0: 0.8, 1: 0.9, 2: 0.1}}
    assert frame.worst_tenth(few, METRICS["acc_h"]) == 0.6, "of the seeds that the average is of"
    lacking = {"glyphs": {0: 0.7}, "digits": {}}
    assert math.isnan(frame.worst_tenth(lacking, METRICS["acc_h"]))


def test_the_worst_tenth_of_a_row_is_over_its_sets_and_seeds():
    seeds = [kept_run(ood=o, seed=s, known=k) for o, s, k in
             (("glyphs", 0, 6), ("glyphs", 1, 3), ("digits", 0, 8), ("digits", 1, 9))]  # fmt: skip
    [row] = rows(*seeds)
    assert row.worst_tenth(("glyphs", "digits"), METRICS["acc_s"]) == pytest.approx(0.3)
