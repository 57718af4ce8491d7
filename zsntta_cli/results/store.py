"""The store of results: one SQLite file with one table, for any number of processes.

A run is in it completely or not at all, even if its process or the machine stops. It uses WAL with
`synchronous=NORMAL`: a power cut may lose the last runs, but damages none.

A row is a record as in a line of an export, with its curves in a separate column, so that they need
not be read. Each row has a checksum, so that kept results are not checked again value by value. A
row whose checksum differs, or that gives no record, is left out.

`kept_before` takes existing results from it, and `keeper` keeps new ones as they come.
"""

import contextlib
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from zsntta_cli.databases import WAIT, DatabaseKind, transaction, why_no_locks
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import check_target, open_regular
from zsntta_cli.methods import METHODS
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, revision, run_key
from zsntta_cli.simulation.sources import Library

KIND = DatabaseKind(
    0x7A736E74,  # "zsnt"
    5,
    # The record stands before what is large: SQLite reads a row from its front.
    {"contents": "key TEXT PRIMARY KEY, sums TEXT NOT NULL, record TEXT NOT NULL, "
                 "curves TEXT NOT NULL"},
)  # fmt: skip
STORE = "records.sqlite"  # in the features folder, unless a file is named
_BEGINS = b"SQLite format 3\0"


def is_store(path: Path) -> bool:
    """Whether a file begins as a store does; what cannot be read is for its reader to say."""
    with contextlib.suppress(OSError), open_regular(path) as file:
        return file.read(len(_BEGINS)) == _BEGINS
    return False


