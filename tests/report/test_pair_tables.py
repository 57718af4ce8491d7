"""Tables over pairs: which rows and p-values they have, and what they say where no test is."""

import math

import pytest

from zsntta_cli.report.pairs import AGAINST_BEST, PairContest, p_text
from zsntta_cli.results.frame import CLEAN
from zsntta_cli.simulation.metrics import METRICS

LEVELS = {"zs-clip": 0.5, "ridge": 0.75, "tda": 0.625}


def contest(id_sets, oods=1, metric="acc_h", levels=LEVELS):
    """Methods, each of which has one value everywhere."""
    pairs = [(f"id{i}", f"ood{j}") for i in range(id_sets) for j in range(oods)]
    values = {name: {pair: {0: value} for pair in pairs} for name, value in levels.items()}
    return PairContest(METRICS[metric], values)


def texts(rows):
    return {row.labels[0]: {name: list(of) for name, of in row.values.items()} for row in rows}


def test_the_rows_by_hand_the_best_first():
    rows = contest(6).rows()
    assert [row.labels[0] for row in rows] == ["ridge", "tda", "zs-clip"]
    # All six signs are alike: 2 / 2^6, times two rivals.
    assert texts(rows) == {
        "ridge": {"over pairs": ["75.00"]},
        "tda": {"over pairs": ["62.50"], AGAINST_BEST: ["-12.50", "0/0/6", "0.062"]},
        "zs-clip": {"over pairs": ["50.00"], AGAINST_BEST: ["-25.00", "0/0/6", "0.062"]},
    }
    assert contest(6).columns == {
        "over pairs": ("Mean",), AGAINST_BEST: ("Difference", "Wins/ties/losses", "p (Holm)"),
    }  # fmt: skip


def test_of_a_metric_that_is_to_be_low_differences_are_as_they_are_printed():
    rows = texts(contest(6, metric="fpr95").rows())
    assert list(rows) == ["zs-clip", "tda", "ridge"]
    assert rows["ridge"][AGAINST_BEST][:2] == ["+25.00", "0/0/6"]


@pytest.mark.parametrize(("id_sets", "oods"), [(5, 1), (1, 4)])
def test_where_no_test_is_possible_it_is_said_and_no_p_is_shown(id_sets, oods):
    few = contest(id_sets, oods)
    assert few.about().startswith(
        f"{id_sets * oods} pairs: no test over pairs is possible. With fewer than 6"
    )
    assert {len(heads) for heads in few.columns.values()} == {1, 2}
    assert texts(few.rows())["tda"][AGAINST_BEST] == ["-12.50", f"0/0/{id_sets * oods}"]


def test_the_test_is_named_and_what_it_does_not_account_for():
    plain, shared = contest(6).about(), contest(11, 4).about()
    assert plain.startswith("p (Holm) is that of Wilcoxon’s signed-rank test over pairs")
    assert shared == (
        f"{plain} The test takes pairs as independent; those of one ID set share its images, so p "
        "is smaller than it should be."
    )


def test_who_lacks_a_pair_is_not_compared_and_named():
    whole = contest(6)
    lacking = {pair: {} if pair[0] == "id0" else {0: 0.9} for pair in whole.pairs}
    undefined = {pair: {0: math.nan} for pair in whole.pairs}
    more = PairContest(METRICS["acc_h"], {**whole.by_label, "adand": lacking, "mcm": undefined})
    assert texts(more.rows()) == texts(whole.rows())
    first, second = more.notes()
    assert first.startswith("adand is not compared over pairs: it has 5 of 6 sets (id1 / ")
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


def test_p_values_as_texts():
    assert [p_text(p) for p in (None, 0.0004, 0.001, 0.0449, 1.0)] == [
        "-", "<0.001", "0.001", "0.045", "1.000",
    ]  # fmt: skip
