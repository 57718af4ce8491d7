"""What lists show of kept runs, read without NumPy and without a look at the records."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zsntta_cli.errors import StoreError, short
from zsntta_cli.results.database import COLUMNS, opened, readable

NAMES = ("method", "encoder", "id_set", "ood_set")  # columns of names, which come from anywhere


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


def listed(path: Path, **equal: Any) -> list[Line]:
    """The runs of a store, or those with some values, in the order in which they were kept.

    Raises:
        StoreError: there is none, or it is something else.
    """
    with readable(path):
        connection = opened(path, create=False)
        try:
            return lines_of(connection, **equal)
        finally:
            connection.close()


def lines_of(connection: sqlite3.Connection, **equal: Any) -> list[Line]:
    """The runs of an open store."""
    where = " AND ".join(f"{name} IS ?" for name in equal) or "TRUE"
    query = f"SELECT {', '.join(COLUMNS)} FROM runs WHERE {where} ORDER BY rowid"
    values = tuple(plain_text(v) if k in NAMES else v for k, v in equal.items())
    return [Line(*row) for row in connection.execute(query, values)]


def plain_text(name: str | None) -> str | None:
    """A name as SQLite takes it: a file's need be no UTF-8. Records themselves keep it as it is."""
    return None if name is None else name.encode(errors="backslashreplace").decode()


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
