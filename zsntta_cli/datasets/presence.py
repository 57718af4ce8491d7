"""Whether a known set lies in the data root: not there, as published, or there but with a flaw.

`datasets show`, `verify`, `get` and `extract` all ask here.
"""

import glob
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from zsntta_cli.datasets.catalogue import CATALOGUE, DatasetEntry
from zsntta_cli.datasets.hidden import hidden_part, is_hidden
from zsntta_cli.datasets.readers.members import COMPRESSED, KINDS
from zsntta_cli.errors import DatasetError, FlawedSet, first_of

ABSENT, WHOLE, FLAWED = "not there", "there, as published", "there, but"
BUILT_IN = "built in"
USABLE = "as-is"  # remedy of an error that --as-is passes over
_DEEP, _SHOWN = 3, 3  # folders in which what is missing is looked for, names of what is there
AS_IS: ContextVar[bool] = ContextVar("as_is", default=False)  # other checksums are taken


class Presence(NamedTuple):
    """What there is of a known set."""

    state: str
    error: FlawedSet | None = None  # of one with a flaw

    @property
    def flaw(self) -> str:
        """Which file is wrong, what was expected and what is there; empty where nothing is."""
        return self.error.flaw if self.error else ""

    def __str__(self) -> str:
        return f"{self.state} {self.flaw}" if self.flaw else self.state


def traces(entry: DatasetEntry, root: Path) -> list[Path]:
    """What lies in the data root of a set: its folders, its archives, or a folder deeper."""
    folders = [root / place for place in (_top(entry), *entry.elsewhere)]
    found = [path for path in (*folders, *_archives(entry, root)) if _holds(path)]
    return found or list(_deeper(entry, root))


def flaw(name: str, entry: DatasetEntry, root: Path, error: Exception) -> str:
    """What is wrong with a set whose reading has failed; empty if nothing of it is there."""
    if not traces(entry, root):
        return ""
    if deeper := next(_deeper(entry, root), None):
        return f"it lies in another folder, {deeper}: move that to {root / _top(entry)}"
    archive = None if isinstance(error, DatasetError) else _unread_archive(entry, root)
    return packed_in(name, entry, archive) if archive else worded(error)


def flawed_by(
    name: str, entry: DatasetEntry, root: Path, flaw: str, is_usable: bool = False
) -> FlawedSet:
    """The error for a known set that lies in the data root with a flaw."""
    return FlawedSet(name, flaw, str(traces(entry, root)[0]), bool(entry.files), is_usable)


def packed_in(name: str, entry: DatasetEntry, archive: Path) -> str:
    """The flaw of a set of which there is an archive that no reader takes."""
    is_known = archive.name in [Path(file.file).name for file in entry.files]
    got = f"zsntta datasets get {name.partition(':')[0]} checks and unpacks it"
    return f"it is still packed in {archive}: {got if is_known else 'unpack it there'}"


def still_packed(entry: DatasetEntry, root: Path) -> Path | None:
    """An archive of a set that has to be unpacked before it is read, if its folder is not there."""
    for file in entry.files:
        if file.unpacks and (root / file.file).is_file() and not (root / file.unpacks).exists():
            return root / file.file
    return None


def _unread_archive(entry: DatasetEntry, root: Path) -> Path | None:
    """An archive of a set that no reader takes: a published one, or one of its whole folder."""
    archives = () if _holds(root / _top(entry)) else _whole_archives(entry, root)
    return still_packed(entry, root) or next(filter(Path.is_file, archives), None)


def worded(error: Exception) -> str:
    """What an error says, without the set's name before it."""
    if isinstance(error, FileNotFoundError) and error.filename:
        return _missing(Path(error.filename))
    line = str(error).removesuffix(".")
    return line.partition("': ")[2] if line.startswith("data set '") and "': " in line else line


def _missing(path: Path) -> str:
    """What is said of a path that is not there: where it is instead, or what is there instead."""
    above = next(parent for parent in path.parents if parent.exists())
    wanted = above / path.relative_to(above).parts[0]
    places = ("*/" * depth + glob.escape(wanted.name) for depth in range(1, _DEEP + 1))
    deeper = (
        p for place in places for p in sorted(above.glob(place)) if hidden_part(p.parts) is None
    )
    if found := next(deeper, None):
        return f"there is no {path}, but {found}: move that to {wanted}"
    names = sorted(p.name for p in above.iterdir() if not is_hidden(p.name))
    return f"there is no {path}: {above} has {first_of(names, _SHOWN) or 'nothing'}"


def _top(entry: DatasetEntry) -> str:
    """The first folder of a set's layout."""
    return entry.layout.partition("/")[0]


def _archives(entry: DatasetEntry, root: Path) -> list[Path]:
    named = [root / name for name in (*entry.packed, *(file.file for file in entry.files))]
    return [*named, *_whole_archives(entry, root)]


def _whole_archives(entry: DatasetEntry, root: Path) -> list[Path]:
    """Archives that have the name of the first folder, as people and sites pack one."""
    return [root / f"{_top(entry)}{kind}" for kind in (*KINDS, *COMPRESSED)]


def _holds(path: Path) -> bool:
    """Whether a path is a file, or a folder with something in it that can be seen."""
    if path.is_dir():
        return any(not is_hidden(entry.name) for entry in path.iterdir())
    return path.is_file()


def _deeper(entry: DatasetEntry, root: Path) -> Iterator[Path]:
    """Where the first folder of a set lies: in itself, in other letters, in a folder, or in two."""
    top = _top(entry)
    inner = root / top / top
    if inner.is_dir() and top not in entry.layout.split("/")[1:2]:
        yield inner
    elif root.is_dir() and not (root / top).exists():
        others = {_top(other) for other in CATALOGUE.values()}
        yield from (p for p in sorted(root.iterdir())
                    if p.name.lower() == top.lower() and p.name not in others)  # fmt: skip
        found = (p for above in ("*", "*/*") for p in sorted(root.glob(f"{above}/{top}")))
        yield from (p for p in found if hidden_part(p.relative_to(root).parts) is None)
