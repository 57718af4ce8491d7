"""Records that go to another machine: what to type there, what differs, both results."""

import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from feature_files import write_features
from made import TINY, fails

from zsntta_cli.cache import store

RUNS = ("--method", "zs-clip", "--method", "adand", "--ood", "glyphs", "--seed", 0, "--seed", 1)


@pytest.fixture
def recorded(cached):
    """Run the command line beside features and the record of a run on them."""
    result = cached("simulate", *TINY, *RUNS, "--output", "r.json")
    assert result.exit_code == 0, result.output
    return cached


def records():
    return json.loads(Path("r.json").read_text())


def make_elsewhere(nudge=1):
    """The features as a machine with another torch and 8 threads makes them."""
    for name in ("shapes", "glyphs", "noise-gaussian"):
        path = Path("features/tiny", f"{name}.h5")
        old = store.read(path)
        encoder = {
            **old.identity, "threads": 8,
            "versions": {**old.identity["versions"], "torch": "2.13.0"},
        }  # fmt: skip
        rows = (old.image_features.view(np.int16) + nudge).view(np.float16)  # the last bit
        write_features(
            path, kind=old.kind, name=old.name, encoder=encoder, source=old.source, blocks=[rows],
            labels=old.labels, sample_ids=store.read_sample_ids(path), class_names=old.class_names,
            texts=[*old.texts.values()], machine=old.machine,
        )  # fmt: skip


def test_elsewhere_the_command_that_makes_the_features_is_proposed(recorded, tmp_path):
    shutil.rmtree("features/tiny")
    result = recorded("simulate", "--from", "r.json")
    command = "zsntta extract --dataset shapes --dataset glyphs --noise gaussian --model tiny"
    fails(result, f"type {command}\n")
    sizes = ("--limit", 300, "--noise-count", 75, "--batch-size", 50)  # as the record says
    made = recorded(*shlex.split(command)[1:], *sizes)
    assert made.exit_code == 0, made.output
    again = recorded("simulate", "--from", "r.json")
    assert again.exit_code == 0, again.output
    assert "4 of 4 records came out the same" in again.stdout


def test_of_features_of_another_machine_it_is_said_what_differs(recorded):
    identity = store.read(Path("features/tiny/shapes.h5"), rows=False).identity
    torch, threads = identity["versions"]["torch"], identity["threads"]
    make_elsewhere()
    result = recorded("simulate", "--from", "r.json", "--format", "csv")
    assert result.exit_code == 0, result.output
    said = f"versions.torch: {torch} -> 2.13.0; threads: {threads} -> 8.\n"
    assert f"'shapes', 'glyphs', 'noise-gaussian' differ from the record's: {said}" in result.stderr
    Path("r.json").write_text(json.dumps([{**r, "features": {}} for r in records()]))
    assert "does not say how" in recorded("simulate", "--from", "r.json").stdout


def test_old_and_new_stand_side_by_side(recorded):
    make_elsewhere(nudge=60)  # a sixteenth of a feature
    result = recorded("simulate", "--from", "r.json", "--columns", "acc_s",
                      "--format", "markdown")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "'noise-gaussian' differ from the record's: versions.torch" in result.stdout
    assert "0 of 4 records came out the same" in result.stdout
    again = recorded("simulate", *TINY, *RUNS, "--format", "json")
    rows = [
        line.strip("| ").split(" | ") for line in result.stdout.splitlines() if "| glyphs |" in line
    ]
    made = json.loads(again.stdout)
    assert len(rows) == len(made) == 4
    for cells, *both in zip(rows, records(), made, strict=True):
        old, new = (100 * record["accuracies"]["acc_s"] for record in both)
        assert cells[0].startswith(both[0]["settings"]["method"])
        assert [float(cell) for cell in cells[-3:-1]] == pytest.approx([old, new], abs=0.0051)
        assert float(cells[-1]) == pytest.approx(new - old, abs=0.0051)
