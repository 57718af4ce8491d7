"""What `simulate` writes: files of scores, aggregated CSV and JSON, LaTeX."""

import csv
import io
import json

import numpy as np
import pytest

PAIR = ("--id", "pets", "--ood", "sky")


def test_score_files_agree_with_each_other_and_with_the_metrics(simulate, tmp_path):
    command = (
        "--method",
        "adand",
        *PAIR,
        "--set",
        "update-every=16",
        "--set",
        "warmup=3",
        "--format",
        "json",
    )
    record = json.loads(simulate(*command, "--scores", "s.csv").stdout)[0]
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


def test_aggregated_csv_and_json_have_the_cells_of_the_table(simulate):
    command = ("--method", "zs-clip", *PAIR, "--ood", "sand", "--ratio",
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
