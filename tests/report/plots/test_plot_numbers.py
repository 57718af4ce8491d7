"""The numbers of each kind of plot, worked out by hand."""

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept import run_of

from zsntta_cli.errors import SettingsError
from zsntta_cli.report import plots
from zsntta_cli.report.figure import (
    LEVEL,
    MEAN_RANK,
    RANKS,
    UPRIGHT,
    point_rows,
    with_ends,
)
from zsntta_cli.report.forms import csv_text
from zsntta_cli.report.plots import comparisons, distributions, over_pairs, streams
from zsntta_cli.results import tidy
from zsntta_cli.results.frame import Filters, chosen, latest, usual
from zsntta_cli.simulation.metrics import METRICS, Measures, Metric
from zsntta_cli.simulation.notes import RunNote

NAN = math.nan


def series(figure, name, panel=0, mark=None):
    """The only series of a name, in a panel."""
    every = figure.panels[panel].series
    [found] = [one for one in every if one.name == name and mark in (None, one.mark)]
    return found


def to_csv(figure):
    rows, columns = point_rows(figure)
    return csv_text(rows, columns)


def rows(figure):
    return list(csv.DictReader(io.StringIO(to_csv(figure))))


SCORES = {"low": 0.0, "high": 1.0, "id": [0, 1, 3], "ood": [5, 0, 0]}
BEFORE = {"low": 0.0, "high": 1.0, "id": [1, 1, 2], "ood": [4, 1, 0]}
DIFFERENCE = {"low": -1.0, "high": 1.0, "id": [0, 4], "ood": [4, 1]}


def test_scores_are_in_percent_of_their_kind_with_the_median_of_the_threshold_that_decided():
    detector = {"item": [1, 2, 3, 4], "zero_shot": [0.6] * 4, "detector": [None, 0.2, 0.3, 0.7]}
    curves = {"scores": SCORES, "thresholds": detector}
    figure = distributions.scores([run_of("adand", curves=curves)])
    assert [panel.title for panel in figure.panels] == ["adand"]
    assert series(figure, "ID").x == pytest.approx((1 / 6, 0.5, 5 / 6))
    assert series(figure, "ID").y == (0, 25, 75)
    assert series(figure, "OOD").y == (100, 0, 0)
    assert series(figure, "threshold (median)").x == (0.3,)
    assert series(figure, "threshold (median)").mark == UPRIGHT


def test_before_an_adaptation_stand_the_scores_of_zs_clip_or_the_live_runs_own():
    tent = run_of("tent", curves={"scores": SCORES, "before": BEFORE})
    alone = distributions.scores([tent])
    assert [panel.title for panel in alone.panels] == ["before adaptation", "tent"]
    assert series(alone, "ID").y == (25, 25, 50)
    beside = distributions.scores([tent, run_of("zs-clip", curves={"scores": BEFORE})])
    assert [panel.title for panel in beside.panels] == ["zs-clip", "tent"]


def test_of_several_seeds_a_histogram_shows_the_lowest():
    runs = [run_of("adand", curves={"scores": BEFORE}, seed=3)]
    runs += [run_of("adand", curves={"scores": SCORES}, seed=1)]
    assert series(distributions.scores(runs), "ID").y == (0, 25, 75)


def test_differences_are_those_of_live_runs():
    runs = [run_of("tent", curves={"difference": DIFFERENCE}), run_of("zs-clip")]
    figure = distributions.difference(runs)
    assert len(figure.panels) == 1
    assert series(figure, "ID").x == (-0.5, 0.5)
    assert series(figure, "ID").y == (0, 100)
    assert series(figure, "OOD").y == (80, 20)
    with pytest.raises(SettingsError, match="no kept run that fits is of a live method"):
        distributions.difference(runs[1:])


GRADIENTS = {"item": [0, 64, 192], "clean": [0.5, None, 0.25], "noisy": [2.0, 8.0, None]}


