"""What kept results become: `zsntta report`, `plot` and `cite`, of a store or of exported files."""

import csv
import shutil

import pytest
from kept import kept_run

from zsntta_cli.cli.report import KINDS
from zsntta_cli.report import figures
from zsntta_cli.results.exchange import to_line
from zsntta_cli.results.store import RecordStore

KEPT = [
    kept_run(m, "sky", seed=s, known=k + s)
    for m, k in (("zs-clip", 5), ("oodd", 7))
    for s in (0, 1)
]


@pytest.fixture
def stored(zsntta, tmp_path):
    """The command line beside a store."""
    with RecordStore(tmp_path / "features" / "records.sqlite", create=True) as store:
        store.add(KEPT)
    return zsntta


def test_the_store_beside_the_features_becomes_a_page_and_a_figure(stored, tmp_path):
    result = stored("report")
    assert (result.exit_code, result.stderr) == (0, "")
    size = round((tmp_path / "report.html").stat().st_size / 1000)
    assert result.stdout == f"report.html: 4 runs in 2 rows, {size} kB\n"
    assert "<td>55.00±7.07" in (tmp_path / "report.html").read_text()
    result = stored("plot", "means")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "figure.pdf\n", "")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF-1.")
    chosen = ("--method", "oodd", "--seed", "0-1", "--metric", "acc_s")
    assert stored("plot", "ratio", *chosen, "--output", "r.csv").exit_code == 0
    with (tmp_path / "r.csv").open(encoding="utf-8") as file:
        [row] = csv.DictReader(file)
    assert (row["series"], row["x"], row["y"]) == ("oodd", "50", "75")
    assert tuple(figures.KINDS) == tuple(KINDS)


def test_the_same_from_any_file_that_holds_the_records(stored, tmp_path):
    (tmp_path / "some.jsonl").write_text("\n".join(map(to_line, KEPT[:3])))
    (tmp_path / "more.jsonl").write_text("\n".join(map(to_line, KEPT[2:])))
    shutil.move("features/records.sqlite", "moved.sqlite")

    def shown(*files):
        page = stored("report", *files, "--output", "-").stdout
        assert stored("plot", "ranks", *files, "--output", "ranks.csv").exit_code == 0
        return page, (tmp_path / "ranks.csv").read_text()

    wanted = shown("--records", "moved.sqlite")
    for files in (
        ["moved.sqlite"], ["some.jsonl", "more.jsonl"], ["more.jsonl", "moved.sqlite"],
        ["some.jsonl", "--records", "moved.sqlite"],
    ):  # fmt: skip
        assert shown(*files) == wanted, files
    assert wanted[0].startswith("<!DOCTYPE html>")
    assert "<p>4 runs. Methods: " in wanted[0]


def test_cite_all_kept_runs_and_those_of_a_file(stored, tmp_path):
    (tmp_path / "runs.jsonl").write_text("\n".join(map(to_line, KEPT)))
    result = stored("cite")
    assert result.exit_code == 0, result.output
    assert "% oodd\n@inproceedings{yang2025oodd," in result.stdout
    assert result.stderr == "note: no reference is known for sky.\n"
    assert stored("cite", "--from", "runs.jsonl").stdout == result.stdout
