"""Claims in the store: which process computes which live run, so that none is computed twice.

A claim is made in a transaction that also sees which runs are finished, so several processes, also
on machines that share the store's file system, each take another run. Over NFS this needs locks
that work, which SQLite's WAL does not promise between machines.

A claim whose process has died is free at once on the same machine. On another machine it is free
after its heartbeat has not changed for a minute by the clock of the process that waits, so the
clocks need not agree.
"""

import contextlib
import os
import secrets
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from zsntta_cli.errors import StoreError
from zsntta_cli.files import sweep
from zsntta_cli.results.store import RecordStore

_TABLE = (
    "claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, pid INTEGER NOT NULL, host TEXT NOT NULL, "
    "heartbeat REAL NOT NULL)"
)
_BEAT, _LOST = 10.0, 60.0  # seconds


class Taken(NamedTuple):
    """The run that a process computes next."""

    key: str | None  # of a run that is its own now; None where others are at work on all
    finished: dict[str, float]  # the seconds of runs that the store has now


class Claims:
    """The claims of one process; `before` are the runs to compute that the store already has."""

    def __init__(self, path: Path, before: Mapping[str, float]) -> None:
        """`before`: the seconds of those runs by key, which tell a new record from the old one.

        Raises:
            StoreError: the store cannot be opened or written.
        """
        self._path, self._before = path, dict(before)
        self._owner, self._host = secrets.token_hex(8), _host()
        self._beats: dict[tuple[str, str], tuple[float, float]] = {}  # seen of others, since when
        self._store = RecordStore(path, create=True)
        with self._store.changing() as database:
            database.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE}")

    def take(self, keys: Sequence[str]) -> Taken:
        """Claim the first run that is neither finished nor claimed."""
        with self._store.changing() as database:
            self._drop_lost(database)
            seconds = self._store.seconds(keys)
            finished = {k: v for k, v in seconds.items() if v != self._before.get(k)}
            claimed = {key for (key,) in database.execute("SELECT key FROM claims")}
            free = (key for key in keys if key not in finished.keys() | claimed)
            if (key := next(free, None)) is not None:
                claim = (key, self._owner, os.getpid(), self._host, time.time())
                database.execute("INSERT INTO claims VALUES (?, ?, ?, ?, ?)", claim)
        return Taken(key, finished)

    def make_again(self, key: str, seconds: float) -> None:
        """Treat a finished run as one to compute until its new record is there."""
        self._before[key] = seconds

    @contextlib.contextmanager
    def held(self, key: str) -> Iterator[None]:
        """Keep a claim alive within the context, and free it at the end."""
        ended = threading.Event()
        thread = threading.Thread(target=self._beat, args=(key, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            with contextlib.suppress(StoreError), self._store.changing() as database:
                self._end(database, key, self._owner)

    def _beat(self, key: str, ended: threading.Event) -> None:
        beat = "UPDATE claims SET heartbeat = ? WHERE key = ? AND owner = ?"
        while not ended.wait(_BEAT):
            with (
                contextlib.suppress(StoreError),  # a busy disk: the next one will do
                RecordStore(self._path) as store,
                store.changing() as database,
            ):
                database.execute(beat, (time.time(), key, self._owner))

    def _drop_lost(self, database: sqlite3.Connection) -> None:
        """Free the claims of dead processes."""
        now, beats = time.monotonic(), dict[tuple[str, str], tuple[float, float]]()
        rows = database.execute("SELECT key, owner, pid, host, heartbeat FROM claims").fetchall()
        for key, owner, pid, host, heartbeat in rows:
            last, since = self._beats.get((key, owner), (heartbeat, now))
            beats[key, owner] = (heartbeat, since if heartbeat == last else now)
            is_dead = host == self._host and not _is_alive(pid)
            if is_dead or now - beats[key, owner][1] >= _LOST:
                self._end(database, key, owner)
        self._beats = beats

    @staticmethod
    def _end(database: sqlite3.Connection, key: str, owner: str) -> None:
        database.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))

    def leave(self, folder: Path) -> None:
        """Free the claims of dead processes, and remove the folder if no claim is left."""
        with self._store.changing() as database:
            self._drop_lost(database)
            if not database.execute("SELECT count(*) FROM claims").fetchone()[0]:
                remove_empty(folder)

    def __enter__(self) -> "Claims":
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()


def remove_empty(folder: Path) -> None:
    """Remove a folder that holds nothing but files left by killed writers."""
    sweep(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _host() -> str:
    """Name this machine and its process namespace: containers number their processes themselves."""
    with contextlib.suppress(OSError):  # Linux alone has it
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    return socket.gethostname()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