def test_gradients_are_by_step_and_leave_out_what_a_step_did_not_see():
    figure = streams.gradients([run_of("tent", curves={"gradients": GRADIENTS})])
    assert series(figure, "clean samples").x == (1, 3)
    assert series(figure, "clean samples").y == (0.5, 0.25)
    assert series(figure, "noisy samples").x == (1, 2)
    assert figure.panels[0].y.is_log
    with pytest.raises(SettingsError, match="has its gradients kept"):
        streams.gradients([run_of("tent")])


def test_enlarged_gradients_say_how_many_they_do_not_show():
    runs = [run_of("tent", curves={"gradients": GRADIENTS})]
    figure = streams.gradients_apart(runs, most=0.3)
    assert [panel.title for panel in figure.panels] == ["tent: clean", "tent: noisy"]
    assert series(figure, "clean samples").x == (3,)
    assert series(figure, "noisy samples", panel=1).x == ()
    assert figure.notes == (
        "tent: 1 of 2 norms of clean samples are above 0.3 and not shown",
        "tent: 2 of 2 norms of noisy samples are above 0.3 and not shown",
    )


def thresholds(detector):
    curve = {"item": [10, 20, 30], "zero_shot": [0.6, 0.5, 0.4], "detector": detector}
    return {"thresholds": {name: values for name, values in curve.items() if values}}


def test_a_threshold_stands_on_an_axis_of_its_own_scale():
    own = {"zs-clip": None, "adand": [None, 0.2, 0.3], "adand+tda": [0.1, 0.2, 0.4],
           "cull": [None, 1.5, 2.25]}  # fmt: skip
    runs = [run_of(method, curves=thresholds(values)) for method, values in own.items()]
    figure = streams.thresholds(runs)
    by_scale = {p.y.name: {s.name: (s.x, s.y, s.std) for s in p.series} for p in figure.panels}
    every = (10, 20, 30)
    assert by_scale == {
        "zero-shot threshold": dict.fromkeys(own, (every, (0.6, 0.5, 0.4), ())),
        "adand's threshold": {
            "adand": (every[1:], (0.2, 0.3), ()), "adand+tda": (every, (0.1, 0.2, 0.4), ()),
        },
        "cull's threshold": {"cull": (every[1:], (1.5, 2.25), ())},
    }  # fmt: skip
    ends = {panel.y.name: (panel.y.low, panel.y.high) for panel in with_ends(figure.panels)}
    assert ends["zero-shot threshold"] == pytest.approx((0.39, 0.61))
    assert ends["cull's threshold"][0] > 1


def test_of_several_pairs_panels_of_one_scale_stand_beside_each_other_and_share_their_ends():
    runs = [
        run_of("cull", curves=thresholds(values), ood_set=ood)
        for ood, values in (("glyphs", [1.0, 1.5, 1.0]), ("textures", [1.0, 2.0, 1.0]))
    ]
    panels = with_ends(streams.thresholds(runs).panels)
    assert [(panel.title, panel.y.name) for panel in panels] == [
        ("glyphs", "zero-shot threshold"), ("textures", "zero-shot threshold"),
        ("glyphs", "cull's threshold"), ("textures", "cull's threshold"),
    ]  # fmt: skip
    assert panels[2].y == panels[3].y
    assert panels[2].y.high == pytest.approx(2.05)


def test_a_histogram_has_the_threshold_of_its_own_scale_alone():
    curves = {"scores": {**SCORES, "low": -1.0, "high": 2.4}, **thresholds([None, 1.5, 2.0])}
    [panel] = distributions.scores([run_of("cull", curves=curves)]).panels
    assert [one.x for one in panel.series if one.mark == UPRIGHT] == [(1.75,)]
    [panel] = distributions.scores(
        [run_of("zs-clip", curves={"scores": SCORES, **thresholds(None)})]
    ).panels
    assert [one.x for one in panel.series if one.mark == UPRIGHT] == [(0.5,)]


