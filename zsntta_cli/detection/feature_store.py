"""Features of images and of prompts that were encoded before: one SQLite file an encoder.

Features are kept under the digest of an image's content, so a file that was moved or renamed is
known, and one that changed is not. Beside them lie the stamps of files (size, times) with their
digests, so that a file need not be read again. Transactions are whole or not there, whatever stops
the process, and several may share the file. It can be deleted: it is made again.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.databases import BATCH, WAIT, DatabaseKind, transaction
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import check_target

KIND = DatabaseKind(
    0x7A736E69,  # "zsni"
    1,
    {
        "encoder": "identity TEXT NOT NULL",
        "images": "digest BLOB PRIMARY KEY, features BLOB NOT NULL",
        "files": "key BLOB PRIMARY KEY, size INTEGER, changed TEXT, digest BLOB NOT NULL",
        "texts": "prompt TEXT PRIMARY KEY, features BLOB NOT NULL",
    },
)

Half = NDArray[np.float16]


class Stamp(NamedTuple):
    """What tells a file from itself after a change."""

    size: int
    changed: str  # times of its content and of its entry, in nanoseconds


class FeatureStore(contextlib.AbstractContextManager["FeatureStore"]):
    """Keeps what one encoder made in its file of features."""

    def __init__(self, path: Path) -> None:
        """Open it; it is made when first something is kept, if it can be written.

        Raises:
            StoreError: it is broken, or something else.
        """
        self.path = path
        with self._readable():
            if check_target(path):
                raise StoreError(f"{path} is no regular file, so it holds no features.")
            self._database = self._connected(to_disk=path.exists())

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self, to_disk: bool) -> sqlite3.Connection:
        """The file, made where it is not there; in memory what of it cannot be written."""
        exists = self.path.exists()
        paths = (self.path, self.path.parent) if exists else (self.path.parent,)
        self.is_kept = to_disk and all(os.access(path, os.W_OK) for path in paths)
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
        """What tells the encoder that made what is kept; None before anything was."""
        with self._readable():
            row = self._database.execute("SELECT identity FROM encoder LIMIT 1").fetchone()
            identity = json.loads(row[0]) if row else None
        if not isinstance(identity, dict | None):
            raise self._broken("its encoder is no JSON object")
        return identity

    def set_identity(self, identity: Mapping[str, Any]) -> None:
        """Say whose the features are, before the first is kept; here the file is made.

        Where it cannot be made, nothing is kept.
        """
        query = "INSERT INTO encoder SELECT ? WHERE NOT EXISTS (SELECT * FROM encoder)"
        with self._readable():
            if not self.is_kept:
                with contextlib.suppress(OSError):
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    self._database = self._connected(to_disk=True)
            with transaction(self._database):
                self._database.execute(query, (json.dumps(identity),))

    def digests(self, stamps: Mapping[bytes, Stamp]) -> dict[bytes, bytes]:
        """Digests of the files, by their keys, that are as they were when they were read."""
        rows = self._rows("SELECT key, size, changed, digest FROM files WHERE key", stamps)
        return {key: digest for key, *stamp, digest in rows if stamps[key] == tuple(stamp)}

    def features(self, digests: Iterable[bytes]) -> dict[bytes, Half]:
        """Features (D,) of images by their digests; of those that are there."""
        query = "SELECT digest, features FROM images WHERE digest"
        return self._features(query, digests, np.float16)

    def all_digests(self) -> set[bytes]:
        """Digests of all images that there are features of."""
        with self._readable():
            return {row[0] for row in self._database.execute("SELECT digest FROM images")}

    def texts(self, prompts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Text features (D,) by their prompts; of those that are there."""
        query = "SELECT prompt, features FROM texts WHERE prompt"
        return self._features(query, prompts, np.float32)

    def add(
        self, features: Mapping[bytes, Half], files: Mapping[bytes, tuple[Stamp, bytes]]
    ) -> None:
        """Keep features by their digests, and files' stamps and digests by their keys."""
        images = [(digest, row.tobytes()) for digest, row in features.items()]
        stamped = [(key, *stamp, digest) for key, (stamp, digest) in files.items()]
        with self._readable(), transaction(self._database):
            self._database.executemany("INSERT OR IGNORE INTO images VALUES (?, ?)", images)
            self._database.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", stamped)

    def add_texts(self, texts: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep text features by their prompts."""
        rows = [(prompt, row.tobytes()) for prompt, row in texts.items()]
        with self._readable(), transaction(self._database):
            self._database.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", rows)

    def _features(self, query: str, keys: Iterable[Any], dtype: Any) -> dict[Any, NDArray[Any]]:
        """Features by what they are kept under, of one encoder all of them."""
        rows = self._rows(query, set(keys))
        with self._readable():
            features = {key: np.frombuffer(packed, dtype) for key, packed in rows}
            if len({len(row) for row in features.values()}) > 1:
                raise ValueError("features of several lengths")
        return features

    def _rows(self, query: str, keys: Iterable[Any]) -> list[tuple[Any, ...]]:
        wanted, rows = list(keys), []
        with self._readable():
            for start in range(0, len(wanted), BATCH):
                part = wanted[start : start + BATCH]
                marks = ", ".join("?" * len(part))
                rows += self._database.execute(f"{query} IN ({marks})", part).fetchall()
        return rows

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn what SQLite says of a broken file, a full disk or a lock into one line."""
        try:
            yield
        except (sqlite3.DatabaseError, OSError, TypeError, ValueError, RecursionError) as error:
            is_busy = isinstance(error, sqlite3.OperationalError)
            raise self._broken(first_line(error), "" if is_busy else "delete-it") from error

    def _broken(self, reason: str, remedy: str = "") -> StoreError:
        return StoreError(f"the features in {self.path}: {reason}.", remedy=remedy)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
