"""Kept runs as JSON Lines: one object a line, for other people and other tools.

docs/record.schema.json describes a line. `format` goes up when older versions cannot read it.
"""

import binascii
import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError, StoreError, first_line, short
from zsntta_cli.files import read_input
from zsntta_cli.methods import METHODS
from zsntta_cli.results.items import Items
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.reading import LARGEST_FILE, record_from
from zsntta_cli.settings.options import check

FORMAT = 1
_CURVES = ("scores", "before", "difference", "running", "thresholds", "gradients")


def line(kept: Kept) -> str:
    """A kept run as a line, without its end."""
    plain = {
        "format": FORMAT,
        "key": kept.key,
        "record": kept.record.to_dict(),
        "curves": kept.curves,
        "items": kept.items.text() if kept.items else None,
    }
    return json.dumps(plain)


def read_lines(path: Path, note: Callable[[str], None] = lambda _: None) -> list[Kept]:
    """The runs of a file that `records export` wrote, or `--format json`.

    Runs of methods that are not known here are left out, and noted.

    Raises:
        StoreError: the file holds something else; it says in which line.
    """
    try:
        text = read_input(path, LARGEST_FILE).decode()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path} ({first_line(error)}).") from error
    found = [_run(path, where, plain) for where, plain in _objects(path, text)]
    unknown = sorted({one for one in found if isinstance(one, str)})
    if unknown:
        left = sum(isinstance(one, str) for one in found)
        names = ", ".join(short(ascii(name)[1:-1]) for name in unknown)
        note(f"{path}: {left:,} runs of methods that are not known here are left out: {names}.")
    return [one for one in found if isinstance(one, Kept)]


def _objects(path: Path, text: str) -> list[tuple[str, Any]]:
    """What a file holds, each with where it stands."""
    if text.lstrip().startswith("["):  # --format json
        records = _parsed(path, "", text)
        return [(f"record {i}", {"record": one}) for i, one in enumerate(records, 1)]
    lines = [(i, part) for i, part in enumerate(text.split("\n"), 1) if part.strip()]
    if not lines:
        raise StoreError(f"{path} holds no results: it is empty.")
    return [(f"line {i}", _parsed(path, f"line {i}: ", part)) for i, part in lines]


def _parsed(path: Path, where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} holds no results ({where}{first_line(error)}).") from error


def _run(path: Path, where: str, plain: Any) -> Kept | str:
    """A run, or the name of its method where that is not known here."""
    try:
        check(isinstance(plain, dict), "it is no JSON object")
        version = plain.get("format", FORMAT)
        check(version == FORMAT, f"its format is {short(ascii(version))}, must be {FORMAT}")
        record = plain.get("record")
        method = _method(record)
        try:
            METHODS[method]
        except KeyError:
            return method
        made = record_from(record)
        check(not made.unfinished, "its run was not finished")
        tests = made.counts["id"] + made.counts["ood"]
        return Kept(made, _checked_curves(plain.get("curves", {})), _items(plain, tests))
    except (SettingsError, StoreError) as error:
        reason = short(str(error).removesuffix("."), 200)
        raise StoreError(f"{path} holds no results ({where}: {reason}).") from error


def _method(record: Any) -> str:
    settings = record.get("settings") if isinstance(record, dict) else None
    method = settings.get("method") if isinstance(settings, dict) else None
    check(isinstance(method, str), "it names no method")
    return str(method)


def _items(plain: dict[str, Any], tests: int) -> Items | None:
    text = plain.get("items")
    if text is None:
        return None
    check(isinstance(text, str), "its items are no text")
    try:
        return Items.unpacked(b64decode(text, validate=True), tests)
    except binascii.Error as error:
        raise SettingsError(f"its items are no base64: {first_line(error)}") from error


def _checked_curves(curves: Any) -> dict[str, Any]:
    """Curves that are what they should be: numbers in lists, by known names."""
    check(isinstance(curves, dict), "its curves are no object")
    for name, curve in curves.items():
        known = name in _CURVES and isinstance(curve, dict)
        check(known, f"{short(ascii(name))} is no curve")
        check(_is_curve(curve), f"its {name} are no lists of numbers of one length")
    return dict(curves)


def _is_curve(curve: dict[str, Any]) -> bool:
    lists = [value for value in curve.values() if isinstance(value, list)]
    single = [value for value in curve.values() if not isinstance(value, list)]
    numbers = all(_is_number(x) for values in lists for x in values if x is not None)
    return numbers and all(map(_is_number, single)) and len({len(values) for values in lists}) == 1


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and abs(value) < 2**62  # nan, too, is none
