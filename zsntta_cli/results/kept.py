"""What is kept of a finished run, and the key under which it is found again.

The key is made of what decides the numbers: settings, digests of features and the revision of the
rules. Settings at their defaults do not enter it, so a setting that a later version adds changes no
key; whoever takes a record compares all of its settings with those wanted, so a default that has
changed since gives no stale one.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zsntta_cli.results.curves import Curves, curves_of, drawable_curves
from zsntta_cli.results.items import Items, items_of
from zsntta_cli.settings.options import value_type
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.runs import RunSettings


@dataclass(frozen=True)
class Kept:
    """A finished run: its record, its curves and, where they were asked for, its items."""

    record: Record
    curves: Curves  # as they were kept, by this version or elsewhere
    items: Items | None = None

    @property
    def key(self) -> str:
        """Under which it is found."""
        return run_key(self.record.settings, self.record.digests, self.record.revision)

    @functools.cached_property
    def drawable(self) -> Curves:
        """Those of its curves that can be drawn."""
        return drawable_curves(self.curves)


def kept_of(replay: Replay, with_items: bool = False) -> Kept:
    """What is kept of a run.

    A run that Ctrl-C stopped is no finished one: its caller must not keep it.
    """
    items = items_of(replay) if with_items else None
    return Kept(replay.record(), curves_of(replay), items)


def run_key(settings: RunSettings, digests: Mapping[str, str], revision: str) -> str:
    """SHA-256 (hex) of what decides a run's numbers."""
    plain = {
        "method": settings.method,
        "encoder": settings.encoder,
        "id_set": settings.id_set,
        "ood_set": settings.ood_set,
        "prompt": settings.prompt,
        "stream": _changed(settings.stream),
        "threshold": _changed(settings.threshold),
        "options": _changed(settings.options),
        "digests": dict(digests),
        "revision": revision,
    }
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _changed(group: Any) -> dict[str, Any]:
    """Values of settings that are not their defaults: of equal ones, equal."""
    changed = {}
    for field in dataclasses.fields(group):
        value = getattr(group, field.name)
        if value != field.default:
            is_number = value_type(field)[0] is float and value is not None
            changed[field.name] = float(value) if is_number else value
    return changed
