"""The store: what is in it, broken ones, several processes, kills."""

import dataclasses
import errno
import os
import signal
import sqlite3
from pathlib import Path

from made import fails
from replayed import grid, kept_run, run_all

from zsntta_cli import databases
from zsntta_cli.results.exchange import read_records, to_line
from zsntta_cli.results.store import KIND, Keeping, RecordStore

ROOT = Path(__file__).parents[2]
PAIR = ("--id", "pets", "--ood", "sky")


def test_names_that_are_no_utf_8_are_listed_and_found(features, tmp_path, zsntta):
    path, name = tmp_path / "kept.sqlite", os.fsdecode(b"caf\xe9")
    kept = kept_run(features)
    settings = dataclasses.replace(kept.settings, ood_set=name)
    other = dataclasses.replace(kept, settings=settings)
    with RecordStore(path, create=True) as store:
        store.add([kept, other])
        assert store.find([other.key])[other.key] == other
    assert "caf\\udce9" in zsntta("records", "list", "--records", path).stdout
    lines = tmp_path / "other.jsonl"
    lines.write_text(to_line(other))
    assert read_records(lines)[0] == other


def test_a_kill_at_any_statement_loses_nothing(features, tmp_path):
    kept, more = kept_run(features), kept_run(features, "adand")
    for statements in range(1, 20):
        path = tmp_path / f"{statements}.sqlite"
        with RecordStore(path, create=True) as store:
            store.add([kept])
        child = os.fork()
        if not child:
            add_and_die(path, more, statements)
        _, status = os.waitpid(child, 0)
        with RecordStore(path) as store:
            found = [to_line(one) for one in store.find().values()]
        assert found in ([to_line(kept)], [to_line(kept), to_line(more)]), statements
        if not os.WIFSIGNALED(status):
            break
    assert os.WEXITSTATUS(status) == 0
    assert found == [to_line(kept), to_line(more)]
    assert statements > 3, "BEGIN, the run and COMMIT"


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


def test_files_that_are_no_store(tmp_path, zsntta):
    missing = zsntta("records", "list")
    fails(missing, "there are no kept results at features/records.sqlite", "zsntta simulate")
    (tmp_path / "text").write_text("no database" * 100)
    fails(zsntta("records", "list", "--records", "text"), "in text: file is not a database")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE runs (key)")
    other.close()
    fails(zsntta("records", "list", "--records", "other"), "other is a database of another program")
    (tmp_path / "folder").mkdir()
    fails(zsntta("records", "list", "--records", "folder"), "it is a folder")
    os.mkfifo(tmp_path / "pipe")
    fails(zsntta("records", "list", "--records", "pipe"), "pipe is no regular file")


def test_a_store_of_another_format_is_left_alone(features, tmp_path, zsntta):
    path = tmp_path / "kept.sqlite"
    with RecordStore(path, create=True) as store:
        store._connection.execute(f"PRAGMA user_version={KIND.format - 1}")
    before = path.read_bytes()
    said = "kept.sqlite was made by another version of zsntta: name another file"
    fails(zsntta("records", "list", "--records", "kept.sqlite"), said)
    arguments = ("simulate", "--encoder", "made", "--features-dir", features, "--method", "zs-clip")
    fails(zsntta(*arguments, *PAIR, "--records", "kept.sqlite"), said)
    assert path.read_bytes() == before


def test_an_empty_file_is_an_empty_store(features, tmp_path, zsntta):
    """As a maker that was killed at once leaves it."""
    path = tmp_path / "kept.sqlite"
    path.touch()
    assert (
        len(zsntta("records", "list", "--format", "csv", "--records", path).stdout.splitlines())
        == 1
    )
    assert path.stat().st_size == 0
    run_all(features, grid(features), keeping=Keeping(path))
    assert (
        len(zsntta("records", "list", "--format", "csv", "--records", path).stdout.splitlines())
        == 2
    )


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


def test_without_locks_results_come_out_with_what_to_do(features, tmp_path, zsntta, monkeypatch):
    """As on Lustre without -o flock (EOPNOTSUPP), and NFS without its daemon (ENOLCK)."""

    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    (root := tmp_path / "features").mkdir()
    (root / "made").symlink_to(features / "made")
    command = ("simulate", "--encoder", "made", "--method", "zs-clip", *PAIR)
    monkeypatch.setattr(databases.fcntl, "lockf", refuse)
    result = zsntta(*command)
    assert result.exit_code == 0, result.stderr
    assert "zs-clip" in result.stdout
    assert "note: results are not kept: " in result.stderr
    fails(zsntta(*command, "--records", "r.sqlite"), "cannot lock files", "FILE on a local disk")
