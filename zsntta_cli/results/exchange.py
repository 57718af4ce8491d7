"""Kept runs as plain values, and back: lines of JSON for other people, rows of the store.

docs/record.schema.json describes a line (schema.py). A file is checked by the schema, and refused
with a one-line error. A store is read without the schema, which would take longer than all else,
and its rows that hold no run are skipped.
"""

import contextlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from zsntta_cli.cache.origin import origins_in
from zsntta_cli.errors import SettingsError, StoreError, UnknownMethod, first_line, short
from zsntta_cli.files import read_input
from zsntta_cli.results.kept import Kept
from zsntta_cli.simulation.metrics import ACCURACIES, DETECTION, FLAGS, METRICS, Measures
from zsntta_cli.simulation.notes import RunNote
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.recorded import run_from_record
from zsntta_cli.simulation.runs import RunSettings

FORMAT = 1
_LARGEST_FILE = 2**28  # bytes of records: some hundred thousand
_LARGEST = 2**62  # of numbers
_KINDS = ("id", "ood", "noise")  # of items
_Run = TypeVar("_Run", Kept, "RecordedRun", None)


@dataclass(frozen=True)
class RecordedRun:
    """A run that a record describes, and the features that it read."""

    settings: RunSettings
    digests: dict[str, str]
    origins: dict[str, dict[str, Any]]  # how the features came to be, by set
    record: Record | None  # None where the file does not say what the run gave


def export_text(runs: Sequence[Kept], form: str) -> str:
    """Runs as JSON Lines, or as the list of records that `simulate --format json` gives."""
    if form == "json":
        return json.dumps([kept.record.to_dict() for kept in runs], indent=1) + "\n"
    return "".join(f"{to_line(kept)}\n" for kept in runs)


def to_line(kept: Kept) -> str:
    """A kept run as a line, without its end."""
    plain = {
        "format": FORMAT,
        "key": kept.key,
        "record": kept.record.to_dict(),
        "curves": kept.curves,
    }
    return json.dumps(plain)


def read_lines(path: Path) -> list[Kept]:
    """The runs of a file that `records export` wrote, or `--format json`.

    Raises:
        UnknownMethod: the code of a run's method is not here.
        StoreError: the file holds something else; it says in which line.
    """
    return [_read(path, where, plain, _kept) for where, plain in _read_objects(path)]


def read_recorded(path: Path) -> list[RecordedRun]:
    """The runs that the records of such a file describe; their results may be missing.

    Raises:
        UnknownMethod: the code of a run's method is not here.
        StoreError: the file holds something else; it says in which line.
    """
    return [_read(path, where, plain, _recorded) for where, plain in _read_objects(path)]


def _read_objects(path: Path) -> list[tuple[str, Any]]:
    """The object on each line of a file, with its place; bare records are accepted, too."""
    try:
        text = read_input(path, _LARGEST_FILE).decode()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path} ({first_line(error)}).") from error
    records = _records_alone(path, text)
    if records is None:
        lines = [(f"line {i}", line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
        objects = [(where, _parsed(path, f"{where}: ", line)) for where, line in lines]
    else:
        objects = [(f"record {i}", {"record": one}) for i, one in enumerate(records, 1)]
    if not objects:
        raise StoreError(f"{path} holds no results: it is empty.")
    if _may_have_surrogates(text):
        for where, plain in objects:
            _read(path, where, plain, check_texts)
    return objects


def _may_have_surrogates(text: str) -> bool:
    """Whether a JSON text may hold half a character, by a fast test."""
    return "\\ud" in text or "\\uD" in text


def check_texts(plain: Any) -> None:
    """Refuse texts with half a character; names of files that are not UTF-8 are allowed.

    Raises:
        SettingsError: a text has half a character; the message names it.
    """
    try:
        json.dumps(plain, ensure_ascii=False).encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])[1:-1]
        raise SettingsError(f"a text has {half}, half a character: must be UTF-8") from error


def _records_alone(path: Path, text: str) -> list[Any] | None:
    """The list that `--format json` gives, or a single record of it; None if these are lines."""
    if text.lstrip().startswith("["):
        return list(_parsed(path, "", text))
    with contextlib.suppress(StoreError):  # of lines there are several objects, or one around it
        whole = _parsed(path, "", text)
        return [whole] if isinstance(whole, dict) and "record" not in whole else None
    return None


def _parsed(path: Path, where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} holds no results ({where}{first_line(error)}).") from error


