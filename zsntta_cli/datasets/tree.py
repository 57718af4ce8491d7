"""The files of a folder, a .tar or a .zip as one list, whatever they lie in; sets by class folders.

Nothing is unpacked. What is hidden, what systems and tools put beside images, and what is no
image is left out and counted: `every_file` is the list and `LeftOut` the count, for data sets and
for photos alike.
"""

import contextlib
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
from typing import NoReturn

from zsntta_cli.errors import DatasetError, counted, first_line, first_of

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
ARCHIVES = (".tar", ".zip")  # that are read where they lie
COMPRESSED = (".tar.gz", ".tgz")  # that are unpacked before they are read
# Folders of systems and tools that do not begin with a dot, in lower case.
TOOL_FOLDERS = frozenset({
    "__macosx", "network trash folder", "temporary items", "thevolumesettingsfolder",  # macOS
    "$recycle.bin", "recycler", "recycled", "system volume information", "$extend",  # Windows
    "found.000",  # Windows: pieces that chkdsk saved
    "lost+found",  # Linux
    "@eadir", "#recycle", "#snapshot", "@tmp", "@sharebin", "@synoresource",  # Synology
    "@recycle", "@recently-snapshot", "@__thumb",  # QNAP
    "~snapshot",  # NetApp
    "files_trashbin", "files_versions",  # Nextcloud
    "ipod photo cache",  # iTunes
    "node_modules", "__pycache__",
})  # fmt: skip
BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)
_NUMBERED = re.compile(r"(\D*)(\d{1,9})((?:\.\D{1,4})?)")  # 7, class_7, 7.th
_KINDS = 6  # endings that a line names


# Why a file of the list is left out.
HIDDEN, HIDDEN_FOLDER = "hidden", "hidden folder"
LINKED, OUTSIDE = "linked", "outside"  # of archives: links, and paths that lead out
UNREADABLE = "unreadable"  # links to nothing, pipes, devices
CLOSED = "closed"  # a folder that cannot be looked into


@dataclass(frozen=True)
class File:
    """A file: the parts of its path below the top, its size in bytes, and what reads it.

    `read` may be called by several threads at once; it raises OSError where the file is damaged.
    """

    parts: tuple[str, ...]
    size: int
    read: Callable[[], bytes]
    left_out: str = ""  # why it is left out, one of the words above; nothing where it is not

    @property
    def id(self) -> str:
        """The path below the top."""
        return "/".join(self.parts)

    @property
    def ending(self) -> str:
        """What its name ends with, in lower case: `.jpg`."""
        return PurePosixPath(self.parts[-1]).suffix.lower()

    @property
    def is_image(self) -> bool:
        """Whether it is an image by its ending."""
        return self.ending in SUFFIXES


@dataclass
class LeftOut:
    """Count what is found and not read: files by their endings, folders that are not looked into.

    Images that are given `again` under another name or link are counted too: each is read once.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    folders: set[Path] = field(default_factory=set)  # not looked into
    again: int = 0

    @property
    def files(self) -> int:
        """How many files were found and left out."""
        return self.kinds.total()

    def add(self, file: File, top: Path = Path()) -> None:
        """Count a file that lies below `top`; of a hidden folder the folder, once."""
        if file.left_out == HIDDEN_FOLDER:
            self.folders.add(top.joinpath(*file.parts))
        else:
            self.kinds[file.left_out or file.ending or "without an ending"] += 1

    def words(self) -> str:
        """What was left out, `4 .mp4, 2 hidden`, as the end of a sentence; empty if nothing was."""
        most = sorted(self.kinds.items(), key=lambda pair: (-pair[1], pair[0]))[:_KINDS]
        words = [f"{count:,} {kind}" for kind, count in most]
        if more := self.files - sum(count for _, count in most):
            words.append(f"{more:,} others")
        if self.folders:
            names = first_of(sorted({folder.name for folder in self.folders}))
            words.append(f"{counted(len(self.folders), HIDDEN_FOLDER)} ({names})")
        return ", ".join(words)


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or has the name of a folder of a system or tool."""
    plain = name.lower()
    return name.startswith(".") or plain in TOOL_FOLDERS or plain.endswith(".lrdata")


def every_file(path: Path, all_folders: bool = False) -> list[File]:
    """All files of a folder, a .tar or a .zip, ordered by their paths; some say why to leave them.

    Links of a folder are followed, and each folder is listed once; a hidden one, unless
    `all_folders` are looked into, and one that cannot be listed are in the list themselves. Of two
    members of an archive with one path it has the later, as tar does.

    Raises:
        DatasetError: there is nothing, or no whole archive.
    """
    found = _of_folder(path, all_folders) if path.is_dir() else _of_archive(path)
    files = {file.parts: file for file in (_told_hidden(one, all_folders) for one in found)}
    return [files[parts] for parts in sorted(files)]


def files_in(path: Path, left_out: LeftOut | None = None) -> list[File]:
    """The files of a folder, a .tar or a .zip that are not left out, ordered by their paths.

    Raises:
        DatasetError: there is nothing, or no whole archive. OSError: a folder cannot be listed; it
            may hold images, and without them numbers are wrong.
    """
    files, left_out = every_file(path), left_out or LeftOut()
    for file in files:
        if file.left_out == CLOSED:
            file.read()
        if file.left_out:
            left_out.add(file)
    return [file for file in files if not file.left_out]


