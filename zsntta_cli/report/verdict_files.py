"""Verdict rows in files, each absent or whole: CSV, JSON Lines, Parquet."""

import csv
import io
import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from zsntta_cli.detection.verdicts import FIELDS, Row
from zsntta_cli.errors import StoreError
from zsntta_cli.files import whole_file, write_whole

_NUMBERS = ("score", "threshold", "margin", "evidence", "level")
# Forms by their endings, as the command line checks them.
FORMS = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet"}


def check_form(path: Path) -> None:
    """Refuse, before the work, a file whose library is not there; StoreError says which."""
    if path.suffix.lower() == ".parquet" and not find_spec("pyarrow"):
        raise StoreError(f"{path} is Parquet: pip install 'zsntta[parquet]' reads and writes it")


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows to a file by its ending, one of FORMS.

    Raises:
        StoreError: that fails; what was at the path before is still there.
    """
    form = path.suffix.lower()
    if form == ".parquet":
        _write_parquet(path, rows)
    else:
        write_whole(path, json_lines(rows) if form == ".jsonl" else csv_lines(rows))


def json_lines(rows: Sequence[Row]) -> bytes:
    """Rows as JSON Lines in plain ASCII; names of any bytes are escaped."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def csv_lines(rows: Sequence[Row]) -> bytes:
    """Rows as CSV with a head; lists are JSON, None is empty."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(FIELDS)
    for row in rows:
        values = [row[name] for name in FIELDS]
        lines.writerow([json.dumps(v) if isinstance(v, bool | list) else v for v in values])
    return text.getvalue().encode(errors="surrogateescape")


def _write_parquet(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as Parquet; bytes of a path that are not UTF-8 are escaped, as it needs."""
    import pyarrow
    import pyarrow.parquet

    plain = [
        {**row, "source": row["source"].encode(errors="backslashreplace").decode()} for row in rows
    ]
    types = dict.fromkeys(FIELDS, pyarrow.string())
    types |= dict.fromkeys(("format", "class_index", "rank"), pyarrow.int64())
    types |= dict.fromkeys(_NUMBERS, pyarrow.float64())
    likely = pyarrow.struct([("class", pyarrow.string()), ("score", pyarrow.float64())])
    types |= {"noise": pyarrow.bool_(), "top": pyarrow.list_(likely)}
    table = pyarrow.Table.from_pylist(plain, schema=pyarrow.schema(types))
    with whole_file(path) as temporary:
        pyarrow.parquet.write_table(table, temporary)
