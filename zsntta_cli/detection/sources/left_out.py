"""The files of searched folders and archives that are left out, in words."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

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
}
_MANY = {
    "picture of another format": "pictures of other formats",
    "archive of another kind": "archives of other kinds",
}
_NAMED = ("video", "archive")  # kinds that are read when they are named
_SHOWN = 3  # names of a kind


@dataclass
class LeftOut:
    """Count files that may be of interest but are not read, by their kind.

    It also counts images that are given `again` under another name or link: each is judged once.
    """

    _counts: dict[str, int] = field(default_factory=dict)
    _names: dict[str, list[str]] = field(default_factory=dict)  # of each kind, the first few
    again: int = 0

    def add(self, name: str) -> None:
        """Count a file, by its name, if it is of one of the kinds."""
        ending = name.lower()
        kind = next((kind for kind in _KINDS if ending.endswith(_KINDS[kind])), None)
        if kind is None:
            return
        self._counts[kind] = self._counts.get(kind, 0) + 1
        names = self._names.setdefault(kind, [])
        if len(names) < _SHOWN:
            names.append(PurePath(name).name)

    def words(self) -> str:
        """What was left out, as the end of a sentence; empty if nothing was."""
        readable = " and ".join(self._of(_NAMED))
        unreadable = " and ".join(self._of(kind for kind in _KINDS if kind not in _NAMED))
        parts = (
            f"{readable}, read only if you name them" if readable else "",
            f"{unreadable}, which cannot be read" if unreadable else "",
        )
        return "; ".join(filter(None, parts))

    def _of(self, kinds: "Iterator[str] | tuple[str, ...]") -> Iterator[str]:
        """The numbers of files of some kinds, with names."""
        for kind in kinds:
            if count := self._counts.get(kind, 0):
                noun = kind if count == 1 else _MANY.get(kind, f"{kind}s")
                names = ", ".join(self._names[kind]) + (", …" if count > _SHOWN else "")
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
