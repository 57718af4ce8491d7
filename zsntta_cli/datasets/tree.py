"""The files of a folder, a .tar or a .zip as one list, for data sets and for photos alike.

Nothing is unpacked. Hidden files and what systems and tools put beside images are skipped and
counted: `every_file` is the list and `LeftOut` the count.
"""

import os
import re
import shlex
import stat
import tarfile
import threading
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath

from zsntta_cli.datasets.catalogue import ARCHIVES
from zsntta_cli.errors import DatasetError, counted, first_line, first_of

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
COMPRESSED = (".tar.gz", ".tgz")  # refused, unless they are plain tars
# Folders of systems and tools that do not begin with a dot, in lower case: of macOS, Windows,
# Linux, network storage (Synology, QNAP, NetApp, Nextcloud) and programs.
_TOOL_FOLDERS = frozenset({
    "__macosx", "network trash folder", "temporary items", "thevolumesettingsfolder",
    "$recycle.bin", "recycler", "recycled", "system volume information", "$extend", "found.000",
    "lost+found", "@eadir", "#recycle", "#snapshot", "@tmp", "@sharebin", "@synoresource",
    "@recycle", "@recently-snapshot", "@__thumb", "~snapshot", "files_trashbin", "files_versions",
    "ipod photo cache", "node_modules", "__pycache__",
})  # fmt: skip
BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)
# Why a file is left out. Unreadable are links to nothing, pipes and devices.
HIDDEN_FOLDER, UNREADABLE = "hidden folder", "unreadable"
_KINDS = 6  # endings that a line names


@dataclass(frozen=True)
class File:
    """A file: the parts of its path below the top, its size in bytes, and what reads it.

    `read` may be called by several threads at once; it raises OSError if the file is damaged.
    """

    parts: tuple[str, ...]
    size: int = 0
    read: Callable[[], bytes] = bytes
    left_out: str = ""  # why it is left out, in a word, if it is

    @property
    def id(self) -> str:
        """The path below the top."""
        return "/".join(self.parts)

    @property
    def ending(self) -> str:
        """The ending of its name, in lower case, such as `.jpg`."""
        return PurePosixPath(self.parts[-1]).suffix.lower()

    @property
    def is_image(self) -> bool:
        """Whether it has the ending of an image."""
        return self.ending in SUFFIXES


@dataclass
class LeftOut:
    """Count what is found but not read: files by ending, and folders that are not searched.

    Images given `again` under another name or link are counted too: each is read once.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    folders: set[Path] = field(default_factory=set)  # not looked into
    again: int = 0

    @property
    def files(self) -> int:
        """How many files were found and skipped."""
        return self.kinds.total()

    def add(self, file: File, top: Path = Path()) -> None:
        """Count a file below `top`; a hidden folder counts once."""
        if file.left_out == HIDDEN_FOLDER:
            self.folders.add(top.joinpath(*file.parts))
        else:
            self.kinds[file.left_out or file.ending or "without an ending"] += 1

    def words(self) -> str:
        """What was skipped, `4 .mp4, 2 hidden`, as the end of a sentence; empty if nothing was."""
        kinds = sorted(self.kinds.items(), key=lambda pair: (-pair[1], pair[0]))
        words = [f"{count:,} {kind}" for kind, count in kinds[:_KINDS]]
        if more := sum(count for _, count in kinds[_KINDS:]):
            words.append(f"{more:,} others")
        if self.folders:
            names = first_of(sorted({folder.name for folder in self.folders}))
            words.append(f"{counted(len(self.folders), HIDDEN_FOLDER)} ({names})")
        return ", ".join(words)


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or is named like a folder of a system or tool."""
    plain = name.lower()
    return name.startswith(".") or plain in _TOOL_FOLDERS or plain.endswith(".lrdata")


def every_file(path: Path, all_folders: bool = False) -> list[File]:
    """All files of a folder, a .tar or a .zip, ordered by path; skipped ones have a reason.

    Links in a folder are followed, and each folder is listed once. A hidden folder is an entry of
    the list itself, unless `all_folders` are searched. Of two members of an archive with the same
    path the later is used, as by tar.

    Raises:
        DatasetError: the path does not exist, is an incomplete archive, or has a folder that cannot
            be listed: it may hold images, without which numbers would be wrong.
    """
    files = dict[tuple[str, ...], File]()
    try:
        for file in _of_folder(path, all_folders) if path.is_dir() else _of_archive(path):
            *folders, name = file.parts
            hidden = next((i for i, folder in enumerate(folders, 1) if is_hidden(folder)), 0)
            if hidden and not file.left_out and not all_folders:
                file = File(file.parts[:hidden], left_out=HIDDEN_FOLDER)
            elif is_hidden(name) and not file.left_out:
                file = replace(file, left_out="hidden")
            files[file.parts] = file
    except OSError as error:
        raise DatasetError(f"{path} cannot be read ({first_line(error)}).") from error
    return [files[parts] for parts in sorted(files)]