def test_windows_are_drawn_of_the_runs_that_have_them():
    windows = {"windows": {"item": [10, 20], "acc_s": [0.5, 1.0], "acc_n": [0.5, None]}}
    older = running([0.5] * 3, [0.5] * 3)
    figure = streams.windows([run_of("adand", curves=windows), run_of("tda", curves=older)])
    [panel] = figure.panels
    assert [line.name for line in panel.series] == ["adand"]
    assert (panel.y.name, series(figure, "adand").y) == ("Acc_H in windows (%)", (50.0,))
    of_id = streams.windows([run_of("adand", curves=windows)], "acc_s")
    assert (series(of_id, "adand").x, series(of_id, "adand").y) == ((10, 20), (50.0, 100.0))
    with pytest.raises(SettingsError, match="no kept run that fits has its windows kept"):
        streams.windows([run_of("tda", curves=older)])


def running(acc_s, acc_n):
    return {"running": {"item": [10, 20, 30], "acc_s": acc_s, "acc_n": acc_n}}


def test_accuracies_along_the_stream_fold_seeds_where_both_kinds_have_come():
    runs = [
        run_of("adand", curves=running([None, 0.5, 0.6], [1.0, 1.0, 0.6]), seed=0),
        run_of("adand", curves=running([None, 0.5, 0.2], [0.5, 0.5, 0.2]), seed=1),
    ]
    acc_h = series(streams.accuracy(runs), "adand")
    assert acc_h.x == (20, 30)
    first = (100 * 2 / 3 + 50) / 2  # of 2 * 0.5 * 1 / 1.5 and 0.5
    assert acc_h.y == pytest.approx((first, 40))
    assert acc_h.std == pytest.approx(((100 * 2 / 3 - 50) / math.sqrt(2), 40 / math.sqrt(2)))
    acc_n = series(streams.accuracy(runs, "acc_n"), "adand")
    assert acc_n.y == pytest.approx((75, 75, 40))


def test_a_stream_of_another_length_is_not_folded_in():
    other = {"running": {"item": [1, 2], "acc_s": [0.1, 0.1], "acc_n": [0.1, 0.1]}}
    runs = [run_of("adand", curves=running([0.5] * 3, [0.5] * 3))]
    line = series(streams.accuracy([*runs, run_of("adand", curves=other, seed=1)]), "adand")
    assert line.y == (50, 50, 50)


def test_a_metric_against_the_ratio_is_folded_over_seeds_and_leaves_clean_streams_out():
    runs = [
        run_of("adand", (0.5, 0.5), ratio=0.25, seed=0),
        run_of("adand", (0.7, 0.7), ratio=0.25, seed=1),
        run_of("adand", (0.8, 0.8), ratio=0.75, seed=0),
        run_of("adand", (0.9, NAN), ratio=0.0, seed=0),
    ]
    acc_h = series(comparisons.ratio(runs), "adand")
    assert acc_h.x == (25, 75)
    assert acc_h.y == pytest.approx((60, 80))
    assert acc_h.std == pytest.approx((20 / math.sqrt(2), NAN), nan_ok=True)  # one run has none
    acc_s = series(comparisons.ratio(runs, "acc_s"), "adand")
    assert acc_s.x == (0, 25, 75)
    assert acc_s.y == pytest.approx((90, 60, 80))
    with pytest.raises(SettingsError, match="no kept run that fits has Acc_H"):
        comparisons.ratio(runs[3:])


def test_settings_that_differ_are_told_in_the_legend_and_those_of_the_set_are_not():
    runs = [run_of("adand", warmup=5), run_of("adand", warmup=10), run_of("zs-clip")]
    runs += [run_of("zs-clip", id_set="digits", noise="gaussian")]  # alone there: no difference
    runs += [run_of("zs-clip", id_set="imagenet")]
    figure = comparisons.ratio(runs)
    [panel] = [panel for panel in figure.panels if panel.title == "shapes"]  # all against glyphs
    names = [one.name for one in panel.series]
    assert names == ["zs-clip", "adand (warmup 5)", "adand (warmup 10)"]


