"""Comparisons as CSV and JSON: a line a metric of a cell, with all that tells what it is."""

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

from zsntta_cli.paper.comparing import Comparison
from zsntta_cli.paper.layout.sheets import Sheet
from zsntta_cli.paper.printed.published import Number


def plain(one: Comparison) -> dict[str, Any]:
    """A comparison as plain values; what is not known is None."""
    of, measured = one.cell.of, one.measured
    number = one.published or Number(math.nan)
    numbers = {
        "measured": measured.mean if measured else math.nan,
        "measured_std": measured.std if measured else math.nan,
        "published": number.mean,
        "published_std": number.std,
        "difference": one.difference,
        "deviation": one.deviation,
    }
    return {
        "table": of.table, "group": one.cell.group, "row": ", ".join(one.cell.row),
        "column": one.cell.column, "id_set": of.id_set, "ood_set": of.ood_set,
        "encoder": of.encoder, "method": of.method, "setting": of.setting, "ratio": of.ratio,
        "metric": one.metric, **{k: None if math.isnan(v) else v for k, v in numbers.items()},
        "seeds": measured.seeds if measured else 0,
        "streams": measured.present if measured else 0,
        "streams_wanted": measured.wanted if measured else None,
        "verdict": one.verdict or None, "note": one.mark.reason if one.mark else None,
    }  # fmt: skip


def plain_texts(table: int, sheet: Sheet) -> list[dict[str, Any]]:
    """The cells of a table without measurements."""
    return [
        {"table": table, "row": ", ".join(line), "column": column, "text": " ".join(texts)}
        for line, by_column in sheet.lines
        for column, texts in by_column.items()
    ]


def json_text(rows: Sequence[dict[str, Any]]) -> str:
    """A JSON array."""
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """CSV with a head."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
