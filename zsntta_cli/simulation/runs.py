"""A complete run: its stream, its threshold, its method; the presets; the key of its numbers.

A setting has the same name in all classes, so that a flat mapping (a preset, the options of the
command line) determines where each value belongs. The revision of the code that determines a run's
numbers enters its key: what other revisions made is never shown.
"""

import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

from zsntta_cli.datasets.names import IMAGENET, SetName, check_plain
from zsntta_cli.errors import SettingsError, StoreError, first_of, near, short
from zsntta_cli.methods import METHODS, check_method, find_method, own_code
from zsntta_cli.methods.method import fields_of
from zsntta_cli.settings import StreamSettings, ThresholdSettings
from zsntta_cli.settings.options import check_choice, option_name, value_type
from zsntta_cli.settings.prompts import cached_prompt

# `official` follows the paper's released code where that differs from the paper's text; each method
# has its own values beside its equations.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "official": {
        "placement": "shuffled", "rounded_odds": True, "degenerate": "zero",
        "fixed_on": "noise-score",
    },
}  # fmt: skip
# By ID set, at any corruption. A part of a set has a name of its own, and no line here: the values
# were chosen for all of its classes.
_OFFICIAL_OF_SETS: dict[str, dict[str, Any]] = {
    "imagenet": {"logitgap_others": 88},
    "imagenet-a": {"dde_words": 100},
    "imagenet-c": {"dde_words": 500},
    "imagenet-r": {"dde_words": 50},
    "cifar10": {"logitgap_others": 5, "dde_words": 5},
    "cifar100": {"dde_words": 10},
    "cub200": {"dde_gate": 0.1},
    "cars196": {"dde_gate": 0.1},
    "food101": {"swapped_names": True, "dde_words": 50, "dde_gate": 0.1},
    "pets37": {"dde_words": 50, "dde_gate": 0.1},
}
RULES = 1  # of streams, scores and thresholds: goes up where a number changes or a metric comes


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
    options: Any = field(default_factory=lambda: METHODS["zs-clip"].settings())  # its method's
    preset: str = field(default="", compare=False)  # the requested one, whose values are above

    def flat(self) -> dict[str, Any]:
        """All settings of the stream, the threshold and the method, by name."""
        return {**vars(self.stream), **vars(self.threshold), **self.options.values()}

    def plain(self) -> dict[str, Any]:
        """The settings as plain values, as a record has them; it has the preset by itself."""
        groups = {"stream": dict(vars(self.stream)), "threshold": dict(vars(self.threshold))}
        plain = {**vars(self), **groups, "options": self.options.values()}
        del plain["preset"]
        return plain

    @staticmethod
    def of(plain: Mapping[str, Any]) -> "RunSettings":
        """The run that a record's settings describe.

        Raises:
            StoreError: the method is not known here.
            SettingsError: the settings are not valid in this version.
        """
        if find_method(method := plain["method"]) is None:
            raise StoreError(
                f"the code of the method '{short(method)}' is missing: name its script before the "
                f"command, zsntta --plugin FILE.py …"
            )
        for what in ("encoder", "id_set", "ood_set"):
            if plain.get(what) is not None:
                check_plain(what, plain[what])
        groups = _groups(method)
        for group, (_, fields) in groups.items():
            for unknown in plain.get(group, {}).keys() - fields.keys():
                raise SettingsError(
                    f"{short(ascii(unknown))} is not a setting of {group}: another version made "
                    f"this, so run it again."
                )
        settings = {name: _made(*group, plain.get(name, {})) for name, group in groups.items()}
        sets = plain["encoder"], plain["id_set"], plain.get("ood_set")
        return RunSettings(method, *sets, cached_prompt(plain["prompt"]), **settings)


def _groups(method: str) -> dict[str, tuple[Callable[..., Any], Mapping[str, "Field[Any]"]]]:
    """What makes the three groups of a run's settings, and the fields of each, by name."""
    chosen = METHODS[method]
    return {
        "stream": (StreamSettings, fields_of(StreamSettings)),
        "threshold": (ThresholdSettings, fields_of(ThresholdSettings)),
        "options": (chosen.settings, chosen.fields()),
    }


def declared(method: str) -> Mapping[str, "Field[Any]"]:
    """The settings that a run of a method has: of the stream, the threshold and its own."""
    of_method = METHODS[method].fields()
    return {**fields_of(StreamSettings), **fields_of(ThresholdSettings), **of_method}


def setting_names() -> tuple[str, ...]:
    """Names of all settings that any method has, in the order of METHODS."""
    return tuple(dict.fromkeys(name for method in METHODS for name in declared(method)))


def methods_with(option: str) -> list[str]:
    """The methods that have a setting, by the name of its option."""
    return [name for name in METHODS if option in map(option_name, declared(name).values())]


