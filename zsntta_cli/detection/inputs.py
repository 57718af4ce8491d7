"""Check what a detector is given before it is used; errors are one clear line."""

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.identity import TEXT_TOLERANCE
from zsntta_cli.errors import SettingsError, first_of, near, short
from zsntta_cli.methods import METHODS, own_code
from zsntta_cli.methods.method import fields_of
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import LARGEST_SCALE, check, check_choice, is_bias, is_scale

_LOGARITHMS = math.log(50), math.log(200)  # CLIP's scale is 100, SigLIP's 110 to 120
DETECTORS = ("zs-clip", "adand", "cull")  # the methods that judge single images
_UNIT = 1e-3  # a mean of unit features whose norm is nearer to 1 is of texts that are all alike
_LARGEST = 1e15  # of a feature's numbers: their squares are numbers in single precision too
_CLIP_NORM = 10.0  # about the norm of raw features of OpenAI's ViT-B encoders: a replay's too


def checked_text(text_features: Any) -> NDArray[np.float32]:
    """Text features (C, D) of classes, one row each, brought to unit norm if necessary.

    Raises:
        SettingsError: they are none.
    """
    text = checked_matrix("text_features", text_features)
    check(text.size > 0, "text_features are empty: name one class or more.")
    check(bool(text.any(axis=1).all()), "text_features have a row of zeros.")
    is_unit = abs(np.linalg.norm(text, axis=1) - 1) < TEXT_TOLERANCE
    return text.copy() if is_unit.all() else unit(text).astype(np.float32)  # a replay's to the bit


def checked_scale(logit_scale: Any) -> float:
    """A logit scale, exponentiated; SettingsError if it is invalid."""
    value, bounds = _plain(logit_scale), f"above 0 and at most {LARGEST_SCALE:,.0f}"
    wrong = f"logit_scale is {short(repr(logit_scale))}, must be {bounds}: CLIP's is about 100."
    check(is_scale(value), wrong)
    return float(value)


class MeantScale(float):
    """A logit scale that is never taken for a logarithm: from example photos or a detector."""


def warn_of_logarithm(logit_scale: Any) -> None:
    """Warn of a scale that looks like the logarithm that CLIP's checkpoints have."""
    is_meant = isinstance(logit_scale, MeantScale)
    if is_meant or not _LOGARITHMS[0] < logit_scale < _LOGARITHMS[1]:
        return
    value = f"{logit_scale:.5g}"
    warnings.warn(
        f"logit_scale is {value}, which looks like the logarithm of a scale: where it is, give "
        f"exp({value}) = {math.exp(logit_scale):.4g}, as CLIP's is about 100.",
        stacklevel=3,
    )


def checked_bias(logit_bias: Any) -> float | None:
    """A sigmoid model's logit bias, or None; SettingsError for anything else."""
    if logit_bias is None:
        return None
    wrong = f"logit_bias is {short(repr(logit_bias))}, must be a number: SigLIP's is about -13."
    check(is_bias(_plain(logit_bias)), wrong)
    return float(logit_bias)


def _plain(value: Any) -> Any:
    """A number of Python's own instead of NumPy's."""
    return value.item() if isinstance(value, np.generic) else value


def checked_names(names: Sequence[str] | None, classes: int | None = None) -> tuple[str, ...]:
    """Class names (C,), numbers if none are given; SettingsError if they are invalid."""
    if names is None:
        names = [str(i) for i in range(classes or 0)]
    if isinstance(names, str):
        raise SettingsError(f"class names are the text '{short(names)}', not a list.")
    named = tuple(names)
    if classes not in (None, len(named)):
        raise SettingsError(f"{len(named):,} class names for {classes:,} rows of text_features.")
    check_class_names(named)
    return named


def check_class_names(names: Sequence[Any]) -> None:
    """Raise SettingsError if class names are no texts, are empty, or if two are equal."""
    check(len(names) > 0, "there are no class names: name one or more.")
    for i, name in enumerate(names, 1):
        check(isinstance(name, str), f"class name {i} is {short(repr(name))}, must be a text.")
        check(bool(name.strip("\0 ")), f"class name {i} is empty.")
        check("\0" not in name, f"class name {i} is {short(repr(name))}, must have no NUL.")
    for name, count in Counter(names).items():
        check(count == 1, f"the class name '{short(name)}' is there twice.")


def checked_generic(generic: Any, dim: int) -> NDArray[np.float32] | None:
    """A generic text (D,), or None: the mean of unit features, which is not of unit norm itself.

    Raises:
        SettingsError: it is of other dims, or its norm is 1 or more, or 0.
    """
    if generic is None:
        return None
    [*rows] = checked_matrix("generic_text", generic, flat=True)
    check(len(rows) == 1 and len(rows[0]) == dim, f"generic_text must be one row of {dim:,} dims.")
    norm = float(np.linalg.norm(rows[0]))
    check(
        0 < norm < 1 - _UNIT,
        f"generic_text has the norm {norm:.4g}, must be below 1: the mean of the unit features of "
        f"50 texts or more, not made one of unit norm.",
    )
    return rows[0]


