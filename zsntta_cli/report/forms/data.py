"""Rows of values as CSV and JSON, for programs."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any


def csv_text(rows: Sequence[dict[str, Any]], columns: Sequence[str] = ()) -> str:
    """A head and one line per row; None is empty, numbers are not rounded."""
    heads = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    text = io.StringIO()
    writer = csv.DictWriter(text, heads, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def json_text(rows: Sequence[dict[str, Any]], _columns: Sequence[str] = ()) -> str:
    """A list of objects; None is null."""
    return json.dumps(list(rows), indent=1) + "\n"