def test_a_stream_that_was_cut_is_told_where_others_were_not():
    runs = [run_of("zs-clip"), run_of("tent", limit=500), run_of("adand")]
    names = [one.name for one in comparisons.ratio(runs).panels[0].series]
    assert names == ["zs-clip", "adand", "tent (limit 500)"]
    assert [s.name for s in comparisons.ratio(runs[1:2]).panels[0].series] == ["tent"]


def fixed_runs():
    """ZS-CLIP at 0.3, 0.6 and adaptive on two pairs; on a third one adaptive alone."""
    accuracies = {(0.3, "glyphs"): 0.2, (0.3, "textures"): 0.4, (0.6, "glyphs"): 0.6}
    accuracies |= {(0.6, "textures"): 0.6, (None, "glyphs"): 0.8, (None, "textures"): 0.9}
    accuracies |= {(None, "digits"): 0.1}
    return [
        run_of("zs-clip", (one, one), ood_set=ood, fixed=value)
        for (value, ood), one in accuracies.items()
    ]


def test_fixed_thresholds_are_means_over_the_pairs_that_have_one():
    figure = comparisons.fixed(fixed_runs())
    line = series(figure, "Acc_H")
    assert line.x == (0.3, 0.6)
    assert line.y == pytest.approx((30, 60))
    levels = [one for one in figure.panels[0].series if one.mark == LEVEL]
    assert [one.y for one in levels] == [pytest.approx((85,))] * 3
    assert figure.notes == ()
    more = [*fixed_runs(), run_of("zs-clip", (0.1, 0.1), ood_set="digits", fixed=0.3)]
    figure = comparisons.fixed(more)
    assert series(figure, "Acc_H").x == (0.3,)
    assert series(figure, "Acc_H").y == pytest.approx((70 / 3,))
    assert figure.notes == (
        "zs-clip at threshold 0.6 has no average: it has 2 of 3 sets (glyphs, textures)",
    )


def test_published_levels_are_over_the_same_pairs_or_not_there():
    here = {("shapes", "glyphs"): {"acc_s": 10.0, "acc_n": 20.0, "acc_h": 30.0}}
    both = here | {("shapes", "textures"): {"acc_s": 30.0, "acc_n": 40.0, "acc_h": 50.0}}
    figure = comparisons.fixed(fixed_runs(), {"zs-clip": both})
    printed = [one for one in figure.panels[0].series if one.is_published]
    assert [one.y[0] for one in printed] == pytest.approx([20, 30, 40])
    figure = comparisons.fixed(fixed_runs(), {"zs-clip": here})
    assert not [one for one in figure.panels[0].series if one.is_published]
    figure = comparisons.fixed([], {"zs-clip": both})
    assert [one.y[0] for one in figure.panels[0].series] == pytest.approx([20, 30, 40])


def test_without_a_fixed_threshold_there_is_nothing_to_compare():
    with pytest.raises(SettingsError, match="no kept run that fits has a fixed threshold"):
        comparisons.fixed([run_of("zs-clip")])


def pair_runs():
    """Three methods on two pairs: the best of the first pair is the second of the other."""
    first = {"zs-clip": 0.5, "tent": 0.4, "adand": 0.9}
    second = {"zs-clip": 0.5, "tent": 0.5, "adand": 0.4}
    return [
        run_of(method, (value, value), ood_set=ood)
        for ood, values in (("glyphs", first), ("textures", second))
        for method, value in values.items()
    ]


