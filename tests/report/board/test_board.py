"""The board's numbers, its marks and who is missing."""

import dataclasses
import re

import numpy as np
import pytest
from kept import kept_run
from made import MADE_UP, PROMPT
from scipy.stats import t as student_t

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import NOISE, WORDS, Text
from zsntta_cli.errors import UnknownName
from zsntta_cli.methods import METHODS
from zsntta_cli.report.board.contenders import VARIANTS, contenders
from zsntta_cli.report.board.lines import COLUMNS, board_rows, columns_of_a_page
from zsntta_cli.report.board.page import page
from zsntta_cli.report.board.plan import MIDDLE, OTHERS, RATIOS, Pair, Plan
from zsntta_cli.report.board.screen import LABEL, screen
from zsntta_cli.simulation.metrics import METRICS, Measures, Metric
from zsntta_cli.simulation.notes import RunNote

PAIRS = (Pair("shapes", "glyphs"), Pair("shapes", "digits"), Pair("pets", "glyphs"))


def plan_of(root, *names, pairs=PAIRS, seeds=(0, 1), words=None):
    return Plan(root, "tiny", pairs, contenders(names), seeds, words)


def results_of(plan, right, **given):
    """A made-up record for each run: `right(spot)` of 100 ID samples, and of the OOD ones."""
    made = {}
    for spot, run in plan.runs().items():
        known, caught = right(spot)
        one = kept_run(
            run.method, spot.pair.ood_set, mean_ratio(spot), spot.seed, known=known, caught=caught,
            samples=100, id_set=spot.pair.id_set, items=False, noise=spot.noise, **given,
        )  # fmt: skip
        made[spot] = one.record
    return made


def mean_ratio(spot):
    """The ratio of a made-up run: half of a natural mix is noise here."""
    return 0.5 if spot.stream.ratio == "natural" else spot.stream.ratio


def write(root, name, kind, words=(), prompt=PROMPT):
    text = np.eye(16, dtype=np.float32)[: len(words)]
    hdf5.write_features(
        root / "tiny" / f"{name}.h5", kind=kind, name=name, encoder=MADE_UP, source={},
        blocks=[np.zeros((0, 16), np.float16)], labels=np.zeros(0, np.int32), sample_ids=[],
        class_names=words, texts=[Text(prompt, text)] if words else (),
    )  # fmt: skip


def by_label(rows):
    return {row.contender.label: row for row in rows}


def test_a_cell_is_the_mean_over_pairs_and_its_deviation_over_seeds(tmp_path):
    plan = plan_of(tmp_path, "zs-clip", "mcm")

    def right(spot):  # Acc_S = Acc_N = Acc_H at 50 %, so that the mean is easily made by hand
        return 50 + 10 * PAIRS.index(spot.pair) + 2 * spot.seed if spot.pair.ood_set else 40, 0

    results = results_of(plan, right)
    for spot in results:
        if spot.stream == MIDDLE and spot.label == "zs-clip":
            known = right(spot)[0]
            record = kept_run(known=known, caught=known, samples=100).record
            results[spot] = dataclasses.replace(results[spot], accuracies=record.accuracies)
        if spot.label == "mcm":
            results[spot] = dataclasses.replace(results[spot], accuracies=Measures())
    row = by_label(board_rows(plan, results, "none"))["zs-clip"]
    values = dict(zip(COLUMNS, row.values, strict=True))
    clean, middle = values["acc_s", RATIOS[0]], values["acc_h", MIDDLE]
    assert (clean.mean, clean.std) == (pytest.approx(0.4), pytest.approx(0))
    assert middle.mean == pytest.approx((0.50 + 0.60 + 0.70 + 0.52 + 0.62 + 0.72) / 6)
    assert middle.std == pytest.approx(0.02 / 2**0.5)  # 0.60 and 0.62
    assert row.worst == pytest.approx(0.5), "a tenth of six runs is one"
    assert values["acc_h", RATIOS[1]].mean == 0
    of_pair = by_label(board_rows(plan, results, "none", PAIRS[2]))["zs-clip"].values
    assert of_pair[2].mean == pytest.approx(0.71)
    mcm = by_label(board_rows(plan, results, "none"))["mcm"]
    assert [np.isnan(value.mean) for value in mcm.values] == [True] * 5 + [False]


