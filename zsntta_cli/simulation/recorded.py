"""Runs as records have them: data that can be read, grouped and shown without a method's code.

Settings that are declared here become objects of their classes, and are checked. Settings of a
method whose code is not available, of a newer version, or of streams that 0.2 had, are kept as they
are.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from zsntta_cli.datasets.names import check_plain
from zsntta_cli.errors import SettingsError, UnknownMethod, short
from zsntta_cli.methods import METHODS, find_method
from zsntta_cli.settings import StreamSettings, ThresholdSettings
from zsntta_cli.settings.options import check, value_before, value_type
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.runs import RunSettings

_LONGEST_PROMPT, _LONGEST_NAME = 1000, 100  # characters
_LARGEST = 2**62  # of numbers
# Names that a run's settings have already, where all of them stand side by side.
_GROUPS = (RunSettings, StreamSettings, ThresholdSettings)
_TAKEN = {"features", *(f.name for group in _GROUPS for f in dataclasses.fields(group))}


# What 0.2 had of streams: settings by the value that changed nothing, and values of other settings.
_GONE_SETTINGS = {"reset": "never", "protocol": None}
_GONE_VALUES = {
    "order": re.compile(r"separate|shuffled-blocks(:\d+)?|note:[\d.e-]+|note:inf|classes:\d+-\d+"),
    "ratio": re.compile(r"[\d.e-]+\.\.[\d.e-]+|steps:[\d.e,-]+"),
}


# What 0.2 had of ridge, of whose rule these were: without them a run is one of today's rule.
_GONE_OPTIONS = {
    "ridge_block", "ridge_penalty", "ridge_view", "ridge_gate", "ridge_gate_errors", "ridge_apart",
    "ridge_doubt", "ridge_clean", "ridge_shape", "ridge_prior_items",
}  # fmt: skip


class RecordedSettings:
    """Settings from a record, some of which no class here declares.

    It replaces an object of settings: `vars` has its values, and equal ones compare equal.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Take values that `_check_recorded` has checked."""
        vars(self).update(values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordedSettings) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(sorted(vars(self).items())))

    def __repr__(self) -> str:
        return f"RecordedSettings({dict(sorted(vars(self).items()))})"


def changed_settings(group: Any) -> dict[str, Any]:
    """The settings that a record must name because their absence would mean other values.

    These are the settings that differ from their defaults, or for a setting whose arrival changed
    the behaviour, from the value before that. If a class does not declare all settings, their
    defaults are unknown, so all are given.
    """
    if isinstance(group, RecordedSettings):
        return dict(vars(group))
    changed = {}
    for field in dataclasses.fields(group):
        value = getattr(group, field.name)
        if value != value_before(field):
            is_number = value_type(field)[0] is float and isinstance(value, Real)
            changed[field.name] = float(value) if is_number else value
    return changed


def has_recorded_settings(run: RunSettings) -> bool:
    """Whether some of a run's settings are not declared here."""
    return any(isinstance(g, RecordedSettings) for g in (run.stream, run.threshold, run.options))


def run_from_record(settings: Any) -> RunSettings:
    """The run that a record's `settings` describe; missing ones have their former values.

    This needs no method's code: settings that are not declared here are kept as they are.
    `check_runnable` says whether the run can be repeated.

    Raises:
        SettingsError: they are no valid settings.
    """
    _check_object("a run", settings)
    names = [field.name for field in dataclasses.fields(RunSettings) if field.compare]
    _check_no_others("a run", settings, names)
    method, prompt = settings.get("method"), settings.get("prompt")
    is_name = isinstance(method, str) and method.isprintable() and 0 < len(method) <= _LONGEST_NAME
    check(is_name, f"method is {short(ascii(method))}, which cannot be the name of a method.")
    check(isinstance(prompt, str) and len(prompt) <= _LONGEST_PROMPT, "prompt is no short text.")
    places = {name: settings.get(name) for name in ("encoder", "id_set", "ood_set")}
    for what, name in places.items():
        if name is not None or what != "ood_set":
            check_plain(what, name)
    chosen = find_method(method)
    stream = _read_stream(settings.get("stream", {}))
    classes: dict[str, type[Any]] = {"threshold": ThresholdSettings}
    classes["options"] = chosen.settings_class if chosen else _NoSettings
    groups = {what: _read_group(what, classes[what], settings.get(what, {})) for what in classes}
    return RunSettings(method, **places, prompt=cached_prompt(prompt), stream=stream, **groups)


