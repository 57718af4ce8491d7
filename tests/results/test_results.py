"""Results that are kept: keys, what is taken from the store and what is not, the command."""

import numpy as np
import pytest
from feature_files import write_features
from made import MADE_UP, PROMPT
from replayed import grid, run_all

import zsntta_cli as z
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.methods import METHODS
from zsntta_cli.results.store import Keeping, RecordStore, kept_before
from zsntta_cli.simulation import runs as recorded
from zsntta_cli.simulation.runs import build_run, run_key

PAIR = ("--id", "pets", "--ood", "sky")


# Keys


def test_a_setting_at_its_default_does_not_enter_the_key_and_any_other_value_does():
    def key(**values):
        return run_key(build_run("adand", "e", "i", "o", PROMPT, **values), {}, "1.1")

    assert key() == key(warmup=10) == key(ratio=0.5)
    assert key(learning_rate=1) == key(learning_rate=1.0)
    others = [
        key(warmup=11), key(ratio=0.25), key(seed=1), key(queue=256), key(fixed=0.5), key(limit=9),
    ]  # fmt: skip
    assert len({key(), *others}) == 1 + len(others)


# What is taken from the store


def test_what_is_there_is_not_run_again(features, tmp_path, counted):
    keeping = Keeping(tmp_path / "kept.sqlite")
    first = run_all(features, grid(features, ratio=[0.25]), keeping=keeping)
    assert len(counted) == 1
    both = run_all(features, grid(features, ratio=[0.25, 0.5]), keeping=keeping)
    assert [run.stream.ratio for run in counted] == [0.25, 0.5]
    assert both[0] == first[0]
    again = run_all(features, grid(features, ratio=[0.5, 0.25]), keeping=keeping)
    assert len(counted) == 2
    assert again == both[::-1]


def test_fresh_runs_again_and_takes_the_place_of_the_old(simulate, tmp_path, counted):
    command = ("--method", "adand", *PAIR, "--ratio", 0.25, "--ratio", 0.5)
    first = simulate(*command)
    assert "kept from before" not in first.stderr
    again = simulate(*command)
    assert "2 of 2 runs were kept from before\n" in again.stderr
    assert again.stdout == first.stdout
    assert len(counted) == 2
    fresh = simulate(*command, "--fresh")
    assert "kept" not in fresh.stderr
    assert fresh.stdout == first.stdout
    assert len(counted) == 4
    with RecordStore(tmp_path / "kept.sqlite") as store:
        assert len(store.find()) == 2


def test_another_revision_is_not_taken(features, tmp_path, counted, monkeypatch):
    """A record that another version made, whose method decided otherwise."""
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features, ["zs-clip", "adand"])
    run_all(features, runs, keeping=keeping)
    monkeypatch.setattr(METHODS["adand"], "revision", 2)
    assert [run.method for run in kept_before(features, runs, keeping)] == ["zs-clip"]
    [_, adand] = run_all(features, runs, keeping=keeping)
    assert len(counted) == 3
    assert adand.revision == "1.2"
    with RecordStore(keeping.path) as store:
        assert len(store.find()) == 3, "the old one stays"
    monkeypatch.setattr(recorded, "RULES", 2)
    assert not kept_before(features, runs, keeping)


@pytest.mark.parametrize("change", ["features", "text", "scale", "normalized"])
def test_other_features_of_the_same_name_are_not_taken(features, tmp_path, change):
    """Even where only the text, the scale or a mark differ, which no digest of features shows."""
    root = tmp_path / "features"
    write(root, "pets", "")
    write(root, "sky", "")
    runs = grid(root, noise=["none"])
    keeping = Keeping.beside(root)
    run_all(root, runs, keeping=keeping)
    assert len(kept_before(root, runs, keeping)) == 1
    write(root, "pets", change)
    write(root, "sky", change if change in ("scale", "normalized") else "")
    assert not kept_before(root, runs, keeping)


def write(root, name, change):
    generator = np.random.default_rng(1)
    rows = generator.standard_normal((60, 16))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    text = np.eye(16, dtype=np.float32)[:3]
    write_features(
        root / "made" / f"{name}.h5", kind=DATASET, name=name, source={},
        encoder=MADE_UP | ({"logit_scale": 50.0} if change == "scale" else {}),
        blocks=[(rows[::-1] if change == "features" else rows).astype(np.float32)],
        labels=np.arange(60, dtype=np.int32) % 3, sample_ids=[str(i) for i in range(60)],
        class_names=["cat", "dog", "ox"], normalized=change == "normalized",
        texts=[Text(PROMPT, text[::-1].copy() if change == "text" else text)],
    )  # fmt: skip


# The command


@pytest.fixture
def some(features, tmp_path, zsntta):
    run_all(features, grid(features, ["zs-clip", "adand"], seed=[0, 1]),
            keeping=Keeping(tmp_path / "features" / "records.sqlite"))  # fmt: skip
    return zsntta


@pytest.mark.parametrize("form", ["json", "csv"])
def test_export_in_a_form_of_simulate_gives_what_simulate_gives(some, features, form):
    given = some("records", "export", "--format", form, "--method", "adand").stdout
    simulated = some(
        "simulate", "--encoder", "made", "--features-dir", features, "--method", "adand", *PAIR,
        "--prompt", PROMPT, "--seed", 0, "--seed", 1, "--format", form, "--records",
        "features/records.sqlite",
    )  # fmt: skip
    assert "2 of 2 runs were kept" in simulated.stderr
    assert given == simulated.stdout


def test_kept_runs_are_plain_rows_of_which_a_data_frame_is_made(features, tmp_path):
    pandas = pytest.importorskip("pandas")
    runs = grid(features, ["zs-clip", "adand"], seed=[0, 1])
    made = run_all(features, runs, keeping=Keeping(tmp_path / "kept.sqlite"))
    rows = z.runs(tmp_path / "kept.sqlite")
    frame = pandas.DataFrame(rows)
    assert [row["key"] for row in rows] == [record.key for record in made]
    assert list(frame["acc_h"]) == [record.metric("acc_h") for record in made]
    assert list(frame["seed"]) == [0, 1, 0, 1]
    assert [row["warmup"] for row in rows] == [None, None, 10, 10]
    assert len({tuple(row) for row in rows}) == 1, "all have the same columns"
