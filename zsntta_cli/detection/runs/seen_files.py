"""Files that a watch has judged, and their margins: a SQLite file beside its state.

The state says how many rows count; later rows of a stopped watch are deleted.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from zsntta_cli.cache.databases import WAIT, DatabaseKind, transaction
from zsntta_cli.detection.runs.growing import WatchedPlace
from zsntta_cli.errors import StoreError, first_line

KIND = DatabaseKind(
    0x7A736E77,  # "zsnw"
    1,
    {
        "watch": "token TEXT NOT NULL",  # which its state has too
        "files": "number INTEGER PRIMARY KEY, folder INTEGER NOT NULL, path BLOB NOT NULL, "
        "size INTEGER NOT NULL, time INTEGER NOT NULL, row INTEGER",
        "margins": "number INTEGER PRIMARY KEY, margin REAL NOT NULL",
    },
)


class SeenFile(NamedTuple):
    """A file as it was when it was judged."""

    size: int
    time: int  # of its content, in nanoseconds
    row: int | None  # number of its row, from 1, in the file of rows


def seen_path(state: Path) -> Path:
    """The path of the file that belongs to a state."""
    return state.with_name(f"{state.name}.seen")


@contextlib.contextmanager
def _opened(state: Path) -> Iterator[sqlite3.Connection]:
    """The database, made if it is missing; StoreError if it is broken or something else."""
    path = seen_path(state)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
        with contextlib.closing(database):
            if not KIND.is_made(database, path):
                KIND.make(database)
            yield database
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"the files that a watch has seen, {path}: {first_line(error)}."
        ) from error


def begin_seen(state: Path, token: str) -> None:
    """Begin anew, for a state with this token."""
    with _opened(state) as database, transaction(database):
        for table in KIND.tables:
            database.execute(f"DELETE FROM {table}")
        database.execute("INSERT INTO watch VALUES (?)", (token,))


def add_seen(
    state: Path,
    files: Sequence[tuple[WatchedPlace, SeenFile]],
    margins: Sequence[float],
    counts: tuple[int, int],
) -> None:
    """Add files and margins after as many of both as `counts` says; durable when this returns."""
    file_rows = [
        (counts[0] + number, place.folder, os.fsencode(place.path), *file)
        for number, (place, file) in enumerate(files, 1)
    ]
    margin_rows = [(counts[1] + number, margin) for number, margin in enumerate(margins, 1)]
    with _opened(state) as database, transaction(database):
        database.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)", file_rows)
        database.executemany("INSERT INTO margins VALUES (?, ?)", margin_rows)


def resume_seen(
    state: Path, token: str, counts: tuple[int, int]
) -> tuple[dict[WatchedPlace, SeenFile], list[float]]:
    """The files and margins that a state counts; all later ones are deleted.

    Raises:
        StoreError: there are fewer, or they belong to another state.
    """
    path = seen_path(state)
    if not path.exists():
        raise StoreError(f"{path} is missing, which goes with {state}: put it beside that.")
    with _opened(state) as database:
        if database.execute("SELECT token FROM watch").fetchall() != [(token,)]:
            raise StoreError(f"{path} is of another state than {state}.")
        with transaction(database):
            for table, count in zip(("files", "margins"), counts, strict=True):
                database.execute(f"DELETE FROM {table} WHERE number > ?", (count,))
        files = database.execute(
            "SELECT folder, path, size, time, row FROM files ORDER BY number"
        ).fetchall()
        margins = [row[0] for row in database.execute("SELECT margin FROM margins")]
    if (len(files), len(margins)) != counts:
        raise StoreError(
            f"{path} has {len(files):,} files, and {state} says {counts[0]:,}: it is older."
        )
    places = {
        WatchedPlace(folder, os.fsdecode(name)): SeenFile(*file) for folder, name, *file in files
    }
    return places, margins
