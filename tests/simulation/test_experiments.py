"""Grids, records, score files, word lists: through the command line, on made-up features."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import MADE_UP, PROMPT, fails

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, Text
from zsntta_cli.cache.hdf5 import read_features
from zsntta_cli.results.executor import run_all
from zsntta_cli.results.grid import Grid
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation.recorded import run_from_record
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

CHOICE = EncoderChoice(folder="made")
ROOT = Path(__file__).parents[2]


PAIR = ("--id", "pets", "--ood", "sky")


def timeless(text):
    return [
        {k: v for k, v in r.items() if k not in ("seconds", "created")} for r in json.loads(text)
    ]


def test_a_grid_is_all_combinations_and_equals_its_single_runs(simulate, features):
    result = simulate(
        "--method", "adand", "--method", "zs-clip", "--id", "pets", "--id", "birds",
        "--ood", "sky", "--ood", "sand", "--ratio", 0.25, "--ratio", 0.5, "--seed", 0, "--seed", 1,
        "--update-every", 16, "--warmup", 2, "--warmup", 5, "--format", "json",
    )  # fmt: skip
    records = timeless(result.stdout)
    # zs-clip has no warm-up: its runs are there once.
    assert len(records) == 2 * 2 * 2 * 2 * (2 + 1)
    for record in (records[0], records[7], records[-1]):
        single = Simulator(features).run(run_from_record(record["settings"])).to_dict()
        assert single["accuracies"] == record["accuracies"]
        assert single["detection"] == record["detection"]


@settings(max_examples=15, deadline=None)
@given(order=st.permutations(["zs-clip", "adand", "tda", "adand+tda", "mcm", "neglabel"]))
def test_the_order_of_methods_changes_nothing(features, order):
    def accuracies(methods):
        grid = Grid(methods, CHOICE, ["pets"], ["sky"], [PROMPT], axes={"update_every": [16]})
        records = run_all(features, grid.runs(features))
        return {r.settings.method: (r.to_dict()["accuracies"], r.detection.auroc) for r in records}

    assert accuracies(order) == accuracies(sorted(order))


@pytest.mark.parametrize("ood", [("--ood", "sky", "--ood", "sand"), ("--ood", "sky")])
def test_two_processes_give_the_bytes_of_one(simulate, ood):
    command = ("--method", "adand", "--method", "zs-clip", "--id", "pets", *ood, "--seed", 0,
               "--seed", 1, "--seed", 2, "--update-every", 16)  # fmt: skip
    one = simulate(*command)
    two = simulate(*command, "--jobs", 2)
    assert one.stdout == two.stdout
    assert one.exit_code == two.exit_code == 0
    one = simulate(*command, "--format", "json")
    two = simulate(*command, "--format", "json", "--jobs", 2)
    assert timeless(one.stdout) == timeless(two.stdout)


def test_features_that_changed_between_two_calls_are_read_anew(features):
    """In one process, as in a notebook: what the first call read is of no use to the second."""
    grid = Grid(("zs-clip",), CHOICE, ["pets"], ["sky"], [], [], {"seed": [*range(9)]}, {})
    runs = grid.runs(features)
    first = run_all(features, runs, jobs=2)
    path = features / "made" / "sky.h5"
    with h5py.File(path) as file:
        labels, rows = file["labels"][:], file["image_features"][:]
    hdf5.write_features(
        path, kind=DATASET, name="sky", encoder=read_features(path).identity, source={},
        blocks=[rows[::-1]], labels=labels, sample_ids=[str(i) for i in range(len(rows))],
    )  # fmt: skip
    again = run_all(features, runs, jobs=2)
    assert again[0].digests["sky"] != first[0].digests["sky"]
    assert [r.digests for r in again] == [r.digests for r in run_all(features, runs)]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["", "import torch"])
def test_several_processes_in_a_script(first, features, tmp_path):
    """Copies of the process, or, where torch runs in it, new ones."""
    script = f"""
{first}
import sys
import zsntta_cli

if __name__ == "__main__":
    one, two = (
        zsntta_cli.simulate("zs-clip", "adand", id_set="pets", ood_set="sky", encoder="made",
                            seed=range(5), features_dir=sys.argv[1], fresh=True, jobs=jobs,
                            records=sys.argv[2])
        for jobs in (1, 2)
    )
    assert [r.accuracies for r in one] == [r.accuracies for r in two]
    print(len(two))
