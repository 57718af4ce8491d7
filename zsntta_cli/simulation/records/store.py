"""The store of results: one SQLite file, one transaction a run, any number of processes.

A run is in it whole or not at all, whenever its process or the machine stops. WAL with
`synchronous=NORMAL`: a power cut may take the last runs with it, and breaks none.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError, StoreError, first_line, short
from zsntta_cli.files import check_target
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.records.items import Items
from zsntta_cli.simulation.records.kept import Kept
from zsntta_cli.simulation.records.reading import record_from

NAME = "records.sqlite"  # in the features folder
FORMAT = 1  # goes up when older versions cannot read it
_APPLICATION = 0x7A736E74  # "znst": what SQLite keeps to tell a store from a stranger's database
_WAIT = 60  # seconds for another process's transaction, which takes a millisecond
_BATCH = 500  # keys to a query

# Columns beside the record are what lists show and choose by.
_COLUMNS = (
    "key", "method", "encoder", "id_set", "ood_set", "ratio", "seed", "acc_s", "acc_n", "acc_h",
    "auroc", "fpr95", "seconds", "created",
)  # fmt: skip
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS runs (
  key TEXT PRIMARY KEY, {", ".join(_COLUMNS[1:])},
  record TEXT NOT NULL, curves TEXT NOT NULL, items BLOB
)
"""


@dataclass(frozen=True)
class Line:
    """What a list shows of a kept run."""

    key: str
    method: str
    encoder: str
    id_set: str
    ood_set: str | None
    ratio: float
    seed: int
    acc_s: float | None
    acc_n: float | None
    acc_h: float | None
    auroc: float | None
    fpr95: float | None
    seconds: float
    created: str


