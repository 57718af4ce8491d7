"""Runs as records have them: their settings, the key that they are kept under, their code.

The revision of the code that determines a run's numbers enters its key: what other revisions made
is never shown.
"""

import dataclasses
import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field
from numbers import Real
from pathlib import Path
from typing import Any

from zsntta_cli.datasets.names import check_plain
from zsntta_cli.errors import SettingsError, StoreError, short
from zsntta_cli.methods import METHODS, find_method, own_code
from zsntta_cli.methods.method import fields_of
from zsntta_cli.settings import StreamSettings, ThresholdSettings
from zsntta_cli.settings.options import check, value_type
from zsntta_cli.settings.prompts import cached_prompt
from zsntta_cli.simulation.runs import RunSettings, declared, settings_of

_LONGEST_PROMPT, _LONGEST_NAME = 1000, 100  # characters


RULES = 1  # of streams, scores and thresholds: goes up where a number changes or a metric comes


def revision(method: str) -> str | None:
    """The revision of all code that determines a method's numbers, as "RULES.METHOD".

    A method in a user's script also has the script's digest; it is None if no file has the source,
    so that nothing can be kept.
    """
    numbers = f"{RULES}.{METHODS[method].revision}"
    if not own_code(method):
        return numbers
    files = source_digests(method)
    digest = hashlib.sha256("".join(sorted(files.values())).encode()).hexdigest()
    return f"{numbers}+{digest[:16]}" if files else None


def source_digests(method: str) -> Mapping[str, str]:
    """SHA-256 (hex) of the script of a user's own method, by file name; of a pair maybe of two.

    It is empty for a method of this package, and if no file has the source.
    """
    try:
        return _digests(own_code(method))
    except (OSError, TypeError):
        return {}


@functools.lru_cache(maxsize=256)  # as it was loaded: asked for each of thousands of runs
def _digests(classes: tuple[type, ...]) -> Mapping[str, str]:
    digests: dict[str, str] = {}
    for source in dict.fromkeys(map(inspect.getsourcefile, classes)):
        path = Path(source or "")
        name = f"{path.parent.name}/{path.name}" if path.name in digests else path.name
        digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def changed_settings(
    values: Mapping[str, Any], fields: Mapping[str, "Field[Any]"]
) -> dict[str, Any]:
    """The settings, of those that some fields declare, which differ from their defaults."""
    changed = {}
    for name, value in values.items():
        if value != fields[name].default:
            is_number = value_type(fields[name])[0] is float and isinstance(value, Real)
            changed[name] = float(value) if is_number else value
    return changed


def run_key(settings: RunSettings, digests: Mapping[str, str], revision: str) -> str:
    """SHA-256 (hex) of all that determines a run's numbers, under which it is found again.

    Settings at their defaults do not enter it: whoever finds a record compares all of its settings
    with those wanted.
    """
    fields = declared(settings.method)
    plain = {
        "method": settings.method,
        "encoder": settings.encoder,
        "id_set": settings.id_set,
        "ood_set": settings.ood_set,
        "prompt": settings.prompt,
        "stream": changed_settings(vars(settings.stream), fields),
        "threshold": changed_settings(vars(settings.threshold), fields),
        "options": changed_settings(settings.options.values(), fields),
        "digests": dict(digests),
        "revision": revision,
    }
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def run_from_record(settings: Any, files: Collection[str] = ()) -> RunSettings:
    """The run that a record's `settings` describe; `files` are those of its method's source.

    Raises:
        StoreError: the method is not known here.
        SettingsError: they are no valid settings of this version.
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
    if chosen is None:
        script = next(iter(files), "FILE.py")
        raise StoreError(
            f"the code of the method '{short(method)}' is not here: put its script before the "
            f"command, zsntta --plugin {script} …"
        )
    groups = {
        what: _read_group(what, maker, names, settings.get(what, {}))
        for what, maker, names in (
            ("stream", StreamSettings, fields_of(StreamSettings)),
            ("threshold", ThresholdSettings, fields_of(ThresholdSettings)),
            ("options", chosen.settings, chosen.fields()),
        )
    }
    return RunSettings(method, **places, prompt=cached_prompt(prompt), **groups)


def _read_group(what: str, maker: Callable[..., Any], names: Collection[str], values: Any) -> Any:
    """A group of settings of a record, which has no others than these names."""
    _check_object(what, values)
    _check_no_others(what, values, names)
    return settings_of(maker, values, values)


def _check_object(what: str, given: Any) -> None:
    check(isinstance(given, dict), f"the settings of {what} are no JSON object.")


def _check_no_others(what: str, given: Mapping[str, Any], names: Collection[str]) -> None:
    """Raise SettingsError if there is a setting with another name."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise SettingsError(
            f"{short(ascii(unknown[0]))} is no setting of {what}: another version made this, so "
            f"run it again."
        )
