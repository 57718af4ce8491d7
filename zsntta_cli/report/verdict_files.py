"""Verdict rows in files: CSV, JSON Lines, Parquet."""

import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from zsntta_cli.detection.runs.rows import FIELDS, Row
from zsntta_cli.errors import StoreError
from zsntta_cli.files import whole_file, writing

_IN_MEMORY = 2**24  # bytes of rows that wait for a whole file


def json_lines(rows: Sequence[Row]) -> bytes:
    """Rows as JSON Lines, plain ASCII: names of any bytes are escaped."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def csv_lines(rows: Sequence[Row]) -> bytes:
    """Rows as CSV without a head; lists as JSON, nothing as nothing."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_cells, rows))
    return text.getvalue().encode(errors="surrogateescape")


def _cells(row: Row) -> list[Any]:
    cells = {**row, "top": json.dumps(row["top"]) if row["top"] is not None else None}
    return [str(v).lower() if isinstance(v, bool) else v for v in (cells[f] for f in FIELDS)]


_HEAD = (",".join(FIELDS) + "\n").encode()
# By a file's ending: the bytes before the first row, and those of rows.
_LINES: dict[str, tuple[bytes, Callable[[Sequence[Row]], bytes]]] = {
    ".jsonl": (b"", json_lines),
    ".csv": (_HEAD, csv_lines),
}
_PARQUET = ".parquet"
# Forms by their endings: of a file that grows, and of one that is written at the end.
GROWING = {ending: ending.removeprefix(".") for ending in _LINES}
FORMS = {**GROWING, _PARQUET: "parquet"}


def check_writable(path: Path) -> None:
    """Refuse Parquet with StoreError where what writes it is not installed."""
    if path.suffix.lower() == _PARQUET:
        _arrow(path)


def _arrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise StoreError(f"{path} is Parquet", remedy="install-parquet") from error
    return pyarrow


class WholeFile:
    """A file of rows that is absent or whole: it appears at the end."""

    def __init__(self, path: Path) -> None:
        self._path, self._suffix = path, path.suffix.lower()
        self._rows: list[Row] = []
        self._lines: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        if self._suffix in _LINES:
            self._lines.write(_LINES[self._suffix][0])

    def write(self, rows: Sequence[Row]) -> None:
        """Take more rows."""
        if self._suffix == _PARQUET:
            self._rows += rows
        else:
            self._lines.write(_LINES[self._suffix][1](rows))

    def close(self) -> None:
        """Write it: StoreError where that cannot be done."""
        with self._lines, whole_file(self._path) as temporary:
            if self._suffix == _PARQUET:
                _write_parquet(self._path, temporary, self._rows)
                return
            self._lines.seek(0)
            with temporary.open("wb") as file:
                shutil.copyfileobj(self._lines, file)


def _write_parquet(path: Path, temporary: Path, rows: Sequence[Row]) -> None:
    arrow = _arrow(path)
    text, whole, real = arrow.string(), arrow.int64(), arrow.float64()
    kinds = {
        "format": whole, "source": text, "frame": whole, "time_s": real, "class": text,
        "class_index": whole, "noise": arrow.bool_(), "rank": whole, "score": real,
        "threshold": real, "margin": real, "stage": text,
        "top": arrow.list_(arrow.struct({"class": text, "score": real}.items())),
        "error": text, "encoder": text,
    }  # fmt: skip
    schema = arrow.schema([(name, kinds[name]) for name in FIELDS])
    plain = [{**row, "source": _encodable(row["source"])} for row in rows]
    arrow.parquet.write_table(arrow.Table.from_pylist(plain, schema=schema), temporary)


def _encodable(name: str) -> str:
    """A path of any bytes as UTF-8, which is all that Parquet takes."""
    return name.encode(errors="backslashreplace").decode()


class GrowingFile:
    """A file of rows that grows while a folder is watched; what was taken is durable."""

    def __init__(self, path: Path, size: int, is_new: bool) -> None:
        """Go on at so many bytes: what lies behind them is cut off. `is_new`: begin it.

        Raises:
            StoreError: it is shorter, has content where a new one is to begin, or cannot be
                written.
        """
        self._path, (head, self._lines) = path, _LINES[path.suffix.lower()]
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            there = path.stat().st_size if path.exists() else 0
            if is_new and there:
                raise StoreError(
                    f"{path} has rows already: delete it, name another, or go on with its state.",
                )
            if there < size:
                raise StoreError(f"{path} has {there:,} bytes, and the state says {size:,}.")
            self._file = path.open("r+b" if path.exists() else "w+b")
            self._file.truncate(size)
            self._file.seek(size)
            self._append(head if not size else b"")

    @property
    def size(self) -> int:
        """Bytes that are durable."""
        return self._file.tell()

    def write(self, rows: Sequence[Row]) -> None:
        """Add rows: StoreError where they cannot be written."""
        with writing(self._path):
            self._append(self._lines(rows))

    def _append(self, content: bytes) -> None:
        self._file.write(content)
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of it."""
        self._file.close()
