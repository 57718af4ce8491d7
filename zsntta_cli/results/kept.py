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
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import StoreError
from zsntta_cli.results.curves import Curves, curves_of, drawable_curves
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.recorded import changed_settings, has_recorded_settings
from zsntta_cli.simulation.runs import RunSettings

_NOISE, _RIGHT = 1, 2  # bits of an item
_BROKEN = "the kept items of a run are broken"


@dataclass(frozen=True)
class KeptItems:
    """Decisions on the test samples of a stream, in its order (T,), to compare methods by item."""

    class_index: NDArray[np.uint16]
    is_noise: NDArray[np.bool_]
    is_right: NDArray[np.bool_]  # an ID sample called clean and classified right, OOD called noise

    def __len__(self) -> int:
        return len(self.class_index)

    def packed(self) -> bytes:
        """The items, compressed: columns of classes and of bits, at most three bytes an item."""
        bits = self.is_noise * np.uint8(_NOISE) + self.is_right * np.uint8(_RIGHT)
        raw = self.class_index.astype("<u2").tobytes() + bits.astype(np.uint8).tobytes()
        return zlib.compress(raw, 1)

    @classmethod
    def unpacked(cls, packed: bytes, count: int) -> "KeptItems":
        """The items of a run with `count` test samples.

        Raises:
            StoreError: the content is not the items of such a run.
        """
        try:
            reader = zlib.decompressobj()
            raw = reader.decompress(packed, 3 * count + 1)
        except zlib.error as error:
            raise StoreError(f"{_BROKEN} ({error}).") from error
        if len(raw) != 3 * count:
            raise StoreError(f"{_BROKEN}: they are not {count:,}.")
        classes = np.frombuffer(raw, "<u2", count).astype(np.uint16)
        bits = np.frombuffer(raw, np.uint8, offset=2 * count)
        return cls(classes, (bits & _NOISE).astype(bool), (bits & _RIGHT).astype(bool))

    @classmethod
    def if_whole(cls, packed: object, count: int) -> "KeptItems | None":
        """The items of a run with `count` test samples; None where a damaged store has others."""
        try:
            return cls.unpacked(packed, count) if isinstance(packed, bytes) else None
        except StoreError:
            return None


@dataclass(frozen=True)
class Kept:
    """A finished run: its record, its curves and, where they were asked for, its items."""

    record: Record
    curves: Curves  # as they were kept, by this version or elsewhere
    items: KeptItems | None = None
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


def kept_of(replay: Replay, with_items: bool = False) -> Kept:
    """The parts of a run that are kept.

    The caller must not keep a run that Ctrl-C stopped: it is not finished.
    """
    return Kept(replay.record(), curves_of(replay), _items_of(replay) if with_items else None)


def _items_of(replay: Replay) -> KeptItems | None:
    """The items of a run; None if its method does not decide, or has 2**16 classes or more."""
    decisions, judged = replay.decisions, replay.judged
    if decisions.is_noise is None or decisions.class_index.max(initial=0) >= 2**16:
        return None
    return KeptItems(judged.class_index.astype(np.uint16), judged.noise, judged.is_right)


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
