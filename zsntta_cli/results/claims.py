"""Claims in the store: which process is at work on which live run, so that none is made twice.

A claim is taken in a transaction that sees what is finished, too, so several processes, also on
machines that share the store's file system, each take another run. SQLite over NFS is what it is:
its locks have to work there, which WAL does not promise between machines.

A claim whose process has died is free at once on the same machine. On another it is after a minute
in which its heartbeat did not move: by the clock of whoever waits, so clocks need not agree.
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
    """What a process is to do next."""

    key: str | None  # of a run that is its own now; None where others are at work on all
    finished: dict[str, float]  # the seconds of runs that the store has now


class Claims:
    """The claims of one process; `before` are the runs to be made that the store has already."""

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
        """Claim the first of some runs that is neither finished nor claimed."""
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
        """Take a finished run for one that is to be made, until it is there anew."""
        self._before[key] = seconds

    @contextlib.contextmanager
    def held(self, key: str) -> Iterator[None]:
        """Keep a claim alive meanwhile, and let go of it."""
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
        """Free what dead processes had claimed."""
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
        """Drop what dead processes left; without any claim there is no use for a folder either."""
        with self._store.changing() as database:
            self._drop_lost(database)
            if not database.execute("SELECT count(*) FROM claims").fetchone()[0]:
                remove_empty(folder)

    def __enter__(self) -> "Claims":
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()


def remove_empty(folder: Path) -> None:
    """Remove a folder that has nothing but what killed writers left."""
    sweep(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _host() -> str:
    """This machine, and within it the numbering of its processes: containers have their own."""
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
