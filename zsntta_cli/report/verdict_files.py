"""Verdict rows in files, each a sink: CSV, JSON Lines, Parquet."""

import csv
import hashlib
import io
import itertools
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from zsntta_cli.detection.runs.detecting import Batch, RowSink
from zsntta_cli.detection.runs.watching import Written
from zsntta_cli.detection.verdicts import FIELDS, VerdictRow, row_schema
from zsntta_cli.errors import StoreError
from zsntta_cli.files import sync, whole_file, writing

_PIECE = 2**20  # bytes that are read at a time
_IN_MEMORY = 2**24  # bytes of rows that wait for a whole file


def json_lines(rows: Sequence[VerdictRow]) -> bytes:
    """Rows as JSON Lines in plain ASCII; names of any bytes are escaped."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def csv_lines(rows: Sequence[VerdictRow]) -> bytes:
    """Rows as CSV without a head; lists are JSON, None is empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_cells, rows))
    return text.getvalue().encode(errors="surrogateescape")


def _cells(row: VerdictRow) -> list[Any]:
    cells: dict[str, Any] = {**row}
    values = (cells[name] for name in FIELDS)
    return [json.dumps(value) if isinstance(value, bool | list) else value for value in values]


class _Lines(NamedTuple):
    """A form of files that grow: the text before the first row, and rows as bytes."""

    head: bytes
    of: Callable[[Sequence[VerdictRow]], bytes]


_LINES = {
    ".jsonl": _Lines(b"", json_lines),
    ".csv": _Lines((",".join(FIELDS) + "\n").encode(), csv_lines),
}


class LinesFile(RowSink):
    """A file of lines that is absent or whole: it appears at the end."""

    def __init__(self, path: Path) -> None:
        self._path, self._form = path, _LINES[path.suffix.lower()]
        self._content: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._content.write(self._form.head)
        weakref.finalize(self, self._content.close)  # a run may end before anybody closes this

    def take(self, batch: Batch) -> None:
        """Take the next rows."""
        self._content.write(self._form.of(batch.rows))

    def close(self) -> None:
        """Write the file; raise StoreError if that fails."""
        with self._content, whole_file(self._path) as temporary:
            self._content.seek(0)
            with temporary.open("wb") as file:
                shutil.copyfileobj(self._content, file)


class ParquetFile(RowSink):
    """A Parquet file, whole or absent."""

    def __init__(self, path: Path) -> None:
        """Raise StoreError if the library that writes Parquet is not installed."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise StoreError(f"{path} is Parquet", remedy="install-parquet") from error
        self._path, self._arrow = path, pyarrow
        self._rows: list[dict[str, Any]] = []

    def take(self, batch: Batch) -> None:
        """Take the next rows; bytes of a path that are not UTF-8 are escaped, as Parquet needs."""
        for row in batch.rows:
            source = row["source"].encode(errors="backslashreplace").decode()
            self._rows.append({**row, "source": source})

    def close(self) -> None:
        """Write the file; raise StoreError if that fails."""
        fields = self._type(row_schema())
        table = self._arrow.Table.from_pylist(self._rows, schema=self._arrow.schema(fields))
        with whole_file(self._path) as temporary:
            self._arrow.parquet.write_table(table, temporary)

    def _type(self, schema: dict[str, Any]) -> Any:
        """The column type for a JSON schema."""
        arrow, kind = self._arrow, schema["type"]
        kind = kind if isinstance(kind, str) else kind[0]  # or null
        if kind == "array":
            return arrow.list_(self._type(schema["items"]))
        if kind == "object":
            parts = schema["properties"].items()
            return arrow.struct([(name, self._type(part)) for name, part in parts])
        types = {"string": arrow.string, "integer": arrow.int64, "number": arrow.float64}
        return {**types, "boolean": arrow.bool_}[kind]()


# Forms by their endings, as the command line checks them; those of lines can grow.
GROWING = {ending: ending.removeprefix(".") for ending in _LINES}
FORMS = {**GROWING, ".parquet": "parquet"}


def rows_file(path: Path) -> RowSink:
    """The file for rows, by its ending, one of FORMS; nothing is written yet.

    Raises:
        StoreError: the library that writes it is not installed.
    """
    return LinesFile(path) if path.suffix.lower() in _LINES else ParquetFile(path)


class GrowingFile(RowSink):
    """A file of rows that grows while a folder is watched; rows that were taken are durable."""

    def __init__(self, path: Path) -> None:
        """Take the form that the ending, one of GROWING, asks for."""
        self.path, self._form = path, _LINES[path.suffix.lower()]
        self.numbers: dict[str, int] = {}  # of the rows that were added last, by their sources
        self.aside = 0  # lines that were put aside

    def begin(self, written: Written) -> "GrowingFile":
        """Continue behind the rows of a state, or begin the file if the state has no digest.

        Later rows are put aside: a stopped watch wrote them and judges them again, or somebody else
        added them.

        Raises:
            StoreError: the file is shorter or another one, has content where a new one is to begin,
                or cannot be written.
        """
        path = self.path
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            length = path.stat().st_size if path.exists() else 0
            is_other = not written.rows and written.path != str(path.absolute())
            if length > written.size and is_other:  # nothing tells that these rows are the watch's
                raise StoreError(
                    f"{path} has rows already: delete it, name another, or go on with its state.",
                )
            if length < written.size:
                raise StoreError(
                    f"{path} has {length:,} bytes, and the state says {written.size:,}."
                )
            self._file = path.open("r+b" if path.exists() else "w+b")
            self._digest, self._rows = self._digest_of(written), written.rows
            self._put_aside()
            self._file.truncate(written.size)
            self._file.seek(written.size)
            self._append(b"" if written.size else self._form.head)
        return self

    def _put_aside(self) -> None:
        """Move what follows the rows of the state to a file beside this one."""
        pieces = iter(lambda: self._file.read(_PIECE), b"")
        if not (first := next(pieces, b"")):
            return
        mode = os.fstat(self._file.fileno()).st_mode & 0o777
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        with os.fdopen(os.open(self.aside_path, how, mode), "ab") as file:
            for piece in itertools.chain([first], pieces):
                self.aside += piece.count(b"\n")
                file.write(piece)
                is_cut_off = not piece.endswith(b"\n")
            if is_cut_off:
                self.aside += 1
                file.write(b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync(self.path.parent)

    @property
    def aside_path(self) -> Path:
        """The file for lines that followed the rows of the state."""
        return self.path.with_name(f"{self.path.name}.aside")

    def _digest_of(self, written: Written) -> Any:
        """The digest of the written rows, to continue; StoreError if they are other rows."""
        digest, remaining = hashlib.sha256(), written.size
        while remaining and (piece := self._file.read(min(remaining, _PIECE))):
            digest.update(piece)
            remaining -= len(piece)
        if written.digest not in (None, digest.hexdigest()):
            self._file.close()
            raise StoreError(
                f"{self.path} is not the file of rows that the state goes with: name that one."
            )
        return digest

    @property
    def written(self) -> Written:
        """How much of the file is durable."""
        where = str(self.path.absolute())
        return Written(self._file.tell(), self._rows, self._digest.hexdigest(), where)

    def take(self, batch: Batch) -> None:
        """Add rows; raise StoreError if they cannot be written."""
        with writing(self.path):
            self._append(self._form.of(batch.rows))
        sources = (row["source"] for row in batch.rows)
        self.numbers = {source: number for number, source in enumerate(sources, self._rows + 1)}
        self._rows += len(batch.rows)

    def _append(self, content: bytes) -> None:
        self._file.write(content)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._digest.update(content)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
