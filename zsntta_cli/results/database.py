"""The SQLite file of a store: what is in it, how it is opened."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from zsntta_cli.cache.databases import WAIT, DatabaseKind
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import check_target

# Columns beside the record are what lists show and choose by.
COLUMNS = (
    "key", "method", "encoder", "id_set", "ood_set", "ratio", "seed", "acc_s", "acc_n", "acc_h",
    "auroc", "fpr95", "seconds", "created",
)  # fmt: skip
CONTENTS = ("key", "record", "curves", "items")  # in a table of their own: lists pass them by
KIND = DatabaseKind(
    0x7A736E74,  # "zsnt"
    1,
    {
        "runs": f"key TEXT PRIMARY KEY, {', '.join(COLUMNS[1:])}",
        "contents": "key TEXT PRIMARY KEY, record TEXT NOT NULL, curves TEXT NOT NULL, items BLOB",
    },
)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a broken file, a full disk or a lock into one line."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"the results in {path}: {first_line(error)}.") from error


def opened(path: Path, create: bool) -> sqlite3.Connection:
    """A connection to a store; `create` makes it, and its folder, where there is none.

    Raises:
        StoreError: there is none, or it is something else.
        OSError, sqlite3.Error: it cannot be opened.
    """
    if check_target(path):
        raise StoreError(f"{path} is no regular file, so it holds no results.")
    if not create and not path.exists():
        raise StoreError(f"there are no kept results at {path}", remedy="simulate")
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    connection = _connected(path, create)
    try:
        _prepare(connection, path, create)
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(path: Path, create: bool) -> sqlite3.Connection:
    """A connection. Where nothing can be written SQLite reads along with whoever writes, if it can.

    Else the file is read as one that nobody changes.
    """
    writable = create or all(os.access(one, os.W_OK) for one in (path, path.parent))
    modes = ("rwc" if create else "rw",) if writable else ("ro", "ro&immutable=1")
    for mode in modes:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, timeout=WAIT, uri=True, isolation_level=None)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            break
        except sqlite3.Error as error:
            connection.close()
            if mode == modes[-1] or not isinstance(error, sqlite3.OperationalError):
                raise
    return connection


def _prepare(database: sqlite3.Connection, path: Path, create: bool) -> None:
    """Refuse what is no store of this format; make one of an empty file."""
    if not KIND.is_made(database, path):
        if create:
            KIND.make(database)
        else:  # its maker was stopped before there was anything in it
            for name, columns in KIND.tables.items():
                database.execute(f"CREATE TEMP TABLE {name} ({columns})")
    database.execute("PRAGMA synchronous=NORMAL")
