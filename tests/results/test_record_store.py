"""The store: what is taken from it, broken ones, places that cannot be written."""

import contextlib
import errno
import os
import random
import sqlite3

import numpy as np
import pytest
from feature_files import write_features
from made import MADE_UP, PROMPT, fails
from replayed import grid, kept_run, run_all

import zsntta_cli as z
from zsntta_cli import databases
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.methods import METHODS
from zsntta_cli.results.store import KIND, Keeping, RecordStore, kept_before
from zsntta_cli.simulation import runs as recorded
from zsntta_cli.simulation.runs import build_run, run_key

PAIR = ("--id", "pets", "--ood", "sky")
SIMULATE = ("simulate", "--encoder", "made", "--method", "zs-clip", *PAIR)


# What is taken from it.


def test_a_setting_at_its_default_does_not_enter_the_key_and_any_other_value_does():
    def key(**values):
        return run_key(build_run("adand", "e", "i", "o", PROMPT, **values), {}, "1.1")

    assert key() == key(warmup=10) == key(ratio=0.5)
    assert key(learning_rate=1) == key(learning_rate=1.0)
    others = {"warmup": 11, "ratio": 0.25, "seed": 1, "queue": 256, "fixed": 0.5, "limit": 9}
    assert len({key(), *(key(**{name: value}) for name, value in others.items())}) == 7


def test_fresh_runs_again_and_takes_the_place_of_the_old(simulate, tmp_path, counted):
    command = ("--method", "adand", *PAIR, "--ratio", 0.25, "--ratio", 0.5)
    first, again = simulate(*command), simulate(*command)
    assert "2 of 2 runs were already kept\n" in again.stderr
    assert (again.stdout, len(counted)) == (first.stdout, 2)
    assert (simulate(*command, "--fresh").stdout, len(counted)) == (first.stdout, 4)
    with RecordStore(tmp_path / "kept.sqlite") as store:
        assert len(store.find()) == 2


def test_another_revision_is_not_taken(features, tmp_path, counted, monkeypatch):
    """A record that another version made, whose method decided otherwise."""
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features, ["zs-clip", "adand"])
    run_all(features, runs, keeping=keeping)
    monkeypatch.setattr(METHODS["adand"], "revision", 2)
    assert [run.method for run in kept_before(features, runs, keeping)] == ["zs-clip"]
    [_, adand] = run_all(features, runs, keeping=keeping)
    assert (len(counted), adand.revision) == (3, "1.2")
    with RecordStore(keeping.path) as store:
        assert len(store.find()) == 3, "the old one stays"
    monkeypatch.setattr(recorded, "RULES", 2)
    assert not kept_before(features, runs, keeping)


@pytest.mark.parametrize("change", ["features", "text", "scale", "normalized"])
def test_other_features_of_the_same_name_are_not_taken(tmp_path, change):
    """Even where only the text, the scale or a mark differ, which no digest of features shows."""
    root = tmp_path / "features"
    write(root, "pets", "")
    write(root, "sky", "")
    runs, keeping = grid(root, noise=["none"]), Keeping.beside(root)
    run_all(root, runs, keeping=keeping)
    assert len(kept_before(root, runs, keeping)) == 1
    write(root, "pets", change)
    write(root, "sky", change if change in ("scale", "normalized") else "")
    assert not kept_before(root, runs, keeping)


def write(root, name, change):
    rows = np.random.default_rng(1).standard_normal((60, 16))
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


@pytest.mark.parametrize("form", ["json", "csv"])
def test_export_in_a_form_of_simulate_gives_what_simulate_gives(simulate, zsntta, form):
    seeds = ("--seed", 0, "--seed", 1)
    simulated = simulate("--method", "adand", *PAIR, *seeds, "--format", form)
    store = ("--records", "kept.sqlite")
    assert zsntta("records", "export", "--format", form, *store).stdout == simulated.stdout


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


# Broken ones.


def test_files_that_are_no_store(tmp_path, zsntta):
    (tmp_path / "text").write_text("no database" * 100)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE runs (key)")
    other.close()
    for path, said in (
        ("none", "there are no kept results at none"), ("text", "text: file is not a database"),
        ("other", "other is another program's database"), ("folder", "it is a folder"),
        ("pipe", "pipe is not a regular file"),
    ):  # fmt: skip
        fails(zsntta("records", "list", "--records", path), said)