def test_a_clean_stream_counts_once_for_an_id_set(tmp_path):
    plan = plan_of(tmp_path, "zs-clip")
    results = results_of(plan, lambda spot: (80 if spot.pair.id_set == "pets" else 20, 0))
    clean = [spot for spot in results if not spot.stream.ratio]
    assert {spot.pair for spot in clean} == {Pair("shapes", None), Pair("pets", None)}
    assert len(results) == (2 + 3 * 8) * 2  # ID sets, pairs at four ratios and four others; seeds
    assert board_rows(plan, results, "none")[0].values[0].mean == pytest.approx(0.5)


MEANS = {"zs-clip": 58, "ridge": 66.2, "tda": 65.9, "adand": 65}


def noisy_results(plan):
    """Runs that differ by pair (10 points), seed (2) and row (0.5)."""
    generator, other = np.random.default_rng(2), np.random.default_rng(3)
    of_seeds = generator.normal(0, 2, len(plan.seeds))

    def right(spot):
        of_pair = 10 * PAIRS.index(spot.pair) if spot.pair.ood_set else 0
        mean = MEANS[spot.label] + of_pair + of_seeds[spot.seed]
        own = other if spot.stream in OTHERS else generator
        known = int(10 * own.normal(mean, 0.5))
        return known // 10, known // 10

    return results_of(plan, right)


def signs_of(rows, i):
    return {name: "*" * m.marks[i].is_best + "~" * m.marks[i].is_close for name, m in rows.items()}


def test_two_seeds_mark_the_best_mean_of_each_column_alone(tmp_path):
    plan = plan_of(tmp_path, *MEANS)
    rows = by_label(board_rows(plan, noisy_results(plan), "none"))
    for i in range(5):
        means = {name: row.values[i].mean for name, row in rows.items()}
        top = max(means.values())
        assert signs_of(rows, i) == {n: "*" * (mean == top) for n, mean in means.items()}
    assert "~" not in screen(plan, noisy_results(plan))


def test_five_seeds_are_replicates_and_pairs_are_none(tmp_path):
    plan = plan_of(tmp_path, *MEANS, seeds=range(5))
    results = noisy_results(plan)
    rows = by_label(board_rows(plan, results, "none"))
    values = np.array([
        [
            np.mean([
                record.accuracies.acc_h
                for spot, record in results.items()
                if (spot.label, spot.stream, spot.seed) == (name, MIDDLE, seed)
            ])
            for seed in range(5)
        ]
        for name in rows
    ])  # fmt: skip
    residuals = values - values.mean(1)[:, None] - values.mean(0) + values.mean()
    error = np.sqrt(2 * (residuals**2).sum() / (3 * 4) / 5)
    best = values.mean(1).max()
    p = {
        n: 2 * student_t.sf((best - v.mean()) / error, 12)
        for n, v in zip(rows, values, strict=True)
    }
    rivals = sorted((n for n in p if rows[n].values[3].mean < best), key=p.get)
    for i, name in enumerate(rivals):
        adjusted = max(p[n] * (3 - k) for k, n in enumerate(rivals[: i + 1]))
        assert rows[name].marks[3].p == pytest.approx(min(1, adjusted))
    assert signs_of(rows, 3) == {"ridge": "*", "tda": "~", "adand": "", "zs-clip": ""}
    shown = screen(plan, results)
    assert "~ not distinguishable from the best (t test over seeds, Holm, 5 %)" in shown


