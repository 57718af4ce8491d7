"""Features of images and prompts that were encoded before: one SQLite file for each encoder.

Features are kept under the digest of an image's content, so a file that was moved or renamed is
recognised, and one that changed is not. The file also records how each image was read: features
from an older way of reading are made again when their image occurs. Images that cannot be decoded
are recorded with the decoder, which does not try again. The stamps of files (size, times) are kept
with their digests, so that a file need not be read again. Transactions are atomic, whatever stops
the process, and several processes may share the file. It can be deleted: it is made again.
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

from zsntta_cli.databases import BATCH, WAIT, DatabaseKind, transaction, why_no_locks
from zsntta_cli.datasets.decoding import READING, reader
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import check_target

KIND = DatabaseKind(
    0x7A736E69,  # "zsni"
    2,
    {
        "encoder": "identity TEXT NOT NULL",
        "images": "digest BLOB PRIMARY KEY, features BLOB NOT NULL, "
        "reading INTEGER NOT NULL, note TEXT NOT NULL",
        "failures": "digest BLOB PRIMARY KEY, error TEXT NOT NULL, reader TEXT NOT NULL",
        "files": "key BLOB PRIMARY KEY, size INTEGER, changed TEXT, digest BLOB NOT NULL",
        "texts": "prompt TEXT PRIMARY KEY, features BLOB NOT NULL",
    },
)

# What this reading kept before stays, to the bit. The columns are named: where another process adds
# some, SQLite looks at the file again for names that it does not know, and not for numbers of them.
_ADD = (
    "INSERT INTO images (digest, features, reading, note) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (digest) DO UPDATE SET "
    "features = excluded.features, reading = excluded.reading, note = excluded.note "
    "WHERE images.reading < excluded.reading"
)

Half = NDArray[np.float16]


class Stamp(NamedTuple):
    """The size and times of a file, which change when it does."""

    size: int
    changed: str  # times of its content and of its entry, in nanoseconds


class KeptImage(NamedTuple):
    """What is kept of an image: its features and how it was read, or why it could not be read."""

    features: Half | None  # (D,) raw
    note: str = ""
    error: str = ""


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
        self.close()

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
        with self._readable():
            row = self._database.execute("SELECT identity FROM encoder LIMIT 1").fetchone()
            identity = json.loads(row[0]) if row else None
        if not isinstance(identity, dict | None):
            raise self._broken("its encoder is no JSON object")
        return identity

    def set_identity(self, identity: Mapping[str, Any]) -> None:
        """Record the encoder before the first features are kept; this makes the file.

        If it cannot be made, nothing is kept.
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
        """Digests of the files that are unchanged since they were read, by their keys."""
        rows = self._rows("SELECT key, size, changed, digest FROM files WHERE key", stamps)
        return {key: digest for key, *stamp, digest in rows if stamps[key] == tuple(stamp)}

    def images(self, digests: Iterable[bytes]) -> dict[bytes, KeptImage]:
        """What is kept of images by their digests, if they would be read the same way now."""
        wanted = set(digests)
        query = f"SELECT digest, features, note FROM images WHERE reading = {READING} AND digest"
        rows = self._rows(query, wanted)
        features, images = self._unpacked(rows, np.float16), dict[bytes, KeptImage]()
        for digest, _, note in rows:
            images[digest] = KeptImage(features[digest], note)
        return self._failures(wanted - images.keys()) | images

    def features(self, digests: Iterable[bytes]) -> dict[bytes, Half]:
        """Features (D,) of images by their digests, for those that are kept."""
        images = self.images(digests).items()
        return {digest: one.features for digest, one in images if one.features is not None}

    def all_digests(self) -> set[bytes]:
        """Digests of all images with features that would be read the same way now."""
        query = f"SELECT digest FROM images WHERE reading = {READING}"
        with self._readable():
            return {row[0] for row in self._database.execute(query)}

    def texts(self, prompts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Text features (D,) by their prompts, for those that are kept."""
        rows = self._rows("SELECT prompt, features FROM texts WHERE prompt", set(prompts))
        return self._unpacked(rows, np.float32)

    def add(
        self, images: Mapping[bytes, KeptImage], files: Mapping[bytes, tuple[Stamp, bytes]]
    ) -> None:
        """Keep images by their digests, and files' stamps and digests by their keys."""
        encoded, failed = [], []
        for digest, one in images.items():
            if one.features is not None:
                encoded.append((digest, one.features.tobytes(), READING, one.note))
            if one.error:
                failed.append((digest, one.error, reader()))
        stamped = [(key, *stamp, digest) for key, (stamp, digest) in files.items()]
        with self._readable(), transaction(self._database):
            self._database.executemany(_ADD, encoded)
            self._database.executemany("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", failed)
            self._database.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", stamped)

    def add_texts(self, texts: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep text features by their prompts."""
        rows = [(prompt, row.tobytes()) for prompt, row in texts.items()]
        with self._readable(), transaction(self._database):
            self._database.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", rows)

    def _failures(self, digests: Iterable[bytes]) -> dict[bytes, KeptImage]:
        """Images that the current decoder could not read."""
        rows = self._rows("SELECT digest, error, reader FROM failures WHERE digest", digests)
        failed = {}
        with self._readable():
            for digest, error, by in rows:
                if by == reader():
                    failed[digest] = KeptImage(None, error=str(error))
        return failed

    def _unpacked(self, rows: Sequence[tuple[Any, ...]], dtype: Any) -> dict[Any, NDArray[Any]]:
        """Features by the key under which they are kept, all of one encoder."""
        features, lengths = {}, set()
        with self._readable():
            for key, packed, *_ in rows:
                features[key] = np.frombuffer(packed, dtype)
                lengths.add(len(features[key]))
            if len(lengths) > 1:
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
        """Turn SQLite's errors on a broken file, a full disk or a lock into one line."""
        try:
            yield
        except (sqlite3.DatabaseError, OSError, TypeError, ValueError, RecursionError) as error:
            is_busy = isinstance(error, sqlite3.OperationalError)
            mend = "" if is_busy else ": delete it, and what it had is encoded again"
            raise self._broken(f"{first_line(error)}{mend}") from error

    def _broken(self, reason: str) -> StoreError:
        return StoreError(f"the features in {self.path}: {reason}.")

    def close(self) -> None:
        """Close the file."""
        self._database.close()
