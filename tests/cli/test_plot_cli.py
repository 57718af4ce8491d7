"""`zsntta plot`: what it reads, writes and refuses."""

import csv

import pytest
from kept import run_of

from zsntta_cli.cli.report import KINDS
from zsntta_cli.report import figures
from zsntta_cli.results.exchange import to_line
from zsntta_cli.results.store import RecordStore

RUNS = [
    run_of(method, (value, value), ood_set=ood, ratio=ratio)
    for method, value in (("zs-clip", 0.5), ("adand", 0.75))
    for ood in ("glyphs", "textures")
    for ratio in (0.25, 0.5)
]


@pytest.fixture
def stored(zsntta, tmp_path):
    with RecordStore(tmp_path / "features" / "records.sqlite", create=True) as store:
        store.add(RUNS)
    return zsntta


def numbers(path):
    with path.open(encoding="utf-8") as file:
        return [(row["series"], row["x"], row["y"]) for row in csv.DictReader(file)]


def test_the_command_names_all_kinds():
    assert tuple(figures.KINDS) == tuple(KINDS)


def test_a_figure_of_the_store(stored, tmp_path):
    result = stored("plot", "means")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "figure.pdf\n", "")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF-1.")


def test_the_numbers_of_a_figure(stored, tmp_path):
    assert (
        stored("plot", "ratio", "--ood", "glyphs", "--seed", "0-1", "--output", "r.csv").exit_code
        == 0
    )
    assert numbers(tmp_path / "r.csv") == [
        ("zs-clip", "25", "50"), ("zs-clip", "50", "50"), ("adand", "25", "75"),
        ("adand", "50", "75"),
    ]  # fmt: skip


def test_exported_results_are_plotted_alike(stored, tmp_path):
    halves = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for path, some in zip(halves, (RUNS[:4], RUNS[4:]), strict=True):
        path.write_text("".join(f"{to_line(kept)}\n" for kept in some))
    for arguments in ([], halves):
        name = f"{len(arguments)}.csv"
        assert stored("plot", "ranks", *arguments, "--output", name).exit_code == 0
    assert (tmp_path / "2.csv").read_bytes() == (tmp_path / "0.csv").read_bytes()
