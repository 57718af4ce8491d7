"""What is kept of a finished run, and the key under which it is found again.

The key is a digest of what determines the numbers: settings, digests of features and the revision
of the rules. Settings at their defaults do not enter it; before a record is used all of its
settings are compared with those wanted.
"""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from zsntta_cli.results.curves import Curves, curves_of, drawable_curves
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.recorded import changed_settings
from zsntta_cli.simulation.runs import RunSettings, declared


@dataclass(frozen=True)
class Kept:
    """A finished run: its record and its curves."""

    record: Record
    curves: Curves  # as they were kept, by this version or elsewhere

    @property
    def key(self) -> str:
        """The key under which the run is found."""
        return run_key(self.record.settings, self.record.digests, self.record.revision)

    @functools.cached_property
    def drawable(self) -> Curves:
        """Its curves that can be drawn."""
        return drawable_curves(self.curves)


def kept_of(replay: Replay) -> Kept:
    """The parts of a run that are kept.

    The caller must not keep a run that Ctrl-C stopped: it is not finished.
    """
    return Kept(replay.record(), curves_of(replay))


def run_key(settings: RunSettings, digests: Mapping[str, str], revision: str) -> str:
    """SHA-256 (hex) of all that determines a run's numbers."""
    fields = declared(settings.method)
    plain = {
        "method": settings.method,
        "encoder": settings.encoder,
        "id_set": settings.id_set,
        "ood_set": settings.ood_set,
        "prompt": settings.prompt,
        "stream": changed_settings(vars(settings.stream), fields),
        "threshold": changed_settings(vars(settings.threshold), fields),
        "options": changed_settings(settings.options.values(), fields),
        "digests": dict(digests),
        "revision": revision,
    }
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
