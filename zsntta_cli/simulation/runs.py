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
from dataclasses import Field, dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any

from zsntta_cli.datasets.names import IMAGENET, SetName
from zsntta_cli.errors import first_of, near
from zsntta_cli.methods import METHODS, check_method, own_code
from zsntta_cli.methods.method import fields_of
from zsntta_cli.settings import StreamSettings, ThresholdSettings
from zsntta_cli.settings.options import check_choice, option_name, value_type

# `official` follows the paper's released code where that differs from the paper's text; each method
# has its own values beside its equations.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "official": {
        "placement": "shuffled",
        "rounded_odds": True,
        "degenerate": "zero",
        "fixed_on": "noise-score",
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
    preset: str = field(default="", compare=False)  # that was asked for; its values stand above

    def flat(self) -> dict[str, Any]:
        """All settings of the stream, the threshold and the method, by name."""
        return {**vars(self.stream), **vars(self.threshold), **self.options.values()}

    def plain(self) -> dict[str, Any]:
        """The settings as plain values, as a record has them; it has the preset by itself."""
        return {
            "method": self.method, "encoder": self.encoder, "id_set": self.id_set,
            "ood_set": self.ood_set, "prompt": self.prompt, "stream": dict(vars(self.stream)),
            "threshold": dict(vars(self.threshold)), "options": self.options.values(),
        }  # fmt: skip

    def with_options(self, **values: Any) -> "RunSettings":
        """The same run with other settings of its method."""
        options = METHODS[self.method].settings(**{**self.options.values(), **values})
        return replace(self, options=options)


def declared(method: str) -> Mapping[str, "Field[Any]"]:
    """The settings that a run of a method has: of the stream, the threshold and its own."""
    own = METHODS[method].fields()
    return {**fields_of(StreamSettings), **fields_of(ThresholdSettings), **own}


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
    chosen = METHODS[method]
    name = SetName.parse(id_set)
    family = chosen.imagenet if name.family == IMAGENET else {}
    of_set = _OF_SETS.get((preset, name.base), {})
    of_preset = preset_values(preset, method)
    flat = {**chosen.defaults, **family, **of_preset, **of_set, **values}
    stream = settings_of(StreamSettings, fields_of(StreamSettings), flat)
    threshold = settings_of(ThresholdSettings, fields_of(ThresholdSettings), flat)
    return RunSettings(
        method, encoder, id_set, ood_set if stream.ratio else None, prompt,  # of a clean one: none
        stream, threshold, settings_of(chosen.settings, chosen.fields(), flat), preset,
    )  # fmt: skip


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


def settings_of(maker: Callable[..., Any], fields: Iterable[str], flat: Mapping[str, Any]) -> Any:
    """A group of settings from the fields that have a value.

    It is checked once: thousands of runs share few groups.
    """
    values = {name: flat[name] for name in fields if name in flat}
    try:
        return _checked(maker, **values)
    except TypeError:  # a value that cannot be hashed is none, which a call without a cache says
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
    digits = [digest[:16] for digest in sorted(source_digests(method).values())]
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
        for path in dict.fromkeys(Path(inspect.getfile(one)) for one in classes):
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
    fields, plain = declared(run.method), run.plain()
    for group in ("stream", "threshold", "options"):
        for name, value in [*plain[group].items()]:
            if value == fields[name].default:
                del plain[group][name]
            elif value_type(fields[name])[0] is float and isinstance(value, Real):
                plain[group][name] = float(value)
    plain |= {"digests": dict(digests), "revision": revision}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
