"""Check what a detector is given before it is used; a SettingsError is one clear line."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.identity import TEXT_TOLERANCE
from zsntta_cli.errors import SettingsError, counted, first_of, near, short
from zsntta_cli.methods import METHODS, own_code
from zsntta_cli.methods.method import fields_of
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import LARGEST_SCALE, check, check_choice, is_bias, is_scale

DETECTORS = ("zs-clip", "adand", "cull")  # the methods that judge single images
_LOGARITHMS = math.log(50), math.log(200)  # CLIP's scale is 100, SigLIP's 110 to 120
_UNIT = 1e-3  # a mean of unit features whose norm is nearer to 1 is of texts that are all alike
_LARGEST = 1e15  # of a feature's numbers: their squares are numbers in single precision too

Rows = NDArray[np.float32]


def check_method(name: str) -> None:
    """Raise SettingsError unless a method is one that judges single images here."""
    if name not in DETECTORS:
        plugged_in = [method for method in METHODS if own_code(method) and METHODS[method].online]
        check_choice("method", str(name), [*DETECTORS, *plugged_in])


def checked_settings(method: str, values: Mapping[str, Any]) -> tuple[ThresholdSettings, Any]:
    """Settings of the threshold and of a method from single values, named as `simulate` does."""
    check_method(method)
    of_threshold, of_method = dict[str, Any](), dict[str, Any]()
    for name, value in values.items():
        is_of_threshold = name in fields_of(ThresholdSettings)
        if not is_of_threshold and name not in METHODS[method].fields():
            choices = sorted({*fields_of(ThresholdSettings), *METHODS[method].fields()})
            has = f"{near(name, choices)}: it has {', '.join(choices)}."
            raise SettingsError(f"{short(name)} is not a setting of {method}{has}")
        (of_threshold if is_of_threshold else of_method)[name] = plain(value)
    options = METHODS[method].settings(**of_method)
    size = options.at_once
    check(size == 1, f"batch-size is {size}, must be 1: each item is decided on arrival.")
    return ThresholdSettings(**of_threshold), options


def checked_text(text: Any) -> Rows:
    """Text features (C, D) of classes, brought to unit norm if necessary."""
    rows = checked_rows("text", text)
    check(rows.size > 0, "text is empty: name one class or more.")
    check(bool(rows.any(axis=1).all()), "text has a row of zeros.")
    is_unit = abs(np.linalg.norm(rows, axis=1) - 1) < TEXT_TOLERANCE
    return rows.copy() if is_unit.all() else unit(rows).astype(np.float32)  # a replay's to the bit


def checked_scale(scale: Any) -> float:
    """A logit scale, exponentiated; a warning says if it looks like the logarithm."""
    value, bounds = plain(scale), f"above 0 and at most {LARGEST_SCALE:,.0f}"
    wrong = f"scale is {short(repr(scale))}, must be {bounds}: CLIP's is about 100."
    check(is_scale(value), wrong)
    if _LOGARITHMS[0] < value < _LOGARITHMS[1]:
        warnings.warn(
            f"scale is {value:.5g}, which looks like the logarithm of a scale: if it is, give "
            f"exp({value:.5g}) = {math.exp(value):.4g} instead, as CLIP's is about 100.",
            stacklevel=3,
        )
    return float(value)


def checked_bias(bias: Any) -> float:
    """A sigmoid model's logit bias."""
    wrong = f"bias is {short(repr(bias))}, must be a number: SigLIP's is about -13."
    check(is_bias(plain(bias)), wrong)
    return float(bias)


def checked_generic(generic: Any, dim: int) -> Rows:
    """A generic text (D,): the mean of unit features, which is not of unit norm itself."""
    rows = checked_rows("generic", generic)
    check(rows.shape == (1, dim), f"generic must be one row of {dim:,} dimensions.")
    norm = float(np.linalg.norm(rows[0]))
    check(
        0 < norm < 1 - _UNIT,
        f"generic has the norm {norm:.4g}, must be below 1: the mean of the unit features of 50 "
        f"texts or more, not normalised.",
    )
    return rows[0]


def checked_rows(what: str, values: Any) -> Rows:
    """Features (N, D), or one (D,), of finite numbers; tensors are taken without torch.

    Raises:
        SettingsError: they are not.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().float().numpy()
    try:
        array = np.asarray(values)
        is_real = array.dtype.kind in "fiu"
    except (TypeError, ValueError):
        is_real = False
    check(is_real, f"{what} is a {type(values).__name__}, must be an array of numbers.")
    array = array[None] if array.ndim == 1 else array
    check(array.ndim == 2, f"{what} has the shape {array.shape}, must be (N, D).")
    with np.errstate(over="ignore"):  # of what is refused then
        rows = np.ascontiguousarray(array, dtype=np.float32)
    bad = ~(np.abs(rows) <= _LARGEST).all(axis=1)
    if bad.any():
        raise SettingsError(
            f"{bad.sum():,} rows of {what} are not finite, or too large (the first is row "
            f"{bad.argmax()})."
        )
    return rows


def plain(value: Any) -> Any:
    """A number of Python's own instead of NumPy's."""
    return value.item() if isinstance(value, np.generic) else value


def checked_features(features: Any, dim: int) -> Rows:
    """Image features (N, D); a single one may come as (D,).

    No encoder gives numbers that are all equal, and zeros have no direction.
    """
    rows = checked_rows("features", features)
    check(rows.shape[1] == dim, f"features have {rows.shape[1]:,} dimensions, text has {dim:,}.")
    same = (rows == rows[:, :1]).all(axis=1) if dim > 1 else ~rows.any(axis=1)
    if same.any():
        first = int(same.argmax())
        raise SettingsError(
            f"features[{first}] are {rows[first, 0]:g} in all dimensions, which no encoder gives: "
            f"{same.sum():,} of {len(rows):,} rows are constant."
        )
    return rows


def checked_answers(noise: Any, count: int, names: Sequence[str]) -> NDArray[np.bool_]:
    """Which of `count` images are noise, as a person says it: true, false, or the class of each."""
    values = noise.tolist() if hasattr(noise, "tolist") else noise
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    answers = len(values) if is_list else 1
    check(
        is_list and answers == count,
        f"noise has {counted(answers, 'answer')}, must have one for each of the {count:,} images.",
    )
    for i, value in enumerate(values):
        is_answer = isinstance(value, bool | np.bool_)
        is_answer |= isinstance(value, str) and value in names
        wanted = f"must be True, False or one of the classes: {first_of(names)}"
        check(is_answer, f"noise[{i}] is {short(repr(value))}, {wanted}.")
    return np.array([not isinstance(value, str) and bool(value) for value in values], bool)
