"""`--dry-run`: it says what the command would do, and does nothing."""

import re

import huggingface_hub
import pytest
from made import TINY

from zsntta_cli.simulation.simulator import Simulator

NOTHING = "Nothing was run or written (--dry-run).\n"


@pytest.fixture
def dry(cached, tmp_path, monkeypatch):
    """Run a command that must not run, make or write anything."""

    def refuse(*_):
        raise AssertionError("it was to be dry")

    def tree():
        return {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}

    def run(*words):
        before = tree()
        with monkeypatch.context() as patched:
            patched.setattr(Simulator, "replay", refuse)
            for where in ("extraction.extractor", "detection.encoding"):  # each has its own name
                patched.setattr(f"zsntta_cli.{where}.weights_request", refuse)
            result = cached(*words, "--dry-run")
        assert result.exit_code == 0, result.output
        assert tree() == before, "a file was made or changed"
        return result.stdout

    return run


def counts(text):
    """The line of counts in numbers: all runs, kept, to run, lacking."""
    line = re.search(r"^([\d,]+) runs?: (\d+) kept, (\d+) to run, (\d+) without", text, re.M)
    return [int(number) for number in line.groups()]


GRID = ("simulate", "--method", "zs-clip", "--method", "adand", "--ood", "glyphs", *TINY)


def test_simulate_says_what_is_kept_and_what_is_to_be_run(dry, cached, tmp_path):
    wide = (*GRID, "--seed", 0, "--seed", 1)
    text = dry(*wide)
    assert counts(text) == [4, 0, 4, 0]
    assert text.endswith(NOTHING)
    assert not (tmp_path / "features" / "records.sqlite").exists()
    assert cached(*GRID).exit_code == 0
    text = dry(*wide)
    assert counts(text) == [4, 2, 2, 0]
    assert counts(dry(*wide, "--fresh")) == [4, 0, 4, 0]


def test_what_is_missing_comes_with_its_command(dry):
    text = dry(*GRID, "--ood", "svhn", "--noise", "uniform")
    assert counts(text) == [4, 0, 0, 4]
    assert (
        "2 feature files missing: type zsntta extract --dataset svhn --noise uniform --model tiny\n"
    ) in text.replace("--noise uniform --dataset svhn", "--dataset svhn --noise uniform")
    text = dry(*GRID, "--prompt", "a drawing of a {}.")
    assert counts(text) == [2, 0, 0, 2]
    assert "type zsntta extract --dataset shapes --model tiny --prompt 'a drawing of a {}.'" in text
    text = dry("simulate", "--method", "neglabel", "--ood", "glyphs", *TINY)
    assert counts(text) == [1, 0, 0, 1]
    assert "type zsntta extract --words wordnet --model tiny" in text


@pytest.mark.parametrize(("place", "said"), [(None, "will be downloaded; "), ("w", "cached\n")])
def test_extract_says_whether_the_weights_are_at_hand(dry, monkeypatch, place, said):
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: place)
    text = dry("extract", "--dataset", "cifar10")
    assert f"weights 'openai' of ViT-B-16: {said}" in text
    assert "weights" not in dry("extract", "--dataset", "cifar10", "--pretrained", "none")


def test_extract_counts_what_is_kept_to_make_and_missing(dry, picture_folder):
    shapes = ("extract", "--dataset", "shapes", *TINY)
    kept = "features/tiny: 6 feature files: 6 kept, 0 to make, 0 missing\n"
    assert dry(*shapes) == kept + NOTHING
    made = dry(*shapes, "--overwrite", "--no-partners")
    assert "2 feature files: 0 kept, 2 to make (shapes, noise-gaussian), 0 missing\n" in made
    text = dry("extract", "--dataset", "cifar10", "--words", "wordnet")
    assert "cifar10, words-wordnet-nouns, words-wordnet-adjectives, noise-gaussian" in text
    assert "2 missing (lsun, places): zsntta datasets show lsun says where to get it\n" in text
    assert "to fetch: cifar10, svhn, texture: 0.9 GB\n" in text
    text = dry("extract", "--dataset", f"mine={picture_folder}", *TINY)
    assert "2 feature files: 1 kept, 1 to make (mine), 0 missing\n" in text
