"""A complete run: its stream, its threshold, its method; and the presets.

A setting has the same name in all classes, so that a flat mapping (a preset, the options of the
command line) determines where each value belongs.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field
from typing import Any

from zsntta_cli.datasets.names import IMAGENET, SetName
from zsntta_cli.errors import NotOfMethods, first_of, near
from zsntta_cli.methods import METHODS, check_method
from zsntta_cli.settings import StreamSettings, ThresholdSettings
from zsntta_cli.settings.options import check_choice, option_name

# `official` follows the paper's released code where that differs from the paper's text.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "official": {
        "placement": "shuffled",
        "rounded_odds": True,
        "degenerate": "zero",
        "fixed_on": "noise-score",
        "reevaluate": False,
        "late_start": True,
        "frozen_blocks": "9-11",
        "word_prompts": "speech",
        "mined_share": 0.15,
        "grouping": "random",
        "oga_short_means": True,
        "onzeta_mix_items": 0,
        "oodd_temperature": 1.0,
        "adaneg_shots": 9,
        "adaneg_sure": 0.5,
        "dde_exclusion": 0.0,
        "dde_doubled": True,
        "dde_cells": "grid",
    },
}
# By preset and ID set, at any corruption. A part of a set has a name of its own, and no line here:
# the values were chosen for all of its classes.
_OF_SETS: dict[tuple[str, str], dict[str, Any]] = {
    ("official", "imagenet"): {"logitgap_others": 88},
    ("official", "imagenet-a"): {"dde_words": 100},
    ("official", "imagenet-c"): {"dde_words": 500},
    ("official", "imagenet-r"): {"dde_words": 50},
    ("official", "cifar10"): {"logitgap_others": 5, "dde_words": 5},
    ("official", "cifar100"): {"dde_words": 10},
    ("official", "cub200"): {"dde_gate": 0.1},
    ("official", "cars196"): {"dde_gate": 0.1},
    ("official", "food101"): {"swapped_names": True, "dde_words": 50, "dde_gate": 0.1},
    ("official", "pets37"): {"dde_words": 50, "dde_gate": 0.1},
}


@dataclass(frozen=True)
class RunSettings:
    """One method on one stream of one ID-OOD pair, with all that is needed to repeat it."""

    method: str
    encoder: str  # the folder name of the encoder's features
    id_set: str
    ood_set: str | None
    prompt: str
    stream: StreamSettings = field(default_factory=StreamSettings)
    threshold: ThresholdSettings = field(default_factory=ThresholdSettings)
    options: Any = field(
        default_factory=lambda: METHODS["zs-clip"].settings_class()
    )  # its method's, or recorded ones
    preset: str = field(default="", compare=False)  # that was asked for; its values stand above

    def flat(self) -> dict[str, Any]:
        """All settings of the stream, the threshold and the method, by name."""
        return _flat(self.stream, self.threshold, self.options)


def _flat(*groups: Any) -> dict[str, Any]:
    return {k: v for group in groups for k, v in vars(group).items()}


def declared(method: str) -> Mapping[str, "Field[Any]"]:
    """The settings that a run of a method has: of the stream, the threshold and its own."""
    settings_class: Any = METHODS[method].settings_class
    return _declared(settings_class)


@functools.cache
def _declared(own: Any) -> Mapping[str, "Field[Any]"]:
    groups = (StreamSettings, ThresholdSettings, own)
    return {f.name: f for group in groups for f in dataclasses.fields(group)}


def setting_names() -> tuple[str, ...]:
    """Names of all settings that any method has, in the order of METHODS."""
    return tuple(dict.fromkeys(name for method in METHODS for name in declared(method)))


def methods_with(option: str) -> list[str]:
    """The methods that have a setting, by the name of its option."""
    return [name for name in METHODS if option in map(option_name, declared(name).values())]


def no_setting(option: str, chosen: Sequence[str]) -> str:
    """What is wrong with a setting that none of the chosen methods has: others have it, or none."""
    if having := methods_with(option):
        return str(NotOfMethods(option, chosen, having)).removesuffix(".")
    of_chosen = f" of {first_of(chosen, 3)}" if len(chosen) < len(METHODS) else ""
    return f"{option} is no setting{of_chosen}{meant_setting(option, chosen)}"


def meant_setting(option: str, chosen: Sequence[str]) -> str:
    """A question after the setting that is meant: of the chosen methods, or else of others."""
    of_chosen, of_all = (
        {option_name(field) for method in methods for field in declared(method).values()}
        for methods in (chosen, METHODS)
    )
    if (of_these := near(option, sorted(of_chosen))) or not (close := near(option, sorted(of_all))):
        return of_these
    _, name, _ = close.split("'")
    return f" (did you mean '{name}', a setting of {first_of(methods_with(name), 3)}?)"


def build_run(
    method: str,
    encoder: str,
    id_set: str,
    ood_set: str | None,
    prompt: str,
    preset: str = "paper",
    **values: Any,
) -> RunSettings:
    """A run of `method` from a preset and single values; values that it does not have are ignored.

    Raises:
        SettingsError: an unknown method or preset, or a value out of its range.
    """
    check_method(method)
    check_choice("preset", preset, tuple(PRESETS))
    chosen = METHODS[method]
    name = SetName.parse(id_set)
    family = chosen.imagenet if name.family == IMAGENET else {}
    of_set = _OF_SETS.get((preset, name.base), {})
    flat = {**chosen.defaults, **family, **PRESETS[preset], **of_set, **values}
    stream = _pick(StreamSettings, flat)
    return RunSettings(
        method, encoder, id_set, ood_set if stream.ratio else None, prompt,  # of a clean one: none
        stream, _pick(ThresholdSettings, flat), _pick(chosen.settings_class, flat), preset,
    )  # fmt: skip


def preset_of(run: RunSettings) -> str:
    """The preset that a run's settings follow: `official` with all of its values, else `paper`."""
    return _preset_of(run.stream, run.threshold, run.options)


@functools.lru_cache(maxsize=10_000)  # asked for each of thousands of runs
def _preset_of(*groups: Any) -> str:
    flat = _flat(*groups)
    of_run = {key: value for key, value in PRESETS["official"].items() if key in flat}
    is_official = bool(of_run) and all(flat[key] == value for key, value in of_run.items())
    return "official" if is_official else "paper"


def _pick(settings: Any, flat: Mapping[str, Any]) -> Any:
    names = tuple(field.name for field in dataclasses.fields(settings) if field.name in flat)
    values = [flat[name] for name in names]
    try:
        return _checked(settings, names, *values)
    except TypeError:  # a value that cannot be hashed is none, which a call without a cache says
        return _checked.__wrapped__(settings, names, *values)


@functools.lru_cache(maxsize=10_000, typed=True)  # the paper's tables are thousands of runs
def _checked(settings: type[Any], names: tuple[str, ...], *values: Any) -> Any:
    return settings(**dict(zip(names, values, strict=True)))
