"""The address that a feature file was pulled from, in a note beside the file.

The note `.SET.pulled.json` lies beside `SET.h5`, which is left as it was published. The note counts
as long as the file holds what was pulled.
"""

import json
import re
from pathlib import Path, PurePath
from typing import Any

from zsntta_cli.files import read_input, write_whole

PULLED = "pulled"  # the key in a record; its value is ADDRESS@REVISION
_FOLDER = "file://"
_LARGEST = 2**14  # bytes
_ADDRESS = re.compile(r"[a-z][a-z0-9+]{0,9}://[\w./:@%+=~-]{1,300}")


def note_path(path: Path) -> Path:
    """The path of the note beside a feature file."""
    return path.with_name(f".{path.stem}.pulled.json")


def note_source(path: Path, address: str, revision: str | None, digest: str) -> None:
    """Note where a feature file was pulled from; `digest` is that of its features and labels."""
    note = {"from": address, "revision": revision, "digest": digest}
    write_whole(note_path(path), json.dumps(note).encode())


def pulled_from(path: Path, digest: str) -> str | None:
    """ADDRESS@REVISION of a feature file; None if it was made here or holds something else now.

    For a folder of this machine only its last name is given, as records leave the machine.
    """
    try:
        note = json.loads(read_input(note_path(path), _LARGEST))
    except (OSError, ValueError):
        return None
    return _address(note) if isinstance(note, dict) and note.get("digest") == digest else None


def is_address(value: Any) -> bool:
    """Whether a value, which may be a stranger's, is an address that features are pulled from."""
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _address(note: dict[str, Any]) -> str | None:
    address, revision = note.get("from"), note.get("revision")
    if isinstance(address, str) and address.startswith(_FOLDER):
        return f"{_FOLDER}…/{PurePath(address).name}"
    whole = f"{address}@{revision}" if revision else address
    return whole if is_address(whole) else None
