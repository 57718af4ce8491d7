"""Checkpoints of live runs: all that a stopped run needs to continue, in a file of its own.

A checkpoint is taken between two batches, in memory at most once a second and in the file once a
minute, and at Ctrl-C; a kill costs a minute of work at most. It has the run, the device and the
version of torch that made it: if anything differs, the run begins at its first item.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import whole_file
from zsntta_cli.methods.base import Decisions
from zsntta_cli.progress import Reporter

_FORMAT = 1  # goes up where a state is laid out otherwise
_TAKEN_EVERY, _WRITTEN_EVERY = 1.0, 60.0  # seconds


@dataclass(frozen=True)
class Snapshot:
    """The state of a live run between two batches."""

    decisions: Decisions  # on its first items
    columns: Mapping[str, NDArray[np.float64]]  # (T,) what was noted of each item, nan elsewhere
    states: Mapping[str, Any]  # of the method's parts
    seconds: float  # that it took

    @property
    def items(self) -> int:
        """How many items are decided."""
        return len(self.decisions.class_index)


@dataclass
class Checkpoint:
    """The file of one run's snapshots; a snapshot is read only if its `origin` is equal."""

    path: Path
    origin: Mapping[str, str]
    reporter: Reporter
    _last: Snapshot | None = None  # that is not in the file yet
    _taken: float = field(default_factory=time.monotonic)
    _written: float = field(default_factory=time.monotonic)

    def read(self) -> Snapshot | None:
        """The snapshot in the file; None if there is none from which this run can continue."""
        try:
            content = torch.load(self.path, "cpu", weights_only=True)
            if content["format"] != _FORMAT or content["origin"] != dict(self.origin):
                raise ValueError("it is of another version, device or setting")
            fields = _unpacked(content["snapshot"])
            return Snapshot(**{**fields, "decisions": Decisions(**fields["decisions"])})
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever torch makes of a broken file: it is only a start
            self.discard(error)
            return None

    def discard(self, error: Exception) -> None:
        """Note why the run begins at its first item."""
        self.reporter.note(
            f"note: a checkpoint of this run cannot be used ({first_line(error)}): it begins anew"
        )
        remove(self.path)

    @property
    def is_due(self) -> bool:
        """Whether a snapshot is to be taken."""
        return time.monotonic() - self._taken >= _TAKEN_EVERY

    def take(self, snapshot: Snapshot) -> None:
        """Take a snapshot, and write it if the one in the file is old."""
        self._last, self._taken = snapshot, time.monotonic()
        if self._taken - self._written >= _WRITTEN_EVERY:
            self.write()

    def write(self) -> None:
        """Write the last snapshot, if the file does not have it; a full disk ends no run."""
        if self._last is None:
            return
        snapshot = _packed({**vars(self._last), "decisions": vars(self._last.decisions)})
        content = {"format": _FORMAT, "origin": dict(self.origin), "snapshot": snapshot}
        try:
            with whole_file(self.path) as temporary:
                torch.save(content, temporary)
        except StoreError as error:
            self.reporter.note(f"note: no checkpoint is written: {error}")
        self._last, self._written = None, time.monotonic()


def remove(path: Path) -> None:
    """Remove a checkpoint if it exists."""
    path.unlink(missing_ok=True)


def _packed(value: Any) -> Any:
    """A value with tensors instead of arrays, which torch reads without running code."""
    if isinstance(value, np.ndarray):
        return {"array": torch.from_numpy(value)}
    if isinstance(value, Mapping):
        return {"mapping": {name: _packed(item) for name, item in value.items()}}
    if isinstance(value, list | tuple):
        return type(value)(map(_packed, value))
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        [(kind, content)] = value.items()
        if kind == "array":
            return content.numpy()
        return {name: _unpacked(item) for name, item in content.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_unpacked, value))
    return value
