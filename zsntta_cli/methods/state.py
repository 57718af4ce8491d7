"""States: what a detector has learned, as a flat mapping of names to arrays and numbers.

`part.name` is a name within a part. All states of a detector have the same names, types and shapes,
except for the number of items in a part `waiting`. So the state of another detector is recognised
before any of it is used.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = NDArray[Any] | float | int
State = dict[str, Value]


def nested(**parts: Mapping[str, Value]) -> State:
    """Combine the states of several parts."""
    return {f"{part}.{name}": v for part, state in parts.items() for name, v in state.items()}


def within(state: Mapping[str, Value], part: str) -> State:
    """The state of one part."""
    start = f"{part}."
    return {name.removeprefix(start): v for name, v in state.items() if name.startswith(start)}


def copied(state: Mapping[str, Value]) -> State:
    """Copy a state into arrays of its own."""
    return {k: v.copy(order="K") if isinstance(v, np.ndarray) else v for k, v in state.items()}


def checked(state: Mapping[str, Value], like: Mapping[str, Value]) -> State:
    """Check a state that is to replace `like`, and copy it into arrays of its own.

    Raises:
        ValueError: its names, types or shapes differ.
    """
    for name in sorted({*state} ^ {*like}):
        raise ValueError(f"{name} is {'unknown' if name in state else 'missing'}")
    new = {name: _checked(name, state[name], old) for name, old in like.items()}
    rows = {len(v) for k, v in new.items() if _waits(k) and isinstance(v, np.ndarray)}
    if len(rows) > 1:
        raise ValueError("items that wait are not all there")
    return new


def _checked(name: str, new: Value, old: Value) -> Value:
    if isinstance(old, np.ndarray):
        return _checked_array(name, new, old)
    if isinstance(new, np.ndarray | bool) or not isinstance(new, int | float):
        raise ValueError(f"{name} is {_kind(new)}, must be a number")
    if isinstance(old, int):
        if not isinstance(new, int) or not 0 <= new < 2**62:
            raise ValueError(f"{name} is {new}, must be a count")
        return new
    return float(new)


def _checked_array(name: str, new: Value, old: NDArray[Any]) -> NDArray[Any]:
    first = 1 if _waits(name) else 0  # the number of waiting items is free
    if (
        not isinstance(new, np.ndarray)
        or new.ndim != old.ndim
        or (new.shape[first:], new.dtype) != (old.shape[first:], old.dtype)
    ):
        raise ValueError(f"{name} is {_kind(new)}, must be {_kind(old)}")
    # Products depend on the order in memory, so that is kept.
    return new.copy(order="F" if old.flags.fnc else "C")


def _waits(name: str) -> bool:
    return "waiting" in name.split(".")


def _kind(value: Any) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else f"{value!r:.20}"
