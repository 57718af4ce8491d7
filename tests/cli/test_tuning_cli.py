"""`simulate --tune`: settings chosen on some pairs of sets and reported on others."""

import csv
import io
import itertools
import json
import shutil
import sqlite3
import statistics
from contextlib import closing
from dataclasses import replace

import pytest
from kept import kept_run
from made import TINY, fails

import zsntta_cli
from zsntta_cli.errors import SettingsError
from zsntta_cli.results.exchange import export_text, read_lines
from zsntta_cli.results.store import RecordStore
from zsntta_cli.results.tuning import TuningPlan, choose, tuning_of

PAIRS = ("--tune-on", "pets+sky,birds+sky", "--report-on", "pets+sand,birds+sand")
CANDIDATES = (0.4, 0.6, 0.8, 0.9)
TUNE = ("--tune", "threshold=0.4,0.6,0.8,0.9")


@pytest.fixture
def store(tmp_path):
    """The records in the store beside which `simulate` runs, by settings."""

    def read():
        with RecordStore(tmp_path / "kept.sqlite") as records:
            return {kept.record.settings: kept.record for kept in records.all()}

    return read


def records_of(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def metric(record, name):
    groups = {**record["accuracies"], **record["detection"], **record["flags"]}
    return groups[name]


@pytest.mark.parametrize(
    ("by", "best", "ratio", "candidates"),
    [
        ("acc_h", max, 0.5, CANDIDATES),
        ("acc_h", max, 0.1, CANDIDATES),
        ("acc_s", max, 0, (1.0, 0.999999, 0.9999)),
        ("clean_flagged", min, 0.3, (1.0, 0.9999, 0.999999)),
    ],
)
def test_the_best_candidate_is_the_one_that_a_grid_shows(simulate, by, best, ratio, candidates):
    method = ("--method", "zs-clip", "--ratio", ratio, "--seed", 0, "--seed", 3, "--format", "json")
    means = []
    for value in candidates:
        grid = ("--id", "pets", "--id", "birds", "--ood", "sky", "--threshold", value)
        means.append(statistics.fmean(metric(r, by) for r in records_of(simulate(*method, *grid))))
    assert len(set(means)) == len(means), "the candidates must differ, or the test cannot fail"
    wanted = candidates[means.index(best(means))]

    tune = ("--tune", f"threshold={','.join(map(str, candidates))}")
    records = records_of(simulate(*method, *tune, *PAIRS, "--tune-by", by))
    assert {r["settings"]["threshold"]["fixed"] for r in records} == {wanted}
    sets = {(r["settings"]["id_set"], r["settings"]["ood_set"]) for r in records}
    assert sets == {(name, "sand" if ratio else None) for name in ("pets", "birds")}
    tuning = records[0]["tuning"]
    assert all(record["tuning"] == tuning for record in records)
    assert tuning["settings"] == {"fixed": wanted}
    assert tuning["candidates"] == {"fixed": [*candidates]}
    assert (tuning["by"], tuning["value"]) == (by, pytest.approx(best(means)))
    assert tuning["values"] == pytest.approx(means)
    assert tuning["on"] == [
        {"id": name, "ood": "sky", "ratio": ratio, "seeds": [0, 3]} for name in ("pets", "birds")
    ]
    read = {"pets", "birds", "text/pets", "text/birds", *(["sky"] if ratio else [])}
    assert set(tuning["digests"]) == read

    plain = simulate(*method, "--id", "pets", "--ood", "sand", "--threshold", wanted)
    same = [metric(r, by) for r in records if r["settings"]["id_set"] == "pets"]
    assert same == [metric(r, by) for r in records_of(plain)]


def test_settings_are_chosen_together_each_row_for_itself(simulate):
    command = (
        "--method", "zs-clip", "--method", "ridge", "--ratio", 0.1, "--ratio", 0.5,
        "--preset", "paper", "--preset", "official", "--queue", 60, "--queue", 200,
        "--tune", "threshold=adaptive,0.5,0.9", "--tune", "zs-clip.batch-size=1,3", *PAIRS,
        "--format", "json",
    )  # fmt: skip
    records = records_of(simulate(*command))
    rows = {}
    for record in records:
        settings = record["settings"]
        key = settings["method"], settings["stream"]["ratio"], settings["threshold"]["fixed_on"]
        rows.setdefault((*key, settings["threshold"]["queue"]), []).append(record)
    assert len(rows) == 2 * 2 * 2 * 2
    for (method, ratio, fixed_on, queue), of_row in rows.items():
        tuning = of_row[0]["tuning"]
        grids = itertools.product((None, 0.5, 0.9), *([(1, 3)] if method == "zs-clip" else []))
        preset = "official" if fixed_on == "noise-score" else "paper"
        values = []
        for threshold, *batch in grids:
            options = ["--threshold", "adaptive" if threshold is None else threshold]
            options += ["--batch-size", *batch] if batch else []
            runs = simulate("--method", method, "--ratio", ratio, "--preset", preset, "--queue",
                            queue, *options, "--id", "pets", "--id", "birds", "--ood", "sky",
                            "--format", "json")  # fmt: skip
            values.append(statistics.fmean(metric(r, "acc_h") for r in records_of(runs)))
        assert tuning["values"] == pytest.approx(values)
        best = values.index(max(values))
        thresholds = [None, 0.5, 0.9]
        names = {"fixed": thresholds, **({"batch_size": [1, 3]} if method == "zs-clip" else {})}
        chosen = [*itertools.product(*names.values())][best]
        assert tuning["settings"] == dict(zip(names, chosen, strict=True))


def test_a_method_without_the_setting_is_reported_as_it_is(simulate):
    command = ("--method", "zs-clip", "--method", "ridge", "--tune", "ridge-penalty=0.5,1", *PAIRS)
    by_method = {}
    for record in records_of(simulate(*command, "--format", "json")):
        by_method.setdefault(record["settings"]["method"], []).append(record["tuning"])
    assert by_method["zs-clip"] == [{}, {}]
    assert [tuning["settings"]["ridge_penalty"] for tuning in by_method["ridge"]] in (
        [0.5, 0.5], [1, 1],
    )  # fmt: skip
    table = simulate(*command)
    assert table.stdout.count("was chosen") == 2  # a table for each ID set
    assert "zs-clip: " not in table.stdout


@pytest.mark.parametrize("order", ["noise-score,id-score", "id-score,noise-score"])
def test_of_equal_candidates_the_first_given_counts(simulate, order):
    # What a fixed threshold is on makes no difference to an adaptive one.
    command = ("--method", "zs-clip", "--tune", f"fixed-on={order}", *PAIRS, "--format", "json")
    records = records_of(simulate(*command))
    assert {r["settings"]["threshold"]["fixed_on"] for r in records} == {order.split(",")[0]}
    assert len(set(records[0]["tuning"]["values"])) == 1
    table = simulate(*command[:-2])
    assert "all gave the same, so the first was taken." in " ".join(table.stdout.split())


# What tables say.


def notes_of(simulate, tune_on, report_on, *more):
    command = ("--method", "zs-clip", *TUNE, "--tune-on", tune_on, "--report-on", report_on)
    result = simulate(*command, "--seed", 1, "--seed", 2, *more, "--format", "markdown")
    assert result.exit_code == 0, result.output
    return [line for line in result.stdout.splitlines() if "zs-clip" in line and "|" not in line]


def test_the_table_says_what_was_chosen_on_what(simulate):
    [note] = notes_of(simulate, "pets+sky", "birds+sand")
    [record, _] = records_of(
        simulate("--method", "zs-clip", *TUNE, "--tune-on", "pets+sky", "--report-on",
                 "birds+sand", "--seed", 1, "--seed", 2, "--format", "json")
    )  # fmt: skip
    tuning = record["tuning"]
    assert note == (
        f"zs-clip: threshold {tuning['settings']['fixed']} was chosen of 4 values by Acc_H "
        f"{100 * tuning['value']:.2f} on pets + sky (50% noise, seeds 1, 2)."
    )


def test_a_table_of_the_pairs_that_were_tuned_on_says_so(simulate):
    _, note = notes_of(simulate, "pets+sky", "pets+sky,pets+sand")
    assert note == (
        "zs-clip was tuned on images of pets + sky, which this table reports: its numbers there "
        "are selected on what they report, so they are optimistic."
    )
    _, clean = notes_of(simulate, "pets+sky", "pets+sand", "--ratio", 0, "--tune-by", "acc_s")
    assert "images of pets, which this table reports" in clean


@pytest.mark.parametrize(
    ("report_on", "seen"), [("pets+sand", "pets"), ("birds+sky", "sky"), ("birds+pets", "pets")]
)
def test_sets_that_were_tuned_on_beside_others_are_named(simulate, report_on, seen):
    _, note = notes_of(simulate, "pets+sky", report_on)
    assert note.startswith(f"zs-clip was tuned on images of {seen}, which streams of this table")
    assert "not of wholly unseen images" in note


def test_the_same_features_under_another_name_are_the_same_images(simulate, features):
    shutil.copy(features / "made" / "sky.h5", features / "made" / "heaven.h5")
    try:
        _, note = notes_of(simulate, "pets+sky", "birds+heaven")
    finally:
        (features / "made" / "heaven.h5").unlink()
    assert note.startswith("zs-clip was tuned on images of heaven, ")


def test_parts_of_the_images_are_tuned_and_reported_on(cached):
    for name in ("shapes", "glyphs"):
        assert cached("cache", "split", name, "--images", "30%").exit_code == 0
    command = ("simulate", "--method", "zs-clip", *TUNE, *TINY)
    held_out = cached(*command, "--tune-on", "shapes-tune+glyphs-tune",
                      "--report-on", "shapes-rest+glyphs-rest")  # fmt: skip
    assert "on shapes-tune + glyphs-tune (50% noise, seed 0)" in held_out.stdout
    assert "was tuned on images" not in held_out.stdout
    whole = cached(*command, "--tune-on", "shapes-tune+glyphs-tune", "--report-on", "shapes+glyphs")
    assert "selected on what they report" in whole.stdout
    other = cached(*command, "--tune-on", "shapes-tune+glyphs", "--report-on", "shapes-rest+glyphs")
    assert "tuned on images of glyphs, which streams" in " ".join(other.stdout.split())


SWEPT = "were run on the streams that this table reports, so the best of them is optimistic"


@pytest.mark.parametrize(
    ("options", "swept"),
    [
        (("--threshold", 0.6, "--threshold", 0.9), "zs-clip (threshold)"),
        (("--threshold", 0.6, "--threshold", 0.9, "--ratio", 0.2, "--ratio", 0.5),
         "zs-clip (threshold)"),
        (("--threshold", 0.6, "--threshold", 0.9, "--queue", 9, "--queue", 90),
         "zs-clip (threshold, queue)"),
        (("--threshold", 0.6), ""),
        (("--threshold", 0.6, "--method", "ridge"), ""),
        (("--ratio", 0.2, "--ratio", 0.5, "--seed", 0, "--seed", 1), ""),
        (("--order", "class", "--order", "burst"), ""),
        (("--preset", "paper", "--preset", "official"), ""),
        (("--prompt", "code", "--prompt", "art of a {}."), ""),
        # The best is of another method: no setting of this one is shown off.
        (("--method", "ridge", "--set", "zs-clip.threshold=0", "--set",
          "zs-clip.threshold=0.01"), None),
    ],
)  # fmt: skip
def test_the_best_of_several_settings_is_noted_where_it_is_marked(simulate, options, swept):
    result = simulate("--method", "zs-clip", "--id", "pets", "--ood", "sky", *options,
                      "--columns", "acc_h", "--format", "markdown")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.stdout.count(SWEPT) == bool(swept)
    if swept:
        assert f"Several settings of {swept} {SWEPT}: --tune and --tune-on" in result.stdout
    if swept is None:
        assert "| ridge" in result.stdout
        [best] = [line for line in result.stdout.splitlines() if "**" in line and "|" in line]
        assert best.startswith("| ridge")


def test_the_page_and_the_csv_say_it_too(simulate, zsntta, tmp_path):
    command = ("--method", "zs-clip", "--method", "ridge", *TUNE, "--queue", 99)
    options = (*command, "--tune-on", "pets+sky", "--report-on", "pets+sand,birds+sand")
    for form in (("--format", "csv"), ("--format", "csv", "--aggregate")):
        rows = list(csv.DictReader(io.StringIO(simulate(*options, *form).stdout)))
        assert {row["tuned_on"] for row in rows} == {"pets+sky"}
    plain = simulate("--method", "zs-clip", "--id", "pets", "--ood", "sand", "--format", "csv")
    assert next(csv.DictReader(io.StringIO(plain.stdout)))["tuned_on"] == ""
    result = zsntta("report", "kept.sqlite", "--output", "page.html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "page.html").read_text()
    assert "was chosen of 4 values by Acc_H" in page
    assert "tuned on images of pets, which streams of this table have beside others" in page
    assert SWEPT in page  # the candidates, whose runs are kept, stand there, too


# Kept runs.


def test_what_is_kept_counts_and_says_how_it_was_chosen(simulate, store):
    command = ("--method", "zs-clip", "--format", "json", "--seed", 0, "--seed", 1)
    plain = ("--id", "pets", "--id", "birds", "--threshold", 0.6, "--threshold", 0.9)
    before = records_of(simulate(*command, *plain, "--ood", "sky", "--ood", "sand"))
    assert not any(record.tuning for record in store().values())
    tune = ("--tune", "threshold=0.6,0.9", *PAIRS)
    tuned = simulate(*command, *tune)
    assert "8 of 8 runs were kept from before" in tuned.stderr
    assert "4 of 4 runs were kept from before" in tuned.stderr
    records = records_of(tuned)
    kept = store()
    assert len(kept) == len(before) == 16
    told = {run: record for run, record in kept.items() if record.tuning}
    assert [r.tuning for r in told.values()] == [r["tuning"] for r in records]
    for record in records:
        [same] = [b for b in before if b["settings"] == record["settings"]]
        assert {**record, "tuning": {}} == same
    again = simulate(*command, *tune)
    assert records_of(again) == records
    # What is not tuned does not say that it was elsewhere; what is kept of it still does.
    assert (
        records_of(simulate(*command, *plain, "--ood", "sand", "--ood", "sky"))[0]["tuning"] == {}
    )
    assert {run for run, record in store().items() if record.tuning} == told.keys()


def test_items_and_curves_stay_where_a_record_is_told_how_it_was_chosen(simulate, tmp_path):
    plain = ("--method", "zs-clip", "--id", "pets", "--ood", "sand", "--threshold")
    for value in (0.6, 0.9):
        simulate(*plain, value, "--keep-items")
    tune = ("--tune-on", "pets+sky", "--report-on", "pets+sand", "--tune", "threshold=0.6,0.9")
    assert simulate("--method", "zs-clip", *tune).exit_code == 0
    with RecordStore(tmp_path / "kept.sqlite") as records:
        [kept] = [kept for kept in records.all() if kept.record.tuning]
    assert len(kept.items) == 800
    assert kept.drawable["scores"]


def test_records_of_tuned_runs_travel_and_run_again(simulate, zsntta, tmp_path):
    tune = ("--method", "zs-clip", *TUNE, *PAIRS)
    result = simulate(*tune, "--format", "json", "--output", "records.json")
    assert result.exit_code == 0, result.output
    told = json.loads((tmp_path / "records.json").read_text())
    zsntta("records", "export", "--records", "kept.sqlite", "--output", "runs.jsonl")
    lines = [kept.record.tuning for kept in read_lines(tmp_path / "runs.jsonl")]
    assert [tuning for tuning in lines if tuning] == [record["tuning"] for record in told]
    again = simulate("--from", "records.json", "--format", "json")
    assert records_of(again) == told
    fails(simulate("--from", "records.json", *TUNE), "leave --tune out", code=2)


def test_results_come_where_nothing_can_be_kept(simulate, tmp_path):
    plain = ("--method", "zs-clip", "--threshold", 0.6, "--threshold", 0.9, "--id", "pets")
    simulate(*plain, "--ood", "sky", "--ood", "sand")
    with closing(sqlite3.connect(tmp_path / "kept.sqlite")) as full:
        full.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON contents BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
    command = ("--method", "zs-clip", "--tune", "threshold=0.6,0.9", "--format", "json")
    result = simulate(*command, "--tune-on", "pets+sky", "--report-on", "pets+sand")
    assert "note: how settings were chosen is not kept: " in result.stderr
    assert records_of(result)[0]["tuning"]["settings"]["fixed"] in (0.6, 0.9)


def test_a_tuning_that_is_none_is_passed_over(zsntta, tmp_path):
    pair = {"id": "pets", "ood": "sky", "ratio": 0.5, "seeds": [0]}
    good = {"settings": {"queue": 9}, "candidates": {"queue": [9, 8]}, "by": "acc_h", "value": 0.5,
            "on": [pair]}  # fmt: skip
    strange = [
        {"on": 5}, {**good, "on": [7]}, {**good, "on": [{**pair, "id": "../x"}]},
        {**good, "on": [{**pair, "ratio": []}]}, {**good, "value": "high"},
        {**good, "candidates": 3}, {**good, "settings": None},
    ]  # fmt: skip
    runs = [kept_run("zs-clip", seed=i) for i in range(len(strange) + 1)]
    told = [
        replace(kept, record=replace(kept.record, tuning=tuning))
        for kept, tuning in zip(runs, [*strange, good], strict=True)
    ]
    assert [bool(tuning_of(kept.record)) for kept in told] == [False] * len(strange) + [True]
    (tmp_path / "some.jsonl").write_text(export_text(told, "jsonl"))
    result = zsntta("report", "some.jsonl", "--output", "-")
    assert result.exit_code == 0, result.output
    assert (
        result.stdout.count("zs-clip: queue 9 was chosen of 2 values") == 2
    )  # accuracies, and AUROC


# From Python, and what goes wrong.


def test_the_same_from_python(simulate, features, tmp_path):
    typed = records_of(simulate("--method", "zs-clip", "--method", "ridge", *TUNE, "--tune",
                                "ridge.ridge-penalty=0.5,1", *PAIRS, "--seed", 4, "--format",
                                "json"))  # fmt: skip
    with pytest.warns(UserWarning, match="images are shown up to") as told:
        records = zsntta_cli.simulate(
            "zs-clip", "ridge", encoder="made", features_dir=features,
            records=tmp_path / "own.sqlite", seed=4,
            tune={"fixed": CANDIDATES, "ridge": {"ridge_penalty": [0.5, 1]}},
            tune_on=[("pets", "sky"), ("birds", "sky")],
            report_on=[("pets", "sand"), ("birds", "sand")],
        )  # fmt: skip
    told_of = [str(warning.message).split("'")[1] for warning in told]
    assert told_of == ["sky", "sand"], "of the candidates' runs, too, each once"
    assert {warning.filename for warning in told} == {__file__}
    assert [record.to_dict()["tuning"] for record in records] == [r["tuning"] for r in typed]
    assert [record.metric("acc_h") for record in records] == [metric(r, "acc_h") for r in typed]
    with pytest.raises(SettingsError, match="leave id_set and ood_set out"):
        zsntta_cli.simulate("zs-clip", id_set="pets", tune={"queue": [1, 2]})
    with pytest.raises(SettingsError, match="no pair of sets is named to tune on"):
        zsntta_cli.simulate("zs-clip", tune={"queue": [1, 2]})
    with pytest.raises(SettingsError, match="no setting is named to be tuned"):
        zsntta_cli.simulate("zs-clip", tune_on=[("a", "b")], report_on=[("a", "c")])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (TUNE, "--tune needs the pairs to choose on and those to report on: --tune-on ID+OOD"),
        ((*TUNE, *PAIRS[:2]), "--tune needs the pairs"),
        (PAIRS, "say what to choose: --tune SETTING=V1,V2"),
        (PAIRS[2:], "say what to choose: --tune SETTING=V1,V2"),
        (("--tune-by", "acc_s"), "say what to choose: --tune SETTING=V1,V2"),
        ((*TUNE, *PAIRS, "--id", "pets"), "leave --id out"),
        ((*TUNE, *PAIRS, "--ood", "sky"), "leave --ood out"),
        ((*TUNE, "--tune-on", "pets", *PAIRS[2:]), "--tune-on is 'pets', must be ID+OOD"),
        ((*TUNE, "--tune-on", "pets+", *PAIRS[2:]), "--tune-on is 'pets+', must be ID+OOD"),
        ((*TUNE, *PAIRS[:2], "--report-on", "a+b+c"), "--report-on is 'a+b+c', must be ID+OOD"),
        ((*TUNE, *PAIRS[:2], "--report-on", "pets+sky,"), "--report-on is '', must be ID+OOD"),
        ((*TUNE, *PAIRS[:2], "--report-on", "sky+sky"), "'sky' cannot be its own OOD set"),
        ((*PAIRS, "--tune", "threshold"), "tune is 'threshold', must be SETTING=V1,V2"),
        ((*PAIRS, "--tune", "threshold="), "tune is 'threshold=', must be SETTING=V1,V2"),
        ((*PAIRS, "--tune", "threshold=0.5"), "threshold has one value to choose from"),
        ((*PAIRS, "--tune", "threshold=0.5,0.50"), "threshold has one value to choose from"),
        ((*PAIRS, "--tune", "threshold=0.5,high"), "threshold is 'high', must be a number"),
        ((*PAIRS, "--tune", "threshold=0.5,2"), "threshold is 2.0, must be in [0, 1]"),
        ((*PAIRS, "--tune", "treshold=1,2"), "setting is 'treshold' (did you mean 'threshold'?)"),
        ((*PAIRS, "--tune", "zsclip.queue=1,2"), "method is 'zsclip' (did you mean 'zs-clip'?)"),
        ((*PAIRS, "--tune", "zs-clip.warmup=1,2"), "the setting of zs-clip is 'warmup'"),
        ((*PAIRS, "--tune", "warmup=1,2"), "warmup is no setting of zs-clip: it is one of adand"),
        ((*PAIRS, "--tune", "ridge.queue=1,2"), "a setting is given for ridge, which is not to be"),
        ((*PAIRS, "--tune", "ratio=0.1,0.2"), "ratio is a setting of the stream"),
        ((*PAIRS, "--tune", "seed=0,1"), "seed is a setting of the stream"),
        ((*TUNE, *PAIRS, "--threshold", 0.5), "threshold is to be tuned, so it cannot"),
        ((*TUNE, *PAIRS, "--set", "zs-clip.threshold=0.5"), "threshold is to be tuned, so it"),
        ((*TUNE, *PAIRS, "--tune-by", "acc"), "tune-by is 'acc' (did you mean 'acc_s'?)"),
        ((*TUNE, *PAIRS, "--ratio", 0),
         "zs-clip has no Acc_H on these pairs, so nothing can be chosen by it: take another metric "
         "with --tune-by"),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned_is_refused_in_a_line(simulate, options, line):
    fails(simulate("--method", "zs-clip", *options), line, code=2)


def test_a_set_that_is_missing_is_said_before_anything_runs(simulate, tmp_path):
    fails(
        simulate("--method", "zs-clip", *TUNE, *PAIRS[:2], "--report-on", "pets+lsun"),
        "no features of 'lsun' by made",
    )
    assert not (tmp_path / "kept.sqlite").exists()


def test_of_a_stopped_run_nothing_is_chosen(features):
    from zsntta_cli.results.grid import Grid
    from zsntta_cli.settings import EncoderChoice

    grid = Grid(["zs-clip"], EncoderChoice(folder="made"))
    plan = TuningPlan([("pets", "sky")], [("pets", "sand")], {"queue": [9, 99]})

    def stopped(runs):
        return [replace(kept_run("zs-clip").record, settings=runs[0], unfinished=5)]

    with pytest.raises(KeyboardInterrupt):
        choose(features, grid, plan, stopped)


def test_scores_are_those_of_the_one_run_that_is_reported(simulate, tmp_path):
    options = ("--tune-on", "pets+sky", "--report-on", "pets+sand", "--scores", "scores.csv")
    result = simulate("--method", "zs-clip", *TUNE, *options)
    assert result.exit_code == 0, result.output
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 801
