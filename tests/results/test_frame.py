"""Which runs make a row of a frame, how it is called, and which rows saw the same samples."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import kept_run

from zsntta_cli.results import frame
from zsntta_cli.simulation.metrics import METRICS


def rows(*kept):
    return [row for table in frame.tables(kept) for row in table.rows]


def labels(made):
    return [*frame.labels(made).values()]


# Runs that differ in settings of the stream, the threshold, the method and the preset.
SOME = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["zs-clip", "adand", "tda"]),
        "id_set": st.sampled_from(["shapes", "digits"]),
        "ood": st.sampled_from(["glyphs", "textures"]),
        "ratio": st.sampled_from([0.0, 0.5]),
        "seed": st.integers(0, 1),
    },
    optional={
        "noise": st.sampled_from(["none", "gaussian", "uniform"]),
        "noise_every": st.sampled_from([4, 8]),
        "batch_size": st.sampled_from([1, 4]),
        "fixed": st.sampled_from([None, 0.5]),
        "preset": st.sampled_from(["paper", "official", "tuned"]),
        "prompt": st.sampled_from(["a {}.", "art of a {}."]),
        "order": st.sampled_from(["shuffled", "burst"]),
    },
)
RUNS = st.lists(SOME, min_size=1, max_size=12)


def table_rows(runs):
    """The rows of one table: on one kind of stream, at one ratio."""
    made = [kept_run(**{**run, "ood": run["ood"] * bool(run["ratio"])}) for run in runs]
    first = rows(made[0])[0]
    return [row for row in rows(*made) if (row.stream, row.ratio) == (first.stream, first.ratio)]


def parts(label):
    """The settings that a label names."""
    return {part for part in label.partition(" (")[2].removesuffix(")").split(", ") if part}


@given(RUNS)
@settings(max_examples=200, deadline=None)
def test_labels_tell_the_rows_of_a_table_apart(runs):
    made = table_rows(runs)
    assert len(set(labels(made))) == len(made)


@given(RUNS, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_a_label_says_what_varies_in_its_own_table_and_never_more(runs, order):
    made = table_rows(runs)
    whole = frame.labels(made)
    assert frame.labels(order.sample(made, len(made))) == whole
    for row, label in whole.items():
        others = [other for other in made if other.method == row.method and other is not row]
        assert label.startswith(row.method)
        assert parts(label) or not others
        for part in parts(label):  # another row of the method, without that part's value
            assert any(part not in parts(whole[other]) for other in others), part
    fewer = frame.labels(order.sample(made, order.randint(1, len(made))))
    assert all(parts(label) <= parts(whole[row]) for row, label in fewer.items())


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