def test_ranks_share_a_place_where_values_are_equal():
    figure = over_pairs.ranks(pair_runs())
    assert figure.panels[0].title == "2 ID-OOD pairs"
    shown = {m: series(figure, m, mark=RANKS) for m in ("zs-clip", "tent", "adand")}
    shares = {name: dict(zip(one.x, one.y, strict=True)) for name, one in shown.items()}
    assert shares == {
        "zs-clip": {1: 0, 1.5: 50, 2: 50, 3: 0}, "tent": {1: 0, 1.5: 50, 2: 0, 3: 50},
        "adand": {1: 50, 2: 0, 3: 50},
    }  # fmt: skip
    assert [series(figure, m, mark=MEAN_RANK).x for m in shown] == [(1.75,), (2.25,), (2,)]
    assert figure.panels[0].x.ticks == (1, 2, 3)
    assert figure.panels[0].y.name == "box width: share of pairs"


def test_of_a_metric_that_is_to_be_low_the_lowest_is_first():
    runs = [with_metric(run_of(m), "fpr95", value) for m, value in (("tda", 0.1), ("cull", 0.2))]
    figure = over_pairs.ranks(runs, metric="fpr95")
    assert {s.name: s.x for s in figure.panels[0].series if s.mark == MEAN_RANK} == {
        "cull": (2,), "tda": (1,),
    }  # fmt: skip
    runs = [with_metric(run_of(m), "auroc", value) for m, value in (("tda", 0.1), ("cull", 0.2))]
    figure = over_pairs.ranks(runs, metric="auroc")
    assert series(figure, "cull", mark=MEAN_RANK).x == (1,)


def with_metric(kept, name, value):
    """A run whose record has another value of a metric of detection."""
    values = Measures({**kept.detection, name: value})
    return kept.model_copy(update={"detection": values})


def test_means_are_of_the_methods_that_have_all_pairs():
    figure = over_pairs.means([r for r in pair_runs() if r.settings.ood_set == "glyphs"])
    assert series(figure, "adand").y == pytest.approx((90, 90, 90))
    figure = over_pairs.means(pair_runs()[:-1])
    assert series(figure, "tent").y == pytest.approx((45, 45, 45))
    assert series(figure, "level of zs-clip").y == pytest.approx((50, 50, 50))
    assert "adand" not in {one.name for one in figure.panels[0].series}
    assert figure.notes == ("adand has no average: it has 1 of 2 sets (glyphs)",)


def test_means_have_the_deviation_of_the_averages_over_the_seeds_that_all_sets_have():
    seeds = {("glyphs", 0): 0.5, ("glyphs", 1): 0.7, ("textures", 0): 0.3, ("textures", 1): 0.3}
    seeds |= {("glyphs", 2): 0.99}
    runs = [
        run_of(method, (value, value), ood_set=ood, seed=seed)
        for method in ("zs-clip", "adand") for (ood, seed), value in seeds.items()
    ]  # fmt: skip
    adand = series(over_pairs.means(runs), "adand")
    assert adand.y == pytest.approx((45, 45, 45))
    assert adand.std == pytest.approx([10 / math.sqrt(2)] * 3)
    assert over_pairs.means(runs).panels[0].y.name == "mean ± deviation (%)"
    [axis] = {panel.y for panel in with_ends(over_pairs.means(runs).panels)}
    assert 30 < axis.low < 45 - 10 / math.sqrt(2)  # an axis that suits, not from 0


def test_over_several_id_sets_pairs_are_named_whole():
    runs = [run_of(m, id_set=s) for m in ("zs-clip", "tent") for s in ("shapes", "digits")]
    figure = over_pairs.means([*runs, run_of("adand")])
    assert figure.panels[0].title == "2 ID-OOD pairs"
    assert figure.notes == ("adand has no average: it has 1 of 2 sets (shapes / glyphs)",)


