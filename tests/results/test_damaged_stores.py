"""A store that was damaged: what is broken is left out and counted, without a traceback."""

import random
import shutil
import sqlite3

import pytest
from replayed import kept_run

from zsntta_cli.results.store import RecordStore

VALUES = (None, 7, -1.5, 2**62, "", "x", "[]", "{}", '{"settings": 3}', b"", b"\xff{", "[" * 2000)
COMMANDS = (
    ("records", "list"), ("records", "list", "--format", "csv"), ("records", "export"), ("report",),
    ("cite", "--from", "kept.sqlite"), ("plot", "curves", "--output", "f.svg"),
)  # fmt: skip


@pytest.fixture(scope="module")
def stored(features, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "kept.sqlite"
    with RecordStore(path, create=True) as store:
        store.add([kept_run(features, m) for m in ("zs-clip", "adand", "mcm")])
    return path


def damage(path, draw):
    """One damage to one row: another value, or one letter of a text."""
    row, column = draw.randrange(1, 4), draw.choice(["sums", "record", "record", "curves"])
    with sqlite3.connect(path) as database:
        query = f"SELECT {column} FROM contents WHERE rowid = ?"
        [text] = database.execute(query, (row,)).fetchone()
        place = draw.randrange(len(text))
        other = "0" if text[place] != "0" else "1"
        changed = text[:place] + other + text[place + 1 :]
        value = changed if draw.random() < 0.6 else draw.choice(VALUES)
        database.executescript(
            "CREATE TABLE other AS SELECT * FROM contents; DROP TABLE contents;"
            "ALTER TABLE other RENAME TO contents; CREATE UNIQUE INDEX one ON contents (key);"
        )
        database.execute(f"UPDATE contents SET {column} = ? WHERE rowid = ?", (value, row))
    database.close()


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_row_is_left_out_without_a_traceback(zsntta, stored, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(stored, tmp_path / "kept.sqlite")
    draw = random.Random(seed)
    damage(tmp_path / "kept.sqlite", draw)
    with RecordStore(tmp_path / "kept.sqlite") as store:
        assert (len(store.find()), store.count()) == (2, 3)
    for command in draw.sample(COMMANDS, 3):
        records = () if command[0] == "cite" else ("--records", "kept.sqlite")
        result = zsntta(*command, *records)
        assert "Traceback" not in result.stderr
        assert isinstance(result.exception, SystemExit | None), (command, result.exception)
