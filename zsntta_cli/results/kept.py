"""What is kept of a finished run, and the key under which it is found again.

The key is a digest of what determines the numbers: settings, digests of features and the revision
of the rules. Settings at their defaults do not enter it, so a setting that a later version adds
changes no key. Before a record is used all of its settings are compared with those wanted, so a
default that has changed since gives no stale record.
"""

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zsntta_cli.results.curves import Curves, curves_of, drawable_curves
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.recorded import changed_settings, has_recorded_settings
from zsntta_cli.simulation.runs import RunSettings


@dataclass(frozen=True)
class Kept:
    """A finished run: its record and its curves."""

    record: Record
    curves: Curves  # as they were kept, by this version or elsewhere
    read_key: str = field(default="", compare=False)  # where it was read; of a new one nothing

    @property
    def key(self) -> str:
        """The key under which the run is found.

        If the method's settings are not declared here, their defaults are unknown: then the key is
        the one that the run was read with, or is made from its own record.
        """
        record = self.record
        is_recorded = has_recorded_settings(record.settings)
        if is_recorded and re.fullmatch(r"[0-9a-f]{64}", self.read_key):
            return self.read_key
        changed = record.own.changed if record.own and is_recorded else None
        return run_key(record.settings, record.digests, record.revision, changed)

    @functools.cached_property
    def drawable(self) -> Curves:
        """Its curves that can be drawn."""
        return drawable_curves(self.curves)


def kept_of(replay: Replay) -> Kept:
    """The parts of a run that are kept.

    The caller must not keep a run that Ctrl-C stopped: it is not finished.
    """
    return Kept(replay.record(), curves_of(replay))


def run_key(
    settings: RunSettings,
    digests: Mapping[str, str],
    revision: str,
    changed_options: Mapping[str, Any] | None = None,
) -> str:
    """SHA-256 (hex) of all that determines a run's numbers.

    `changed_options` are the settings that differ from their defaults, for methods whose settings
    no class here declares.
    """
    if changed_options is None:
        changed_options = changed_settings(settings.options)
    plain = {
        "method": settings.method,
        "encoder": settings.encoder,
        "id_set": settings.id_set,
        "ood_set": settings.ood_set,
        "prompt": settings.prompt,
        "stream": changed_settings(settings.stream),
        "threshold": changed_settings(settings.threshold),
        "options": dict(changed_options),
        "digests": dict(digests),
        "revision": revision,
    }
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