def test_a_stopped_run_enters_no_mean_no_rank_and_no_curve():
    curves = running([0.5] * 3, [0.5] * 3)
    stopped = run_of("tda").model_copy(update={"unfinished": 10, "curves": curves})
    runs = [*pair_runs()[:3], stopped]
    figure = over_pairs.ranks(runs)
    assert "tda" not in {one.name for one in figure.panels[0].series}
    assert figure.notes == ("tda has no average: it has 0 of 1 sets",)
    with pytest.raises(SettingsError, match="has its running kept"):
        streams.accuracy(runs)
    with pytest.raises(SettingsError, match="no kept run that fits has Acc_H"):
        comparisons.ratio(runs[3:])


def test_published_numbers_stand_beside_the_measured_over_the_same_pairs():
    of = {("shapes", "glyphs"): 60.0, ("shapes", "textures"): 20.0, ("cifar10", "svhn"): 90.0}
    published = {
        name: {p: dict.fromkeys(("acc_s", "acc_n", "acc_h"), x + more) for p, x in of.items()}
        for name, more in (("zs-clip", 0), ("adand", 1))
    }
    figure = over_pairs.means(pair_runs(), published)
    printed = [one for one in figure.panels[0].series if one.is_published]
    assert [(one.name, one.y[0]) for one in printed] == [("zs-clip", 40), ("adand", 41)]
    alone = over_pairs.ranks([], published)
    assert alone.panels[0].title == "3 ID-OOD pairs, published"
    assert series(alone, "adand", mark=RANKS).y == (100, 0)
    elsewhere = {
        n: {p: v for p, v in of.items() if p[0] == "cifar10"} for n, of in published.items()
    }
    title = over_pairs.means(pair_runs(), elsewhere).panels[0].title
    assert title == "2 ID-OOD pairs (published: 1 ID-OOD pair)"


def test_one_method_or_no_common_pair_is_no_comparison():
    message = "compared over 1 ID-OOD pair, and only adand has an average"
    with pytest.raises(SettingsError, match=message) as caught:
        over_pairs.ranks([run_of("adand")])
    assert caught.value.remedy == "compare"
    apart = [run_of("adand"), run_of("tent", ood_set="textures")]
    message = r"only none has an average; adand .* 1 of 2 sets \(glyphs\); tent .* 1 of 2 sets"
    with pytest.raises(SettingsError, match=message):
        over_pairs.means(apart)
    with pytest.raises(SettingsError, match="has Acc_H of a noisy stream"):
        over_pairs.means([run_of("adand", (0.5, NAN), ratio=0.0)])


def test_nobody_tells_nine_lines_apart():
    runs = [run_of("adand", warmup=n) for n in range(9)]
    with pytest.raises(SettingsError, match="9 lines in one panel are too many, 8 at most"):
        comparisons.ratio(runs)


def test_the_csv_holds_every_point_that_is_drawn():
    figure = over_pairs.means(pair_runs())
    found = rows(figure)
    drawn = [
        (s.name, x, y)
        for p in figure.panels
        for s in p.series
        for x, y in zip(s.x, s.y, strict=True)
    ]
    assert [(r["series"], r["x"]) for r in found] == [(name, x) for name, x, _ in drawn]
    assert [float(r["y"]) for r in found] == pytest.approx([y for *_, y in drawn])
    assert {r["panel"] for r in found} == {"2 ID-OOD pairs"}
    assert {r["source"] for r in found} == {"measured"}
    [mean, *_] = [r for r in rows(over_pairs.ranks(pair_runs())) if r["mark"] == MEAN_RANK]
    assert (mean["x"], mean["y"], mean["std"]) == ("1.75", "", "")