"""
    path = tmp_path / "script.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, path, features, tmp_path / "kept.sqlite"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr


def record_of(**settings):
    """A record as somebody may write it by hand."""
    plain = {"method": "adand", "encoder": "made", "id_set": "pets", "prompt": "a {}."}
    return json.dumps([{"settings": plain | settings, "digests": {}}])


def test_runs_are_repeated_from_exported_lines(simulate, zsntta, tmp_path):
    first = simulate("--method", "adand", *PAIR, "--seed", 0, "--seed", 1, "--format", "json")
    export = ("records", "export", "--output", "r.jsonl", "--records", tmp_path / "kept.sqlite")
    assert zsntta(*export).exit_code == 0
    again = simulate("--from", "r.jsonl", "--format", "json")
    assert again.stderr.endswith("2 of 2 records came out the same to the bit.\n")
    rows = json.loads(again.stdout)
    for record in json.loads(first.stdout):
        seed, values = record["settings"]["stream"]["seed"], record["detection"]
        [auroc] = [r for r in rows if (r["seed"], r["metric"]) == (seed, "auroc")]
        assert (auroc["old"], auroc["new"], auroc["difference"]) == (*[values["auroc"]] * 2, 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "it is empty"), ("[]", "it is empty"), ("{", "line 1: it is no JSON at column 2"),
        ("{}", "record 1: settings is missing"), ("[1]", "record 1: record is 1, must be an obj"),
        ('{"settings": 3, "digests": {}}', "record 1: settings is 3, must be an object"),
        (record_of(stream={"speed": 1}), "record 1: 'speed' is no setting of stream"),
        (record_of(prompt=3), "record 1: settings.prompt is 3, must be a text"),
    ],
)  # fmt: skip
def test_what_is_no_record(simulate, tmp_path, content, words):
    (tmp_path / "r.json").write_text(content)
    fails(simulate("--from", "r.json"), "r.json holds no results", words)


def test_a_method_whose_code_is_not_here_is_not_run_again(simulate, tmp_path):
    (tmp_path / "r.json").write_text(record_of(method="magic"))
    fails(
        simulate("--from", "r.json"),
        "the code of the method 'magic' is not here: name its script, zsntta --plugin FILE.py",
        code=2,
    )


def test_a_record_of_other_features_is_said_to_be_one(simulate, tmp_path):
    simulate("--method", "zs-clip", *PAIR, "--format", "json", "--output", "r.json")
    records = json.loads((tmp_path / "r.json").read_text())
    records[0]["digests"]["pets"] = "0" * 64
    (tmp_path / "r.json").write_text(json.dumps(records))
    result = simulate("--from", "r.json")
    assert result.exit_code == 0, result.output
    assert "the features of 'pets' are not those of the record: yet by all that is recorded" in (
        result.stdout
    )
    assert "1 of 1 records came out the same to the bit." in result.stdout, (
        "only its digest differs"
    )


def test_a_record_is_run_again_although_its_run_is_kept(simulate, tmp_path):
    """What was kept is the record itself, and says nothing; what was run here since then does."""
    first = simulate("--method", "zs-clip", *PAIR, "--format", "json", "--output", "r.json")
    record, kept = json.loads((tmp_path / "r.json").read_text())[0], "were kept from before"
    (tmp_path / "old.json").write_text(json.dumps([{**record, "created": "2026-01-01"}]))
    assert first.exit_code == 0
    assert "1 run: 0 kept, 1 to run" in simulate("--from", "r.json", "--dry-run").stdout
    assert kept not in simulate("--from", "r.json").stderr
    assert f"1 of 1 runs {kept}" in simulate("--from", "old.json").stderr
    assert kept not in simulate("--from", "old.json", "--fresh").stderr


def test_no_set_is_its_own_ood_set(simulate):
    both = ("--id", "pets", "--id", "birds", "--ood", "pets", "--ood", "birds")
    records = json.loads(simulate("--method", "zs-clip", *both, "--format", "json").stdout)
    pairs = [(r["settings"]["id_set"], r["settings"]["ood_set"]) for r in records]
    assert pairs == [("pets", "birds"), ("birds", "pets")]
    result = simulate("--method", "zs-clip", "--id", "pets", "--ood", "pets")
    assert "'pets' cannot be its own OOD set" in result.stderr


def test_all_means_every_cached_set_but_the_id_set(simulate):
    result = simulate("--method", "zs-clip", "--id", "pets", "--ood", "all", "--format", "json")
    assert [r["settings"]["ood_set"] for r in json.loads(result.stdout)] == ["birds", "sand", "sky"]


def test_neglabel_needs_words_with_the_prompt(simulate):
    result = simulate("--method", "neglabel", *PAIR, "--prompt", "art of a {}.")
    assert "type zsntta extract --words nouns.txt --features-dir " in result.stderr
    assert result.stderr.endswith(" --prompt 'art of a {}.'\n")
    result = simulate("--method", "neglabel", *PAIR, "--words", "verbs")
    assert "zsntta extract --words verbs.txt" in result.stderr


def test_methods_with_words_decide_and_teach(simulate):
    methods = ("neglabel", "csp", "adaneg", "tanl", "neglabel+adand", "csp+adand", "csp+tda")
    arguments = [a for m in methods for a in ("--method", m)]
    result = simulate(*arguments, *PAIR, "--words", "nouns", "--mined-share", 0.5, "--groups", 3,
                      "--format", "json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    records = json.loads(result.stdout)
    assert [r["settings"]["method"] for r in records] == list(methods)
    assert all(0 < r["accuracies"]["acc_h"] <= 1 for r in records)
    assert "csp+adand decides as csp does throughout: a stream of " in result.stderr
    result = simulate("--method", "csp", *PAIR)
    assert "no features of 'words-csp-nouns'" in result.stderr


def test_clipn_needs_its_own_text_features(simulate, tmp_path):
    result = simulate("--method", "clipn", *PAIR)
    assert "an array (3, 16) of finite numbers, one row per class, in the order of" in result.stderr
    assert result.stderr.endswith(": --no-text FILE.npy\n")
    np.save(tmp_path / "no.npy", np.ones((2, 16)))
    result = simulate("--method", "clipn", *PAIR, "--no-text", "no.npy")
    assert "holds an array (2, 16), must be an array (3, 16)" in result.stderr
    np.save(tmp_path / "no.npy", np.array([{}], dtype=object))
    result = simulate("--method", "clipn", *PAIR, "--no-text", "no.npy")
    assert "cannot read the 'no' text features no.npy" in result.stderr
    np.save(tmp_path / "no.npy", np.random.default_rng(0).normal(size=(3, 16)))
    result = simulate("--method", "clipn", *PAIR, "--no-text", "no.npy", "--report", "ood")
    assert result.exit_code == 0, result.stderr


def test_the_no_text_file_of_a_record_is_never_opened(simulate, tmp_path):
    np.save(tmp_path / "no.npy", np.random.default_rng(0).normal(size=(3, 16)))
    np.save(tmp_path / "other.npy", np.random.default_rng(1).normal(size=(3, 16)))
    clipn = ("--method", "clipn", *PAIR, "--no-text")
    result = simulate(*clipn, "no.npy", "--format", "json", "--output", "r.json")
    assert result.exit_code == 0, result.stderr
    [record] = json.loads(Path("r.json").read_text())
    record["settings"]["options"]["no_text"] = "/etc/passwd"
    Path("r.json").write_text(json.dumps(record))
    result = simulate("--from", "r.json")
    assert result.exit_code == 2
    assert "the file that a record names is not opened: --no-text FILE.npy" in result.stderr
    assert "passwd" not in result.stderr
    result = simulate("--from", "r.json", "--no-text", "no.npy", "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.endswith("1 of 1 records came out the same to the bit.\n")
    result = simulate("--from", "r.json", "--no-text", "other.npy")
    assert "are not those of the record" in result.stdout, "it is known by its digest"


def test_words_are_embedded_once(zsntta, tmp_path):
    (tmp_path / "nouns.txt").write_text("apple\n\nnoun phrase\napple\n", encoding="utf-8")
    command = ("extract", "--words", "nouns.txt", "--model", "tiny")
    assert "words-nouns.h5: 2 words in" in zsntta(*command).stdout
    assert "there already" in zsntta(*command).stdout
    words = hdf5.read_features(Path("features/tiny/words-nouns.h5"))
    assert words.class_names == ("apple", "noun phrase")
    (tmp_path / "empty.txt").write_text("\n")
    result = zsntta("extract", "--words", "empty.txt", "--model", "tiny")
    assert "the word list empty.txt is empty" in result.stderr


def test_score_files_agree_with_each_other_and_with_the_metrics(simulate, tmp_path):
    command = ("--method", "adand", *PAIR, "--update-every", 16, "--warmup", 3, "--format", "json")
    record = json.loads(simulate(*command, "--scores", "s.csv").stdout)[0]
    simulate(*command, "--scores", "s.h5")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
    assert list(rows[0]) == [
        "index", "sample_id", "truth", "decision", "id_score", "zero_shot_threshold",
        "detector_threshold",
    ]  # fmt: skip
    tests = [row for row in rows if row["truth"] != "injected"]
    assert len(tests) == record["counts"]["id"] + record["counts"]["ood"]
    clean = [row for row in tests if row["truth"] != "ood"]
    acc_s = np.mean([row["truth"] == row["decision"] for row in clean])
    assert acc_s == pytest.approx(record["accuracies"]["acc_s"])
    acc_n = np.mean([row["decision"] == "noise" for row in tests if row["truth"] == "ood"])
    assert acc_n == pytest.approx(record["accuracies"]["acc_n"])
    for row in rows:  # a decision follows from the score and the threshold of its stage
        own = row["detector_threshold"]
        threshold = float(own or row["zero_shot_threshold"])
        assert (row["decision"] == "noise") == (float(row["id_score"]) < threshold)
        assert (own == "") == (int(row["index"]) < 48)
    with h5py.File(tmp_path / "s.h5") as file:
        assert file["id_score"][5] == float(rows[5]["id_score"])
        assert file["sample_id"].asstr()[7] == rows[7]["sample_id"]


def test_scores_take_one_run(simulate):
    result = simulate("--method", "adand", *PAIR, "--seed", 0, "--seed", 1, "--scores", "s.csv")
    assert "scores are written for one run, and these options make 2" in result.stderr


def test_normalised_features_get_the_norm_of_raw_ones(features, tmp_path):
    pets = hdf5.read_features(features / "made" / "pets.h5")
    unit = pets.image_features / np.linalg.norm(
        pets.image_features.astype(np.float32), axis=1, keepdims=True
    )
    hdf5.write_features(
        tmp_path / "unit" / "pets.h5", kind=DATASET, name="pets", encoder=MADE_UP,
        source={}, blocks=[unit.astype(np.float32)], labels=pets.labels,
        sample_ids=hdf5.read_sample_ids(pets.path), class_names=pets.class_names,
        texts=[Text(PROMPT, pets.text_features[PROMPT])], normalized=True,
    )  # fmt: skip
    run = build_run("adand", "unit", "pets", None, PROMPT, noise="none", ratio=0.0)
    replay = Simulator(tmp_path)
    replay.run(run)
    pool = replay._pool("unit", PROMPT, "pets")
    np.testing.assert_allclose(np.linalg.norm(pool.image_features, axis=1), 10, rtol=1e-4)


def test_features_made_elsewhere_are_to_be_imported(simulate, features):
    result = simulate("--method", "zs-clip", "--id", "cows")
    command = "type zsntta cache import {} --encoder made --features FILE --features-dir {}"
    assert result.stderr.endswith(f"{command.format('cows', features)}\n")
    result = simulate("--method", "zs-clip", *PAIR, "--prompt", "paper")
    command = command.format("pets", features)
    assert result.stderr.endswith(f"{command} --prompt 'this is a photo of a {{}}'\n")


def test_missing_partners_are_those_that_need_no_hand(zsntta, features, tmp_path):
    cifar10 = tmp_path / "features" / "ViT-B-16-openai" / "cifar10.h5"
    cifar10.parent.mkdir(parents=True)
    cifar10.write_bytes((features / "made" / "pets.h5").read_bytes())
    result = zsntta("simulate", "--method", "zs-clip")
    assert "no OOD partner of 'cifar10' is cached" in result.stderr
    assert "type zsntta extract --dataset svhn --dataset texture\n" in result.stderr


def test_scores_of_a_record_are_those_of_the_features_here(simulate, features, tmp_path):
    first = simulate("--method", "adand", "--id", "pets", "--ood", "sky", "--format", "json")
    record = json.loads(first.stdout)
    record[0]["digests"]["pets"] = "0" * 64
    (tmp_path / "record.json").write_text(json.dumps(record))
    again = simulate("--from", tmp_path / "record.json", "--scores", tmp_path / "items.csv")
    assert "the features of 'pets' are not those of the record" in again.stdout
    assert len((tmp_path / "items.csv").read_text().splitlines()) == 1 + sum(
        record[0]["counts"].values()
    )


def test_aggregated_csv_and_json_have_the_cells_of_the_table(simulate):
    command = ("--method", "zs-clip", "--id", "pets", "--ood", "sky", "--ood", "sand", "--ratio",
               0.25, "--ratio", 0.5, "--seed", 0, "--seed", 1)  # fmt: skip
    plain = json.loads(simulate(*command, "--format", "json").stdout)
    cells = json.loads(simulate(*command, "--format", "json", "--aggregate").stdout)
    assert [(c["ratio"], c["ood_set"], c["aggregate"]) for c in cells] == [
        (ratio, name, None if name else "ood_sets")
        for ratio in (0.25, 0.5)
        for name in ("sand", "sky", None)
    ]
    values = {
        name: [r["accuracies"]["acc_h"] for r in plain
               if (r["settings"]["ood_set"], r["settings"]["stream"]["ratio"]) == (name, 0.25)]
        for name in ("sky", "sand")
    }  # fmt: skip
    assert cells[1]["acc_h"] == pytest.approx(np.mean(values["sky"]))
    assert cells[1]["acc_h_std"] == pytest.approx(np.std(values["sky"], ddof=1))
    by_seed = np.mean([values["sky"], values["sand"]], axis=0)
    assert cells[2]["acc_h"] == pytest.approx(by_seed.mean())
    assert cells[2]["acc_h_std"] == pytest.approx(by_seed.std(ddof=1))
    rows = list(csv.DictReader(io.StringIO(
        simulate(*command[:-2], "--format", "csv", "--aggregate").stdout
    )))  # fmt: skip
    assert len(rows) == 6
    assert {row["acc_h_std"] for row in rows} == {""}, "one seed has no deviation"
    runs = list(csv.DictReader(io.StringIO(simulate(*command, "--format", "csv").stdout)))
    assert (len(runs), list(runs[0])) == (8, list(rows[0]))


def test_a_pair_that_is_not_listed_takes_the_settings_of_its_parts(simulate):
    command = ("--method", "oodd+bca", "--id", "pets", "--ood", "sky", "--ratio", 0.25)
    done = simulate(*command, "--oodd-items", 64, "--format", "csv")
    assert done.exit_code == 0, done.stderr
    [row] = csv.DictReader(io.StringIO(done.stdout))
    assert (row["method"], row["ratio"], row["settings"]) == ("oodd+bca", "0.25", "oodd_items=64")
    refused = simulate(*command, "--warmup", 3)
    assert refused.exit_code == 2
    assert "warmup is no setting of oodd+bca" in refused.stderr


def test_latex_has_the_chosen_columns_and_says_what_makes_it(simulate):
    command = ("--method", "zs-clip", "--id", "pets", "--ood", "sky", "--format", "latex")
    more = ("--columns", "acc_h", "--label", "zs-clip=ZS_CLIP", "--tex-label", "tab:x")
    latex = simulate(*command, *more).stdout
    assert r"ZS\_CLIP &" in latex
    assert r"\label{tab:x}" in latex
    assert "Method & sky \\\\\n" in latex, "one column, and one line of heads"
    assert "\n% Made by: " in latex
    refused = simulate(*command, "--columns", "acc_x")
    assert refused.exit_code == 2
    assert "docs/results.md lists them" in refused.stderr
    assert simulate(*command, "--label", "zs-clip").exit_code == 2


def test_orders_are_settings_in_records_and_tables(cached):
    result = cached("simulate", "--method", "zs-clip", "--ood", "glyphs", "--ratio", 0.05,
                    "--order", "burst", "--order", "class", "--report", "flags", "--model",
                    "tiny")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "FEW noise samples: 16 against glyphs at 0.05" in " ".join(result.stdout.split())
    for word in ("burst", "class", "Prec", "Flagged", "Recall"):
        assert word in result.stdout
    live = cached("simulate", "--method", "tent", "--ood", "glyphs", "--order", "late",
                  "--limit", 20, "--model", "tiny")  # fmt: skip
    assert live.exit_code == 0, live.stderr
