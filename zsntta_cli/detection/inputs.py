"""What a detector is given, looked at before it is used: one clear line where it will not do."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.soundness import LARGEST_SCALE, TEXT_TOLERANCE, is_bias, is_scale
from zsntta_cli.errors import SettingsError, near, short
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import check, check_choice

_LARGEST = 1e15  # of a feature's numbers: their squares are numbers in single precision too
_CLIP_NORM = 10.0  # about the norm of raw features of OpenAI's ViT-B encoders: a replay's too


def checked_text(text_features: Any) -> NDArray[np.float32]:
    """Text features (C, D), a row a class, of unit norm or brought to it.

    Raises:
        SettingsError: they are none.
    """
    text = _array("text_features", text_features)
    check(len(text) > 0 and text.shape[1] > 0, "text_features are empty: name one class or more.")
    check(bool(text.any(axis=1).all()), "text_features have a row of zeros.")
    is_unit = abs(np.linalg.norm(text, axis=1) - 1) < TEXT_TOLERANCE
    return text.copy() if is_unit.all() else unit(text).astype(np.float32)  # a replay's to the bit


def checked_scale(logit_scale: Any) -> float:
    """A logit scale, exponentiated: SettingsError where it is none."""
    message = f"logit_scale is {short(repr(logit_scale))}, must be above 0 and at most "
    real = isinstance(logit_scale, np.generic)
    value = logit_scale.item() if real else logit_scale
    check(is_scale(value), f"{message}{LARGEST_SCALE:,.0f}: CLIP's is about 100.")
    return float(value)


def checked_bias(logit_bias: Any) -> float | None:
    """A sigmoid model's logit bias, or none: SettingsError where it is neither."""
    value = logit_bias.item() if isinstance(logit_bias, np.generic) else logit_bias
    message = f"logit_bias is {short(repr(logit_bias))}, must be a number: SigLIP's is about -13."
    check(value is None or is_bias(value), message)
    return None if value is None else float(value)


def checked_names(names: Sequence[str] | None, classes: int) -> tuple[str, ...]:
    """Class names (C,), numbers where none are given: SettingsError where they are others."""
    if names is None:
        return tuple(map(str, range(classes)))
    check(
        not isinstance(names, str), f"class names are the text '{short(str(names))}', not a list."
    )
    named = tuple(names)
    check(
        len(named) == classes, f"{len(named):,} class names for {classes:,} rows of text_features."
    )
    check_class_names(named)
    return named


def check_class_names(names: Sequence[Any]) -> None:
    """Raise SettingsError where class names are no texts, empty, or two the same."""
    check(len(names) > 0, "there are no class names: name one or more.")
    for i, name in enumerate(names):
        check(isinstance(name, str), f"class name {i} is {short(repr(name))}, must be a text.")
        check(bool(name.strip("\0 ")), f"class name {i} is empty.")
        check("\0" not in name, f"class name {i} is {short(repr(name))}, must have no NUL.")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise SettingsError(f"the class name '{short(twice[0])}' is there twice.")


def checked_features(features: Any, dim: int, normalized: bool) -> NDArray[np.float32]:
    """Image features (N, D) as the encoder gives them; one of them may come as (D,).

    Normalised ones get the norm of raw ones, as in a replay.

    Raises:
        SettingsError: they are of other dims, or not finite.
    """
    rows = _array("features", features, flat=True)
    check(
        rows.shape[1] == dim, f"features have {rows.shape[1]:,} dims, text_features have {dim:,}."
    )
    return rows * np.float32(_CLIP_NORM) if normalized else rows


def _array(name: str, given: Any, flat: bool = False) -> NDArray[np.float32]:
    """A matrix of finite numbers; tensors are taken as they are, without torch being imported."""
    if hasattr(given, "detach"):
        given = given.detach().cpu().float().numpy()
    try:
        array = np.asarray(given)
        real = array.dtype.kind in "fiu"
    except (TypeError, ValueError):
        real = False
    check(real, f"{name} are {type(given).__name__}, must be an array of numbers.")
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


def online_methods() -> tuple[str, ...]:
    """Names of the methods that decide online."""
    return tuple(name for name, method in METHODS.items() if method.stepper)


def check_method(name: str) -> None:
    """Raise SettingsError unless a method decides online."""
    check_choice("method", str(name), online_methods())


def checked_settings(method: str, values: Mapping[str, Any]) -> tuple[ThresholdSettings, Any]:
    """Settings of the threshold and of a method from single values, named as `simulate` does.

    Raises:
        SettingsError: a name that neither has, or a value out of its range.
    """
    groups: tuple[type[Any], type[Any]] = ThresholdSettings, METHODS[method].settings
    names = [{f.name for f in dataclasses.fields(group)} for group in groups]
    values = {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}
    for name in values:
        known = sorted(names[0] | names[1])
        has = f"{near(name, known)}: it has {', '.join(known)}."
        check(name in known, f"{short(name)} is no setting of {method}{has}")
    made = [
        group(**{k: v for k, v in values.items() if k in own})
        for group, own in zip(groups, names, strict=True)
    ]
    size = getattr(made[1], "batch_size", 1)
    check(size == 1, f"batch-size is {size}, must be 1: each item is decided as it comes.")
    return made[0], made[1]


def checked_seed(seed: Any) -> int:
    """A seed: SettingsError where it is none."""
    is_whole = (
        isinstance(seed, int | np.integer) and not isinstance(seed, bool) and 0 <= seed < 2**62
    )
    check(bool(is_whole), f"seed is {short(repr(seed))}, must be a whole number, 0 or more.")
    return int(seed)


def check_sources(sources: Sequence[str | None], count: int) -> None:
    """Raise SettingsError where sources are given, and not one an image."""
    fits = not sources or (len(sources) == count and not isinstance(sources, str))
    check(fits, f"{len(sources):,} sources for {count:,} images.")