def test_filters_leave_what_fits_and_a_clean_stream_is_of_all_ood_sets():
    runs = [run_of("adand", ratio=r, seed=s) for r in (0.0, 0.25) for s in (0, 1)]
    runs += [run_of("zs-clip", ood_set="textures")]
    assert chosen(runs, Filters(methods=["adand"], seeds=[1])) == [runs[1], runs[3]]
    assert chosen(runs, Filters(ood_sets=["glyphs"])) == runs[:4]
    assert chosen(runs, Filters(settings={"warmup": ["10"]})) == runs[:4]
    assert chosen(runs, Filters(settings={"fixed": ["adaptive"]})) == runs


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (Filters(methods=["tent"]), "no kept run that fits has method tent: there is adand"),
        (Filters(ratios=[0.3]), "has ratio 0.3: there is 0.0, 0.25"),
        (Filters(ood_sets=["svhn"]), "has ood svhn: there is glyphs"),
        (Filters(ratios=[0.25], seeds=[7]), "has seed 7: there is 2"),
        (Filters(settings={"warmup": ["11"]}), "has warmup 11: there is 10"),
        (Filters(settings={"views": ["8"]}), "has views 8: there is none"),
    ],
)
def test_where_nothing_fits_the_error_says_what_is_there(filters, message):
    runs = [run_of("adand", ratio=0.0), run_of("adand", ratio=0.25, seed=2)]
    with pytest.raises(SettingsError, match=message):
        chosen(runs, filters)


def test_no_runs_at_all_is_said():
    with pytest.raises(SettingsError, match="there are no kept runs to plot"):
        plots.plot([], "ratio", Filters())


def test_unasked_a_plot_has_the_papers_ratio_and_adaptive_thresholds():
    runs = [run_of("adand", ratio=r) for r in (0.25, 0.5)] + [run_of("adand", fixed=0.3)]
    assert usual(runs, Filters()) == [runs[1]]
    assert usual(runs, Filters(), keep=("ratio",)) == runs[:2]
    assert usual(runs, Filters(), keep=("fixed",)) == runs[1:]
    assert usual(runs[:1], Filters()) == runs[:1]
    assert usual(runs[2:], Filters()) == runs[2:]  # nothing else is there
    assert usual(runs, Filters(ratios=[0.25, 0.5])) == runs[:2]


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
    return kept.model_copy(update={"created": created})


def test_a_plot_does_not_depend_on_the_order_in_which_runs_were_kept():
    runs = pair_runs()
    one = to_csv(plots.plot(runs, "ranks", Filters()))
    assert to_csv(plots.plot(runs[::-1], "ranks", Filters())) == one


def test_a_metric_that_a_kind_does_not_show_is_refused():
    with pytest.raises(
        SettingsError, match="metric is 'auroc', which accuracy does not show: acc_s"
    ):
        plots.plot(pair_runs(), "accuracy", Filters(), "auroc")


@pytest.mark.parametrize("kind", ["ratio", "ranks", "means"])
def test_a_metric_that_is_added_to_the_table_is_shown_by_itself(kind, monkeypatch):
    error = Metric("error", "Error", "flags", (), is_percent=False)
    monkeypatch.setitem(METRICS, "error", error)
    runs = [with_flag(kept, i) for i, kept in enumerate(pair_runs())]
    for name, metric in METRICS.items():
        if metric.is_ranked or kind != "ranks":
            assert plots.plot(runs, kind, Filters(), name).panels
        else:
            with pytest.raises(SettingsError, match=f"metric is '{name}', which ranks does not"):
                plots.plot(runs, kind, Filters(), name)
    figure = plots.plot(runs, kind, Filters(), "error")
    names = {axis.name for panel in figure.panels for axis in (panel.x, panel.y)}
    assert names & {"Error", "rank by Error", "mean, Error"}
    if kind == "means":
        assert series(figure, "adand").y == (3.5,)  # of 2 and 5, as they are: no percent
    assert all(row["error"] for row in rows(figure))


def with_flag(kept, value):
    values = Measures({**kept.flags, "error": value})
    return kept.model_copy(update={"flags": values})


