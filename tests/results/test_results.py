"""Results that are kept: keys, the store, what is taken from it and what is not."""

import base64
import contextlib
import dataclasses
import functools
import json
import math
import multiprocessing
import operator
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made import MADE_UP, PROMPT, fails

import zsntta_cli as z
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, Text
from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS, Method
from zsntta_cli.results.curves import BINS, curves_of, drawable_curves, histogram
from zsntta_cli.results.exchange import read_lines, read_recorded, to_line
from zsntta_cli.results.grid import Grid
from zsntta_cli.results.keeping import Keeping, kept_before
from zsntta_cli.results.kept import Kept, KeptItems, kept_of, run_key
from zsntta_cli.results.obtain import run_all
from zsntta_cli.results.schema import json_schema
from zsntta_cli.results.store import KIND, RecordStore
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation import revision
from zsntta_cli.simulation.digests import Foreseen
from zsntta_cli.simulation.metrics import METRICS, Metric
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

ROOT = Path(__file__).parents[2]
PAIR = ("--id", "pets", "--ood", "sky")
SCHEMA = json.loads((ROOT / "docs" / "record.schema.json").read_text())


def grid(features, methods=("zs-clip",), **axes):
    made = EncoderChoice(folder="made")
    return Grid(methods, made, ["pets"], ["sky"], [PROMPT], axes=axes).runs(features)


def kept_run(features, method="zs-clip", with_items=False, **axes):
    [run] = grid(features, [method], **axes)
    return kept_of(Simulator(features).replay(run), with_items)


@pytest.fixture
def counted(monkeypatch):
    """How many runs are really run."""
    runs = []
    plain = Simulator.replay

    def replay(self, run, analyse=False):
        runs.append(run)
        return plain(self, run, analyse)

    monkeypatch.setattr(Simulator, "replay", replay)
    return runs


# Keys


def test_a_setting_at_its_default_does_not_enter_the_key_and_any_other_value_does():
    def key(**values):
        return run_key(build_run("adand", "e", "i", "o", PROMPT, **values), {}, "1.1")

    assert key() == key(warmup=10) == key(ratio=0.5)
    assert key(score_temperature=2) == key(score_temperature=2.0)
    others = [
        key(warmup=11), key(ratio=0.25), key(seed=1), key(queue=256), key(fixed=0.5), key(limit=9),
    ]  # fmt: skip
    assert len({key(), *others}) == 1 + len(others)


def test_digests_revision_and_prompt_enter_the_key():
    run = build_run("adand", "e", "i", "o", PROMPT)
    keys = {
        run_key(run, {"i": "0"}, "1.1"), run_key(run, {"i": "1"}, "1.1"),
        run_key(run, {"i": "0"}, "1.2"), run_key(run, {"j": "0"}, "1.1"),
        run_key(dataclasses.replace(run, prompt="art of a {}."), {"i": "0"}, "1.1"),
    }  # fmt: skip
    assert len(keys) == 5


@pytest.mark.parametrize("method", ["zs-clip", "adand", "tda", "neglabel"])
@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_the_digests_of_a_run_are_known_before_it(features, method, ratio):
    [run] = grid(features, [method], ratio=[ratio])
    assert Foreseen(features).digests(run) == Simulator(features).replay(run).digests


def test_a_run_that_would_fail_has_no_digests(features):
    run = build_run("zs-clip", "made", "pets", "nothing", PROMPT)
    assert Foreseen(features).digests(run) is None
    run = build_run("zs-clip", "made", "pets", "sky", "no such {}.")
    assert Foreseen(features).digests(run) is None


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
        assert len(store.summaries()) == 2


def test_another_revision_is_not_taken(features, tmp_path, counted, monkeypatch):
    """A record that another version made, whose method decided otherwise."""
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features, ["zs-clip", "adand"])
    run_all(features, runs, keeping=keeping)
    monkeypatch.setitem(METHODS, "adand", dataclasses.replace(METHODS["adand"], revision=2))
    assert [run.method for run in kept_before(features, runs, keeping)] == ["zs-clip"]
    [_, adand] = run_all(features, runs, keeping=keeping)
    assert len(counted) == 3
    assert adand.revision == "1.2"
    with RecordStore(keeping.path) as store:
        assert len(store.summaries()) == 3, "the old one stays"
    monkeypatch.setattr(revision, "RULES", 2)
    assert not kept_before(features, runs, keeping)