def no_setting(option: str, chosen: Sequence[str]) -> str:
    """Why a setting is wrong that none of the chosen methods has: others have it, or none does."""
    if having := methods_with(option):
        which = f"is a setting of {first_of(having, 3)}"
        return f"{option} {which}, not of {first_of(chosen, 3)}"
    of_chosen = f" of {first_of(chosen, 3)}" if len(chosen) < len(METHODS) else ""
    names = sorted({option_name(f) for method in chosen for f in declared(method).values()})
    return f"{option} is not a setting{of_chosen}{near(option, names)}"


def build_run(
    method: str,
    encoder: str,
    id_set: str,
    ood_set: str | None,
    prompt: str,
    preset: str = "paper",
    **values: Any,
) -> RunSettings:
    """A run of `method` from a preset and single values; values that it does not use are ignored.

    Raises:
        SettingsError: an unknown method or preset, or a value out of range.
    """
    check_method(method)
    check_choice("preset", preset, tuple(PRESETS))
    chosen, name = METHODS[method], SetName.parse(id_set)
    family = chosen.imagenet if name.family == IMAGENET else {}
    of_set = _OFFICIAL_OF_SETS.get(name.base, {}) if preset == "official" else {}
    flat = {**chosen.defaults, **family, **preset_values(preset, method), **of_set, **values}
    settings = {}
    for kind, group in _groups(method).items():
        settings[kind] = _made(*group, flat)
    ood_set = ood_set if settings["stream"].ratio else None  # a clean stream has none
    return RunSettings(method, encoder, id_set, ood_set, prompt, **settings, preset=preset)


def preset_values(preset: str, method: str) -> dict[str, Any]:
    """The values of a preset, including a method's own."""
    return {**PRESETS[preset], **(METHODS[method].official if preset == "official" else {})}


def preset_of(run: RunSettings) -> str:
    """The preset that a run's settings follow: `official` with all of its values, else `paper`."""
    official = preset_values("official", run.method)
    return "official" if official.items() <= run.flat().items() else "paper"


def differing_settings(run: RunSettings, preset: str) -> dict[str, Any]:
    """The settings of a run that differ from a preset."""
    usual = _settings_of_preset(run.method, run.id_set, preset)
    return {k: v for k, v in run.flat().items() if v != usual[k]}


@functools.lru_cache(maxsize=1000)
def _settings_of_preset(method: str, id_set: str, preset: str) -> dict[str, Any]:
    return build_run(method, "", id_set, None, "", preset).flat()


def _made(maker: Callable[..., Any], fields: Iterable[str], flat: Mapping[str, Any]) -> Any:
    """A group of settings from the fields that have a value.

    It is checked once: thousands of runs share few groups.
    """
    values = {name: flat[name] for name in fields if name in flat}
    try:
        return _checked(maker, **values)
    except TypeError:  # a value that cannot be hashed is wrong, which a call without a cache says
        return maker(**values)


@functools.lru_cache(maxsize=10_000, typed=True)  # by type: 1, 1.0 and true are one to Python
def _checked(maker: Callable[..., Any], /, **values: Any) -> Any:
    return maker(**values)


def revision(method: str) -> str | None:
    """The revision of all code that determines a method's numbers, as "RULES.METHOD".

    For a method from a user's script, digits of the script's SHA-256 follow; it is None if no file
    has the source, so that nothing can be kept.
    """
    numbers = f"{RULES}.{METHODS[method].revision}"
    if not own_code(method):
        return numbers
    digits = sorted(digest[:16] for digest in source_digests(method).values())
    return "+".join([numbers, *digits]) if digits else None


def source_digests(method: str) -> Mapping[str, str]:
    """SHA-256 (hex) of the script of a user's own method, by file name; a pair may have two.

    It is empty for a method of this package, and if no file has the source.
    """
    classes = own_code(method)
    return _digests(classes) if classes else {}


@functools.lru_cache(maxsize=256)  # as it was loaded: asked for each of thousands of runs
def _digests(classes: tuple[type, ...]) -> Mapping[str, str]:
    digests: dict[str, str] = {}
    try:
        for path in dict.fromkeys(Path(inspect.getfile(code)) for code in classes):
            name = f"{path.parent.name}/{path.name}" if path.name in digests else path.name
            digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, TypeError):
        return {}
    return digests


def run_key(run: RunSettings, digests: Mapping[str, str], revision: str) -> str:
    """SHA-256 (hex) of everything that determines a run's numbers, under which it is found again.

    Settings at their defaults do not enter it: whoever finds a record compares all of its settings
    with the requested ones.
    """
    plain = run.plain() | {"digests": dict(digests), "revision": revision}
    for group, (_, fields) in _groups(run.method).items():
        for name, value in [*plain[group].items()]:
            if value == fields[name].default:
                del plain[group][name]
            elif value_type(fields[name])[0] is float and isinstance(value, Real):
                plain[group][name] = float(value)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
