"""The store: what is in it, old ones, broken ones, several processes, kills."""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import pytest
from made import fails
from replayed import grid, kept_run, merged

from zsntta_cli.errors import StoreError
from zsntta_cli.results import store as store_module
from zsntta_cli.results.exchange import read_lines, to_line
from zsntta_cli.results.executor import run_all
from zsntta_cli.results.keeping import Keeping, kept_before
from zsntta_cli.results.store import KIND, RecordStore

ROOT = Path(__file__).parents[2]
PAIR = ("--id", "pets", "--ood", "sky")


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


def test_a_list_imports_neither_rich_nor_the_schema(features, tmp_path):
    path = tmp_path / "kept.sqlite"
    with RecordStore(path, create=True) as store:
        store.add([kept_run(features)])
    code = """if True:
        import sys
        from zsntta_cli.cli import app
        app(sys.argv[1:], standalone_mode=False)
        heavy = {"rich", "zsntta_cli.results.schema"}
        sys.exit(" ".join(heavy & {*sys.modules}) or 0)
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


def test_a_column_more_needs_no_other_store(old_store, old_runs, monkeypatch):
    class Wider(NamedTuple):
        key: str
        method: Annotated[str, "$.settings.method"]
        precision: Annotated[float | None, "$.flags.precision"]
        regret: Annotated[float | None, "$.flags.regret"]  # which older versions did not measure

    monkeypatch.setattr(store_module, "RunSummary", Wider)
    with RecordStore(old_store) as store:
        found = {run.method: (run.precision, run.regret) for run in store.summaries()}
    wanted = {one.record.settings.method: one.record.flags.precision for one in old_runs}
    assert found == {method: (precision, None) for method, precision in wanted.items()}


def test_an_old_store_is_taken_over_when_it_is_changed(features, old_store, old_runs, zsntta):
    more = kept_run(features, "mcm")
    with RecordStore(old_store) as reader, RecordStore(old_store, create=True) as store:
        store.add([more])
        assert [to_line(kept) for kept in reader.all()] == lines_in(old_store)
    assert lines_in(old_store) == [to_line(kept) for kept in (*old_runs, more)]
    assert format_of(old_store) == (KIND.format, {"contents"})
    removed = zsntta("records", "remove", "--method", "adand", "--records", old_store)
    assert removed.stdout == "removed 1 run\n"
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
        [sys.executable, script, features, "made", "pets", "sky", tmp_path, "50"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kills, part = [int(word) for word in done.stdout.split() if word.isdigit()][:2]
    assert kills >= 50
    assert part >= 5, "kills landed within the work"
