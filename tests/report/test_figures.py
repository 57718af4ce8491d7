"""The numbers of each kind of figure, worked out by hand, and their drawings."""

import dataclasses
import math

import matplotlib
import pytest
from kept import run_of
from PIL import Image

from zsntta_cli.report.comparisons import fixed, means, ranks, ratio
from zsntta_cli.report.distributions import difference, gradients, scores
from zsntta_cli.report.drawing import drawn, looks_of
from zsntta_cli.report.figure import POINTS, point_rows
from zsntta_cli.report.figures import KINDS, plot, write
from zsntta_cli.simulation.metrics import Measures
from zsntta_cli.simulation.notes import RunNote

NAN = math.nan
SCORES = {"low": 0.0, "high": 1.0, "id": [0, 1, 3], "ood": [5, 0, 0]}
BEFORE = {"low": 0.0, "high": 1.0, "id": [1, 1, 2], "ood": [4, 1, 0]}
DIFFERENCE = {"low": -1.0, "high": 1.0, "id": [0, 4], "ood": [4, 1]}
GRADIENTS = {"item": [0, 64, 192], "clean": [0.5, None, 0.25], "noisy": [2.0, 8.0, None]}
CURVES = {"scores": SCORES, "before": BEFORE, "difference": DIFFERENCE, "gradients": GRADIENTS}
METHODS = ("zs-clip", "tent", "adand")


def runs():
    """What every kind of figure has something of."""
    return [
        run_of(method, (0.5 + 0.1 * i, 0.6), CURVES, ood_set=ood, ratio=share, fixed=at, seed=s)
        for i, method in enumerate(METHODS)
        for ood in ("glyphs", "textures")
        for share in (0.25, 0.5)
        for at in (None, 0.5)
        for s in (0, 1)
    ]


def series(figure, name, panel=0):
    """The only series of a name, in a panel."""
    [found] = [one for one in figure.panels[panel].series if one.name == name]
    return found


# Against a setting.


def test_a_metric_against_the_ratio_is_folded_over_seeds_and_leaves_clean_streams_out():
    values = {
        (0.25, 0): (0.5, 0.5),
        (0.25, 1): (0.7, 0.7),
        (0.75, 0): (0.8, 0.8),
        (0, 0): (0.9, NAN),
    }
    some = [run_of("adand", of, ratio=share, seed=seed) for (share, seed), of in values.items()]
    acc_h = series(ratio(some), "adand")
    assert (acc_h.x, acc_h.y) == ((25, 75), pytest.approx((60, 80)))
    assert acc_h.std == pytest.approx((20 / math.sqrt(2), NAN), nan_ok=True)  # one run has none
    acc_s = series(ratio(some, "acc_s"), "adand")
    assert (acc_s.x, acc_s.y) == ((0, 25, 75), pytest.approx((90, 60, 80)))


def test_settings_that_differ_are_told_in_the_legend_and_those_of_the_set_are_not():
    some = [run_of("adand", warmup=5), run_of("adand", warmup=10), run_of("zs-clip")]
    some += [run_of("zs-clip", id_set="digits", noise="gaussian")]  # alone there: no difference
    [panel] = [panel for panel in ratio(some).panels if panel.title == "shapes"]
    names = [one.name for one in panel.series]
    assert names == ["zs-clip", "adand (warmup 5)", "adand (warmup 10)"]


def test_of_too_many_lines_those_of_the_usual_settings_are_drawn_and_a_note_says_which_not():
    some = [run_of("adand", warmup=n) for n in range(1, 11)] + [run_of("zs-clip")]
    figure = plot(some, "ratio", {})
    assert [one.name for one in figure.panels[0].series] == ["zs-clip", "adand"]
    assert "2 of 11 lines are shown" in figure.notes[0]
    assert "select others: adand (warmup 1)" in figure.notes[0]
    chosen = plot(some, "ratio", {"warmup": ["3", "4"]})
    assert [one.name for one in chosen.panels[0].series] == ["adand (warmup 3)", "adand (warmup 4)"]


