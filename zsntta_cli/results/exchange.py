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
        StoreError: the file holds something else; the message names the line or the record.
    """
    from pydantic import ValidationError

    try:
        text = read_input(path, _LARGEST_FILE).decode()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path} ({first_line(error)}).") from error
    is_list, every, where, records = text.lstrip().startswith("["), list[Any](), "", list[Record]()
    try:
        for number, part in enumerate([text] if is_list else text.split("\n"), 1):
            where = "" if is_list else f"line {number}: "
            value = json.loads(part) if part.strip() else []
            if "\\ud" in part.lower():  # half a character, which no file can hold, is an error
                json.dumps(value, ensure_ascii=False).encode(errors="surrogateescape")
            every += value if isinstance(value, list) else [value]
        for number, plain in enumerate(every, 1):
            where = f"record {number}: "
            records.append(reader().validate_python(plain))
            if records[-1].unfinished:
                raise ValueError("its run was stopped")
    except StoreError as error:  # the code of a method is not here
        scripts = plain.get("own")
        script = next(iter(scripts), "") if isinstance(scripts, dict) else ""
        raise StoreError(str(error).replace("FILE.py", script or "FILE.py")) from error
    except (ValueError, RecursionError) as error:
        why = first_fault(error) if isinstance(error, ValidationError) else first_line(error)
        raise StoreError(f"{path} holds no results ({where}{why}).") from error
    if not records:
        raise StoreError(f"{path} holds no results: it is empty.")
    return records


def first_fault(error: "ValidationError") -> str:
    """What is wrong first, in pydantic's words, after its place (counted from 1) and its value."""
    fault = error.errors(include_url=False)[0]
    parts = (part + 1 if isinstance(part, int) else part for part in fault["loc"])
    where = ".".join(ascii(str(part))[1:-1] for part in parts)
    words = short(fault["msg"].removeprefix("Value error, ").removesuffix("."), 200)
    value = fault["input"]
    if "error" not in fault.get("ctx", ()) and not isinstance(value, dict | list):
        words += f" (it is {short(repr(value))})"  # a check of the package's own names it
    return f"{short(where)}: {words}".removeprefix(": ")
