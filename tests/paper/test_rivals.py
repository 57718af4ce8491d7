"""Rows of methods that the paper has not: on the same streams."""

import json

import numpy as np
import pytest
from made import OWN_SCRIPT, TINY

from zsntta_cli import plugins
from zsntta_cli.methods import METHODS

ROW = "tda (not in the paper)"


def test_a_row_more_is_on_the_streams_of_adands(cached):
    result = cached("paper", "10", "--method", "tda", *TINY)
    assert result.exit_code == 0, result.output
    assert ROW in result.stdout
    rows = json.loads(cached("paper", "10", "--method", "tda", *TINY, "--format", "json").stdout)
    [average] = [r for r in rows if r["row"] == ROW and r["column"] == "Average"]
    asked = ("simulate", "--method", "tda", *TINY, "--format", "json")
    records = json.loads(cached(*asked).stdout)
    mean = np.mean([record["accuracies"]["acc_h"] for record in records])
    assert average["acc_h"] == pytest.approx(mean)
    without = [r for r in rows if r["row"] != ROW]
    assert without == json.loads(cached("paper", "10", *TINY, "--format", "json").stdout)


def test_ones_own_method_is_a_row(cached, tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "_added", {})
    (tmp_path / "own.py").write_text(OWN_SCRIPT)
    (tmp_path / "shifts.py").write_text("SHIFT = 0.0\n")
    result = cached("--plugin", "own.py", "paper", "12", "--method", "own", *TINY)
    assert result.exit_code == 0, result.output
    del METHODS["own"]
    assert "own (not in the paper)" in result.stdout


def test_a_table_that_names_no_ratio_in_both_mixes(cached):
    asked = ("paper", "5", "--ratio", "natural", *TINY, "--format", "json")
    rows = json.loads(cached(*asked).stdout)
    natural = {r["ood_set"]: r for r in rows if r["row"] == "AdaND (Ours) (noise natural)"}
    simulated = cached("simulate", *TINY, "--method", "adand", "--ratio", "natural", "--format",
                       "json")  # fmt: skip
    for record in json.loads(simulated.stdout):
        row = natural[record["settings"]["ood_set"]]
        assert record["settings"]["stream"]["ratio"] == row["ratio"] == "natural"
        assert row["auroc"] == pytest.approx(record["detection"]["auroc"])
        assert (row["n_id"], row["n_ood"]) == (record["counts"]["id"], record["counts"]["ood"])
    without = [r for r in rows if "natural" not in r["row"]]
    assert without == json.loads(cached("paper", "5", *TINY, "--format", "json").stdout)