def test_what_sees_the_whole_stream_is_no_rival(tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "seer", dataclasses.replace(METHODS["tda"], offline=True))
    plan = plan_of(tmp_path, "zs-clip", "tda", "seer")
    right = {"zs-clip": 50, "tda": 60, "seer": 90}
    rows = by_label(board_rows(plan, results_of(plan, lambda s: (right[s.label], 50)), "none"))
    assert [row.contender.label for row in rows.values()] == ["seer", "tda", "zs-clip"]
    assert [name for name, row in rows.items() if row.marks[0].is_best] == ["tda"]
    assert rows["seer"].contender.inputs == ("the whole stream",)


def test_cost_is_the_median_of_an_items(tmp_path):
    plan = plan_of(tmp_path, "zs-clip", pairs=PAIRS[:1], seeds=(0,))
    results = results_of(plan, lambda _: (50, 50))
    items = [sum(record.counts.values()) for record in results.values()]
    assert items == [100, 105, 133, 200, 400, 200, 200, 200, 200]
    made = {
        spot: dataclasses.replace(record, seconds=much * count / 1e6)
        for (spot, record), much, count in zip(
            results.items(), (900, 3, 1, 2, 4, 3, 5, 2, 900), items, strict=True
        )
    }
    assert board_rows(plan, made, "none")[0].microseconds == pytest.approx(3)


def test_all_see_the_same_streams_whatever_their_preset(tmp_path):
    write(tmp_path, "noise-gaussian", NOISE)
    plan = plan_of(tmp_path, "zs-clip", "adand", "adand, tuned", "adand, official")
    streams = {}
    for spot, run in plan.runs().items():
        streams.setdefault(spot[1:], set()).add(run.stream)
    assert {spot[0] for spot in streams} == {"none", "gaussian"}
    assert {len(found) for found in streams.values()} == {1}
    assert {spot[2] for spot in streams} == {*RATIOS, *OTHERS}
    options = {s.label: r.options for s, r in plan.runs().items()}
    assert options["adand, official"].late_start
    assert options["adand, tuned"].warmup == 3


def test_who_is_missing_is_told(tmp_path):
    names = ("neglabel", "clipn", "tent", "zs-clip")
    told = plan_of(tmp_path, *names).left_out
    assert told == {
        "neglabel": "needs a word list (cached: none)", "clipn": "needs no-text",
        "tent": "encodes its images live",
    }  # fmt: skip
    write(tmp_path, "words-nouns", WORDS, ["oak"], "other {}")
    assert PROMPT in plan_of(tmp_path, *names).left_out["neglabel"]
    write(tmp_path, "words-verbs", WORDS, ["run"])
    several = plan_of(tmp_path, *names, words={"shapes": "verbs"}).left_out["neglabel"]
    assert several == "needs a word list (cached: nouns, verbs)"
    gone = plan_of(tmp_path, *names, words={"": "verbs", "pets": "verb"}).left_out["neglabel"]
    assert "no features of 'words-verb'" in gone
    fit = plan_of(tmp_path, *names, words={"": "nouns", "shapes": "verbs", "pets": "verbs"})
    assert "neglabel" not in fit.left_out
    words = {
        spot.pair: run.options.words for spot, run in fit.runs().items() if "neg" in spot.label
    }
    clean = [Pair(id_set, None) for id_set in ("shapes", "pets")]
    assert words == dict.fromkeys((*PAIRS, *clean), "verbs")
    [own] = [one for one in fit.running if one.label == "neglabel"]
    assert own.inputs == ("words",)
    own_list = plan_of(tmp_path, "csp", words={"": "verbs"}).left_out["csp"]
    assert "no features of 'words-csp" in own_list


