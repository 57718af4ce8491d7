"""The notes below a table on methods whose best value is the best of several settings."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from zsntta_cli.report.sheet import Best
from zsntta_cli.results.frame import PRESET, ResultRow, differing, is_digest, setting_name
from zsntta_cli.settings import StreamSettings

Texts = Mapping[ResultRow[Any], Mapping[str, Sequence[str]]]  # of rows, by column

_OF_STREAMS = {field.name for field in fields(StreamSettings)}  # no settings of a method


def sweep_notes(texts: Texts) -> list[str]:
    """Which methods are the best of several settings that were run on the reported streams."""
    swept: dict[str, dict[str, None]] = {}
    groups: dict[Any, list[ResultRow[Any]]] = {}
    for row in texts:
        key = row.stream, row.ratio, row.method, row.settings[PRESET], row.settings["prompt"]
        groups.setdefault(key, []).append(row)
    for rows in groups.values():
        names = [n for n in differing(rows) if n not in _OF_STREAMS and not is_digest(n)]
        if names and any(_is_best(texts[row]) for row in rows):
            swept.setdefault(rows[0].method, {}).update(dict.fromkeys(names))
    return [
        f"Several settings of {method} ({', '.join(map(setting_name, names))}) were run on the "
        f"streams that this table reports, so the best of them is optimistic: choose settings on "
        f"other sets, as docs/experiments.md shows."
        for method, names in swept.items()
    ]


def _is_best(by_column: Mapping[str, Sequence[str]]) -> bool:
    return any(isinstance(text, Best) for texts in by_column.values() for text in texts)
