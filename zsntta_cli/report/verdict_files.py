"""Verdict rows in files, each a sink: CSV, JSON Lines, Parquet."""

import csv
import io
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from zsntta_cli.detection.detecting.run import Batch, RowSink
from zsntta_cli.detection.verdicts import FIELDS, VerdictRow, row_schema
from zsntta_cli.errors import StoreError
from zsntta_cli.files import whole_file

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
    """A form of lines: the text before the first row, and rows as bytes."""

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
            raise StoreError(
                f"{path} is Parquet: pip install 'zsntta[parquet]' reads and writes it"
            ) from error
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


# Forms by their endings, as the command line checks them.
FORMS = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet"}


def rows_file(path: Path) -> RowSink:
    """The file for rows, by its ending, one of FORMS; nothing is written yet.

    Raises:
        StoreError: the library that writes it is not installed.
    """
    return LinesFile(path) if path.suffix.lower() in _LINES else ParquetFile(path)