def test_a_default_that_has_changed_since_gives_no_stale_record(features, tmp_path, monkeypatch):
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features, ["adand"])
    run_all(features, runs, keeping=keeping)
    [run] = runs
    changed = dataclasses.replace(run.options, warmup=20)
    later = dataclasses.replace(run, options=changed)
    fields = {f.name: f for f in dataclasses.fields(changed)}
    monkeypatch.setattr(fields["warmup"], "default", 20)
    digests = Foreseen(features).digests(later)
    with RecordStore(keeping.path) as store:
        assert store.find([run_key(later, digests, "1.1")]), "the key is the same"
    assert not kept_before(features, [later], keeping)


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
    hdf5.write_features(
        root / "made" / f"{name}.h5", kind=DATASET, name=name, source={},
        encoder=MADE_UP | ({"logit_scale": 50.0} if change == "scale" else {}),
        blocks=[(rows[::-1] if change == "features" else rows).astype(np.float32)],
        labels=np.arange(60, dtype=np.int32) % 3, sample_ids=[str(i) for i in range(60)],
        class_names=["cat", "dog", "ox"], normalized=change == "normalized",
        texts=[Text(PROMPT, text[::-1].copy() if change == "text" else text)],
    )  # fmt: skip


def test_a_live_run_that_was_stopped_is_not_kept(features, tmp_path, monkeypatch):
    plain = Simulator.replay
    monkeypatch.setattr(
        Simulator, "replay",
        lambda self, run, analyse: dataclasses.replace(plain(self, run), unfinished=3),
    )  # fmt: skip
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features)
    [record] = run_all(features, runs, keeping=keeping)
    assert record.unfinished == 3
    assert not kept_before(features, runs, keeping)


def test_items_are_kept_where_they_are_asked_for_and_stay(features, tmp_path, counted):
    path, runs = tmp_path / "kept.sqlite", grid(features, ["adand"])
    run_all(features, runs, keeping=Keeping(path))
    assert kept_before(features, runs, Keeping(path))
    assert not kept_before(features, runs, Keeping(path, items=True))
    run_all(features, runs, keeping=Keeping(path, items=True))
    run_all(features, runs, keeping=Keeping(path, fresh=True))
    [kept] = kept_before(features, runs, Keeping(path, items=True)).values()
    assert len(counted) == 3
    replay = Simulator(features).replay(runs[0])
    tests = replay.stream.kind != 2
    assert (kept.items.class_index == replay.decisions.class_index[tests]).all()
    assert (kept.items.is_noise == replay.decisions.is_noise[tests]).all()
    is_id = replay.labels[tests] >= 0
    assert kept.items.is_right[is_id].mean() == kept.record.accuracies.acc_s
    assert kept.items.is_right[~is_id].mean() == kept.record.accuracies.acc_n


def test_a_method_of_ones_own_is_kept_by_its_source_or_not_at_all(features, tmp_path, monkeypatch):
    path = tmp_path / "own.py"
    path.write_text(OWN)
    sys.path.insert(0, str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    import own

    monkeypatch.setitem(METHODS, "own", Method(own.run, own.OwnSettings))
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features, ["own"])
    [record] = run_all(features, runs, keeping=keeping)
    assert record.revision.startswith("1.1+")
    assert kept_before(features, runs, keeping)
    path.write_text(OWN.replace("u > 0.5", "u > 0.6"))
    assert not kept_before(features, runs, keeping)

    made = {}
    exec(OWN, made)  # as in a notebook: no file tells what it was
    monkeypatch.setitem(METHODS, "own", Method(made["run"], made["OwnSettings"]))
    runs = grid(features, ["own"])
    run_all(features, runs, keeping=keeping)
    assert not kept_before(features, runs, keeping)


OWN = """
from dataclasses import dataclass
from zsntta_cli.methods.base import Decisions
from zsntta_cli.settings.options import Settings

@dataclass(frozen=True)
class OwnSettings(Settings):
    pass

def run(data, options, threshold):
    u = data.noise_score
    return Decisions(data.class_index, u > 0.5, 1 - u)
"""


# The store


def test_a_kept_run_comes_back_as_it_was(features, tmp_path):
    some = [kept_run(features, m, with_items=True) for m in ("zs-clip", "adand", "mcm")]
    with RecordStore(tmp_path / "a" / "kept.sqlite", create=True) as store:
        store.add(some)
        found = list(store.all())
    assert [kept.key for kept in found] == [kept.key for kept in some]
    for kept, before in zip(found, some, strict=True):
        assert to_line(kept) == to_line(before)
        assert (kept.items is None) == (kept.record.settings.method == "mcm")


def test_lists_show_values_of_the_records(features, tmp_path):
    kept = kept_run(features, "adand")
    with RecordStore(tmp_path / "kept.sqlite", create=True) as store:
        store.add([kept, kept_run(features, "mcm")])
        [one] = store.summaries(method="adand", ratio=0.5)
        assert not store.summaries(method="tda")
        assert not store.summaries(method="adand", seed=1)
        assert (one.key, one.ratio, one.acc_h) == (kept.key, 0.5, kept.record.accuracies.acc_h)
        [other] = store.summaries(method="mcm")
        assert (other.acc_s, other.created[:2]) == (None, "20")


