"""The progress of a live run: the parts that have a state, and the next item."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import first_line
from zsntta_cli.methods.learned import restored, state_of


class StaleState(Exception):
    """The parts of a method cannot continue from a state."""


@runtime_checkable
class Stateful(Protocol):
    """A part of a method that learns with torch; other parts are what learned.py writes."""

    def state(self) -> Any:
        """Everything that it learned, in arrays, tensors, numbers and containers of these."""

    def restore(self, state: Any) -> None:
        """Continue from the state of a similar part."""


class Progress:
    """The place of a run in the stream; a method passes its parts once, before its first item.

    States are read between two batches, while the method waits for the next call.
    """

    def __init__(self, start: int = 0, states: Mapping[str, Any] | None = None) -> None:
        """`start`: the number of finished items; `states`: of all parts after these."""
        self._start, self._states = start, states
        self._parts: Mapping[str, Any] = {}

    def follow(self, **parts: Any) -> None:
        """Remember the parts of a method, and restore their states.

        Raises:
            StaleState: the states are those of other parts.
        """
        self._parts = parts
        if self._states is not None:
            try:
                for name, part in parts.items():
                    _restore(part, self._states[name])
            except (ValueError, LookupError, TypeError, RuntimeError) as error:
                raise StaleState(first_line(error)) from error

    def left(self, batches: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """The batches that are not finished."""
        return [batch for batch in batches if batch[0] >= self._start]

    @property
    def is_followed(self) -> bool:
        """Whether there is any part that has a state."""
        return bool(self._parts)

    def states(self) -> dict[str, Any]:
        """The current state of each part, as a copy."""
        return copy.deepcopy({name: _state(part) for name, part in self._parts.items()})


def _state(part: Any) -> Any:
    return part.state() if isinstance(part, Stateful) else state_of(part)


def _restore(part: Any, state: Any) -> None:
    if isinstance(part, Stateful):
        part.restore(state)
    else:
        vars(part).update(vars(restored(part, state)))