def files_in(path: Path, left_out: LeftOut | None = None, only_images: bool = False) -> list[File]:
    """The files of `every_file` that are not skipped; the others are counted."""
    kept = list[File]()
    for file in every_file(path):
        if not file.left_out and (file.is_image or not only_images):
            kept.append(file)
        elif left_out:
            left_out.add(file)
    return kept


def images_in(path: Path, within: str = "", left_out: LeftOut | None = None) -> list[File]:
    """The images in a folder, or in an archive below the folder that all of them share.

    `within`: if an archive has a folder of this name, only the images in it.
    """
    images = files_in(path, left_out, only_images=True)
    if path.is_dir():
        return images
    return below_shared([image for image in images if within in image.parts[:-1]] or images)


def below_shared(files: Sequence[File]) -> list[File]:
    """Files without the folders that all of them share."""
    depth = len(os.path.commonprefix([file.parts[:-1] for file in files]))  # noqa: RUF071
    return [replace(file, parts=file.parts[depth:]) for file in files]


def in_order(folders: Iterable[str]) -> list[str]:
    """Class folders in the order of their labels: by number if they differ only in it."""
    names = sorted(folders)
    pieces = [re.split(r"(\d+)", name) for name in names]  # of class_7: class_, 7 and nothing
    if {len(of) for of in pieces} != {3} or len({(of[0], of[2]) for of in pieces}) > 1:
        return names
    return ["".join(of) for of in sorted(pieces, key=lambda of: int(of[1]))]


def _of_folder(top: Path, all_folders: bool) -> Iterator[File]:
    seen = set[tuple[int, int]]()
    for at, folders, names in os.walk(top, onerror=_refuse, followlinks=True):
        status = os.stat(at)
        if (status.st_dev, status.st_ino) in seen:  # by another link
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        parts = Path(at).relative_to(top).parts
        hidden = {name for name in folders if is_hidden(name) and not all_folders}
        yield from (File((*parts, name), left_out=HIDDEN_FOLDER) for name in hidden)
        folders[:] = sorted({*folders} - hidden)
        for name in names:
            path = Path(at, name)
            if path.is_file():
                yield File((*parts, name), path.stat().st_size, path.read_bytes)
            else:
                yield File((*parts, name), left_out=UNREADABLE)


def _refuse(error: OSError) -> None:
    raise error


def _of_archive(path: Path) -> Iterator[File]:
    name = path.name.lower()
    if not path.is_file() or not name.endswith((*ARCHIVES, *COMPRESSED)):
        raise DatasetError(f"there is no folder, .tar or .zip at {path}.")
    kind = ".zip" if name.endswith(".zip") else ".tar"
    try:
        files = list(_of_zip(path) if kind == ".zip" else _of_tar(path))
    except (OSError, *BROKEN) as error:
        if name.endswith(COMPRESSED):
            unpack = f"tar -xzf {shlex.quote(str(path))}"
            raise DatasetError(f"unpack {path} first: {unpack}") from error
        whole = f"a complete {kind} archive ({first_line(error)})"
        raise DatasetError(f"{path} is not {whole}: download it again.") from error
    for file in filter(lambda file: file.parts, files):
        leads_out = ".." in file.parts or file.parts[0] == "/"
        yield replace(file, left_out="outside") if leads_out else file


def _of_tar(path: Path) -> Iterator[File]:
    with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:", encoding="utf-8") as tar:
        for entry in tar:
            tar.members = []  # type: ignore[attr-defined] # it would keep them all
            parts = PurePosixPath(entry.name).parts
            if entry.isreg() and not entry.issparse():
                read = partial(_stretch, path, entry.offset_data, entry.size)
                yield File(parts, entry.size, read)
            elif not entry.isdir():
                is_link = entry.issym() or entry.islnk()
                yield File(parts, left_out="linked" if is_link else UNREADABLE)
        file.seek(tar.offset)  # tarfile accepts a tar that is cut between two members
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"cut off or damaged at byte {tar.offset:,}")


def _stretch(path: Path, start: int, size: int) -> bytes:
    """Read some bytes of a file; a handle for each, so that threads share no position."""
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        return file.read(size)


def _of_zip(path: Path) -> Iterator[File]:
    archive, lock = zipfile.ZipFile(path), threading.Lock()

    def read(name: str) -> bytes:
        try:
            with lock:  # zipfile counts its readers without one
                return archive.read(name)
        except BROKEN as error:
            raise OSError(str(error)) from error

    for info in archive.infolist():
        parts = PurePosixPath(info.filename).parts
        if stat.S_ISLNK(info.external_attr >> 16):
            yield File(parts, left_out="linked")
        elif not info.is_dir():
            yield File(parts, info.file_size, partial(read, info.filename))