class RecordStore(contextlib.AbstractContextManager["RecordStore"]):
    """The results in one file, to be opened with `with`."""

    def __init__(self, path: Path, create: bool = False) -> None:
        """Open a store; with `create` make it, and its folder, if it does not exist.

        Raises:
            StoreError: the file does not exist, cannot be opened, or is not a store; or its file
                system cannot lock files.
        """
        self.path = path
        with self._worded_errors():
            self._connection = _open(path, create)
        self._connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, records: Iterable[Record]) -> None:
        """Keep finished runs, in one transaction; a run replaces an older one of an equal key."""
        rows = []
        for record in records:
            curves = json.dumps(record.curves, separators=(",", ":"))
            texts = json.dumps(record.to_dict()), curves
            rows.append((record.key, " ".join(map(_sum, texts)), *texts))
        with self._worded_errors(), transaction(self._connection):
            self._connection.executemany(
                "INSERT INTO contents (key, sums, record, curves) VALUES (?, ?, ?, ?) ON CONFLICT "
                "(key) DO UPDATE SET sums=excluded.sums, record=excluded.record, "
                "curves=excluded.curves",
                rows,
            )

    def remove(self, keys: Iterable[str]) -> None:
        """Remove runs, in one transaction."""
        with self._worded_errors(), transaction(self._connection):
            statement = "DELETE FROM contents WHERE key = ?"
            self._connection.executemany(statement, [(key,) for key in keys])

    def keys(self) -> list[str]:
        """The keys of all rows, also of broken ones, in the order of keeping."""
        with self._worded_errors():
            rows = self._connection.execute("SELECT key FROM contents ORDER BY rowid")
            return [str(key) for (key,) in rows]

    def find(self, keys: Iterable[str] | None = None, curves: bool = True) -> dict[str, Record]:
        """Kept runs that can be read here, by their keys, in the order of keeping.

        `keys` are the keys of the wanted runs; None means all.
        """
        columns = f"key, sums, record{', curves' * curves}"
        query = f"SELECT {columns} FROM contents WHERE typeof(key) = 'text'"
        values = []
        if keys is not None:
            query += " AND key IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(keys)))
        records = {}
        with self._worded_errors():
            for key, sums, *texts in self._connection.execute(f"{query} ORDER BY rowid", values):
                # A row that is damaged, another version's or an unknown method's gives none.
                with contextlib.suppress(Exception):
                    if sums.split()[: len(texts)] == [*map(_sum, texts)]:
                        plain, *of_run = map(json.loads, texts)
                        plain["curves"] = of_run[0] if of_run else {}
                        records[key] = Record.of(plain)
        return records

    @contextlib.contextmanager
    def _worded_errors(self) -> Iterator[None]:
        """Turn SQLite's errors on a broken file, a full disk or a lock into one line."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"the results in {self.path}: {first_line(error)}: name another file with "
                f"--records FILE."
            ) from error


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode(errors='surrogateescape')):08x}"


def _open(path: Path, create: bool) -> sqlite3.Connection:
    """A connection to a store.

    Raises:
        StoreError: the file does not exist, is no store, or cannot be locked.
        OSError, sqlite3.Error: it cannot be opened.
    """
    if check_target(path):
        raise StoreError(f"{path} is not a regular file, so it holds no results.")
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not path.exists():
        raise StoreError(
            f"there are no kept results at {path}: "
            "run zsntta simulate, or name another file with --records"
        )
    if why := why_no_locks(path.parent):
        raise StoreError(
            f"the file system of {path} cannot lock files ({why}): --records FILE on a local disk "
            f"keeps results."
        )
    # Without permission to write, SQLite reads beside other writers if it can; otherwise the file
    # is read on the assumption that nobody changes it.
    writable = create or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    modes = ("rwc" if create else "rw",) if writable else ("ro", "ro&immutable=1")
    for mode in modes:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, timeout=WAIT, uri=True, isolation_level=None)
        try:
            if not KIND.prepare(connection, path, create):  # its maker was stopped before it began
                connection.execute(f"CREATE TEMP TABLE contents ({KIND.tables['contents']})")
            connection.execute("PRAGMA synchronous=NORMAL")
            break
        except BaseException as error:
            connection.close()
            if mode == modes[-1] or not isinstance(error, sqlite3.OperationalError):
                raise
    return connection


# Runs that are made: which are kept already, and how new ones are.


@dataclass(frozen=True)
class Keeping:
    """Where results are kept, and how."""

    path: Path | None = None  # None: nowhere
    fresh: bool = False  # run again what is there
    gradients: bool = False  # keep those of clean and noisy samples, too, of live methods
    required: bool = True  # or go on without, where nothing can be written
    command: str = ""  # that asks for the runs, for their records to say
    again: frozenset[str] = frozenset()  # when records were made whose runs are to be run again

    @classmethod
    def beside(
        cls, root: Path, path: Path | None = None, fresh: bool = False, command: str = ""
    ) -> "Keeping":
        """Keep results in the named file, or else in one beside the features in `root`."""
        return cls(path or root / STORE, fresh, required=path is not None, command=command)


def kept_before(
    root: Path, runs: Iterable[RunSettings], keeping: Keeping
) -> dict[RunSettings, Record]:
    """The runs whose results on the current features under `root` are in the store.

    A live run whose gradients are wanted but not kept is not among them. A store that cannot be
    locked cannot be read, and gives none.

    Raises:
        StoreError: the store cannot be read.
    """
    path = keeping.path
    if keeping.fresh or path is None or not path.exists() or why_no_locks(path.parent):
        return {}
    foreseen, by_key = Library(root, rows=False), dict[str, RunSettings]()
    for run in runs:
        digests, revised = foreseen.look(run), revision(run.method)
        if isinstance(digests, dict) and revised is not None:  # else it could not be found again
            by_key[run_key(run, digests, revised)] = run
    with RecordStore(path) as store:
        records = store.find(by_key)
    kept = {}
    for key, record in records.items():
        run = by_key[key]
        lacks = keeping.gradients and METHODS[run.method].live and "gradients" not in record.curves
        # A default that has changed since is in no key.
        if record.settings == run and not lacks and record.created not in keeping.again:
            kept[run] = record
    return kept


@contextlib.contextmanager
def keeper(keeping: Keeping, tell: Callable[[str], None]) -> Iterator[Callable[[Record], None]]:
    """Give a function that keeps a finished run in its own transaction; stopped runs are not kept.

    A named store is opened at once; one beside the features, or in a place that cannot be locked,
    with the first result. `tell` gets a note once if results are not kept.

    Raises:
        StoreError: the named store cannot be opened.
    """
    with contextlib.ExitStack() as stack:
        path, stores, is_told = keeping.path, list[RecordStore](), False
        if path and keeping.required and not why_no_locks(path.parent):
            stores.append(stack.enter_context(RecordStore(path, create=True)))

        def keep(record: Record) -> None:
            nonlocal is_told
            if path is None or not record.revision or record.unfinished:
                return
            try:
                if not stores:
                    stores.append(stack.enter_context(RecordStore(path, create=True)))
                stores[0].add([record])
            except StoreError as error:  # the result is worth more than its place
                if not is_told:
                    tell(f"note: results are not kept: {error}")
                is_told = True

        yield keep
