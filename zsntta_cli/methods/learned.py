"""What an online method has learned: its attributes, which three functions copy, compare and write.

An attribute is an array, a number, a text, or an object of such attributes. What a method was
given is none of it: settings, pools and all other frozen dataclasses, functions, classes and None.
That never changes, so copies share it and a state does not have it.

A state is a flat mapping; "queue.score" is the attribute `score` of the attribute `queue`. All
states of a method have the same names, types and shapes. Only an array that is empty in a new
method, such as a column of a queue, may have any number of rows.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Value = NDArray[Any] | float | int | str
State = dict[str, Value]
Learned = TypeVar("Learned")
_LARGEST = 2**62  # of a whole number
_CODE = (type, FunctionType, MethodType, BuiltinFunctionType, partial)


@runtime_checkable
class Consistent(Protocol):
    """An object that knows which of its states are possible."""

    def check_learned(self) -> None:
        """Raise ValueError if the attributes contradict each other."""


def copied(learned: Learned) -> Learned:
    """A copy that learns separately; products depend on the order in memory, so that is kept."""
    new = copy.copy(learned)
    for name, value in _attributes(learned):
        if isinstance(value, np.ndarray):
            new.__dict__[name] = value.copy(order="K")
        elif hasattr(value, "__dict__"):
            new.__dict__[name] = copied(value)
    return new


def equal(one: Any, other: Any) -> bool:
    """Whether two methods have learned the same, to the bit."""
    states = state_of(one), state_of(other)
    return states[0].keys() == states[1].keys() and all(
        _is_equal(value, states[1][name]) for name, value in states[0].items()
    )


def state_of(learned: Any) -> State:
    """Everything that was learned, as copies of arrays and numbers."""
    return {
        name: value.copy(order="K") if isinstance(value, np.ndarray) else value
        for name, value in _values(learned)
    }


def restored(new: Learned, state: Mapping[str, Value]) -> Learned:
    """A copy of a new method that has learned what a state says.

    Raises:
        ValueError: the state is of another method, of other settings, classes or dims, or damaged.
    """
    method = copied(new)
    _fill(method, checked(state, dict(_values(new))), "")
    return method


def checked(state: Mapping[str, Value], like: Mapping[str, Value]) -> State:
    """A state with the names, types and shapes of another one, in arrays of its own.

    Raises:
        ValueError: its names, types or shapes differ.
    """
    for name in sorted({*state} ^ {*like}):
        raise ValueError(f"{name} is {'unknown' if name in state else 'missing'}")
    return {name: _checked(name, state[name], old) for name, old in like.items()}


def nested(**parts: Mapping[str, Value]) -> State:
    """Combine the states of several parts."""
    return {f"{part}.{name}": v for part, state in parts.items() for name, v in state.items()}


def within(state: Mapping[str, Value], part: str) -> State:
    """The state of one part."""
    start = f"{part}."
    return {name.removeprefix(start): v for name, v in state.items() if name.startswith(start)}


def _attributes(learned: Any) -> Iterator[tuple[str, Any]]:
    """The attributes that are learned and not given."""
    for name, value in vars(learned).items():
        if not _is_given(value):
            yield name, value


def _is_given(value: Any) -> bool:
    if value is None or isinstance(value, _CODE):
        return True
    return is_dataclass(value) and bool(getattr(value, "__dataclass_params__").frozen)  # noqa: B009


def _values(learned: Any, prefix: str = "") -> Iterator[tuple[str, Value]]:
    for name, value in _attributes(learned):
        if isinstance(value, np.ndarray | float | int | str):
            yield prefix + name, value
        elif hasattr(value, "__dict__"):
            yield from _values(value, f"{prefix}{name}.")
        else:
            raise TypeError(f"{prefix}{name} is a {type(value).__name__}: no state has such")


def _fill(learned: Any, values: Mapping[str, Value], prefix: str) -> None:
    """Give an object and what is within it their values, and check what they say together."""
    rows = set()
    for name, old in list(_attributes(learned)):
        if prefix + name not in values:
            _fill(old, values, f"{prefix}{name}.")
            continue
        value = values[prefix + name]
        learned.__dict__[name] = value
        if _grows(old) and isinstance(value, np.ndarray):
            rows.add(len(value))
    if len(rows) > 1:
        raise ValueError(
            f"{prefix.removesuffix('.') or 'the state'} has columns of several lengths"
        )
    if isinstance(learned, Consistent):
        learned.check_learned()


def _grows(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0 and not len(value)


def _is_equal(one: Value, other: Value) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(
            one, other, equal_nan=one.dtype.kind == "f"
        )
    return type(one) is type(other) and bool(one == other or one != one)


def _checked(name: str, new: Value, old: Value) -> Value:
    """A value of a state that takes the place of an old one."""
    if isinstance(old, np.ndarray):
        return _checked_array(name, new, old)
    if isinstance(old, str) or isinstance(new, str | np.ndarray):
        if type(new) is not type(old):
            raise ValueError(f"{name} is {_kind(new)}, must be {_kind(old)}")
        return new
    if isinstance(old, bool):
        if new not in (0, 1):
            raise ValueError(f"{name} is {new}, must be true or false")
        return bool(new)
    if isinstance(new, bool):
        raise ValueError(f"{name} is {new}, must be a number")
    if isinstance(old, int):
        if not isinstance(new, int) or not 0 <= new < _LARGEST:
            raise ValueError(f"{name} is {new}, must be a count")
        return new
    return float(new)


def _checked_array(name: str, new: Value, old: NDArray[Any]) -> NDArray[Any]:
    first = 1 if _grows(old) else 0  # the number of rows is free
    if (
        not isinstance(new, np.ndarray)
        or new.ndim != old.ndim
        or (new.shape[first:], new.dtype) != (old.shape[first:], old.dtype)
    ):
        raise ValueError(f"{name} is {_kind(new)}, must be {_kind(old)}")
    return new.copy(order="F" if old.flags.fnc else "C")


def _kind(value: Any) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else f"{value!r:.20}"
