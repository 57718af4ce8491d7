"""SQLite files that several processes share: how they are recognised, created and changed."""

import contextlib
import errno
import fcntl
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli.errors import StoreError

WAIT = 60  # seconds for another process's transaction, which takes milliseconds
BATCH = 500  # keys in one query
_PAUSE = 0.05


@dataclass(frozen=True)
class DatabaseKind:
    """A kind of database file: the numbers that identify it, and its tables."""

    application: int  # SQLite's application_id: other programs' databases have another one
    format: int  # other versions of zsntta have another number
    tables: Mapping[str, str]  # the columns of each table, by its name

    def prepare(self, database: sqlite3.Connection, path: Path, create: bool = True) -> bool:
        """Whether the database has its tables; with `create` they are made if it has none.

        If two processes make them, the second changes nothing.

        Raises:
            StoreError: the tables belong to another program, or have another format.
        """
        with transaction(database, "BEGIN"):  # all three answers are of one moment
            [tables] = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            [application] = database.execute("PRAGMA application_id").fetchone()
            [version] = database.execute("PRAGMA user_version").fetchone()
        if tables and application != self.application:
            raise StoreError(f"{path} is another program's database.")
        if tables and version != self.format:
            raise StoreError(f"{path} was made by another version of zsntta: name another file.")
        if tables or not create:
            return bool(tables)
        until = time.monotonic() + WAIT
        while True:  # SQLite does not wait for the lock of this statement
            try:
                database.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)
        with transaction(database):
            for name, columns in self.tables.items():
                database.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
            database.execute(f"PRAGMA application_id={self.application}")
            database.execute(f"PRAGMA user_version={self.format}")
        return True


def why_no_locks(folder: Path) -> str:
    """Why files in a folder cannot be locked, as SQLite requires; empty if they can.

    Network file systems may lack POSIX locks. SQLite reports a disk error, or waits a minute.
    A folder without write permission is not checked.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        except OSError:
            return ""
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.strerror or errno.errorcode.get(error.errno or 0, "no locks")
    return ""


@contextlib.contextmanager
def transaction(database: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit all changes made within, or roll all of them back if an error is raised."""
    database.execute(begin)
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