def test_of_too_many_pairs_the_averages_of_each_id_set_are_drawn():
    some = [run_of("adand", (i / 20, i / 20), ood_set=f"set-{i}") for i in range(1, 14)]
    figure = ratio(some)
    assert [panel.title for panel in figure.panels] == ["shapes, average"]
    assert series(figure, "adand").y == pytest.approx((35,))
    figure = scores([dataclasses.replace(run, curves={"scores": SCORES}) for run in some])
    assert len(figure.panels) == 12
    assert figure.notes[0].startswith("1 of 13 panels are left out")


def test_fixed_thresholds_are_means_over_the_pairs_that_have_one():
    accuracies = {
        "glyphs": {0.3: 0.2, 0.6: 0.6, None: 0.8}, "textures": {0.3: 0.4, 0.6: 0.6, None: 0.9},
        "digits": {None: 0.1},
    }  # fmt: skip
    some = [
        run_of("zs-clip", (value, value), ood_set=ood, fixed=threshold)
        for ood, values in accuracies.items() for threshold, value in values.items()
    ]  # fmt: skip
    printed = {
        ("shapes", "glyphs"): {"acc_s": 10.0, "acc_n": 20.0, "acc_h": 30.0},
        ("shapes", "textures"): {"acc_s": 30.0, "acc_n": 40.0, "acc_h": 50.0},
    }
    [panel] = fixed(some, {"zs-clip": printed}).panels
    lines = {(one.name, one.look): (one.x, one.y) for one in panel.series}
    assert lines["Acc_H", ""] == ((0.3, 0.6), pytest.approx((30, 60)))
    assert lines["adaptive", "Acc_H"][1] == pytest.approx((85, 85))
    assert lines["published", "Acc_H"][1] == pytest.approx((40, 40))
    more = series(
        fixed([*some, run_of("zs-clip", (0.1, 0.1), ood_set="digits", fixed=0.3)]), "Acc_H"
    )
    assert (more.x, more.y) == ((0.3,), pytest.approx((70 / 3,))), "of 0.6 a set is missing"


# Methods over pairs. Averages by the rules of the tables: test_one_answer.py.


def pair_runs():
    """Three methods on two pairs: the best of the first pair is the second of the other."""
    first = {"zs-clip": 0.5, "tent": 0.4, "adand": 0.9}
    second = {"zs-clip": 0.5, "tent": 0.5, "adand": 0.4}
    return [
        run_of(method, (value, value), ood_set=ood)
        for ood, values in (("glyphs", first), ("textures", second))
        for method, value in values.items()
    ]


def test_ranks_are_the_shares_of_pairs_up_to_them_and_equal_values_share_one():
    [panel] = ranks(pair_runs()).panels
    assert panel.title == "2 ID-OOD pairs"
    assert {one.name: (one.x, one.y) for one in panel.series} == {
        "zs-clip (mean 1.75)": ((1, 2, 3), (0, 100, 100)),  # of 2 and 1.5
        "tent (mean 2.25)": ((1, 2, 3), (0, 50, 100)),
        "adand (mean 2.00)": ((1, 2, 3), (50, 50, 100)),
    }


def test_published_numbers_stand_in_a_panel_of_their_own_over_the_same_pairs():
    printed = {
        name: {("shapes", ood): dict.fromkeys(("acc_s", "acc_n", "acc_h"), 100 * value)
               for ood, value in (("glyphs", first), ("textures", 0.5), ("digits", 0.1))}
        for name, first in (("zs-clip", 0.5), ("adand", 0.7))
    }  # fmt: skip
    here, there = means(pair_runs(), published=printed).panels
    assert (here.title, there.title) == ("2 ID-OOD pairs", "2 ID-OOD pairs, published")
    assert {one.name: one.y for one in there.series} == {
        "zs-clip": pytest.approx((50, 50, 50)), "adand": pytest.approx((60, 60, 60)),
    }  # fmt: skip
    assert all(one.is_published and one.shape == POINTS for one in there.series)


# Distributions.


