"""SQLite files that several processes share: how they are recognised, made and changed."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zsntta_cli.errors import StoreError

WAIT = 60  # seconds for another process's transaction, which takes milliseconds
BATCH = 500  # keys in one query
_PAUSE = 0.05


@dataclass(frozen=True)
class DatabaseKind:
    """A kind of database file: the numbers by which it is recognised, and its tables."""

    application: int  # SQLite's application_id: other programs' databases have another one
    format: int  # goes up when older versions cannot read it
    tables: Mapping[str, str]  # the columns of each table, by its name
    # Statements that bring a file of an older format to the next one, by the older format.
    steps: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def is_made(self, database: sqlite3.Connection, path: Path) -> bool:
        """Whether the database has tables already.

        Raises:
            StoreError: the tables are another program's, or of a newer format.
        """
        with transaction(database, "BEGIN"):  # all three answers are of one moment
            [tables] = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            [application] = database.execute("PRAGMA application_id").fetchone()
            [version] = database.execute("PRAGMA user_version").fetchone()
        if tables and application != self.application:
            raise StoreError(f"{path} is a database of another program.")
        if version > self.format:
            raise StoreError(
                f"{path} is of format {version}, and this version of zsntta reads {self.format}: "
                f"update zsntta."
            )
        return bool(tables)

    def make(self, database: sqlite3.Connection) -> None:
        """Make the tables of a new file; if two processes do so, the second changes nothing."""
        _until_free(database, "PRAGMA journal_mode=WAL")
        with transaction(database):
            for name, columns in self.tables.items():
                database.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
            database.execute(f"PRAGMA application_id={self.application}")
            database.execute(f"PRAGMA user_version={self.format}")

    def bring_up(self, database: sqlite3.Connection) -> None:
        """Bring a file of an older format to this one, whole or not at all, by one process."""
        if self._version(database) == self.format:
            return
        with transaction(database):  # another process may have done it: the version is read again
            for older in range(self._version(database), self.format):
                for statement in self.steps[older]:
                    database.execute(statement)
            database.execute(f"PRAGMA user_version={self.format}")

    def _version(self, database: sqlite3.Connection) -> int:
        [version] = database.execute("PRAGMA user_version").fetchone()
        return int(version)


@contextlib.contextmanager
def transaction(database: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit all that is done within, or roll all of it back if an error is raised."""
    database.execute(begin)
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _until_free(database: sqlite3.Connection, statement: str) -> None:
    """Run a statement again and again for a minute, as SQLite does not wait for its lock."""
    until = time.monotonic() + WAIT
    while True:
        try:
            database.execute(statement)
            return
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
