"""What `simulate --scores` writes: a row an item, which agrees with the metrics."""

import csv
import io
import json

import numpy as np
import pytest

PAIR = ("--id", "pets", "--ood", "sky")


def test_score_files_agree_with_each_other_and_with_the_metrics(simulate, tmp_path):
    of_method = ("--set", "update-every=16", "--set", "warmup=3")
    command = ("--method", "adand", *PAIR, *of_method, "--format", "json")
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
