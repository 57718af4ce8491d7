"""The files of searched folders and archives that are left out, in words."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from zsntta_cli.datasets.hidden import hidden_part
from zsntta_cli.datasets.images import SUFFIXES
from zsntta_cli.datasets.readers.members import KINDS

VIDEOS = (
    ".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v", ".mpg", ".mpeg", ".ts", ".ogv", ".3gp", ".wmv",
    ".mts", ".m2ts", ".flv",
)  # fmt: skip
_RAW = (
    ".arw", ".cr2", ".cr3", ".crw", ".dng", ".erf", ".kdc", ".mef", ".mos", ".mrw", ".nef", ".nrw",
    ".orf", ".pef", ".raf", ".rw2", ".rwl", ".sr2", ".srf", ".srw", ".x3f",
)  # fmt: skip
_OTHER_FORMATS = (
    ".ai", ".eps", ".exr", ".hdr", ".ico", ".pdf", ".psd", ".svg", ".tga", ".wmf", ".xcf",
)  # fmt: skip
# What a file of these endings is called, one and many. Of texts and sidecars nothing is said.
_KINDS: dict[str, tuple[str, ...]] = {
    "video": VIDEOS,
    "archive": tuple(KINDS),
    "archive of another kind": (".rar", ".7z"),
    "RAW photo": _RAW,
    "picture of another format": _OTHER_FORMATS,
    "hidden folder": (),
    "hidden image": (),
}
_MANY = {
    "picture of another format": "pictures of other formats",
    "archive of another kind": "archives of other kinds",
}
_NAMED = ("video", "archive")  # kinds that are read when they are named
_HIDDEN = ("hidden folder", "hidden image")
_SHOWN = 3  # names of a kind


@dataclass
class LeftOut:
    """Count files that may be of interest but are not read, by their kind.

    It also counts images that are given `again` under another name or link: each is judged once.
    """

    _counts: dict[str, int] = field(default_factory=dict)
    _names: dict[str, list[str]] = field(default_factory=dict)  # of each kind, the first few
    _folders: set[tuple[str, ...]] = field(default_factory=set)  # hidden ones, by their paths
    again: int = 0

    def add(self, name: str) -> None:
        """Count a file, by its path, if it is of one of the kinds.

        Of what is hidden, folders and images are counted.
        """
        parts = PurePath(name).parts
        if (hidden := hidden_part(parts)) is not None:
            place = parts[: parts.index(hidden) + 1]
            if place != parts:
                self.add_hidden_folder(place)
            elif PurePath(name).suffix.lower() in SUFFIXES:
                self._count("hidden image", hidden)
            return
        ending = name.lower()
        kind = next((kind for kind in _KINDS if _KINDS[kind] and ending.endswith(_KINDS[kind])), "")
        if kind:
            self._count(kind, parts[-1])

    def add_hidden_folder(self, place: tuple[str, ...]) -> None:
        """Count a hidden folder, by the parts of its path, once."""
        if place not in self._folders:
            self._folders.add(place)
            self._count("hidden folder", place[-1])

    def _count(self, kind: str, name: str) -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        names = self._names.setdefault(kind, [])
        if len(names) < _SHOWN and name not in names:
            names.append(name)

    def words(self) -> str:
        """What was left out, as the end of a sentence; empty if nothing was."""
        readable = " and ".join(self._of(_NAMED))
        others = (kind for kind in _KINDS if kind not in (*_NAMED, *_HIDDEN))
        unreadable = " and ".join(self._of(others))
        parts = (
            f"{readable}, read only if you name them" if readable else "",
            f"{unreadable}, which cannot be read" if unreadable else "",
            " and ".join(self._of(_HIDDEN)),
        )
        return "; ".join(filter(None, parts))

    def _of(self, kinds: "Iterator[str] | tuple[str, ...]") -> Iterator[str]:
        """The numbers of files of some kinds, with names."""
        for kind in kinds:
            if count := self._counts.get(kind, 0):
                noun = kind if count == 1 else _MANY.get(kind, f"{kind}s")
                shown = self._names[kind]
                names = ", ".join(shown) + (", …" if count > len(shown) >= _SHOWN else "")
                yield f"{count:,} {noun} ({names})"


def said_again(count: int) -> str:
    """A note on images that are given more than once; empty if there are none."""
    if not count:
        return ""
    images, is_judged = ("image is", "it is") if count == 1 else ("images are", "each is")
    return (
        f"note: {count:,} {images} given more than once, by a folder, a name or a link: "
        f"{is_judged} judged once."
    )
