"""The store of results: one SQLite file with one table, for any number of processes.

A run is in it as a whole or not at all, even if its process or the machine stops. It uses WAL with
`synchronous=NORMAL`: a power cut may lose the last runs, but damages none.

A row is a record as an export's line has it, its curves in a column of their own: what draws none
need not read them. Each has a checksum, so that what was kept here is not checked again value by
value. A row that has another one, or that no record can be made of, is left out; `count` counts it.

Keeping takes results from it that are there, and keeps new ones as soon as they are computed.
"""

import contextlib
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from zsntta_cli.databases import BATCH, WAIT, DatabaseKind, transaction, why_no_locks
from zsntta_cli.errors import StoreError, first_line, short
from zsntta_cli.files import check_target, open_regular
from zsntta_cli.methods import METHODS
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, revision, run_key
from zsntta_cli.simulation.sources import Foreseen

KIND = DatabaseKind(
    0x7A736E74,  # "zsnt"
    5,
    # The record stands before what is large: SQLite reads a row from its front.
    {"contents": "key TEXT PRIMARY KEY, sums TEXT NOT NULL, record TEXT NOT NULL, "
                 "curves TEXT NOT NULL"},
)  # fmt: skip


_BEGINS = b"SQLite format 3\0"
_NAME = "records.sqlite"  # in the features folder


def store_path(root: Path, named: Path | None = None) -> Path:
    """Where results are kept: the file that is named, or else a file beside the features."""
    return named or root / _NAME


def is_store(path: Path) -> bool:
    """Whether a file begins as a store does; what cannot be read is for its reader to say."""
    try:
        with open(open_regular(path), "rb") as file:
            return file.read(len(_BEGINS)) == _BEGINS
    except OSError:
        return False


class NoLocks(StoreError):
    """Results on a file system that cannot lock files: they are shown, and cannot be kept."""


