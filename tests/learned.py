"""What methods and detectors have learned, by names: for tests that compare them."""

from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType

import numpy as np

PLAIN = np.ndarray | np.generic | float | int | str | None
CODE = type | FunctionType | MethodType | BuiltinFunctionType | partial


def state_of(value, name=""):
    """The arrays, numbers and texts within an object."""
    if isinstance(value, PLAIN):
        return {name: value}
    if isinstance(value, CODE):
        return {}
    if isinstance(value, tuple | list):
        parts = enumerate(value)
    elif isinstance(value, dict):
        parts = value.items()
    elif is_dataclass(value):
        parts = ((field.name, getattr(value, field.name)) for field in fields(value))
    else:
        parts = getattr(value, "__dict__", {}).items()
    return {k: v for part, one in parts for k, v in state_of(one, f"{name}.{part}").items()}


def equal(one, other):
    """Whether two have learned the same, to the bit."""
    one, other = state_of(one), state_of(other)
    return one.keys() == other.keys() and all(
        np.array_equal(v, other[k], equal_nan=np.asarray(v).dtype.kind == "f")
        for k, v in one.items()
    )
