"""How far a live run is: what its state is taken of, and the item that it goes on with."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import first_line


class StaleState(Exception):
    """A state that the parts of a method cannot go on from."""


class Stateful(Protocol):
    """A part of a method that learns: its state can be taken, and given to another one like it."""

    def state(self) -> Any:
        """What it has learned, in arrays, tensors, numbers and containers of these."""

    def restore(self, state: Any) -> None:
        """Go on from a state that was taken of one like it."""


class Progress:
    """Where a run is, in items; a method hands over its parts once, before its first item.

    States are taken between two batches, while the method waits to be asked for the next one.
    """

    def __init__(self, start: int = 0, states: Mapping[str, Any] | None = None) -> None:
        """`start`: the items that are done; `states`: of all parts, after these."""
        self._start, self._states = start, states
        self._parts: Mapping[str, Stateful] = {}

    def follow(self, **parts: Stateful) -> None:
        """Take over the parts of a method, which get the states that they go on from.

        Raises:
            StaleState: they are those of other parts.
        """
        self._parts = parts
        if self._states is not None:
            try:
                for name, part in parts.items():
                    part.restore(self._states[name])
            except (ValueError, LookupError, TypeError, RuntimeError) as error:
                raise StaleState(first_line(error)) from error

    def left(self, batches: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """The batches that are not done yet."""
        return [batch for batch in batches if batch[0] >= self._start]

    @property
    def is_followed(self) -> bool:
        """Whether there is anything that a state could be taken of."""
        return bool(self._parts)

    def states(self) -> dict[str, Any]:
        """The state of each part as it is now, in arrays and tensors of its own."""
        return copy.deepcopy({name: part.state() for name, part in self._parts.items()})
