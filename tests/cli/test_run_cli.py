"""`zsntta run`: an experiment file, as a user has it."""

import csv
import io

import pytest
from made import fails, row

from zsntta_cli.simulation.simulator import Simulator

RUNS = """
encoder = { model = "tiny" }
[[runs]]
methods = ["zs-clip", "adand"]
id = "shapes"
ood = ["glyphs", "textures"]
[runs.settings]
ratio = [0.25, 0.5]
seed = [0, 1]
[runs.own.adand]
warmup = [5, 10]
"""
OUTPUTS = """
[[tables]]
output = "out/main.csv"
[[tables]]
output = "out/adand.md"
methods = "adand"
ratio = 0.5
settings = { warmup = 5 }
columns = ["acc_h", "auroc"]
names = { adand = "AdaND" }
[[figures]]
kind = "ratio"
output = "out/ratio.csv"
metric = "auroc"
settings = { warmup = 10 }
methods = "adand"
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="e.toml"):
        (tmp_path / name).write_text(text)
        return name

    return write


def test_a_file_is_run_and_its_tables_and_figures_are_written(cached, write, tmp_path):
    result = cached("run", write(RUNS + OUTPUTS))
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == ["out/main.csv", "out/adand.md", "out/ratio.csv"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "main.csv").read_text())))
    assert len(rows) == 8 + 16
    assert {r["settings"] for r in rows} == {"", "warmup=5"}
    text = (tmp_path / "out" / "adand.md").read_text()
    assert "AdaND" in text
    assert "zs-clip" not in text
    assert "AUROC" in text
    figure = list(csv.DictReader(io.StringIO((tmp_path / "out" / "ratio.csv").read_text())))
    assert {r["x"] for r in figure} == {"25", "50"}
    again = cached("run", "e.toml")
    assert "24 of 24 runs were already kept" in again.stderr


def test_several_blocks_presets_prompts_and_a_folder_of_features(cached, write):
    text = """
        encoder = "tiny"
        [[runs]]
        methods = "zs-clip"
        prompts = "a photo of a {}."
        id = "shapes"
        ood = ["glyphs", "digits"]
        [[runs]]
        methods = ["adand"]
        presets = ["paper", "official"]
        id = "shapes"
        ood = "glyphs"
        settings = { threshold = ["adaptive", 0.5], late-start = true }
        [[runs]]
        methods = ["adand", "zs-clip"]
        id = "shapes"
        ood = "glyphs"
        [[tables]]
    """
    result = cached("run", write(text))
    assert result.exit_code == 0, result.output
    # zs-clip of the last block is a run of the first one, too: it is shapes' own prompt.
    assert "7 of 7 runs were already kept" in cached("run", "e.toml").stderr
    assert row(result, "zs-clip")
    assert "official" in result.stdout


def test_outputs_are_written_all_or_none(cached, write, tmp_path):
    """The last figure has no run to show."""
    none = OUTPUTS + '[[figures]]\nkind = "ratio"\noutput = "out/none.csv"\nid = "digits"\n'
    fails(cached("run", write(RUNS + none)), "id digits: found shapes", code=2, stdout=None)
    assert not (tmp_path / "out").exists()


def test_a_stopped_run_resumes_and_has_written_nothing(cached, write, tmp_path, monkeypatch):
    plain, runs = Simulator.replay, []

    def stop(self, run, analyse=False):
        runs.append(run)
        if len(runs) == 10:
            raise KeyboardInterrupt
        return plain(self, run, analyse)

    monkeypatch.setattr(Simulator, "replay", stop)
    result = cached("run", write(RUNS + OUTPUTS))
    assert result.exit_code == 130
    assert "run the same command to resume" in result.stderr
    assert not (tmp_path / "out").exists()
    assert "9 of 24 runs were already kept" in cached("run", "e.toml").stderr
    assert (tmp_path / "out" / "main.csv").exists()


@pytest.mark.parametrize(
    ("wrong", "right", "parts"),
    [
        ("methods =", "method =", ["runs.1", "did you mean 'methods'?"]),
        ('"zs-clip"', '"zs-clp"', ["[[runs]] 1: method is 'zs-clp'", "'zs-clip'?"]),
        ("[runs.own.adand]", "[runs.own.adnd]", ["own, adnd: method is 'adnd'"]),
        ("warmup = [5", "xyz = [5", ["xyz", "zsntta methods show NAME"]),
        ("ratio = [0.25", "ratio = [3", ["[[runs]] 1: ratio is 3"]),
        ('{ model = "tiny" }', '{ modle = "tiny" }', ["encoder: modle"]),
        ("[[runs]]", "[runs]", ["runs: Input should be a valid list"]),
        ("[[runs]]", "[[runs]", ["not TOML"]),
        (RUNS, "", ["runs: Field required"]),
        ('metric = "auroc"', 'metric = "aurco"', ["did you mean 'auroc'?"]),
        ('"out/main.csv"', '"out/main.xlsx"', ["must end in one of .txt"]),
        ('kind = "ratio"', 'kind = "ratio"\nwidth = "x"', ["figures.1.width"]),
        ('output = "out/ratio.csv"\n', "", ["figures.1.output"]),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_run(cached, write, tmp_path, wrong, right, parts):
    text = RUNS + OUTPUTS
    assert wrong in text
    fails(cached("run", write(text.replace(wrong, right, 1))), "e.toml", *parts, code=2)
    assert not (tmp_path / "features" / "records.sqlite").exists()


def test_paths_are_relative_to_the_file(cached, write, tmp_path):
    (tmp_path / "there").mkdir()
    text = 'features = "../features"\nrecords = "kept.sqlite"\n' + RUNS + OUTPUTS
    result = cached("run", write(text, "there/e.toml"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "there" / "kept.sqlite").exists()
    assert (tmp_path / "there" / "out" / "main.csv").exists()
    assert not (tmp_path / "features" / "records.sqlite").exists()