@dataclass(frozen=True)
class _NoSettings:
    """The declared settings of a method whose code is not available: none."""


def _read_group(what: str, declaring: type[Any], values: Any) -> Any:
    """A group of settings of a record; as plain data if it has some that the class lacks."""
    _check_object(what, values)
    names = {field.name for field in dataclasses.fields(declaring)}
    undeclared = {name: value for name, value in values.items() if name not in names}
    hashable: Any = declaring
    recorded = {name: value for name, value in values.items() if name in names}
    group = _made(declaring, _values_before(hashable) | recorded)
    if declaring is not _NoSettings and not undeclared:
        return group
    for name, value in undeclared.items():
        _check_recorded(what, name, value)
    return RecordedSettings(vars(group) | undeclared)


def _read_stream(values: Any) -> Any:
    """The settings of a stream; as plain data where it is one that only 0.2 had."""
    _check_object("stream", values)
    plain = {k: v for k, v in values.items() if (k, v) not in _GONE_SETTINGS.items()}
    gone = {
        name: plain.pop(name)
        for name, pattern in _GONE_VALUES.items()
        if isinstance(plain.get(name), str) and pattern.fullmatch(plain[name])
    }
    group = _read_group("stream", StreamSettings, plain)
    return RecordedSettings(vars(group) | gone) if gone else group


@functools.cache
def _values_before(declaring: Any) -> dict[str, Any]:
    """The values of settings that a record lacks because they came later and changed behaviour."""
    fields = dataclasses.fields(declaring)
    return {f.name: value_before(f) for f in fields if value_before(f) != f.default}


def _check_recorded(what: str, name: str, value: Any) -> None:
    """Check the name and the value of a setting that is not declared here."""
    is_name = name.isidentifier() and not name.startswith("_") and len(name) <= _LONGEST_NAME
    is_free = is_name and name not in _TAKEN
    check(is_free, f"{short(ascii(name))} cannot be the name of a setting of {what}.")
    is_text = isinstance(value, str) and len(value) <= _LONGEST_PROMPT
    is_number = isinstance(value, int | float) and abs(value) < _LARGEST  # nan is none
    check(
        value is None or is_text or is_number,
        f"{what}.{name} must be a number, a short text, true, false or null.",
    )


def without_gone(run: RunSettings) -> RunSettings:
    """The run without settings of a method's former rule, so that it runs by today's."""
    chosen = find_method(run.method)
    if chosen is None or not isinstance(run.options, RecordedSettings):
        return run
    options = {name: v for name, v in vars(run.options).items() if name not in _GONE_OPTIONS}
    return dataclasses.replace(run, options=_read_group("options", chosen.settings_class, options))


def check_runnable(run: RunSettings, files: Collection[str] = ()) -> None:
    """Refuse to run a run with a method or a setting that is not known here.

    `files` are the files of the method's source, as its record names them.

    Raises:
        UnknownMethod: the method's code is not available.
        SettingsError: the run has a setting, or a value of one, that this version does not know.
    """
    if find_method(run.method) is None:
        raise UnknownMethod(run.method, tuple(files))
    groups = {"stream": StreamSettings, "threshold": ThresholdSettings}
    groups["options"] = METHODS[run.method].settings_class
    for what, declaring in groups.items():
        group = getattr(run, what)
        _check_no_others(what, vars(group), [field.name for field in dataclasses.fields(declaring)])
        if isinstance(group, RecordedSettings):
            declaring(**vars(group))  # which says what value it does not take


def _made(group: type[Any], values: Mapping[str, Any]) -> Any:
    """A group of settings, cached: thousands of records mostly share the same ones."""
    remembered: Callable[..., Any] = _remembered
    try:
        return remembered(group, **values)
    except TypeError:  # a list, say, which its check refuses
        return group(**values)


# By type, too: to Python 1, 1.0 and true are one, and to a check they are not.
@functools.lru_cache(maxsize=4096, typed=True)
def _remembered(group: type[Any], /, **values: Any) -> Any:
    return group(**values)


def _check_object(what: str, given: Any) -> None:
    check(isinstance(given, dict), f"the settings of {what} are no JSON object.")


def _check_no_others(what: str, given: Mapping[str, Any], names: Collection[str]) -> None:
    """Raise SettingsError if there is a setting with another name."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise SettingsError(f"{short(ascii(unknown[0]))} is no setting of {what}.")
