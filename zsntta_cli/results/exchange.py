"""Files of records: JSON Lines, or the list that `simulate --format json` gives.

A line is a record as plain values (simulation/record.py), with its curves.
"""

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zsntta_cli.errors import StoreError, first_line, short
from zsntta_cli.files import read_input
from zsntta_cli.simulation.record import Record

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

_LARGEST_FILE = 2**28  # bytes of records: some hundred thousand


def to_line(record: Record) -> str:
    """A record as a line of JSON Lines, without its end."""
    return json.dumps({**record.to_dict(), "curves": record.curves})


@functools.cache
def reader() -> "TypeAdapter[Record]":
    """What reads records by their annotations."""
    from pydantic import TypeAdapter  # what is kept here is not checked again

    return TypeAdapter(Record)


def read_records(path: Path) -> list[Record]:
    """The records of a file that `records export` wrote, or `--format json`.

    Raises:
        StoreError: the code of a run's method is missing.
        StoreError: the file holds something else; the message names the record.
    """
    try:
        text = read_input(path, _LARGEST_FILE).decode()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path} ({first_line(error)}).") from error
    is_list = text.lstrip().startswith("[")
    parts = [text] if is_list else text.split("\n")
    every: list[Any] = []
    for line, part in enumerate(parts, 1):
        try:
            value = json.loads(part) if part.strip() else []
            if "\\ud" in part.lower():  # half a character, which no file can hold, is an error
                json.dumps(value, ensure_ascii=False).encode(errors="surrogateescape")
        except (ValueError, RecursionError) as error:
            why = f"line {line}: {first_line(error)}".removeprefix("line 1: " * is_list)
            raise StoreError(f"{path} holds no results ({why}).") from error
        every += value if isinstance(value, list) else [value]
    if not every:
        raise StoreError(f"{path} holds no results: it is empty.")
    return [_read(path, i, plain) for i, plain in enumerate(every, 1)]


def _read(path: Path, number: int, plain: Any) -> Record:
    from pydantic import ValidationError

    try:
        record = reader().validate_python(plain)
    except StoreError as error:  # the code of a method is not here
        script = next(iter(plain.get("own") or ()), "FILE.py")
        raise StoreError(str(error).replace("FILE.py", script)) from error
    except ValidationError as error:
        why = f"record {number}: {first_fault(error)}"
        raise StoreError(f"{path} holds no results ({why}).") from error
    if record.unfinished:
        raise StoreError(f"{path} holds no results (record {number}: its run was stopped).")
    return record


def first_fault(error: "ValidationError") -> str:
    """What is wrong first, in pydantic's words, after its place (counted from 1) and its value."""
    fault = error.errors(include_url=False)[0]
    parts = (part + 1 if isinstance(part, int) else part for part in fault["loc"])
    where = ".".join(ascii(str(part))[1:-1] for part in parts)
    words = short(fault["msg"].removeprefix("Value error, ").removesuffix("."), 200)
    is_told = "error" in fault.get("ctx", ())  # an own check names what it refuses
    given = fault["input"]
    shown = "" if is_told or isinstance(given, dict | list) else f" (it is {short(repr(given))})"
    return f"{short(where)}: {words}{shown}".removeprefix(": ")
