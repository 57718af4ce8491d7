"""What is not judged of the folders and archives that are searched, in words and in numbers."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from zsntta_cli.datasets.hidden import hidden_part, is_hidden
from zsntta_cli.datasets.readers.members import COMPRESSED, KINDS
from zsntta_cli.errors import counted, first_of

VIDEOS = (
    ".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v", ".mpg", ".mpeg", ".ts", ".ogv", ".3gp", ".wmv",
    ".mts", ".m2ts", ".flv",
)  # fmt: skip
RAW = (
    ".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dcr", ".dng", ".erf", ".fff", ".gpr", ".iiq", ".kdc",
    ".mef", ".mos", ".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".rw2", ".rwl", ".sr2", ".srf",
    ".srw", ".x3f",
)  # fmt: skip
_OTHER_FORMATS = (
    ".ai", ".eps", ".exr", ".hdr", ".ico", ".pdf", ".psd", ".svg", ".tga", ".wmf", ".xcf",
)  # fmt: skip
_NO_PICTURE = "file that is no picture"
_HIDDEN = "hidden file"
_FOLDER = "hidden folder"
# What a file of these endings is called, one and many.
_KINDS: dict[str, tuple[str, ...]] = {
    "video": VIDEOS,
    "archive": tuple(KINDS),
    "archive of another kind": (*COMPRESSED, ".rar", ".7z"),
    "RAW photo": RAW,
    "picture of another format": _OTHER_FORMATS,
    _NO_PICTURE: ("",),
}
_EMPTY, _ELSEWHERE = "folder without images", "image elsewhere"  # of a set with classes
_TEXTS = (".cls", ".json", ".txt", ".xml", ".label")  # that may be beside each image
_MANY = {
    _EMPTY: "folders without images",
    _ELSEWHERE: "images elsewhere",
    "picture of another format": "pictures of other formats",
    "archive of another kind": "archives of other kinds",
    _NO_PICTURE: "files that are no pictures",
}
_UNREADABLE = ("video", "archive of another kind", "RAW photo", "picture of another format")
_SHOWN = 3  # names of a kind


@dataclass
class LeftOut:
    """Count what is found and not judged, by kind: each file that is there is counted once.

    Images that are given `again` under another name or link are counted too: each is judged once.
    """

    _counts: Counter[str] = field(default_factory=Counter)
    _names: dict[str, list[str]] = field(default_factory=dict)  # of each kind, the first few
    folders: set[tuple[str, ...]] = field(default_factory=set)  # not looked into, by their paths
    beside: Counter[str] = field(default_factory=Counter)  # endings of texts that were left out
    again: int = 0

    @property
    def files(self) -> int:
        """How many files were found and left out."""
        return self._counts.total()

    def add(self, name: str) -> None:
        """Count a file that is not judged, by its path; of a hidden folder the folder, once."""
        *folders, last = PurePath(name).parts
        if (hidden := hidden_part(folders)) is not None:
            self.add_hidden_folder((*folders[: folders.index(hidden) + 1],))
        elif is_hidden(last):
            self._count(_HIDDEN, last)
        else:
            ending = last.lower()
            self._count(next(kind for kind in _KINDS if ending.endswith(_KINDS[kind])), last)

            if ending.endswith(_TEXTS):
                self.beside[PurePath(ending).suffix] += 1

    def add_empty(self, folders: Iterable[str]) -> None:
        """Count folders beside those of the classes that hold no image."""
        for folder in folders:
            self._count(_EMPTY, folder)

    def add_others(self, places: Iterable[tuple[str, ...]]) -> None:
        """Count images, by the parts of their paths, that lie elsewhere than the set does."""
        for place in places:
            self._count(_ELSEWHERE, "/".join(place))

    def add_hidden_folder(self, place: tuple[str, ...]) -> None:
        """Count a folder that is not looked into, by the parts of its path, once."""
        self.folders.add(place)

    def _count(self, kind: str, name: str) -> None:
        self._counts[kind] += 1
        names = self._names.setdefault(kind, [])
        if len(names) < _SHOWN and name not in names:
            names.append(name)

    def words(self) -> str:
        """What was left out, as the end of a sentence; empty if nothing was."""
        readable, unreadable = (
            " and ".join(self._of(kinds)) for kinds in (("archive",), _UNREADABLE)
        )
        parts = (
            f"{readable}, read only if you name them" if readable else "",
            f"{unreadable}, which cannot be read" if unreadable else "",
            *self._of((_EMPTY, _ELSEWHERE, _HIDDEN, _NO_PICTURE)),
            self._of_folders(),
        )
        return "; ".join(filter(None, parts))

    def _of(self, kinds: tuple[str, ...]) -> Iterator[str]:
        """The numbers of files of some kinds, with names."""
        for kind in kinds:
            if count := self._counts[kind]:
                names = ", ".join(self._names[kind]) + (", …" if count > _SHOWN else "")
                yield f"{counted(count, kind, _MANY.get(kind, ''))} ({names})"

    def _of_folders(self) -> str:
        """The folders, by name; those of systems and tools may be many of one name."""
        names = first_of(sorted({place[-1] for place in self.folders}))
        return f"{counted(len(self.folders), _FOLDER)} ({names})" if self.folders else ""


def said_again(count: int) -> str:
    """A note on images that are given more than once; empty if there are none."""
    if not count:
        return ""
    images, is_judged = ("image is", "it is") if count == 1 else ("images are", "each is")
    return (
        f"note: {count:,} {images} given more than once, by a folder, a name or a link: "
        f"{is_judged} judged once."
    )
