"""A kept run as a card on the terminal: all that is known of it."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from zsntta_cli.cache.origin import origins_in, shared_once
from zsntta_cli.report.cards import card
from zsntta_cli.results.kept import Kept


def run_card(kept: Kept) -> Table:
    """All facts about one run."""
    plain = kept.record.to_dict()
    settings = plain["settings"]
    groups = {name: settings.pop(name) for name in ("stream", "threshold", "options")}
    facts = {**settings, **groups}
    for name in ("accuracies", "detection", "flags"):
        facts[name] = {metric: _percent(value) for metric, value in plain.pop(name).items()}
    facts |= {name: value for name, value in plain.items() if name not in ("settings", "memory")}
    facts["memory"] = f"{kept.record.memory / 2**20:,.0f} MiB"
    facts["seconds"] = f"{kept.record.seconds:.3f}"
    facts["features"] = _origins(plain["features"])
    facts["notes"] = "\n".join(note.text for note in kept.record.notes)
    return card(f"run {kept.key}", {name: _fact(value) for name, value in facts.items()})


def _origins(features: Mapping[str, Any]) -> dict[str, str]:
    """The origins of features: what all sets share, then a line for each set's own facts."""
    shared, sets = shared_once(origins_in(features)).values()  # of a stranger's record, too
    return {name: _listed(value) for name, value in (*shared.items(), *sets.items())}


def _listed(value: Any) -> str:
    """A value in one line; equal values of several names are grouped."""
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(f"{name} {value[name]}" for name in value)


def _fact(value: Any) -> str:
    """A fact of a card; a group of settings has a line for each."""
    if isinstance(value, Mapping):
        return "\n".join(f"{name} = {value[name]}" for name in value)
    return "" if value in (None, 0) else str(value)


def _percent(value: float | None) -> str:
    """A fraction in percent; a dash if there is none."""
    return "-" if value is None else f"{100 * value:.2f}"