def checked_features(features: Any, dim: int, normalized: bool) -> NDArray[np.float32]:
    """Image features (N, D) as the encoder returns them; a single one may come as (D,).

    Normalised ones get the norm of raw ones, as in a replay.

    Raises:
        SettingsError: the features are of other dims, or not finite.
    """
    rows = checked_matrix("features", features, flat=True)
    check(
        rows.shape[1] == dim, f"features have {rows.shape[1]:,} dims, text_features have {dim:,}."
    )
    _check_not_constant(rows)
    return rows * np.float32(_CLIP_NORM) if normalized else rows


def _check_not_constant(rows: NDArray[np.float32]) -> None:
    """Refuse rows whose numbers are all equal: no encoder gives them; zeros have no direction."""
    same = (rows == rows[:, :1]).all(axis=1) if rows.shape[1] > 1 else ~rows.any(axis=1)
    if same.any():
        first = int(same.argmax())
        raise SettingsError(
            f"features[{first}] are {rows[first, 0]:g} in all dims, which no encoder gives: "
            f"{same.sum():,} of {len(rows):,} rows are constant."
        )


def checked_answer(what: str, value: Any, classes: Sequence[str]) -> bool:
    """Whether an image belongs, as a person says it: true, false, or its class.

    Raises:
        SettingsError: it is another value.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    is_class = isinstance(value, str) and value in classes
    wanted = f"must be True, False or one of the classes: {first_of(classes)}"
    check(is_class, f"{what} is {short(repr(_plain(value)))}, {wanted}.")
    return True


def checked_feedback(values: Any, count: int, classes: Sequence[str]) -> NDArray[np.bool_]:
    """Which images (N,) are noise, as a person says it: true, false, or the class of each.

    Raises:
        SettingsError: not one answer an image, or another value.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    is_list = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
    answers = list(values) if is_list else [values]
    check(
        is_list and len(answers) == count,
        f"noise has {len(answers):,} answers, must have one for each of the {count:,} images.",
    )
    is_noise = np.zeros(count, bool)
    for i, answer in enumerate(answers):
        is_true = checked_answer(f"noise[{i}]", answer, classes)
        is_noise[i] = is_true and not isinstance(answer, str)  # an image of a class is clean
    return is_noise


def checked_matrix(name: str, values: Any, flat: bool = False) -> NDArray[np.float32]:
    """A matrix of finite numbers; tensors are accepted without importing torch."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().float().numpy()
    try:
        array = np.asarray(values)
        real = array.dtype.kind in "fiu"
    except (TypeError, ValueError):
        real = False
    check(real, f"{name} are {type(values).__name__}, must be an array of numbers.")
    array = array[None] if flat and array.ndim == 1 else array
    check(array.ndim == 2, f"{name} have the shape {array.shape}, must be (N, D).")
    with np.errstate(over="ignore"):  # of what is refused then
        rows = np.ascontiguousarray(array, dtype=np.float32)
    bad = ~(np.abs(rows) <= _LARGEST).all(axis=1)
    if bad.any():
        raise SettingsError(
            f"{bad.sum():,} {name} are not finite, or too large (the first in row {bad.argmax()})."
        )
    return rows


def check_method(name: str) -> None:
    """Raise SettingsError unless a method is one that judges single images here."""
    if name not in DETECTORS:
        own = [known for known in METHODS if own_code(known) and METHODS[known].online]
        check_choice("method", str(name), [*DETECTORS, *own])


def checked_settings(method: str, values: Mapping[str, Any]) -> tuple[ThresholdSettings, Any]:
    """Settings of the threshold and of a method from single values, named as `simulate` does.

    Raises:
        SettingsError: neither has a setting of that name, or a value is out of its range.
    """
    chosen = METHODS[method]
    of_threshold, own = fields_of(ThresholdSettings), chosen.fields()
    choices = sorted({*of_threshold, *own})
    values_of_threshold, values_of_method = dict[str, Any](), dict[str, Any]()
    for name, value in values.items():
        has = f"{near(name, choices)}: it has {', '.join(choices)}."
        check(name in choices, f"{short(name)} is no setting of {method}{has}")
        if name in of_threshold:
            values_of_threshold[name] = _plain(value)
        if name in own:
            values_of_method[name] = _plain(value)
    threshold = ThresholdSettings(**values_of_threshold)
    options = chosen.settings(**values_of_method)
    size = options.at_once
    check(size == 1, f"batch-size is {size}, must be 1: each item is decided as it comes.")
    return threshold, options


def checked_seed(seed: Any) -> int:
    """A seed; SettingsError if it is invalid."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    wrong = f"seed is {short(repr(seed))}, must be a whole number, 0 or more."
    check(whole and 0 <= seed < 2**62, wrong)
    return int(seed)
