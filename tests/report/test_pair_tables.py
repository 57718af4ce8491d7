"""Tables over pairs: which rows and p-values they have, and what they say where no test is."""

import math

import pytest

from zsntta_cli.report.pairs import AGAINST_BEST, PairContest, p_text
from zsntta_cli.results.frame import CLEAN
from zsntta_cli.simulation.metrics import METRICS

LEVELS = {"zs-clip": 0.5, "ridge": 0.75, "tda": 0.625}


def contest(id_sets, oods=1, metric="acc_h", levels=LEVELS, baseline="zs-clip"):
    """Methods, each of which has one value everywhere."""
    pairs = [(f"id{i}", f"ood{j}") for i in range(id_sets) for j in range(oods)]
    values = {name: {pair: {0: value} for pair in pairs} for name, value in levels.items()}
    return PairContest(METRICS[metric], values, baseline)


def texts(rows):
    return {row.labels[0]: {name: list(of) for name, of in row.values.items()} for row in rows}


def test_the_rows_by_hand_the_best_first():
    rows = contest(6).rows()
    assert [row.labels[0] for row in rows] == ["ridge", "tda", "zs-clip"]
    # All six signs are alike: 2 / 2^6, times three comparisons, times two rivals.
    assert texts(rows) == {
        "ridge": {
            "over pairs": ["75.00"], "against zs-clip": ["+25.00", "6/0/0", "0.031", "0.062"],
        },
        "tda": {
            "over pairs": ["62.50"], AGAINST_BEST: ["-12.50", "0/0/6", "0.031", "0.094"],
            "against zs-clip": ["+12.50", "6/0/0", "0.031", "0.062"],
        },
        "zs-clip": {
            "over pairs": ["50.00"], AGAINST_BEST: ["-25.00", "0/0/6", "0.031", "0.094"],
        },
    }  # fmt: skip
    heads = ("Difference", "Wins/ties/losses", "p", "p (Holm)")
    assert contest(6).columns == {
        "over pairs": ("Mean",), AGAINST_BEST: heads, "against zs-clip": heads,
    }  # fmt: skip


def test_of_a_metric_that_is_to_be_low_differences_are_as_they_are_printed():
    rows = texts(contest(6, metric="fpr95").rows())
    assert list(rows) == ["zs-clip", "tda", "ridge"]
    assert rows["ridge"][AGAINST_BEST][:2] == ["+25.00", "0/0/6"]


def test_a_baseline_that_is_the_best_has_no_columns_of_its_own():
    assert list(contest(6, baseline="ridge").columns) == ["over pairs", AGAINST_BEST]
    assert list(contest(6, baseline="").columns) == ["over pairs", AGAINST_BEST]


@pytest.mark.parametrize(
    ("id_sets", "oods", "words"),
    [
        (5, 1, "5 pairs: no test over pairs is possible. With fewer than 6"),
        (1, 4, "4 pairs: no test over pairs is possible. With fewer than 6"),
        (4, 4, "16 pairs of 4 ID sets: no test over pairs is possible. Pairs of an ID set share"),
        (1, 8, "8 pairs of 1 ID set: no test over pairs is possible."),
    ],
)
def test_where_no_test_is_possible_it_is_said_and_no_p_is_shown(id_sets, oods, words):
    few = contest(id_sets, oods)
    [said] = few.about()
    assert said.startswith(words)
    assert {len(heads) for heads in few.columns.values()} == {1, 2}
    assert texts(few.rows())["tda"][AGAINST_BEST] == ["-12.50", f"0/0/{id_sets * oods}"]


def test_the_test_is_named_and_what_it_does_not_account_for():
    [plain, *_] = contest(6).about()
    assert plain == "p is that of Wilcoxon’s signed-rank test over pairs, two-sided."
    [clustered, holm, baseline] = contest(11, 4).about()
    assert "signs of all pairs of an ID set are flipped together" in clustered
    assert "share OOD images, too, is not accounted for" in clustered
    assert "for all 3 of two methods, since the same values chose it" in holm
    assert baseline == (
        "Against zs-clip, which was chosen beforehand, p (Holm) is corrected for 2 comparisons."
    )


def test_where_no_corrected_p_can_be_low_it_is_said():
    # 2 / 2^6 times 3 is 9 %, 2 / 2^7 times 3 is 4.7 %.
    assert "no p can be below 5%" in [*contest(6).about()][-1]
    assert "no p can be" not in [*contest(7).about()][-1]
    assert len([*contest(6, levels={"a": 0.1, "b": 0.2}, baseline="").about()]) == 1


def test_who_lacks_a_pair_is_not_compared_and_named():
    whole = contest(6)
    lacking = {pair: {} if pair[0] == "id0" else {0: 0.9} for pair in whole.pairs}
    undefined = {pair: {0: math.nan} for pair in whole.pairs}
    more = PairContest(
        METRICS["acc_h"], {**whole.by_label, "adand": lacking, "mcm": undefined}, "zs-clip"
    )
    assert texts(more.rows()) == texts(whole.rows())
    first, second = more.notes()
    assert first.startswith("adand is not compared over pairs: it has 5 of 6 sets")
    assert second == "mcm is not compared over pairs: it has an undefined Acc_H."


def test_one_method_or_one_pair_is_no_contest():
    assert contest(2).is_contest
    assert not contest(1).is_contest
    assert not contest(6, levels={"ridge": 0.5}).is_contest


def test_clean_streams_are_of_id_sets_alone():
    values = {name: {(f"id{i}", CLEAN): {0: v} for i in range(6)} for name, v in LEVELS.items()}
    clean = PairContest(METRICS["acc_s"], values)
    assert clean.is_testable
    assert clean.size == "6 ID sets"
    assert contest(6, 2).size == "12 ID-OOD pairs of 6 ID sets"


def test_corruptions_of_a_set_count_as_that_set():
    pairs = [(f"cifar10-c:{name}:1", "svhn") for name in "abcdefgh"]
    corrupted = PairContest(
        METRICS["acc_h"], {name: {pair: {0: v} for pair in pairs} for name, v in LEVELS.items()}
    )
    same, why = corrupted.about()
    assert same.startswith("8 ID sets show the images of 1: corruptions and splits")
    assert why.startswith("8 pairs of 1 ID set: no test over pairs is possible.")
    assert corrupted.size == "8 ID-OOD pairs of 8 ID sets"


def test_p_values_as_texts():
    assert [p_text(p) for p in (None, 0.0004, 0.001, 0.0449, 1.0)] == [
        "-", "<0.001", "0.001", "0.045", "1.000",
    ]  # fmt: skip