class RecordStore(contextlib.AbstractContextManager["RecordStore"]):
    """The results in one file; open it with `with`, or call `close`."""

    def __init__(self, path: Path, create: bool = False) -> None:
        """Open a store; with `create` make it, and its folder, if it does not exist.

        Raises:
            NoLocks: its file system cannot lock files.
            StoreError: the file does not exist, cannot be opened, or is no store.
        """
        self.path = path
        with self._worded_errors():
            self._connection = _open(path, create)
        self._connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")

    def add(self, records: Iterable[Record]) -> None:
        """Keep finished runs, in one transaction; a run replaces an older one of an equal key."""
        rows = []
        for record in records:
            curves = json.dumps(record.curves, separators=(",", ":"))
            texts = json.dumps(record.to_dict()), curves
            rows.append((record.key, " ".join(map(_sum, texts)), *texts))
        statement = """
            INSERT INTO contents (key, sums, record, curves) VALUES (?, ?, ?, ?)
            ON CONFLICT (key) DO UPDATE
            SET sums=excluded.sums, record=excluded.record, curves=excluded.curves
        """
        self._change(statement, rows)

    def add_new(self, records: Sequence[Record]) -> int:
        """Keep the runs that the store lacks, in one transaction; return how many it had."""
        stored_keys = set(self.keys())
        new = {record.key: record for record in records if record.key not in stored_keys}
        self.add(new.values())
        return len(records) - len(new)

    def remove(self, keys: Sequence[str]) -> None:
        """Remove runs, in one transaction."""
        self._change("DELETE FROM contents WHERE key = ?", [(key,) for key in keys])

    def keys(self) -> list[str]:
        """The keys of all runs, in the order in which they were kept."""
        return [key for (key,) in self._select("key", "TRUE")]

    def count(self) -> int:
        """How many rows there are, including broken ones."""
        with self._worded_errors():
            [[count]] = self._connection.execute("SELECT count(*) FROM contents")
        return int(count)

    def find(self, keys: Sequence[str]) -> dict[str, Record]:
        """Kept runs by their keys; keys that are not in the store are left out."""
        records: dict[str, Record] = {}
        for start in range(0, len(keys), BATCH):
            batch = keys[start : start + BATCH]
            records |= self._records(f"key IN ({', '.join('?' * len(batch))})", batch)
        return records

    def all(self, curves: bool = True) -> Iterator[Record]:
        """All kept runs that can be read here, in the order in which they were kept."""
        return (record for _, record in self._records("TRUE", curves=curves))

    def by_key(self, curves: bool = False) -> dict[str, Record]:
        """All kept runs that can be read here, by their keys, in the order of keeping."""
        return dict(self._records("TRUE", curves=curves))

    def _records(
        self, where: str, values: Sequence[str] = (), curves: bool = True
    ) -> Iterator[tuple[str, Record]]:
        """Runs that can be read here, and their keys."""
        texts = "record, curves" if curves else "record"
        for key, sums, *contents in self._select(f"key, sums, {texts}", where, values):
            if (record := _read(sums, contents)) is not None:
                yield key, record

    def _select(
        self, columns: str, where: str, values: Sequence[str] = ()
    ) -> Iterator[tuple[Any, ...]]:
        wanted = f"typeof(key) = 'text' AND {where}"
        query = f"SELECT {columns} FROM contents WHERE {wanted} ORDER BY rowid"
        with self._worded_errors():
            yield from self._connection.execute(query, tuple(values))

    def _change(self, statement: str, rows: Iterable[Sequence[str]]) -> None:
        with self._worded_errors(), transaction(self._connection):
            self._connection.executemany(statement, rows)

    @contextlib.contextmanager
    def _worded_errors(self) -> Iterator[None]:
        """Turn SQLite's errors on a broken file, a full disk or a lock into one line."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"the results in {self.path}: {first_line(error)}. --records FILE names another "
                f"file for them."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode(errors='surrogateescape')):08x}"


def _read(sums: Any, contents: Sequence[Any]) -> Record | None:
    """The record of a row; None of a damaged one, of another version's or of an unknown method."""
    with contextlib.suppress(Exception):
        if all(known == _sum(text) for known, text in zip(sums.split(), contents, strict=False)):
            plain, *curves = map(json.loads, contents)
            return Record.of({**plain, "curves": curves[0] if curves else {}})
    return None


def check_locks(path: Path) -> None:
    """Refuse results on a file system that cannot lock files.

    Raises:
        NoLocks: it cannot.
    """
    if why := why_no_locks(path.parent):
        raise NoLocks(
            f"the file system of {path} cannot lock files ({why}): --records FILE on a local disk "
            f"keeps results."
        )


def keys_that_begin(keys: Sequence[str], digits: Sequence[str]) -> list[str]:
    """The keys that begin with one of the given digits; all keys if none are given.

    Raises:
        StoreError: no key begins with them, or several do.
    """
    if not digits:
        return list(keys)
    chosen = []
    for beginning in digits:
        meant = [key for key in keys if beginning and key.startswith(beginning.lower())]
        if len(meant) != 1:
            how = f"{len(meant):,} keys begin" if meant else "no key begins"
            raise StoreError(f"{how} with '{short(beginning)}': zsntta records list shows them")
        chosen += meant
    return list(dict.fromkeys(chosen))


