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
_TYPES = {IMAGE: np.float16, TEXT: np.float32}  # of the features of a kind


class Kept(NamedTuple):
    """The value of a key: bytes, mostly of features, and words."""

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
                raise StoreError(f"{path} is not a regular file, so it has no features.")
            self._open(path.exists())
            row = self._database.execute("SELECT words FROM kept WHERE kind = ?", (_ENCODER,))
            words = row.fetchone()
            self.identity: dict[str, Any] | None = json.loads(words[0]) if words else None
            if words and not isinstance(self.identity, dict):
                raise ValueError("its encoder is not a JSON object")

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def _open(self, to_disk: bool) -> None:
        """Open the file, made if it is missing; in memory if it cannot be written."""
        exists = self.path.exists()
        paths = [self.path, self.path.parent] if exists else [self.path.parent]
        can_write = to_disk and all(os.access(path, os.W_OK) for path in paths)
        self.is_kept = can_write and not why_no_locks(self.path.parent)
        name = self.path if self.is_kept else ":memory:"
        self._database = sqlite3.connect(name, timeout=WAIT, isolation_level=None)
        if exists and not self.is_kept:
            uri = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
            with contextlib.closing(sqlite3.connect(uri, uri=True)) as file:
                file.backup(self._database)
        KIND.prepare(self._database, self.path)
        self._database.execute("PRAGMA synchronous=NORMAL")

    def begin(self, identity: dict[str, Any]) -> dict[str, Any]:
        """Record the encoder, unless one is, before the first features are kept: the one recorded.

        This makes the file; if it cannot be made, nothing is kept.
        """
        if not self.is_kept:
            with self._readable():
                with contextlib.suppress(OSError):
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                self._open(to_disk=True)
        self.keep({_ENCODER: {b"": Kept(words=json.dumps(identity))}})
        self.identity = json.loads(self.kept(_ENCODER, [b""])[b""].words)
        return self.identity or {}

    def kept(self, kind: str, keys: Iterable[bytes]) -> dict[bytes, Kept]:
        """What is kept of a kind by its keys."""
        wanted, kept = list(keys), dict[bytes, Kept]()
        with self._readable():
            for start in range(0, len(wanted), BATCH):
                part = wanted[start : start + BATCH]
                marks = ", ".join("?" * len(part))
                query = f"SELECT key, value, words FROM kept WHERE kind = ? AND key IN ({marks})"
                for key, value, words in self._database.execute(query, (kind, *part)):
                    kept[key] = Kept(value, words)
        return kept

    def features(
        self, kind: str, keys: Iterable[bytes]
    ) -> dict[bytes, tuple[NDArray[np.floating], str]]:
        """The features (D,) and words that are kept of a kind by its keys."""
        kept = self.kept(kind, keys)
        with self._readable():
            if len({len(value) for value, _ in kept.values()}) > 1:
                raise ValueError("its features have different lengths")
            return {k: (np.frombuffer(v, _TYPES[kind]), words) for k, (v, words) in kept.items()}

    def keys(self, *kinds: str) -> set[bytes]:
        """The keys of all that is kept of some kinds."""
        marks = ", ".join("?" * len(kinds))
        query = f"SELECT key FROM kept WHERE kind IN ({marks})"
        with self._readable():
            return {key for (key,) in self._database.execute(query, kinds)}

    def keep(self, rows: Mapping[str, Mapping[bytes, Kept]]) -> None:
        """Keep rows by their kinds and keys, all of them or none; what is there stays."""
        with self._readable(), transaction(self._database):
            for kind, kept in rows.items():
                values = [(kind, key, *row) for key, row in kept.items()]
                self._database.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?, ?, ?)", values)

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn SQLite's errors on a broken file, a full disk or a lock into one line."""
        try:
            yield
        except (sqlite3.DatabaseError, OSError, TypeError, ValueError, RecursionError) as error:
            is_busy = isinstance(error, sqlite3.OperationalError)
            mend = "" if is_busy else ": delete it, and its content will be encoded again"
            raise StoreError(f"the features in {self.path}: {first_line(error)}{mend}.") from error
