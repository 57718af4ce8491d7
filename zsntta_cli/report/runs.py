"""Kept runs for people and for other tools: a card, JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from zsntta_cli.report.cards import card
from zsntta_cli.report.run_list import percent
from zsntta_cli.results.exchange import line
from zsntta_cli.results.kept import Kept


def run_card(kept: Kept) -> Table:
    """Everything about one run."""
    plain = kept.record.to_dict()
    settings = plain["settings"]
    groups = {name: settings.pop(name) for name in ("stream", "threshold", "options")}
    facts = {**settings, **groups}
    for name in ("accuracies", "detection", "flags"):
        facts[name] = {metric: percent(value) for metric, value in plain.pop(name).items()}
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