def _open(path: Path, create: bool) -> sqlite3.Connection:
    """A connection to a store.

    Raises:
        StoreError: the file does not exist, or is no store.
        OSError, sqlite3.Error: it cannot be opened.
    """
    if check_target(path):
        raise StoreError(f"{path} is no regular file, so it holds no results.")
    if not create and not path.exists():
        raise StoreError(
            f"there are no kept results at {path}: "
            "zsntta simulate keeps what it runs, or name another file with --records"
        )
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    check_locks(path)
    # Without permission to write, SQLite reads beside other writers if it can; otherwise the file
    # is read on the assumption that nobody changes it.
    writable = create or all(os.access(place, os.W_OK) for place in (path, path.parent))
    modes = ("rwc" if create else "rw",) if writable else ("ro", "ro&immutable=1")
    for mode in modes:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, timeout=WAIT, uri=True, isolation_level=None)
        try:
            if not KIND.is_made(connection, path):
                if create:
                    KIND.make(connection)
                else:  # its maker was stopped before there was anything in it
                    for name, columns in KIND.tables.items():
                        connection.execute(f"CREATE TEMP TABLE {name} ({columns})")
            connection.execute("PRAGMA synchronous=NORMAL")
            break
        except BaseException as error:
            connection.close()
            if mode == modes[-1] or not isinstance(error, sqlite3.OperationalError):
                raise
    return connection


@dataclass(frozen=True)
class Keeping:
    """Where results are kept, and how."""

    path: Path
    fresh: bool = False  # run again what is there
    gradients: bool = False  # keep those of clean and noisy samples, too, of live methods
    required: bool = True  # or go on without, where nothing can be written
    command: str = ""  # that asks for the runs, for their records to say
    again: frozenset[str] = frozenset()  # when records were made whose runs are to be run again

    @classmethod
    def beside(
        cls, root: Path, path: Path | None = None, fresh: bool = False, command: str = ""
    ) -> "Keeping":
        """Keep results in the file that is named, or else in one beside the features in `root`."""
        required = path is not None
        return cls(store_path(root, path), fresh, required=required, command=command)

    def has(self, run: RunSettings, record: Record) -> bool:
        """Whether a record that has the key of a run is what is wanted of it."""
        lacks_gradients = self.gradients and METHODS[run.method].live
        return (
            record.settings == run  # a default that has changed since is in no key
            and ("gradients" in record.curves or not lacks_gradients)
            and record.created not in self.again
        )


def kept_before(
    root: Path, runs: Sequence[RunSettings], keeping: Keeping
) -> dict[RunSettings, Record]:
    """The runs whose results on the features that are now under `root` the store has.

    There are none where the store cannot be locked, and so not be read.

    Raises:
        StoreError: the store cannot be read.
    """
    if keeping.fresh or not keeping.path.exists():
        return {}
    foreseen, by_key = Foreseen(root), dict[str, RunSettings]()
    for run in runs:
        digests, revised = foreseen.look(run), revision(run.method)
        if isinstance(digests, dict) and revised is not None:  # else it could not be found again
            by_key[run_key(run, digests, revised)] = run
    try:
        with RecordStore(keeping.path) as store:
            found = store.find(list(by_key))
    except NoLocks:
        return {}
    return {by_key[key]: kept for key, kept in found.items() if keeping.has(by_key[key], kept)}


class Keeper(contextlib.AbstractContextManager["Keeper"]):
    """Keep each run when it is finished, in a transaction of its own."""

    def __init__(self, keeping: Keeping | None, tell: Callable[[str], None]) -> None:
        """Open a store that is named; a store beside the features is made with the first result.

        `tell` is told once why results are not kept.

        Raises:
            StoreError: the store that is named cannot be opened.
        """
        self._keeping, self._tell, self._is_told = keeping, tell, False
        self._store: RecordStore | None = None
        if keeping is None:
            return
        try:
            check_locks(keeping.path)
            if keeping.required:
                self._store = RecordStore(keeping.path, create=True)
        except NoLocks as error:  # told before hours of runs
            self._tell_once(error)

    def add(self, record: Record) -> Record:
        """The same record, which is kept if its run was finished and can be found again."""
        if self._keeping is not None and record.revision and not record.unfinished:
            try:
                self._store = self._store or RecordStore(self._keeping.path, create=True)
                self._store.add([record])
            except StoreError as error:  # the result is worth more than its place
                self._tell_once(error)
        return record

    def _tell_once(self, error: StoreError) -> None:
        if not self._is_told:
            self._is_told = True
            self._tell(f"note: results are not kept: {error}")

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._store.close()