def test_who_answers_late_is_told(tmp_path):
    plan = plan_of(tmp_path, "zs-clip", "lame", "ridge+stata", pairs=PAIRS[:1])
    results = results_of(plan, lambda _: (50, 50))
    _, _, *body = cells(page(plan, results), "## All pairs, nothing injected")
    late = "up to 63 items of delay"
    assert {row[0]: row[-1] for row in body} == {
        "`zs-clip`": "", "`lame`": late, "`ridge+stata`": late,
    }  # fmt: skip
    rows = [line for line in screen(plan, results).splitlines() if line[:4] in ("lame", "zs-c")]
    assert {row.split()[0]: row.endswith(" d") for row in rows} == {"lame": True, "zs-clip": False}


def test_rows_are_chosen_by_label():
    named = ("zs-clip+tda", "adand, tuned")
    assert tuple(one.label for one in contenders(named)) == named
    assert {one.label for one in contenders()} >= {*METHODS, *(one.label for one in VARIANTS)}
    with pytest.raises(UnknownName, match="adand, tund"):
        contenders(("adand, tund",))


def cells(text, head):
    """The first table below a heading, as rows of cells."""
    below = text.split(f"{head}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]


def test_the_page_has_the_numbers_of_the_lines(tmp_path):
    write(tmp_path, "noise-gaussian", NOISE)
    write(tmp_path, "words-nouns", WORDS, ["oak", "elm"])
    plan = plan_of(tmp_path, "zs-clip", "adand", "neglabel", "clipn")
    generator = np.random.default_rng(0)
    results = results_of(plan, lambda _: generator.integers(3, 30, 2).tolist())
    text = page(plan, results)
    for noise, head in (("none", "nothing injected"), ("gaussian", "Gaussian noise injected")):
        heads, _, *body = cells(text, f"## All pairs, {head}")
        assert heads[1:-2] == [
            "Acc_S 0 %", "Acc_H 5 %", "Acc_H 25 %", "Acc_H 50 %", "Acc_H 75 %", "AUROC 50 %",
            "FPR95(ID+) 50 %", "FPR95(OOD+) 50 %", "Acc_H 50 %, worst tenth",
        ]  # fmt: skip
        columns = columns_of_a_page()
        lines = board_rows(plan, results, noise, columns=columns)
        for row, line in zip(body, lines, strict=True):
            assert row[0] == f"`{line.contender.label}`"
            assert row[-3] == METRICS["acc_h"].text(line.worst)
            shown = zip(row[1:-3], line.values, line.marks, columns, strict=True)
            for cell, value, mark, column in shown:
                assert cell.startswith("**") == cell.endswith("**") == mark.is_best
                assert cell.strip("*") == column.text(value)
            given = {"zs-clip": "", "neglabel": "words", "adand": "injected noise"}
            wanted = given[line.contender.label]
            assert row[-1] == ("" if (noise, wanted) == ("none", "injected noise") else wanted)
    of_pair = cells(text, "## pets against glyphs, 50 % noise")
    assert of_pair[0][1:8] == [
        "Acc_S 50 %", "Acc_N 50 %", "Acc_H 50 %", "AUROC 50 %", "FPR95(ID+) 50 %",
        "FPR95(OOD+) 50 %", "Acc_H 50 %, worst tenth",
    ]  # fmt: skip
    assert "- `clipn`: needs no-text.\n" in text
    assert "Words of `neglabel`: shapes `the only list` (2); pets `the only list` (2)." in text
    assert "104 in all, seeds 0, 1" in text  # 2 clean ID sets, 3 pairs x 8; 2 seeds, 2 injections


def test_other_streams_stand_in_a_table_of_their_own(tmp_path):
    plan = plan_of(tmp_path, "zs-clip", "tda", "mcm")
    places = {stream: i for i, stream in enumerate((MIDDLE, *OTHERS))}

    def right(spot):
        percent = 50 + places.get(spot.stream, 0) + 10 * (spot.label == "tda")
        return percent, percent

    results = results_of(plan, right)
    head, _, *body = cells(page(plan, results), "**Other streams, nothing injected**")
    streams = ["50 %", "class", "dirichlet:0.1", "dirichlet:0.01", "natural"]
    assert head == ["method", *(f"Acc_H {name}" for name in streams)]
    assert [row[0] for row in body] == ["`tda`", "`zs-clip`"], "mcm does not decide"
    means = [[float(cell.strip("*").partition("±")[0]) for cell in row[1:]] for row in body]
    assert means == [[60, 61, 62, 63, 64], [50, 51, 52, 53, 54]]
    below = screen(plan, results).split("Acc_H on other streams")[1].splitlines()[1:]
    assert [line.split() for line in below[:2]] == [
        ["dirichl", "dirichl"], ["50", "%", "class", "0.1", "0.01", "natural", "µs"],
    ]  # fmt: skip
    assert below[2].split()[:6] == ["tda", "60.00*", "61.00*", "62.00*", "63.00*", "64.00*"]


def test_a_metric_more_stands_in_the_tables_of_the_pairs(tmp_path, monkeypatch):
    half = Metric("half", "Half", "accuracies", lambda s: s.acc_s / 2, ("accuracy",))
    monkeypatch.setitem(METRICS, "half", half)
    plan = plan_of(tmp_path, "zs-clip", pairs=PAIRS[:1], seeds=(0,))
    results = results_of(plan, lambda _: (50, 50))
    for record in results.values():
        record.accuracies["half"] = 0.125
    head, _, row = cells(page(plan, results), "## shapes against glyphs, 50 % noise")
    assert dict(zip(head, row, strict=True))["Half 50 %"] == "12.50"


def test_sets_that_are_shown_again_are_told(tmp_path):
    plan = plan_of(tmp_path, "zs-clip")
    note = RunNote("again", "glyphs", "'glyphs' is shown up to 2.51 times.", 2.51)
    results = results_of(plan, lambda _: (5, 5), record={"notes": (note,)})
    assert page(plan, results).count(note.text) == 1
    assert screen(plan, results).count(note.text) == 1


def test_the_screen_keeps_to_80_columns(tmp_path):
    plan = plan_of(tmp_path)
    results = results_of(plan, lambda spot: (100, range(10_000)))
    slow = {s: dataclasses.replace(r, seconds=0.5) for s, r in results.items()}
    shown = screen(plan, slow).splitlines()
    assert max(map(len, shown)) <= 80
    assert max(len(one.label) for one in contenders()) <= LABEL
    for row in [line for line in shown if line.startswith("zs-clip ")]:
        assert row.split()[1:6] == ["100.00*"] * 5


EIGHT = tuple(Pair(f"id{i}", "glyphs") for i in range(8))


@pytest.mark.parametrize(("pairs", "has_test"), [(PAIRS, False), (EIGHT, True)])
def test_methods_are_compared_over_pairs_where_a_test_is_possible(tmp_path, pairs, has_test):
    levels = {"zs-clip": 40, "ridge": 60, "tda": 50}
    plan = plan_of(tmp_path, *levels, pairs=pairs)

    def right(spot):  # as many of the OOD samples of a stream of one half
        return levels[spot.label] + spot.seed, levels[spot.label] + spot.seed

    results = results_of(plan, right)
    text, n = page(plan, results), len(pairs)
    size = "8 ID-OOD pairs of 8 ID sets" if has_test else "3 ID-OOD pairs of 2 ID sets"
    _, _, *body = cells(text, f"**Acc_H at 50 % noise over {size}**")
    [ridge, tda, _] = body
    assert ridge[:2] == ["`ridge`", "60.50"]
    assert tda[1:4] == ["50.50", "-10.00", f"0/0/{n}"]
    shown = " ".join(screen(plan, results).split())
    if has_test:
        assert tda[4:6] == ["0.008", "0.023"]  # 2 / 2^8, and three times as much
        assert "by Acc_H ridge is better than 2 of 2 rivals (signed-rank test over pairs" in shown
    else:
        assert len(tda) == 6
        for each in (text, shown):
            assert "3 pairs: no test over pairs is possible." in each