def test_a_store_of_another_format_is_left_alone(features, tmp_path, zsntta):
    path = tmp_path / "kept.sqlite"
    with RecordStore(path, create=True):
        pass
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version={KIND.format - 1}")
    before = path.read_bytes()
    for command in (("records", "list"), (*SIMULATE, "--features-dir", features)):
        said = "kept.sqlite was made by another version of zsntta: name another file"
        fails(zsntta(*command, "--records", "kept.sqlite"), said)
    assert path.read_bytes() == before


def test_an_empty_file_is_an_empty_store(features, tmp_path, zsntta):
    """As a maker that was killed at once leaves it."""
    path = tmp_path / "kept.sqlite"
    path.touch()
    listed = ("records", "list", "--format", "csv", "--records", path)
    assert len(zsntta(*listed).stdout.splitlines()) == 1
    assert path.stat().st_size == 0
    run_all(features, grid(features), keeping=Keeping(path))
    assert len(zsntta(*listed).stdout.splitlines()) == 2


def cut(path, _draw):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


def change(path, draw):
    """One letter, or a whole key."""
    column, row = draw.choice(["key", "sums", "record", "record", "curves"]), draw.randrange(1, 4)
    with sqlite3.connect(path) as database:
        query = f"SELECT {column} FROM contents WHERE rowid = ?"
        [text] = database.execute(query, (row,)).fetchone()
        place = draw.randrange(len(text))
        text = text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :]
        changed = (None if column == "key" else text, row)
        database.execute(f"UPDATE contents SET {column} = ? WHERE rowid = ?", changed)
    database.close()


@pytest.mark.parametrize(("damage", "seed"), [(cut, 0), *((change, seed) for seed in range(6))])
def test_a_damaged_store_is_one_line_and_a_damaged_row_is_left_out(
    features, zsntta, tmp_path, damage, seed
):
    path = tmp_path / "kept.sqlite"
    with RecordStore(path, create=True) as store:
        store.add([kept_run(features, method) for method in ("zs-clip", "adand", "mcm")])
    damage(path, random.Random(seed))
    for command in (("records", "list"), ("report",), ("records", "export")):
        result = zsntta(*command, "--records", path)
        if damage is cut:
            fails(result, "the results in", stdout=None)
        else:
            assert result.exit_code == 0, result.stderr
    assert damage is cut or "left out: 1 run " in result.stderr


# Where nothing can be kept.


def test_where_nothing_can_be_kept_results_come_out_all_the_same(features, tmp_path, zsntta):
    (root := tmp_path / "features").mkdir()
    (root / "made").symlink_to(features / "made")
    (root / "records.sqlite").write_text("something else")
    fails(zsntta(*SIMULATE), "the results in features/records.sqlite: file is not a database")
    (root / "records.sqlite").unlink()
    (root / "records.sqlite").symlink_to("/proc/nothing")  # which stops root, too
    result = zsntta(*SIMULATE)
    assert result.exit_code == 0, result.stderr
    assert "note: results are not kept: " in result.stderr
    assert "zs-clip" in result.stdout
    fails(zsntta(*SIMULATE, "--records", "/proc/nothing"), "/proc/nothing")


def test_without_locks_results_come_out_with_what_to_do(features, tmp_path, zsntta, monkeypatch):
    """As on Lustre without -o flock (EOPNOTSUPP), and NFS without its daemon (ENOLCK)."""

    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    (root := tmp_path / "features").mkdir()
    (root / "made").symlink_to(features / "made")
    monkeypatch.setattr(databases.fcntl, "lockf", refuse)
    (tmp_path / "there.sqlite").touch()
    for named in ((), ("--records", "r.sqlite"), ("--records", "there.sqlite")):
        result = zsntta(*SIMULATE, *named)
        assert result.exit_code == 0, result.stderr
        assert "note: results are not kept: " in result.stderr
        assert "--records FILE on a local disk" in result.stderr
        assert "zs-clip" in result.stdout
