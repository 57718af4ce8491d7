"""Features of images and prompts that were encoded before: one SQLite file for each encoder.

It is one table, whose rows have a kind and a key:

    reading N   the SHA-256 of an image's content: its features, and what was done to read it; a
                file that was moved is recognised, one that changed is not, and features of an older
                way of reading are made again
    the reader  the SHA-256 of what this version of the libraries cannot decode: why not
    file        a file's path, size and times: the SHA-256 of its content, so that it need not be
                read again
    text        a prompt: its features
    encoder     nothing: what made the features, as JSON

Transactions are atomic, whatever stops the process, and several processes may share the file. It
can be deleted: it is made again.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.databases import BATCH, WAIT, DatabaseKind, transaction, why_no_locks
from zsntta_cli.datasets.decoding import READING
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import check_target

KIND = DatabaseKind(
    0x7A736E69,  # "zsni"
    3,
    {
        "kept": "kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, words TEXT NOT NULL, "
        "PRIMARY KEY (kind, key)"
    },
)
IMAGE, FILE, TEXT, _ENCODER = f"reading {READING}", "file", "text", "encoder"


class Kept(NamedTuple):
    """What a key has: bytes, of features mostly, and words."""

    value: bytes = b""
    words: str = ""


class FeatureStore(contextlib.AbstractContextManager["FeatureStore"]):
    """Keep the features of one encoder in its file."""

    def __init__(self, path: Path) -> None:
        """Open the file; it is made when something is first kept, if it can be written.

        Raises:
            StoreError: the file is broken, or something else.
        """
        self.path = path
        with self._readable():
            if check_target(path):
                raise StoreError(f"{path} is no regular file, so it holds no features.")
            self._database = self._connected(to_disk=path.exists())

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def _connected(self, to_disk: bool) -> sqlite3.Connection:
        """The file, made if it is missing; in memory if it cannot be written."""
        exists = self.path.exists()
        paths = (self.path, self.path.parent) if exists else (self.path.parent,)
        can_write = to_disk and all(os.access(path, os.W_OK) for path in paths)
        self.is_kept = can_write and not why_no_locks(self.path.parent)
        name = self.path if self.is_kept else ":memory:"
        database = sqlite3.connect(name, timeout=WAIT, isolation_level=None)
        if exists and not self.is_kept:
            uri = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
            with contextlib.closing(sqlite3.connect(uri, uri=True)) as file:
                file.backup(database)
        if not KIND.is_made(database, self.path):
            KIND.make(database)
        database.execute("PRAGMA synchronous=NORMAL")
        return database

    @property
    def identity(self) -> dict[str, Any] | None:
        """The identity of the encoder that made the features; None before the first."""
        kept = self.kept(_ENCODER, [b""])
        with self._readable():
            identity = json.loads(kept[b""].words) if kept else None
            if not isinstance(identity, dict | None):
                raise ValueError("its encoder is no JSON object")
        return identity

    def set_identity(self, identity: Mapping[str, Any]) -> None:
        """Record the encoder before the first features are kept; this makes the file.

        If it cannot be made, nothing is kept.
        """
        if not self.is_kept:
            with self._readable():
                with contextlib.suppress(OSError):
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                self._database = self._connected(to_disk=True)
        self.keep({_ENCODER: {b"": Kept(words=json.dumps(identity))}})

    def kept(self, kind: str, keys: Iterable[bytes]) -> dict[bytes, Kept]:
        """What is kept of a kind by its keys."""
        wanted, kept = list(keys), dict[bytes, Kept]()
        with self._readable():
            for start in range(0, len(wanted), BATCH):
                part = wanted[start : start + BATCH]
                marks = ", ".join("?" * len(part))
                query = f"SELECT key, value, words FROM kept WHERE kind = ? AND key IN ({marks})"
                kept |= {k: Kept(*row) for k, *row in self._database.execute(query, (kind, *part))}
        return kept

    def unpacked(self, kept: Mapping[bytes, Kept], dtype: Any) -> dict[bytes, NDArray[Any]]:
        """The features (D,) that are kept under some keys, all of one encoder."""
        with self._readable():
            rows = {key: np.frombuffer(one.value, dtype) for key, one in kept.items()}
            if len({len(row) for row in rows.values()}) > 1:
                raise ValueError("features of several lengths")
        return rows

    def keys(self, *kinds: str) -> set[bytes]:
        """The keys of all that is kept of some kinds."""
        marks = ", ".join("?" * len(kinds))
        query = f"SELECT key FROM kept WHERE kind IN ({marks})"
        with self._readable():
            return {key for (key,) in self._database.execute(query, kinds)}

    def keep(self, rows: Mapping[str, Mapping[bytes, Kept]]) -> None:
        """Keep rows by their kinds and keys, all of them or none; what is there stays."""
        every = [(kind, key, *row) for kind, of in rows.items() for key, row in of.items()]
        with self._readable(), transaction(self._database):
            self._database.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?, ?, ?)", every)

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn SQLite's errors on a broken file, a full disk or a lock into one line."""
        try:
            yield
        except (sqlite3.DatabaseError, OSError, TypeError, ValueError, RecursionError) as error:
            is_busy = isinstance(error, sqlite3.OperationalError)
            mend = "" if is_busy else ": delete it, and what it had is encoded again"
            raise StoreError(f"the features in {self.path}: {first_line(error)}{mend}.") from error