def test_points_that_are_results_have_the_one_schema_first():
    runs = [*pair_runs(), *(run_of("adand", (0.4, 0.6), ood_set=o, seed=1) for o in SETS)]
    for kind, place in (("means", ("", "ood_sets")), ("ratio", ("glyphs", "")), ("ranks", None)):
        figure = plots.plot(runs, kind, Filters())
        lines = rows(figure)
        heads = ("panel", "series", "mark", "x_name", "x", "y_name", "y", "std")
        assert tuple(lines[0]) == (*tidy.columns(), *heads)
        [first, *_] = [row for row in lines if row["method"] == "adand"]
        assert (first["id_set"], first["ratio"], first["source"]) == ("shapes", "0.5", "measured")
        if place:
            assert (first["ood_set"], first["aggregate"]) == place
        if kind == "means":
            assert float(first["acc_h"]) == pytest.approx((0.65 + 0.48) / 2)
            assert float(first["acc_h_std"]) == pytest.approx((0.65 - 0.48) / math.sqrt(2))
            assert (first["seeds"], first["complete"]) == ("0 1", "True")
            assert float(first["y"]) == pytest.approx(100 * float(first["acc_s"]))
    published = {m: {("a", "b"): dict.fromkeys(("acc_s", "acc_n", "acc_h"), 50.0)} for m in "xy"}
    [first, *_] = rows(over_pairs.means([], published))
    assert (first["method"], first["source"], first["acc_h"]) == ("x", "published", "0.5")


SETS = ("glyphs", "textures")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["adand", "zs-clip"]), st.sampled_from("ab"), st.sampled_from("cd"),
            st.sampled_from([8, 64]), st.sampled_from([0.25, "natural"]), st.booleans(),
        ),
        min_size=1, max_size=8, unique=True,
    )
)  # fmt: skip
def test_titles_and_legends_tell_what_varies_in_their_own_figure_and_no_more(kinds):
    runs = [
        run_of(
            method, (0.5, 0.5 if decides else math.nan), id_set=id_set, ood_set=ood, ratio=share,
            warmup=warmup,
        )
        for method, id_set, ood, warmup, share, decides in kinds
    ]  # fmt: skip
    drawn = [one for one in kinds if one[-1] and one[-2] != "natural"]
    if not drawn:
        with pytest.raises(SettingsError, match="no kept run that fits has Acc_H"):
            comparisons.ratio(runs)
        return
    figure = comparisons.ratio(runs)
    sets = [{one[place] for one in drawn} for place in (1, 2)]
    for panel in figure.panels:
        parts = panel.title.split(" / ")
        is_told = [len(names) > 1 for names in sets] if len(figure.panels) > 1 else [True, True]
        assert len(parts) == sum(is_told)
    for name in {one.name for panel in figure.panels for one in panel.series}:
        method, _, told = name.partition(" (")
        warmups = [{one[3] for one in drawn if one[:2] == (method, s)} for s in sets[0]]
        varies = method == "adand" and any(len(values) > 1 for values in warmups)  # who has one
        assert told.startswith("warmup") == varies
        assert not told.strip("warmup 8)64")


def test_panels_without_a_point_are_left_out_and_a_figure_of_none_is_refused():
    empty = {"scores": {**SCORES, "id": [0] * 4, "ood": [0] * 4}}
    runs = [run_of("adand", ood_set="glyphs", curves={"scores": SCORES})]
    runs += [run_of("adand", ood_set="textures", curves=empty)]
    assert [panel.title for panel in plots.plot(runs, "scores", Filters()).panels] == [
        "adand, glyphs"
    ]
    with pytest.raises(SettingsError, match="no kept run that fits has anything that scores shows"):
        plots.plot(runs[1:], "scores", Filters())


def test_a_note_on_a_method_that_is_not_drawn_is_not_told():
    notes = (RunNote("method", "tda", "tda does something."),)
    noted = [run_of("tda", (0.5, math.nan)), run_of("adand")]
    noted = [
        run.model_copy(update={"notes": notes[:at]}) for run, at in zip(noted, (1, 0), strict=True)
    ]
    assert plots.plot(noted, "ratio", Filters()).caption == ()
    assert plots.plot(noted, "ratio", Filters(), "auroc").sentences == ("tda does something.",)