def _read(path: Path, where: str, plain: Any, read: Callable[[Any], _Run]) -> _Run:
    """The run that a line holds.

    Raises:
        StoreError: it holds something else.
    """
    try:
        return read(plain)
    except UnknownMethod:
        raise
    except (SettingsError, StoreError) as error:
        reason = short(str(error).removesuffix("."), 200)
        raise StoreError(f"{path} holds no results ({where}: {reason}).") from error


def _recorded(plain: Any) -> RecordedRun:
    from zsntta_cli.results.schema import RecordedLine, check_schema

    check_schema(RecordedLine, plain)
    record = plain["record"]
    run = run_from_record(record["settings"], record.get("own", {}))
    preset = record.get("preset")
    run = replace(run, preset=preset if isinstance(preset, str) else "")
    origins = origins_in(record["features"]) if "features" in record else {}
    return RecordedRun(run, dict(record["digests"]), origins, _measured(record))


def _measured(record: Mapping[str, Any]) -> Record | None:
    """The whole record; None where it lacks metrics or another part of a finished record."""
    try:
        whole = _record(record)
    except (SettingsError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return None
    is_measured = any(not math.isnan(whole.metric(metric)) for metric in METRICS.values())
    return whole if is_measured else None


def _kept(plain: Any) -> Kept:
    from zsntta_cli.results.schema import RecordLine, check_schema

    check_schema(RecordLine, plain)
    return Kept(_record(plain["record"]), plain.get("curves", {}))


def read_row(key: Any, record: Any, curves: Any) -> Kept | None:
    """A run from its row in a store; None where this version cannot read it."""
    try:
        return _row_read(key, record, curves)
    except _BROKEN_ROW:
        return None


_BROKEN_ROW = (
    SettingsError, StoreError, AttributeError, LookupError, TypeError, ValueError, RecursionError,
    OverflowError,
)  # fmt: skip


def _row_read(key: Any, record: Any, curves: Any) -> Kept:
    """A run from its row in a store: one of `_BROKEN_ROW` is raised where it is broken."""
    for name, value in (("key", key), ("record", record), ("curves", curves)):
        if not isinstance(value, str):
            raise TypeError(f"its {name} is of another type")
    plain = json.loads(record)
    if _may_have_surrogates(record):
        check_texts(plain)
    _check_loose(plain)
    return Kept(_record(plain), json.loads(curves))


def _check_loose(plain: Any) -> None:
    """Check the types of those parts of a record that its reader does not check.

    Raises:
        TypeError, LookupError, AttributeError: a part has another type.
    """
    for note in plain.get("notes", ()):
        texts = [note[name] for name in ("kind", "about", "text")]
        if not all(isinstance(t, str) for t in texts) or not isinstance(
            note.get("weight", 0), int | float
        ):
            raise TypeError("a note is no text")
    if "features" in plain:
        origins_in(plain["features"])


def _record(plain: Mapping[str, Any]) -> Record:
    """A record from its plain values, as `Record.to_dict` gives them.

    Raises:
        SettingsError: its settings are invalid, or its method is not known here.
        AttributeError, LookupError, TypeError, ValueError: it is no record.
    """
    return Record(
        settings=run_from_record(plain["settings"], plain.get("own", {})),
        accuracies=_measures(plain, ACCURACIES),
        detection=_measures(plain, DETECTION),
        flags=_measures(plain, FLAGS),
        counts={kind: int(_number(plain["counts"][kind])) for kind in _KINDS},
        repeated={name: _number(times) for name, times in plain.get("repeated", {}).items()},
        digests={name: str(digest) for name, digest in plain["digests"].items()},
        seconds=_number(plain.get("seconds", 0)),
        created=str(plain.get("created", "")),
        versions={name: str(version) for name, version in plain["versions"].items()},
        unfinished=int(_number(plain.get("unfinished", 0))),
        revision=str(plain.get("revision", "")),
        memory=int(_number(plain.get("memory", 0))),
        device=str(plain.get("device", "")),
        notes=tuple(RunNote(**note) for note in plain.get("notes", ())),
        preset=str(plain.get("preset", "")),
        command=str(plain.get("command", "")),
        features=dict(plain.get("features", {})),
        own={name: str(digest) for name, digest in plain.get("own", {}).items()},
    )


def _measures(plain: Mapping[str, Any], group: str) -> Measures:
    """A group of metrics; null is nan."""
    return Measures(
        (name, math.nan if value is None else float(_number(value, least=-1)))
        for name, value in plain.get(group, {}).items()
    )


def _number(value: Any, least: float = 0) -> Any:
    if not least <= value < _LARGEST:  # nan, too
        raise ValueError("no number of a record")
    return value
