"""`zsntta plot`: what it reads, writes and refuses."""

import csv
from pathlib import Path

import pytest
from kept import run_of
from made import fails
from PIL import Image

from zsntta_cli.cli.results.plot import KINDS
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


@pytest.mark.parametrize(
    ("arguments", "parts", "code"),
    [
        (["roc"], ["kind is 'roc'", "must be one of: ratio, means"], 2),
        (["rank"], ["did you mean 'ranks'?"], 2),
        (["ranks", "--output", "f.jpg"], ["must end in one of .pdf, .svg, .png, .csv"], 2),
        (["ranks", "--setting", "warmup"], ["setting is 'warmup', must be NAME=VALUE"], 2),
        (["ranks", "--setting", "warmpu=1"], ["did you mean 'warmup'?"], 2),
        (["ranks", "--method", "tent"], ["has method tent: there is adand, zs-clip"], 2),
        (["ranks", "--method", "adand"], ["only adand has an average: zsntta simulate"], 2),
        (["scores"], ["scores kept: zsntta simulate --fresh"], 2),
        (["difference"], ["live method", "zsntta simulate --method tent"], 2),
        (["gradients"], ["gradients kept: zsntta simulate --method tent --scores"], 2),
        (["fixed"], ["fixed threshold: zsntta simulate", "--threshold 0.5"], 2),
        (["ratio", "--metric", "acc"], ["metric is 'acc', which ratio does not show: acc_s"], 2),
        (["means", "--metric", "acc"], ["which means does not show: acc_s, acc_n, acc_h"], 2),
        (["fixed", "--metric", "acc_s"], ["which fixed does not show: none"], 2),
        (["ranks", "--records", "elsewhere.sqlite"], ["no kept results at elsewhere.sqlite"], 1),
        (["ranks", "lines.jsonl"], ["lines.jsonl", "No such file"], 1),
        (["ranks", "--width", "1"], ["--width is '1', must be column, page, or inches"], 2),
        (["ranks", "--width", "wide"], ["--width is 'wide', must be column, page"], 2),
    ],
)  # fmt: skip
def test_what_cannot_be_plotted_is_said_in_a_line(stored, arguments, parts, code):
    fails(stored("plot", *arguments), *parts, code=code)
    assert not [*Path().glob("figure*"), *Path().glob("f.*")]


def test_alone_it_says_what_each_kind_shows(zsntta):
    result = zsntta("plot")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split()[2] for line in result.stdout.splitlines()] == list(KINDS)


def test_a_figure_is_as_wide_as_a_page_of_the_paper(stored, tmp_path):
    assert stored("plot", "means", "--output", "wide.png", "--width", "page").exit_code == 0
    with Image.open(tmp_path / "wide.png") as picture:
        assert picture.width == 6.9 * 300