def test_a_list_imports_neither_numpy_nor_rich(features, tmp_path):
    path = tmp_path / "kept.sqlite"
    with RecordStore(path, create=True) as store:
        store.add([kept_run(features)])
    code = """if True:
        import sys
        from zsntta_cli.cli import app
        app(sys.argv[1:], standalone_mode=False)
        sys.exit(" ".join({"numpy", "rich", "pydantic"} & {*sys.modules}) or 0)
    """
    done = subprocess.run(
        [sys.executable, "-c", code, "records", "--records", path], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "zs-clip" in done.stdout


def test_names_that_are_no_utf_8_are_listed_and_found(features, tmp_path, zsntta):
    path, name = tmp_path / "kept.sqlite", os.fsdecode(b"caf\xe9")
    kept = kept_run(features)
    settings = dataclasses.replace(kept.record.settings, ood_set=name)
    other = dataclasses.replace(kept, record=dataclasses.replace(kept.record, settings=settings))
    with RecordStore(path, create=True) as store:
        store.add([kept, other])
        assert [run.key for run in store.summaries(ood_set=name)] == [other.key]
        assert store.find([other.key])[other.key].record == other.record
    assert "caf\\udce9" in zsntta("records", "--records", path).stdout
    lines = tmp_path / "other.jsonl"
    lines.write_text(to_line(other))
    assert read_lines(lines)[0].record == other.record


@pytest.mark.parametrize(
    "record",
    ["x", "[]", "{}", '{"settings": {"method": 3}}', '{"accuracies": {"acc_h": "0.5"}}',
     '{"settings": {"stream": {"ratio": null}}}', '{"settings": {"stream": {"seed": 1%s}}}',
     '{"seconds": NaN}', '{"counts": {"id": -1}}', '{"digests": [1]}'],
)  # fmt: skip
def test_what_is_no_record_is_passed_over_and_can_be_removed(features, tmp_path, zsntta, record):
    """As a broken disk, or a stranger, leaves it."""
    path, other = tmp_path / "kept.sqlite", kept_run(features, "adand")
    plain = other.record.to_dict()
    if record.startswith('{"'):
        plain = merged(plain, json.loads(record.replace("%s", "0" * 400)))
        record = json.dumps(plain)
    with RecordStore(path, create=True) as store:
        store.add([kept_run(features), other])
        store._connection.execute(
            "UPDATE contents SET record = ? WHERE key = ?", (record, other.key)
        )
        assert [kept.record.settings.method for kept in store.all()] == ["zs-clip"]
        assert {run.method for run in store.summaries()} <= {"zs-clip", "adand"}
    listed = zsntta("records", "--records", path)
    assert listed.exit_code == 0, listed.stderr
    assert zsntta("records", "remove", "--all", "--records", path).stdout == "removed 2 runs\n"


def merged(plain, changes):
    """A tree of objects with some values changed."""
    for name, value in changes.items():
        both = isinstance(value, dict) and isinstance(plain.get(name), dict)
        plain = {**plain, name: merged(plain[name], value) if both else value}
    return plain


# Stores of format 1, as the version before wrote them


COLUMNS_1 = (
    "method", "encoder", "id_set", "ood_set", "ratio", "seed", "acc_s", "acc_n", "acc_h", "auroc",
    "fpr95", "seconds", "created",
)  # fmt: skip
FORMAT_1 = f"""
    PRAGMA journal_mode=WAL;
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, {", ".join(COLUMNS_1)});
    CREATE TABLE IF NOT EXISTS contents (
        key TEXT PRIMARY KEY, record TEXT NOT NULL, curves TEXT NOT NULL, items BLOB
    );
    PRAGMA application_id={0x7A736E74};
    PRAGMA user_version=1;
    COMMIT;
"""


def write_format_1(path, runs):
    """A store as versions up to 0.1 made it, statement by statement."""
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript(FORMAT_1)
    database.execute("BEGIN IMMEDIATE")
    for kept in runs:
        plain = kept.record.to_dict()
        values = {**plain["settings"], **plain["settings"]["stream"], **plain["accuracies"]}
        values |= {**plain["detection"], **plain}
        row = [kept.key, *(values[name] for name in COLUMNS_1)]
        database.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(row))})", row)
        content = kept.key, json.dumps(plain), json.dumps(kept.curves), kept.items.packed()
        database.execute("INSERT INTO contents VALUES (?, ?, ?, ?)", content)
    database.execute("COMMIT")
    database.close()


@pytest.fixture(scope="module")
def old_runs(features):
    return [kept_run(features, m, with_items=True) for m in ("zs-clip", "adand", "tda")]


@pytest.fixture
def old_store(old_runs, tmp_path):
    path = tmp_path / "old.sqlite"
    write_format_1(path, old_runs)
    return path


