"""The store of results: one SQLite file, one transaction a run, any number of processes.

A run is in it whole or not at all, whenever its process or the machine stops. WAL with
`synchronous=NORMAL`: a power cut may take the last runs with it, and breaks none.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from zsntta_cli.cache.databases import BATCH, transaction
from zsntta_cli.errors import SettingsError
from zsntta_cli.results.database import COLUMNS, CONTENTS, KIND, opened, readable
from zsntta_cli.results.items import Items
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.lines import NAMES, Line, lines_of, plain_text
from zsntta_cli.results.reading import record_from
from zsntta_cli.simulation.record import Record


class RecordStore:
    """The results in one file; open it with `with`, or `close` it."""

    def __init__(self, path: Path, create: bool = False) -> None:
        """Open a store; `create` makes it, and its folder, where there is none.

        Raises:
            StoreError: there is none, or it cannot be opened, or is something else.
        """
        self.path = path
        with readable(path):
            self._connection = opened(path, create)

    def add(self, runs: Iterable[Kept]) -> None:
        """Keep finished runs, in one transaction; one of an equal key takes the older one's place.

        Items that the older one had, and the newer has not, stay.
        """
        rows = [_row(kept) for kept in runs]
        lines, contents = [row[0] for row in rows], [row[1] for row in rows]
        with readable(self.path), transaction(self._connection):
            self._connection.executemany(_upsert("runs", COLUMNS), lines)
            self._connection.executemany(_upsert("contents", CONTENTS), contents)

    def add_new(self, runs: Sequence[Kept]) -> int:
        """Keep those that are not there, in one transaction; how many were there."""
        there = {one.key for one in self.lines()}
        new = {kept.key: kept for kept in runs if kept.key not in there}
        self.add(new.values())
        return len(runs) - len(new)

    def find(self, keys: Sequence[str]) -> dict[str, Kept]:
        """Kept runs by their keys; those that are not there are left out."""
        found: dict[str, Kept] = {}
        for start in range(0, len(keys), BATCH):
            some = keys[start : start + BATCH]
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
        with readable(self.path):
            return lines_of(self._connection, **equal)

    def remove(self, keys: Sequence[str]) -> None:
        """Take runs out."""
        with readable(self.path), transaction(self._connection):
            for table in KIND.tables:
                delete = f"DELETE FROM {table} WHERE key = ?"
                self._connection.executemany(delete, [(key,) for key in keys])

    def _query(self, where: str, values: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        query = f"SELECT {', '.join(CONTENTS)} FROM contents WHERE {where} ORDER BY rowid"
        with readable(self.path):
            yield from self._connection.execute(query, tuple(values))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> "RecordStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _upsert(table: str, columns: Sequence[str]) -> str:
    """A row in the place of the one of its key; items that are not given stay as they were."""
    changes = [
        f"{name}=coalesce(excluded.{name}, {name})"
        if name == "items"
        else f"{name}=excluded.{name}"
        for name in columns[1:]
    ]
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT (key) DO UPDATE SET {', '.join(changes)}"
    )


def _row(kept: Kept) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """A run's row of each table."""
    key, plain = kept.key, kept.record.to_dict()
    settings, stream = plain["settings"], plain["settings"]["stream"]
    accuracies, detection = plain["accuracies"], plain["detection"]
    line = (
        key, *(plain_text(settings[name]) for name in NAMES), stream["ratio"], stream["seed"],
        accuracies["acc_s"], accuracies["acc_n"], accuracies["acc_h"], detection["auroc"],
        detection["fpr95"], plain["seconds"], plain["created"],
    )  # fmt: skip
    items = kept.items.packed() if kept.items else None
    return line, (key, json.dumps(plain), json.dumps(kept.curves), items)


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
