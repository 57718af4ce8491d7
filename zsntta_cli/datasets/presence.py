"""Whether a known set lies in the data root: not there, as published, or there but with a flaw.

`datasets show`, `verify` and `get`, `extract` and its preview all ask here.
"""

from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.hidden import is_hidden
from zsntta_cli.errors import DatasetError

ABSENT, WHOLE, FLAWED = "not there", "there, as published", "there, but"
USABLE = "as-is"  # remedy of an error that --as-is passes over
AS_IS: ContextVar[bool] = ContextVar("as_is", default=False)  # other checksums are taken


class Presence(NamedTuple):
    """What there is of a known set."""

    state: str
    flaw: str = ""  # which file, what was expected and what is there

    def __str__(self) -> str:
        return f"{self.state} {self.flaw}" if self.flaw else self.state


def traces(entry: DatasetEntry, root: Path) -> list[Path]:
    """What lies in the data root of a set: its first folder, its archives, or a folder deeper."""
    found = [path for path in (root / _top(entry), *_archives(entry, root)) if _holds(path)]
    return found or list(_deeper(entry, root))


def flaw(entry: DatasetEntry, root: Path, error: Exception) -> str:
    """What is wrong with a set whose reading has failed; empty if nothing of it is there."""
    found = traces(entry, root)
    if not found:
        return ""
    if deeper := next(_deeper(entry, root), None):
        target = root / _top(entry)
        return f"it lies a folder too deep, in {deeper}: move what is in there to {target}"
    if found[0] != root / _top(entry):
        archive = None if isinstance(error, DatasetError) else still_packed(entry, root)
        return packed_in(archive) if archive else worded(error)
    return worded(error)


def is_misplaced(entry: DatasetEntry, root: Path) -> bool:
    """Whether a set lies a folder too deep, or only in an archive that no reader takes."""
    return next(_deeper(entry, root), None) is not None or still_packed(entry, root) is not None


def packed_in(archive: Path) -> str:
    """The flaw of a set of which there is an archive that no reader takes."""
    return f"it is still packed in {archive}: zsntta datasets get checks and unpacks it"


def still_packed(entry: DatasetEntry, root: Path) -> Path | None:
    """An archive of a set that has to be unpacked before it is read, if its folder is not there."""
    for file in entry.files:
        if file.unpacks and (root / file.file).is_file() and not (root / file.unpacks).exists():
            return None if file.file in entry.packed else root / file.file
    return None


def worded(error: Exception) -> str:
    """What an error says, without the set's name before it."""
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"there is no {error.filename}"
    line = str(error).removesuffix(".")
    return line.partition("': ")[2] if line.startswith("data set '") and "': " in line else line


def _top(entry: DatasetEntry) -> str:
    """The first folder of a set's layout, or its file."""
    first, _, rest = entry.layout.partition(" with ")[0].partition("/")
    shared = first == "dtd" and not rest.startswith("dtd")  # CoOp's and torchvision's are two sets
    return f"{first}/" if not shared else f"{first}/{rest}"


def _archives(entry: DatasetEntry, root: Path) -> list[Path]:
    return [root / name for name in (*entry.packed, *(file.file for file in entry.files))]


def _holds(path: Path) -> bool:
    """Whether a path is a file, or a folder with something in it that can be seen."""
    if path.is_dir():
        return any(not is_hidden(entry.name) for entry in path.iterdir())
    return path.is_file()


def _deeper(entry: DatasetEntry, root: Path) -> Iterator[Path]:
    """Where the first folder of a set lies one folder too deep: in itself, or in another."""
    top = _top(entry).rstrip("/")
    inner = root / top / top
    expected = [part for part in entry.layout.partition(" with ")[0].split("/")[:2] if part]
    if inner.is_dir() and expected[1:2] != [top]:
        yield inner
    elif root.is_dir() and not (root / top).exists():
        yield from (p for p in sorted(root.glob(f"*/{top}")) if not is_hidden(p.parent.name))
