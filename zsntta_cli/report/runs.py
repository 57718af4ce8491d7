"""Kept runs for people and for other tools: a line each, a card, JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from zsntta_cli.errors import printable
from zsntta_cli.report.cards import card
from zsntta_cli.simulation.records.exchange import line
from zsntta_cli.simulation.records.kept import Kept
from zsntta_cli.simulation.records.store import Line

DIGITS = 8  # of a key, as it is shown
_HEADS = (
    "Key", "Method", "ID", "OOD", "Noise", "Seed", "Acc_S", "Acc_N", "Acc_H", "AUROC", "Encoder",
    "Made",
)  # fmt: skip
_NUMBERS = range(4, 10)  # columns to the right


def run_lines(found: Sequence[Line]) -> list[str]:
    """A table as plain lines: of ten thousand runs, too, in a moment."""
    rows = [_HEADS, *(_row(one) for one in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(_padded, row, widths, range(len(row)))).rstrip() for row in rows]


def _padded(text: str, width: int, column: int) -> str:
    return text.rjust(width) if column in _NUMBERS else text.ljust(width)


def _row(one: Line) -> tuple[str, ...]:
    metrics = (one.acc_s, one.acc_n, one.acc_h, one.auroc)
    return (
        one.key[:DIGITS], printable(one.method), printable(one.id_set),
        printable(one.ood_set or "-"), f"{one.ratio:.4g}", str(one.seed), *map(_percent, metrics),
        printable(one.encoder), printable(one.created[:16].replace("T", " ")),
    )  # fmt: skip


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def run_card(kept: Kept) -> Table:
    """Everything about one run."""
    plain = kept.record.to_dict()
    settings = plain["settings"]
    groups = {name: settings.pop(name) for name in ("stream", "threshold", "options")}
    facts = {**settings, **groups}
    for name in ("accuracies", "detection", "flags"):
        facts[name] = {metric: _percent(value) for metric, value in plain.pop(name).items()}
    facts |= {name: value for name, value in plain.items() if name not in ("settings", "memory")}
    facts["memory"] = f"{kept.record.memory / 2**20:,.0f} MiB"
    facts["seconds"] = f"{kept.record.seconds:.3f}"
    facts["items"] = "kept" if kept.items else "not kept"
    return card(f"run {kept.key}", {name: _fact(value) for name, value in facts.items()})


def _fact(value: Any) -> str:
    """A fact of a card; a group of settings has a line each."""
    if isinstance(value, Mapping):
        return "\n".join(f"{name} = {value[name]}" for name in value)
    return "" if value in (None, 0) else str(value)


def exported(found: Sequence[Kept], form: str) -> str:
    """Runs as JSON Lines, or as the list of records that `simulate --format json` gives."""
    if form == "json":
        return json.dumps([kept.record.to_dict() for kept in found], indent=1) + "\n"
    return "".join(f"{line(kept)}\n" for kept in found)
