"""The paper's tables as rows: in CSV and JSON."""

import csv
import math
import re
from pathlib import Path

from zsntta_cli.paper import rows
from zsntta_cli.paper.printed.tables import TABLES, find_table
from zsntta_cli.paper.sheets import published_content
from zsntta_cli.results import tidy


def published(number, **values):
    """The rows of a table's printed numbers with some values."""
    every = rows.table_rows(published_content(find_table(str(number))))
    return [row for row in every if values.items() <= row.items()]


def test_a_printed_cell_is_a_row_of_fractions_by_hand():
    row, average = published(20, method="zs-clip", id_set="cifar10")[::4]
    assert (row["acc_s"], row["acc_s_std"], row["ood_set"]) == (0.8353, 0.0002, "svhn")
    assert (average["ood_set"], average["aggregate"]) == (None, "ood_sets")
    facts = {"settings": "", "preset": "paper", "encoder": "ViT-B-16-openai", "ratio": 0.5}
    assert (facts | {"noise": "none", "source": "published", "table": 20}).items() <= row.items()
    [tent] = published(11, method="tent", id_set="cifar100", ratio=0.0, settings="")
    assert tent["note"].startswith("misprint: table 19 has 53.54 here")
    assert [row["settings"] for row in published(22, id_set="cifar10", ood_set="svhn")] == [
        "update_every=32", "update_every=64", "", "update_every=256", "update_every=512",
    ]  # fmt: skip


def test_what_only_the_paper_has_stands_behind_in_columns_of_its_own():
    [average] = published(1, row="Tent (GT)", column="Average")
    alone = [row for row in published(1, row="Tent (GT)") if row["acc_h_lead"] is not None]
    assert alone == [average]  # the difference to ZS-CLIP stands in the row of the average


def test_every_table_has_the_columns_of_every_csv_and_then_the_documented_ones():
    for table in TABLES:
        for row in rows.table_rows(published_content(table)):
            assert tuple(row) == rows.columns()
            assert not any(isinstance(value, float) and math.isnan(value) for value in row.values())
    assert rows.columns()[: len(tidy.columns())] == tidy.columns()
    text = (Path(__file__).parents[2] / "docs" / "paper.md").read_text()
    table = text.split("| column | what it holds |")[1].split("\n\n")[0]
    documented = re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`[^|]+) \|", table)))
    own = rows.columns()[len(tidy.columns()) :]
    assert documented == [*own]


def test_rows_of_simulate_and_of_the_paper_are_one_table(cached, tmp_path):
    """Those of the same streams have the same facts and numbers."""

    def read(name):
        with (tmp_path / name).open(newline="") as file:
            return list(csv.DictReader(file))

    arguments = ("--seed", 0, "--seed", 1, "--model", "tiny")
    made = cached("paper", 10, *arguments, "--output", "paper.csv")
    assert made.exit_code == 0, made.output
    simulated = ("--method", "adand", "--aggregate", "--spread", "sets", "--output", "own.csv")
    made = cached("simulate", *arguments, *simulated)
    assert made.exit_code == 0, made.output
    own = {row["ood_set"]: row for row in read("own.csv")}
    paper = {row["ood_set"]: row for row in read("paper.csv") if row["method"] == "adand"}
    assert len(own) == len(paper) == 5
    for name, row in own.items():
        metrics = ("acc_s", "acc_n", "acc_h", "acc_s_std", "acc_n_std", "acc_h_std")
        for metric in metrics:
            assert math.isclose(float(row[metric]), float(paper[name][metric]), abs_tol=1e-9)
        facts = tidy.columns()[: tidy.columns().index("acc_s")]
        behind = ("n_id", "n_ood", "repeated", "complete", "revision", "source")
        assert {n: row[n] for n in (*facts, *behind)} == {
            n: paper[name][n] for n in (*facts, *behind)
        }
