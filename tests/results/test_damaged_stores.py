"""A store that was damaged: what is broken is left out and counted, without a traceback."""

import json
import random
import shutil
import sqlite3

import pytest
from replayed import kept_run

from zsntta_cli.results.store import RecordStore

VALUES = (
    None, 7, -1.5, 1e300, 2**62, "", "x", "\ud7ff", "null", "[]", "{}", "[[1]]", b"", b"\xff{",
    '{"settings": 3}', '{"a": "\\ud800"}', "9" * 400, "[" * 2000,
)  # fmt: skip
PLAIN = (None, 7, -1, 1e300, "x", "\ud800", [], [1, "a"], {}, {"a": [1]}, True, float("nan"))
COMMANDS = (
    ("records", "list"), ("records", "list", "--format", "csv"), ("records", "export"), ("report",),
    ("report", "--format", "csv"), ("cite", "--from", "kept.sqlite"),
    ("plot", "curves", "--output", "f.svg"),
)  # fmt: skip


def places(plain, before=()):
    """All places within a JSON value."""
    inner = plain.items() if isinstance(plain, dict) else enumerate(plain)
    for name, value in inner:
        yield (*before, name)
        if isinstance(value, dict | list):
            yield from places(value, (*before, name))


def damaged(text, draw):
    """A JSON text with one place dropped or replaced, or cut."""
    if draw.random() < 0.1:
        return text[: draw.randrange(len(text))]
    plain = json.loads(text)
    *way, last = draw.choice(list(places(plain)))
    inner = plain
    for name in way:
        inner = inner[name]
    if draw.random() < 0.3:
        del inner[last]
    else:
        inner[last] = draw.choice(PLAIN)
    return json.dumps(plain)


@pytest.fixture(scope="module")
def stored(features, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "kept.sqlite"
    with RecordStore(path, create=True) as store:
        store.add([kept_run(features, m) for m in ("zs-clip", "adand", "mcm")])
    return path


def damage(path, draw):
    """One damage to one row: of a whole column, or of one place of its JSON."""
    database = sqlite3.connect(path)
    database.executescript(
        "CREATE TABLE other (key, record, curves); INSERT INTO other SELECT * FROM contents;"
        "DROP TABLE contents; ALTER TABLE other RENAME TO contents;"
        "CREATE UNIQUE INDEX one ON contents (key);"
    )
    row, column = draw.randrange(1, 4), draw.choice(["key", "record", "record", "curves"])
    if column in ("record", "curves") and draw.random() < 0.8:
        query = f"SELECT {column} FROM contents WHERE rowid = ?"
        value = damaged(database.execute(query, (row,)).fetchone()[0], draw)
    else:
        value = draw.choice(VALUES)
    database.execute(f"UPDATE contents SET {column} = ? WHERE rowid = ?", (value, row))
    database.commit()
    database.close()


@pytest.mark.parametrize("seed", range(12))
def test_no_damage_of_a_store_gives_a_traceback(zsntta, stored, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(stored, tmp_path / "kept.sqlite")
    draw = random.Random(seed)
    damage(tmp_path / "kept.sqlite", draw)
    for command in draw.sample(COMMANDS, 5):
        records = () if command[0] == "cite" else ("--records", "kept.sqlite")
        result = zsntta(*command, *records)
        assert "Traceback" not in result.stderr
        assert isinstance(result.exception, SystemExit | None), (command, result.exception)