def format_of(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        tables = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return database.execute("PRAGMA user_version").fetchone()[0], {name for (name,) in tables}


def lines_in(path):
    with RecordStore(path) as store:
        assert [run.key for run in store.summaries()] == store.keys()
        return [to_line(kept) for kept in store.all()]


def test_an_old_store_is_read_as_it_is(old_store, old_runs, zsntta):
    assert lines_in(old_store) == [to_line(kept) for kept in old_runs]
    listed = zsntta("records", "--records", old_store).stdout.splitlines()
    assert [text.split()[1] for text in listed[1:]] == ["zs-clip", "adand", "tda"]
    assert format_of(old_store) == (1, {"runs", "contents"})


def test_an_old_store_is_taken_over_when_it_is_changed(features, old_store, old_runs, zsntta):
    more = kept_run(features, "mcm")
    with RecordStore(old_store) as reader, RecordStore(old_store, create=True) as store:
        store.add([more])
        assert [to_line(kept) for kept in reader.all()] == lines_in(old_store)
    assert lines_in(old_store) == [to_line(kept) for kept in (*old_runs, more)]
    assert format_of(old_store) == (KIND.format, {"contents"})
    removed = zsntta("records", "remove", "--method", "adand", "--records", old_store)
    assert removed.stdout == "removed 1 runs\n"
    assert len(lines_in(old_store)) == 3


def test_runs_of_an_old_store_are_not_run_again(features, tmp_path, old_store, counted):
    runs = grid(features, ["zs-clip", "adand", "tda", "ridge"])
    run_all(features, runs, keeping=Keeping(old_store))
    assert [run.method for run in counted] == ["ridge"]
    assert len(lines_in(old_store)) == 4


def test_an_old_store_that_cannot_be_written_is_read(old_store, old_runs, monkeypatch):
    before = old_store.read_bytes()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert lines_in(old_store) == [to_line(kept) for kept in old_runs]
    with RecordStore(old_store) as store, pytest.raises(StoreError, match="readonly database"):
        store.remove(store.keys())
    assert old_store.read_bytes() == before


def test_a_kill_at_any_statement_of_a_take_over_loses_nothing(features, tmp_path, old_runs):
    more, done = kept_run(features, "mcm"), 0
    for statements in range(1, 20):
        path = tmp_path / f"{statements}.sqlite"
        write_format_1(path, old_runs)
        child = os.fork()
        if not child:
            add_and_die(path, more, statements)
        _, status = os.waitpid(child, 0)
        is_new = format_of(path)[0] == KIND.format
        done += is_new
        wanted = (*old_runs, more) if is_new else old_runs
        assert lines_in(path) == [to_line(kept) for kept in wanted], statements
        if not os.WIFSIGNALED(status):
            break
    assert os.WEXITSTATUS(status) == 0
    assert is_new
    assert statements > 5, "BEGIN, three of the take-over, the run and COMMIT"
    assert done < statements, "some were stopped before"


def add_and_die(path, kept, statements):
    """Keep a run, and be killed when that has come to so many statements."""
    store, seen = RecordStore(path), []

    def count(statement):
        seen.append(statement)
        if len(seen) == statements:
            os.kill(os.getpid(), signal.SIGKILL)

    store._connection.set_trace_callback(count)
    status = 1
    try:
        store.add([kept])
        status = 0
    finally:
        os._exit(status)


def test_processes_take_an_old_store_over_together(features, old_store, old_runs):
    runs = [kept_run(features, "ridge", seed=[seed]) for seed in range(8)]
    fork = multiprocessing.get_context("fork")
    together = fork.Barrier(len(runs))
    children = [fork.Process(target=add_with, args=(old_store, kept, together)) for kept in runs]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert {*lines_in(old_store)} == {to_line(kept) for kept in (*old_runs, *runs)}


def add_with(path, kept, together):
    with RecordStore(path, create=True) as store:
        together.wait()
        store.add([kept])


def test_files_that_are_no_store(tmp_path, zsntta):
    missing = zsntta("records")
    fails(missing, "there are no kept results at features/records.sqlite", "zsntta simulate")
    (tmp_path / "text").write_text("no database" * 100)
    fails(zsntta("records", "--records", "text"), "the results in text: file is not a database")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE runs (key)")
    other.close()
    fails(zsntta("records", "--records", "other"), "other is a database of another program")
    (tmp_path / "folder").mkdir()
    fails(zsntta("records", "--records", "folder"), "it is a folder")
    os.mkfifo(tmp_path / "pipe")
    fails(zsntta("records", "--records", "pipe"), "pipe is no regular file")


def test_a_store_of_a_newer_format_is_left_alone(features, tmp_path, zsntta):
    path = tmp_path / "kept.sqlite"
    with RecordStore(path, create=True) as store:
        store._connection.execute(f"PRAGMA user_version={KIND.format + 1}")
    before = path.read_bytes()
    fails(zsntta("records", "--records", path), f"is of format {KIND.format + 1}", "update zsntta")
    arguments = ("simulate", "--encoder", "made", "--features-dir", features, "--method", "zs-clip")
    fails(zsntta(*arguments, *PAIR, "--records", path), "update zsntta")
    assert path.read_bytes() == before


def test_an_empty_file_is_an_empty_store(features, tmp_path, zsntta):
    """As a maker that was killed at once leaves it."""
    path = tmp_path / "kept.sqlite"
    path.touch()
    assert len(zsntta("records", "--records", path).stdout.splitlines()) == 1
    assert path.stat().st_size == 0
    run_all(features, grid(features), keeping=Keeping(path))
    assert len(zsntta("records", "--records", path).stdout.splitlines()) == 2


def test_a_store_that_is_cut_off_is_one_line(features, tmp_path, zsntta):
    path = tmp_path / "kept.sqlite"
    run_all(features, grid(features, ["adand"], seed=range(9)), keeping=Keeping(path))
    content = path.read_bytes()
    for keep in (0.3, 0.6, 0.9):
        path.write_bytes(content[: int(keep * len(content))])
        fails(zsntta("records", "export", "--records", path), "the results in", stdout=None)


def test_where_nothing_can_be_kept_results_come_out_all_the_same(features, tmp_path, zsntta):
    """A file in the place of the folder stops root, too."""
    root = tmp_path / "features"
    root.mkdir()
    (root / "made").symlink_to(features / "made")
    (root / "records.sqlite").write_text("something else")
    command = ("simulate", "--encoder", "made", "--method", "zs-clip", *PAIR)
    fails(zsntta(*command), "the results in features/records.sqlite: file is not a database")
    (root / "records.sqlite").unlink()
    (root / "records.sqlite").symlink_to("/proc/nothing")
    result = zsntta(*command)
    assert result.exit_code == 0, result.stderr
    assert "note: results are not kept: " in result.stderr
    assert "zs-clip" in result.stdout
    named = zsntta(*command, "--records", "/proc/nothing")
    fails(named, "/proc/nothing")


def test_processes_share_a_store(features, tmp_path):
    path, runs = tmp_path / "kept.sqlite", grid(features, ["zs-clip", "adand"], seed=range(4))
    children = [
        multiprocessing.get_context("fork").Process(
            target=run_all, args=(features, runs), kwargs={"keeping": Keeping(path)}
        )
        for _ in range(4)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert len(kept_before(features, runs, Keeping(path))) == 8


def test_jobs_keep_each_run_when_it_is_finished(features, tmp_path):
    keeping = Keeping(tmp_path / "kept.sqlite", items=True)
    runs = grid(features, ["zs-clip", "adand"], seed=[*range(5)])
    made = run_all(features, runs, jobs=2, keeping=keeping)
    before = kept_before(features, runs, keeping)
    assert [before[run].record for run in runs] == made


@pytest.mark.slow
def test_kills_lose_nothing_and_make_nothing_wrong(features, tmp_path):
    script = ROOT / "tests" / "whole" / "kill_results.py"
    done = subprocess.run(
        [sys.executable, script, features, "made", "pets", "sky", tmp_path, "200"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kills, part = [int(word) for word in done.stdout.split() if word.isdigit()][:2]
    assert kills >= 200
    assert part >= 10, "kills landed within the work"


# Curves and items


def test_curves_of_a_stream_by_hand(features):
    replay = Simulator(features).replay(grid(features, ["adand"], ratio=[0.25])[0])
    small = dataclasses.replace(replay, stream=stream_of("IOIXO"), decisions=decided())
    curves = curves_of(small)
    assert curves["running"]["item"] == [1, 2, 3, 4]
    right = small.labels[[0, 2]] == 1
    assert curves["running"]["acc_n"] == [None, 1.0, 1.0, 0.5]
    assert curves["running"]["acc_s"] == [0.0, 0.0, pytest.approx(right[1] / 2), right[1] / 2]
    assert curves["thresholds"] == {"item": [1, 2, 3, 4], "zero_shot": [0.5, 0.5, 0.25, 0.5]}
    assert sum(curves["scores"]["id"]) == sum(curves["scores"]["ood"]) == 2
    assert curves["scores"]["id"][5] == 1, "0.1 of 50 cells"


def stream_of(kinds):
    from zsntta_cli.simulation.stream import Stream

    return Stream(np.array(["IOX".index(k) for k in kinds], np.int8), np.zeros(5, np.int64))


def decided():
    from zsntta_cli.methods.base import Decisions

    return Decisions(
        np.array([1, 0, 1, 0, 0], np.int32), np.array([True, True, False, True, False]),
        np.array([0.1, 0.2, 0.9, 0.0, 1.0]), np.array([0.5, 0.5, 0.75, 0.9, 0.5]),
    )  # fmt: skip


FLAT = {"item": [1, 2], "acc_s": [0.5, None], "acc_n": [None, 1]}
SCORES = {"low": 0, "high": 1.0, "id": [1, 2], "ood": [0, 3]}


def test_curves_of_a_run_can_be_drawn(features):
    [run] = grid(features, ["adand"])
    curves = curves_of(Simulator(features).replay(run))
    assert drawable_curves(curves) == curves


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ({}, ["acc_s", "acc_n"]), ({"acc_s": [0.5]}, ["acc_n"]), ({"acc_n": [True, 1]}, ["acc_s"]),
        ({"acc_s": None, "x": [1, 2]}, ["acc_n"]), ({"acc_s": [math.nan, 1]}, ["acc_n"]),
        ({"acc_s": [10**400, 1]}, ["acc_n"]), ({"acc_s": "ab", "acc_n": ["<b>", 1]}, []),
        ({"item": [2, 1]}, []), ({"item": [1, 1]}, []), ({"item": [1, None]}, []),
        ({"item": [], "acc_s": [], "acc_n": []}, []), ({"item": "ab"}, []),
    ],
)  # fmt: skip
def test_columns_that_are_none_are_not_drawn(change, columns):
    curves = drawable_curves({"running": FLAT | change, "thresholds": 3, "scores": SCORES, "x": 1})
    assert [*curves.get("running", {})] == (["item", *columns] if columns else [])
    assert curves.pop("scores") == SCORES
    assert curves.keys() <= {"running"}


@pytest.mark.parametrize(
    "change",
    [
        {"ood": None}, {"id": [None, 1]}, {"id": [1.5, 2]}, {"id": [-1, 2]}, {"id": [1, 2, 3]},
        {"id": [1], "ood": [1]}, {"low": 1.0}, {"low": math.nan}, {"high": None}, {"high": "1"},
        {"id": [True, 1]}, {"low": [0]},
    ],
)  # fmt: skip
def test_half_a_histogram_is_not_drawn(change):
    curves = dict.fromkeys(("scores", "before", "difference"), SCORES | change)
    assert drawable_curves(curves) == {}
    assert drawable_curves({"before": SCORES}) == {"before": SCORES}


def test_a_histogram_of_scores_beyond_0_and_1_has_their_range():
    found = histogram(np.array([-3.0, 7.0, 2.0]), np.array([True, False, False]))
    assert (found["low"], found["high"]) == (-3, 7)
    assert found["id"][0] == found["ood"][BINS - 1] == found["ood"][BINS // 2] == 1
    equal = histogram(np.full(4, 30.0), np.ones(4, bool))
    assert sum(equal["id"]) == 4
    assert sum(histogram(np.empty(0), np.ones(0, bool))["id"]) == 0


@given(st.lists(st.tuples(st.integers(0, 2**16 - 1), st.booleans(), st.booleans())))
def test_items_come_back_in_three_bytes_each(rows):
    columns = [np.array(c) for c in zip(*rows, strict=True)] or [np.empty(0)] * 3
    items = KeptItems(
        columns[0].astype(np.uint16), columns[1].astype(bool), columns[2].astype(bool)
    )
    packed = items.packed()
    assert len(packed) <= 3 * len(items) + 16
    again = KeptItems.unpacked(packed, len(items))
    for name in ("class_index", "is_noise", "is_right"):
        assert (getattr(again, name) == getattr(items, name)).all()
    with pytest.raises(StoreError, match="they are not"):
        KeptItems.unpacked(packed, len(items) + 1)


# JSON Lines


@pytest.fixture(scope="module")
def exported(features):
    return [kept_run(features, m, with_items=True) for m in ("zs-clip", "adand", "mcm", "tda")]


@pytest.fixture(scope="module")
def a_line(exported):
    return to_line(exported[1])


def test_the_published_schema_is_that_of_the_reader():
    assert json_schema() == SCHEMA, "python tools/record_schema.py writes it anew"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_lines_follow_the_schema_and_come_back(exported, tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(to_line(kept) for kept in exported))
    for text in path.read_text().splitlines():
        jsonschema.validate(json.loads(text), SCHEMA)
    again = read_lines(path)
    assert [to_line(kept) for kept in again] == [to_line(kept) for kept in exported]


WRONG = [
    ({"format": 2}, "format is 2, must be 1"),
    ({"record": None}, "record is null, must be an object"),
    ({"record": {}}, "settings is missing"),
    ({"record": {"accuracies": {"acc_h": "0.5"}}}, "accuracies.acc_h is '0.5', must be a number"),
    ({"record": {"accuracies": {"acc_h": True}}}, "accuracies.acc_h is true, must be a number"),
    ({"record": {"flags": {"flagged": math.nan}}}, "flags.flagged is nan, must be"),
    ({"record": {"counts": {"ood": -1}}}, "counts.ood is -1, must be greater than or equal to 0"),
    ({"record": {"memory": 2.5}}, "memory is 2.5, must be a whole number"),
    ({"record": {"memory": 10**30}}, "memory is 10"),
    ({"record": {"unfinished": 3}}, "unfinished is 3, must be 0"),
    ({"record": {"digests": {"pets": ["x"]}}}, "digests.pets is a list, must be a text"),
    ({"record": {"settings": {"id_set": "../x"}}}, "id_set is '../x', which cannot be"),
    ({"record": {"settings": {"stream": {"ratio": 2}}}}, "ratio is 2, must be in [0, 1)"),
    ({"record": {"settings": {"options": {"speed": 2}}}}, "'speed' is no setting of options"),
    ({"curves": {"scores": [1]}}, "curves.scores is a list, must be an object"),
    ({"curves": {"x": {}}}, "curves.x is not known"),
    ({"curves": {"running": {"item": [1, 2], "acc_s": ["<img>", 1]}}},
     "curves.running.acc_s.0 is '<img>', must be a number"),
    ({"curves": {"running": {"item": [1, 2], "acc_s": [0.5], "acc_n": [0.5, None]}}},
     "curves.running is an object, must be lists of one length"),
    ({"items": 3}, "items is 3, must be a text"),
    ({"items": "no base64!"}, "items are no base64"),
    ({"items": base64.b64encode(b"no zlib").decode()}, "the kept items of a run are broken"),
]  # fmt: skip


BARE = [{"record": {}}]  # in the place of the record, and not merged with it
UNTYPED = (
    "id_set",
    "ratio",
    "speed",
    "base64",
    "broken",
    "length",
    "nan",
)  # what JSON Schema cannot say


@pytest.mark.parametrize(("change", "words"), WRONG, ids=range(len(WRONG)))
def test_lines_of_strangers_are_refused_by_their_number(exported, tmp_path, change, words):
    plain = json.loads(to_line(exported[1]))
    plain = {**plain, **change} if change in BARE else merged(plain, change)
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{to_line(exported[0])}\n{json.dumps(plain)}\n")
    with pytest.raises(StoreError) as refused:
        read_lines(path)
    assert str(refused.value).startswith(f"{path} holds no results (line 2: {words}")
    assert "\n" not in str(refused.value)
    if not any(word in words for word in UNTYPED):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(plain, SCHEMA)


def test_a_record_of_an_older_version_lacks_some(exported, tmp_path):
    plain = json.loads(to_line(exported[1]))
    lacking = ("flags", "repeated", "seconds", "created", "unfinished", "revision", "memory")
    for name in (*lacking, "device"):
        del plain["record"][name]
    del plain["record"]["detection"]["aupr"], plain["record"]["settings"]["stream"]["order"]
    path = tmp_path / "old.jsonl"
    path.write_text(json.dumps({"record": plain["record"]}))
    [kept] = read_lines(path)
    assert kept.record.accuracies == exported[1].record.accuracies
    assert math.isnan(kept.record.detection.aupr)
    assert math.isnan(kept.record.flags.precision)
    assert (kept.curves, kept.items, kept.record.revision) == ({}, None, "")
    assert kept.record.settings == exported[1].record.settings


def test_what_a_newer_version_measures_stays_in_a_record(exported, tmp_path):
    plain = json.loads(to_line(exported[1]))
    plain["record"]["flags"]["regret"] = 0.25
    plain["record"]["weather"] = {"sun": 3}
    path, store_path = tmp_path / "new.jsonl", tmp_path / "kept.sqlite"
    path.write_text(json.dumps(plain))
    with RecordStore(store_path, create=True) as store:
        store.add(read_lines(path))
        [kept] = store.all()
    assert kept.record.to_dict()["flags"] == plain["record"]["flags"]


def test_a_metric_more_is_in_records_store_and_lines(features, tmp_path, monkeypatch):
    line = Metric("halves", "Halves", "flags", lambda samples: 0.5, ())
    old = kept_run(features, "adand")
    monkeypatch.setitem(METRICS, "halves", line)
    new, path = kept_run(features, "zs-clip"), tmp_path / "runs.jsonl"
    with RecordStore(tmp_path / "kept.sqlite", create=True) as store:
        store.add([old, new])
        path.write_text("".join(f"{to_line(kept)}\n" for kept in store.all()))
    jsonschema.validate(json.loads(path.read_text().splitlines()[1]), SCHEMA)
    first, second = (kept.record.flags.halves for kept in read_lines(path))
    assert math.isnan(first)
    assert second == 0.5


PLAIN = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9),
        st.sampled_from([10**400, 2**62, "\ud800", "pets", "adand", [[]] * 3]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)  # fmt: skip


@pytest.mark.parametrize("read", [read_lines, read_recorded])
@given(value=PLAIN, where=st.integers(0, 999))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_value_at_any_place_is_a_run_or_one_line(a_line, tmp_path, read, value, where):
    plain = json.loads(a_line)
    path = tmp_path / "runs.jsonl"
    paths = list(places(plain))
    *names, last = paths[where % len(paths)]
    functools.reduce(operator.getitem, names, plain)[last] = value
    path.write_text(json.dumps(plain))
    assert len(words_against(read, path)) < 400 + len(str(path))


def places(tree, before=()):
    """The paths of all values of a tree of objects."""
    for name, value in tree.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from places(value, (*before, name))


def words_against(read, path):
    """By which a file is refused; none against one that is read, and can be written again."""
    try:
        runs = read(path)
    except StoreError as error:
        return str(error)
    return "".join("" if to_line(kept) else "?" for kept in runs if read is read_lines)


def test_two_peoples_stores_merge_and_other_features_stay_apart(features, tmp_path, zsntta):
    kept = {"records": kept_run(features, "zs-clip"), "more": kept_run(features, "adand")}
    theirs = dataclasses.replace(kept["more"].record, digests={"pets": "0" * 64, "sky": "1" * 64})
    both = [kept["more"], Kept(theirs, kept["more"].curves)]
    Path("theirs.jsonl").write_text("".join(f"{to_line(one)}\n" for one in both))
    with RecordStore(Path("mine.sqlite"), create=True) as store:
        store.add(kept.values())
    result = zsntta("records", "import", "theirs.jsonl", "--records", "mine.sqlite")
    assert result.stdout == "theirs.jsonl: 2 runs, 1 of them were there\n"
    runs = grid(features, ["zs-clip", "adand"])
    taken = kept_before(features, runs, Keeping(Path("mine.sqlite")))
    assert taken[runs[1]].record.digests == kept["more"].record.digests
    with RecordStore(Path("mine.sqlite")) as store:
        assert len(store.summaries()) == 3


def test_runs_of_methods_that_are_not_known_here_are_left_out(exported, tmp_path, zsntta):
    plain = json.loads(to_line(exported[0]))
    plain["record"]["settings"]["method"] = "theirs"
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(plain) + "\n" + to_line(exported[1]))
    result = zsntta("records", "import", path)
    assert "1 runs of methods that are not known here are left out: theirs" in result.stderr
    assert "1 runs, 0 of them were there" in result.stdout


# The command


@pytest.fixture
def some(features, tmp_path, zsntta):
    run_all(features, grid(features, ["zs-clip", "adand"], seed=[0, 1]),
            keeping=Keeping(tmp_path / "features" / "records.sqlite"))  # fmt: skip
    return zsntta


def test_list_has_a_line_a_run(some):
    lines = some("records").stdout.splitlines()
    assert lines[0].split()[:6] == ["Key", "Method", "ID", "OOD", "Noise", "Seed"]
    assert [one.split()[1] for one in lines[1:]] == ["zs-clip", "zs-clip", "adand", "adand"]
    only = some("records", "list", "--method", "adand").stdout.splitlines()
    assert [one.split() for one in only] == [one.split() for one in (lines[0], *lines[3:])]


def test_show_says_everything_by_the_first_digits_of_a_key(some):
    key = some("records").stdout.splitlines()[3].split()[0]
    text = some("records", "show", key).stdout
    for part in ("adand", "warmup = 10", "acc_h = ", "text/pets = ", "python = ", "not kept"):
        assert part in text
    fails(some("records", "show", "xyz"), "no key begins with 'xyz'", "zsntta records list")


def test_export_as_json_gives_what_simulate_gives(some, features):
    given = some("records", "export", "--format", "json", "--method", "adand").stdout
    simulated = some(
        "simulate", "--encoder", "made", "--features-dir", features, "--method", "adand", *PAIR,
        "--prompt", PROMPT, "--seed", 0, "--seed", 1, "--format", "json", "--records",
        "features/records.sqlite",
    )  # fmt: skip
    assert "2 of 2 runs were kept" in simulated.stderr
    assert given == simulated.stdout


def test_remove_wants_to_know_which(some):
    fails(some("records", "remove"), "say which", code=2)
    assert some("records", "remove", "--method", "adand").stdout == "removed 2 runs\n"
    assert len(some("records").stdout.splitlines()) == 3
    assert some("records", "remove", "--all").stdout == "removed 2 runs\n"


def test_the_python_api_keeps_and_takes(features, tmp_path, counted):
    call = {"encoder": "made", "id_set": "pets", "ood_set": "sky", "features_dir": features,
            "records": tmp_path / "kept.sqlite"}  # fmt: skip
    one = z.simulate("zs-clip", **call)
    assert z.simulate("zs-clip", **call) == one
    assert len(counted) == 1
    z.simulate("zs-clip", **call, fresh=True)
    assert len(counted) == 2
