"""Rows of methods that the paper has not: on the same streams, beside the test of all reports."""

import json

import numpy as np
import pytest
from made import OWN_SCRIPT, TINY

from zsntta_cli.paper.cells import PaperEncoder
from zsntta_cli.paper.printed.tables import find_table
from zsntta_cli.paper.rivals import rival_sheets
from zsntta_cli.paper.runs import Wishes, streams, wished_cells
from zsntta_cli.simulation.metrics import Measures
from zsntta_cli.simulation.record import Record

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


def test_ones_own_method_is_a_row(cached, tmp_path):
    (tmp_path / "own.py").write_text(OWN_SCRIPT)
    (tmp_path / "shifts.py").write_text("SHIFT = 0.0\n")
    result = cached("--plugin", "own.py", "paper", "12", "--method", "own", *TINY)
    assert result.exit_code == 0, result.output
    assert "own (not in the paper)" in result.stdout


def test_added_rows_are_tested_against_adand_over_the_pairs(tmp_path):
    """TDA is better by a point on each of the 44 pairs: the tables of all reports say so."""
    wishes = Wishes(tmp_path, PaperEncoder(), methods=("tda",))
    for number, id_sets in (("3", 5), ("2", 4)):
        table = find_table(number)
        runs = {
            run
            for cell in wished_cells(table, wishes)
            for of_set in streams(cell, wishes)
            for run in of_set
        }
        records = {
            run: Record(
                run, Measures(acc_h=0.71 if run.method == "tda" else 0.7), Measures(), Measures(),
                {"id": 10, "ood": 10, "noise": 0}, {}, {}, 1.0, "", {},
            )
            for run in runs
        }  # fmt: skip
        [sheet] = rival_sheets(table, wishes, records)
        assert [row.labels for row in sheet.rows] == [(ROW,), (table.ours,)]
        assert sheet.rows[1].values["against the best"][:2] == ["-1.00", f"0/0/{4 * id_sets}"]
        assert any("share its images, so p is smaller" in note for note in sheet.notes)
    assert rival_sheets(find_table("2"), Wishes(tmp_path), records) == []


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
