"""`--method all`: what it runs and leaves out, and Ctrl-C."""

import csv
import io
import json
import shutil
from dataclasses import replace

import pytest

from zsntta_cli.cache import store
from zsntta_cli.methods import METHODS
from zsntta_cli.simulation.simulator import Simulator

STREAM = ("--id", "pets", "--ood", "sky", "--limit", 60)
ALL = ("--method", "all", *STREAM)
BY_WORDS = {"neglabel", "adaneg", "tanl", "dde"}  # whose list is any


def singles():
    """What needs neither words nor images nor another file, and the paper's pair."""
    return {"adand+tda", *(n for n, method in METHODS.items() if not (method.needs or method.live))}


@pytest.fixture
def here(features, zsntta, tmp_path):
    """Run `simulate` on a copy of the features, which a test may change."""
    shutil.copytree(features, tmp_path / "features")

    def run(*words):
        return zsntta("simulate", "--encoder", "made", *words)

    run.folder = tmp_path / "features" / "made"
    return run


def methods_of(result):
    assert result.exit_code == 0, result.output
    return {row["method"] for row in csv.DictReader(io.StringIO(result.stdout))}


def test_all_is_what_needs_nothing_but_what_is_cached(here):
    assert methods_of(here(*ALL, "--format", "csv")) == singles() | BY_WORDS
    (here.folder / "words-nouns.h5").unlink()
    result = here(*ALL, "--format", "csv")
    assert methods_of(result) == singles()
    for reason in ("neglabel, adaneg, tanl and 1 more (needs a word list)", "live, they encode",
                   "cma (no features of 'words-cma' by made", "clipn (needs "):  # fmt: skip
        assert reason in result.stderr
    (here.folder / "noise-gaussian.h5").unlink()
    assert methods_of(here(*ALL, "--format", "csv")) == singles() - {"adand", "adand+tda"}
    assert methods_of(here(*ALL, "--noise", "none", "--format", "csv")) == singles()


def test_of_several_word_lists_one_is_to_be_named(here):
    nouns = store.read(here.folder / "words-nouns.h5")
    store.write(replace(nouns, path=here.folder / "words-verbs.h5", name="words-verbs"), [])
    assert methods_of(here(*ALL, "--format", "csv")) == singles()
    named = here(*ALL, "--set", "words=verbs", "--format", "json")
    runs = [record["settings"] for record in json.loads(named.stdout)]
    assert {run["options"]["words"] for run in runs if run["method"] in BY_WORDS} == {"verbs"}


def test_what_is_finished_is_shown_at_ctrl_c(simulate, monkeypatch, tmp_path):
    plain, runs = Simulator.replay, []

    def stopped(self, run, analyse=False):
        runs.append(run)
        if len(runs) == 5:
            raise KeyboardInterrupt
        return plain(self, run, analyse)

    with monkeypatch.context() as patch:
        patch.setattr(Simulator, "replay", stopped)
        result = simulate(*ALL, "--format", "csv")
    assert result.exit_code == 130
    assert result.stderr.endswith("finished work is kept; run the same command to resume.\n")
    finished = [row["method"] for row in csv.DictReader(io.StringIO(result.stdout))]
    assert finished == [name for name in METHODS if name in singles() | BY_WORDS][:4]
    again = simulate(*ALL, "--output", "all.csv")
    assert again.exit_code == 0, again.output
    assert f"4 of {len(singles() | BY_WORDS)} runs were already kept" in again.stderr
    assert (tmp_path / "all.csv").exists()
