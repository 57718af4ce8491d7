"""`--method all`: what it runs and leaves out, what is said of many runs, and Ctrl-C."""

import csv
import io
import json
import shutil
import signal
import sqlite3
import subprocess
import time
import warnings
from contextlib import closing
from pathlib import Path

import pytest
from feature_files import write_features
from made import PROMPT, ZSNTTA, fails

import zsntta_cli
from zsntta_cli.cache import store
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import WORDS
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


def test_all_is_what_needs_nothing_but_what_is_cached(simulate):
    result = simulate(*ALL, "--format", "csv")
    assert methods_of(result) == singles() | BY_WORDS
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == len(singles() | BY_WORDS), "one run of each"
    assert {(row["ratio"], row["seed"], row["order"]) for row in rows} == {("0.5", "0", "shuffled")}
    [line] = [text for text in result.stderr.splitlines() if "all is" in text]
    assert line.startswith(f"note: all is {len(rows)} methods; left out: ")
    for group in ("no words cached", "clipn (--set no-text=FILE.npy)", "live, they encode images",
                  "tent, sotta, tpt and "):  # fmt: skip
        assert group in line
    assert len(line) < 300


def test_without_words_and_without_noise_fewer_are_left(here):
    (here.folder / "words-nouns.h5").unlink()
    result = here(*ALL, "--format", "csv")
    assert methods_of(result) == singles()
    assert "cma, neglabel, csp and 3 more (no words cached)" in result.stderr
    (here.folder / "noise-gaussian.h5").unlink()
    result = here(*ALL, "--format", "csv")
    assert methods_of(result) == singles() - {"adand", "adand+tda"}
    assert "adand, adand+tda (no injected noise cached)" in result.stderr
    assert methods_of(here(*ALL, "--noise", "none", "--format", "csv")) == singles()
    missing = here(*ALL, "--set", "words=nouns", "--fresh")
    fails(missing, "no features of 'words-nouns'", stdout=None)


def write_words(folder, name):
    nouns = store.read(folder / "words-nouns.h5")
    write_features(
        folder / f"words-{name}.h5", kind=WORDS, name=f"words-{name}", encoder=nouns.identity,
        source={}, blocks=[nouns.image_features], labels=nouns.labels, sample_ids=[],
        class_names=nouns.class_names, texts=[Text(PROMPT, nouns.texts[PROMPT].features)],
    )  # fmt: skip


def test_of_several_word_lists_one_is_to_be_named(here):
    write_words(here.folder, "verbs")
    result = here(*ALL, "--format", "csv")
    assert methods_of(result) == singles()
    assert "(--set words=NAME)" in result.stderr
    named = here(*ALL, "--set", "words=verbs", "--format", "json")
    assert named.exit_code == 0, named.stderr
    assert {
        record["settings"]["options"]["words"] for record in json.loads(named.stdout)
        if record["settings"]["method"] in BY_WORDS
    } == {"verbs"}  # fmt: skip


def test_an_experiment_and_python_know_it(features, zsntta, tmp_path):
    (tmp_path / "e.toml").write_text(f"""
        features = "{features}"
        records = "kept.sqlite"
        encoder = "made"
        [[runs]]
        methods = ["all", "adand+oga"]
        id = "pets"
        ood = "sky"
        settings = {{ limit = 60 }}
        [[tables]]
        format = "csv"
    """)
    result = zsntta("run", "e.toml")
    assert methods_of(result) == singles() | BY_WORDS | {"adand+oga"}
    assert result.stderr.count("note: all is ") == 1
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        records = zsntta_cli.simulate(
            "all", encoder="made", id_set="pets", ood_set="sky", limit=60, features_dir=features,
            records=tmp_path / "kept.sqlite",
        )  # fmt: skip
    assert {record.settings.method for record in records} == singles() | BY_WORDS
    assert sum("all is" in str(one.message) for one in told) == 1


# Many runs, and Ctrl-C.


@pytest.fixture
def stopped(monkeypatch):
    """Let Ctrl-C come before some run."""

    def at(number):
        plain, runs = Simulator.replay, []

        def replay(self, run, analyse=False):
            runs.append(run)
            if len(runs) == number:
                raise KeyboardInterrupt
            return plain(self, run, analyse)

        monkeypatch.setattr(Simulator, "replay", replay)
        return lambda: monkeypatch.setattr(Simulator, "replay", plain)

    return at


def test_what_is_finished_is_shown_at_ctrl_c(simulate, stopped, tmp_path):
    go_on = stopped(5)
    result = simulate(*ALL, "--format", "csv")
    assert result.exit_code == 130
    assert result.stderr.endswith("what was finished is kept; the same command resumes.\n")
    finished = [row["method"] for row in csv.DictReader(io.StringIO(result.stdout))]
    assert finished == [name for name in METHODS if name in singles() | BY_WORDS][:4]
    go_on()
    again = simulate(*ALL, "--output", "all.csv")
    assert again.exit_code == 0, again.output
    assert f"4 of {len(singles() | BY_WORDS)} runs were kept from before" in again.stderr
    assert (tmp_path / "all.csv").exists()


def test_ctrl_c_of_the_command_itself(features, tmp_path):
    store = tmp_path / "kept.sqlite"
    command = [ZSNTTA, "simulate", *ALL[:-2], "--seed", "0-199", "--encoder", "made",
               "--features-dir", features, "--records", store]  # fmt: skip
    with subprocess.Popen(
        [*map(str, command)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until = time.monotonic() + 60
        while time.monotonic() < until and _count(store) < 3:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "│ zs-clip" in out
    assert err.endswith("interrupted: what was finished is kept; the same command resumes.\n")
    assert 3 <= _count(store) < 200


def _count(store: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            [[count]] = connection.execute("SELECT count(*) FROM contents")
            return int(count)
    except sqlite3.Error:
        return 0