def images_in(path: Path, within: str = "", left_out: LeftOut | None = None) -> list[File]:
    """The images among the files of a folder, or of an archive below the folder that all share.

    `within`: of an archive that has a folder of this name, only what is in it.
    """
    images, left_out = [], left_out or LeftOut()
    for file in files_in(path, left_out):
        if file.is_image:
            images.append(file)
        else:
            left_out.add(file)
    if path.is_dir():
        return images
    return below_shared([image for image in images if within in image.parts[:-1]] or images)


def _told_hidden(file: File, all_folders: bool) -> File:
    """The file, left out if it is hidden; in place of one in a hidden folder the folder."""
    if file.left_out:
        return file
    *folders, name = file.parts
    hidden = next((i for i, folder in enumerate(folders) if is_hidden(folder)), None)
    if hidden is not None and not all_folders:
        return File(file.parts[: hidden + 1], 0, file.read, HIDDEN_FOLDER)
    return replace(file, left_out=HIDDEN) if is_hidden(name) else file


def _of_folder(path: Path, all_folders: bool) -> Iterator[File]:
    seen, closed = set[tuple[int, int]](), list[OSError]()
    for at, folders, names in os.walk(path, onerror=closed.append, followlinks=True):
        status = os.stat(at)
        if (status.st_dev, status.st_ino) in seen:  # a link led here once more
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        parts = Path(at).relative_to(path).parts
        hidden = {name for name in folders if is_hidden(name) and not all_folders}
        yield from (_left((*parts, name), HIDDEN_FOLDER) for name in hidden)
        folders[:] = sorted({*folders} - hidden)
        for name in names:
            file, size = Path(at, name), -1
            with contextlib.suppress(OSError):  # of a link to nothing
                status = file.stat()
                size = status.st_size if stat.S_ISREG(status.st_mode) else -1
            if size < 0:
                yield _left((*parts, name), UNREADABLE)
            else:
                yield File((*parts, name), size, file.read_bytes)
    for error in closed:
        yield _left(Path(error.filename).relative_to(path).parts, CLOSED, error)


def _left(parts: tuple[str, ...], why: str, error: OSError | None = None) -> File:
    def read() -> NoReturn:
        raise error or OSError("it is no regular file")

    return File(parts, 0, read, why)


def _of_archive(path: Path) -> list[File]:
    name = path.name.lower()
    if not path.is_file() or not name.endswith((*ARCHIVES, *COMPRESSED)):
        raise DatasetError(f"there is no folder, .tar or .zip at {path}.")
    kind = ".zip" if name.endswith(".zip") else ".tar"
    try:
        files = list(_of_zip(path) if kind == ".zip" else _of_tar(path))
    except (OSError, *BROKEN) as error:
        if name.endswith(COMPRESSED):
            where = f"{shlex.quote(str(path))} -C {shlex.quote(str(path.parent))}"
            raise DatasetError(f"unpack {path} first: tar -xzf {where}") from error
        raise DatasetError(
            f"{path} is no whole {kind} archive ({first_line(error)}): get it again."
        ) from error
    return [
        replace(file, left_out=OUTSIDE) if ".." in file.parts or "/" in file.parts[:1] else file
        for file in files
        if file.parts
    ]


def _of_tar(path: Path) -> Iterator[File]:
    with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:", encoding="utf-8") as tar:
        while (entry := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined] # or it keeps them all
            parts = PurePosixPath(entry.name).parts
            if entry.isreg() and not entry.issparse():
                read = partial(_stretch, path, entry.offset_data, entry.size)
                yield File(parts, entry.size, read)
            elif not entry.isdir():
                is_link = entry.issym() or entry.islnk()
                yield _left(parts, LINKED if is_link else UNREADABLE)
        file.seek(tar.offset)  # tarfile takes a cut between two members for the end
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
            yield _left(parts, LINKED)
        elif not info.is_dir():
            yield File(parts, info.file_size, partial(read, info.filename))


def below_shared(files: Sequence[File]) -> list[File]:
    """Files without the folders that all have in common."""
    folders = [file.parts[:-1] for file in files] or [()]
    first, last = min(folders), max(folders)  # what these two share, all between them do
    levels = zip(first, last, strict=False)
    depth = next((i for i, (a, b) in enumerate(levels) if a != b), min(len(first), len(last)))
    return [File(file.parts[depth:], file.size, file.read) for file in files]


def in_order(folders: Iterable[str]) -> list[str]:
    """Class folders in the order of their labels: by number where they differ in nothing else."""
    names = sorted(folders)
    matches = [_NUMBERED.fullmatch(name) for name in names]
    numbers = {int(match[2]): match[0] for match in matches if match}
    if len({(match[1], match[3]) if match else None for match in matches}) > 1:
        return names
    return [numbers[i] for i in sorted(numbers)] if len(numbers) == len(names) else names