def test_scores_are_in_percent_of_their_kind_with_the_median_of_the_threshold_that_decided():
    detector = {"item": [1, 2, 3, 4], "zero_shot": [0.6] * 4, "detector": [None, 0.2, 0.3, 0.7]}
    curves = {"scores": SCORES, "thresholds": detector}
    figure = scores([run_of("adand", curves=curves)])
    assert [panel.title for panel in figure.panels] == ["adand"]
    assert series(figure, "ID").x == pytest.approx((1 / 6, 0.5, 5 / 6))
    assert series(figure, "ID").y == (0, 25, 75)
    assert series(figure, "OOD").y == (100, 0, 0)
    assert series(figure, "threshold (median)").x == (0.3, 0.3)


def test_before_an_adaptation_stand_the_scores_of_zs_clip_or_the_live_runs_own():
    curves = {"scores": SCORES, "before": BEFORE, "difference": DIFFERENCE}
    tent, frozen = run_of("tent", curves=curves), run_of("zs-clip", curves={"scores": BEFORE})
    alone = scores([tent])
    assert [panel.title for panel in alone.panels] == ["before adaptation", "tent"]
    assert series(alone, "ID").y == (25, 25, 50)
    assert [panel.title for panel in scores([tent, frozen]).panels] == ["zs-clip", "tent"]
    of_id, of_ood = difference([tent, frozen]).panels[0].series
    assert (of_id.x, of_id.y, of_ood.y) == ((-0.5, 0.5), (0, 100), (80, 20))


def test_gradients_are_by_step_and_leave_out_what_a_step_did_not_see():
    some = [run_of("tent", curves={"gradients": GRADIENTS})]
    [panel] = gradients(some).panels
    clean, noisy = panel.series
    assert (clean.x, clean.y, noisy.x) == ((1, 3), (0.5, 0.25), (1, 2))
    assert panel.is_log
    enlarged = gradients(some, most=0.3)
    assert [panel.title for panel in enlarged.panels] == ["tent: clean"]
    assert series(enlarged, "clean samples").x == (3,)
    assert [note[:14] for note in enlarged.notes] == ["tent: 1 of 2 n", "tent: 2 of 2 n"]


# All of them.


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_as_wide_as_asked_and_its_csv_has_every_point(kind, tmp_path):
    figure = plot(runs(), kind, {})
    write(tmp_path / "f.png", figure, 3.25)
    with Image.open(tmp_path / "f.png") as picture:
        assert picture.width == 975  # 3.25 inches at 300 dots
        assert len(picture.convert("RGB").getcolors(10**6)) > 20
    every = [(p.title, s.name) for p in figure.panels for s in p.series for _ in s.x]
    assert [(row["panel"], row["series"]) for row in point_rows(figure)] == every


def test_a_figure_depends_neither_on_the_order_of_runs_nor_on_the_users_settings():
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "none"}):
        content = drawn(plot(runs()[::-1], "scores", {}), "pdf")
    assert content == drawn(plot(runs(), "scores", {}), "pdf")
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert b"CreationDate" not in content


def test_what_has_to_be_known_of_a_drawn_method_stands_beside_its_figure_and_not_in_it(tmp_path):
    note = RunNote("warm-up", "adand", "adand decides as zs-clip does throughout.", -337)
    [plain] = [run_of("adand", curves=CURVES)]
    noted = dataclasses.replace(plain, notes=(note,))
    figure = plot([noted], "scores", {})
    assert figure.caption == (note.text,)
    assert write(tmp_path / "f.svg", figure, 3.3)[1].read_text() == f"{note.text}\n"
    assert drawn(figure, "svg") == drawn(plot([plain], "scores", {}), "svg")
    undecided = dataclasses.replace(noted, accuracies=Measures())
    assert plot([undecided, run_of("zs-clip")], "ratio", {}).caption == ()


def test_a_method_looks_the_same_in_every_figure_and_none_looks_like_another():
    alone, beside = looks_of(["adand", "cull"]), looks_of(["cull (preset code)", "x", "adand"])
    assert alone == {"adand": beside["adand"], "cull": beside["cull (preset code)"]}
    eight = looks_of(["adand", *(f"adand (batch size {n})" for n in range(7))]).values()
    assert len({colour for colour, _, _ in eight}) == len({marker for _, marker, _ in eight}) == 8