class RecordStore:
    """The results in one file; open it with `with`, or `close` it."""

    def __init__(self, path: Path, create: bool = False) -> None:
        """Open a store; `create` makes it, and its folder, where there is none.

        Raises:
            StoreError: there is none, or it cannot be opened, or is something else.
        """
        self.path = path
        with self._readable():
            self._connection = self._opened(create)

    def _opened(self, create: bool) -> sqlite3.Connection:
        if check_target(self.path):
            raise StoreError(f"{self.path} is no regular file, so it holds no results.")
        exists = self.path.exists()
        if not exists and not create:
            raise StoreError(f"there are no kept results at {self.path}", remedy="simulate")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        writable = os.access(self.path if exists else self.path.parent, os.W_OK)
        folder_writable = os.access(self.path.parent, os.W_OK)
        mode = "rwc" if create else "rw" if writable and folder_writable else "ro&immutable=1"
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, timeout=_WAIT, uri=True, isolation_level=None)
        try:
            self._checked(connection, create)
        except BaseException:
            connection.close()
            raise
        return connection

    def _checked(self, connection: sqlite3.Connection, create: bool) -> None:
        """Refuse what is no store of this format; make one of an empty file."""
        [application] = connection.execute("PRAGMA application_id").fetchone()
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != _APPLICATION:
            raise StoreError(f"{self.path} is a database of another program.")
        if version > FORMAT:
            raise StoreError(
                f"{self.path} is of format {version}, and this version of zsntta reads {FORMAT}: "
                f"update zsntta."
            )
        if create:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            if not tables:
                connection.execute("BEGIN IMMEDIATE")  # of two that make one, the second waits
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA application_id={_APPLICATION}")
                connection.execute(f"PRAGMA user_version={FORMAT}")
                connection.execute("COMMIT")

    def add(self, runs: Iterable[Kept]) -> None:
        """Keep finished runs, in one transaction; one of an equal key takes the older one's place.

        Items that the older one had, and the newer has not, stay.
        """
        rows = [_row(kept) for kept in runs]
        names = (*_COLUMNS, "record", "curves", "items")
        changes = ", ".join(f"{name}=excluded.{name}" for name in names[1:-1])
        with self._readable(), self._transaction():
            self._connection.executemany(
                f"INSERT INTO runs ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
                f"ON CONFLICT (key) DO UPDATE SET {changes}, "
                f"items=coalesce(excluded.items, items)",
                rows,
            )

    def add_new(self, runs: Sequence[Kept]) -> int:
        """Keep those that are not there, in one transaction; how many were there."""
        there = self.find([kept.key for kept in runs])
        self.add(kept for kept in runs if kept.key not in there)
        return sum(kept.key in there for kept in runs)

    def find(self, keys: Sequence[str]) -> dict[str, Kept]:
        """Kept runs by their keys; those that are not there are left out."""
        found: dict[str, Kept] = {}
        for start in range(0, len(keys), _BATCH):
            some = keys[start : start + _BATCH]
            marks = ", ".join("?" * len(some))
            for key, *content in self._query(f"key IN ({marks})", some):
                if (kept := _kept(content)) is not None:
                    found[key] = kept
        return found

    def all(self) -> Iterator[Kept]:
        """All kept runs that can be read here, in the order in which they were kept."""
        for _, *content in self._query("TRUE", ()):
            if (kept := _kept(content)) is not None:
                yield kept

    def lines(self, **equal: Any) -> list[Line]:
        """What lists show, of all runs or of those with some values; none of a record is read."""
        where = " AND ".join(f"{name} IS ?" for name in equal) or "TRUE"
        query = f"SELECT {', '.join(_COLUMNS)} FROM runs WHERE {where} ORDER BY rowid"
        with self._readable():
            return [Line(*row) for row in self._connection.execute(query, tuple(equal.values()))]

    def remove(self, keys: Sequence[str]) -> None:
        """Take runs out."""
        with self._readable(), self._transaction():
            self._connection.executemany("DELETE FROM runs WHERE key = ?", [(k,) for k in keys])

    def _query(self, where: str, values: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        query = f"SELECT key, record, curves, items FROM runs WHERE {where} ORDER BY rowid"
        with self._readable():
            yield from self._connection.execute(query, tuple(values))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn what SQLite says of a broken file, a full disk or a lock into one line."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"the results in {self.path}: {first_line(error)}.") from error

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> "RecordStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def with_digits(keys: Sequence[str], digits: Sequence[str]) -> list[str]:
    """Those of some keys that begin with some digits; all of them where none are given.

    Raises:
        StoreError: no key begins with them, or several do.
    """
    if not digits:
        return list(keys)
    found = []
    for some in digits:
        meant = [key for key in keys if some and key.startswith(some.lower())]
        if len(meant) != 1:
            how = f"{len(meant):,} keys begin" if meant else "no key begins"
            raise StoreError(f"{how} with '{short(some)}'", remedy="list-records")
        found.append(meant[0])
    return list(dict.fromkeys(found))


def _row(kept: Kept) -> tuple[Any, ...]:
    plain = kept.record.to_dict()
    settings, stream = plain["settings"], plain["settings"]["stream"]
    accuracies, detection = plain["accuracies"], plain["detection"]
    return (
        kept.key, settings["method"], settings["encoder"], settings["id_set"],
        settings["ood_set"], stream["ratio"], stream["seed"], accuracies["acc_s"],
        accuracies["acc_n"], accuracies["acc_h"], detection["auroc"], detection["fpr95"],
        plain["seconds"], plain["created"], json.dumps(plain), json.dumps(kept.curves),
        kept.items.packed() if kept.items else None,
    )  # fmt: skip


def _kept(content: Sequence[Any]) -> Kept | None:
    """A kept run; None where it is of a method or a setting that is not known here."""
    record, curves, items = content
    try:
        made = record_from(json.loads(record))
        return Kept(made, json.loads(curves), _items(made, items))
    except (SettingsError, ValueError, RecursionError):
        return None


def _items(record: Record, packed: bytes | None) -> Items | None:
    tests = record.counts["id"] + record.counts["ood"]
    return None if packed is None else Items.unpacked(packed, tests)
