"""The files of a folder, a .tar or a .zip as one list, whatever they lie in; sets by class folders.

Nothing is unpacked. What is hidden, what systems and tools put beside images, and what is no
image is left out and counted: `LeftOut` is that count, for data sets and for photos alike.
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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

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


@dataclass(frozen=True)
class File:
    """A file: the parts of its path below the top, its size in bytes, and what reads it.

    `read` may be called by several threads at once; it raises OSError where the file is damaged.
    """

    parts: tuple[str, ...]
    size: int
    read: Callable[[], bytes]

    @property
    def id(self) -> str:
        """The path below the top."""
        return "/".join(self.parts)

    @property
    def is_image(self) -> bool:
        """Whether it is an image by its ending."""
        return PurePosixPath(self.parts[-1]).suffix.lower() in SUFFIXES


@dataclass
class LeftOut:
    """Count what is found and not read: files by their endings, folders that are not looked into.

    Images that are given `again` under another name or link are counted too: each is read once.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    folders: set[tuple[str, ...]] = field(default_factory=set)  # not looked into, by their paths
    again: int = 0

    @property
    def files(self) -> int:
        """How many files were found and left out."""
        return self.kinds.total()

    def add(self, *parts: str) -> None:
        """Count a file by the parts of its path; of a hidden folder the folder, once."""
        *above, name = parts
        if (hidden := hidden_part(above)) is not None:
            self.folders.add((*above[: above.index(hidden) + 1],))
        else:
            ending = PurePosixPath(name).suffix.lower()
            self.kinds["hidden" if is_hidden(name) else ending or "without an ending"] += 1

    def words(self) -> str:
        """What was left out, `4 .mp4, 2 hidden`, as the end of a sentence; empty if nothing was."""
        most = sorted(self.kinds.items(), key=lambda pair: (-pair[1], pair[0]))[:_KINDS]
        words = [f"{count:,} {kind}" for kind, count in most]
        if more := self.files - sum(count for _, count in most):
            words.append(f"{more:,} others")
        if self.folders:
            names = first_of(sorted({place[-1] for place in self.folders}))
            words.append(f"{counted(len(self.folders), 'hidden folder')} ({names})")
        return ", ".join(words)


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or has the name of a folder of a system or tool."""
    plain = name.lower()
    return name.startswith(".") or plain in TOOL_FOLDERS or plain.endswith(".lrdata")


def hidden_part(parts: Iterable[str]) -> str | None:
    """The first part of a path that is hidden; None if all of it can be seen."""
    return next((part for part in parts if is_hidden(part)), None)


def is_archive(path: Path) -> bool:
    """Whether a path is a .tar or a .zip by its name, and no folder."""
    return path.name.lower().endswith(ARCHIVES) and not path.is_dir()


def files_in(path: Path, left_out: LeftOut | None = None) -> list[File]:
    """The files of a folder, a .tar or a .zip that are not hidden, ordered by their paths.

    Of an archive these are regular files, of two with one path the later, as tar has it, and none
    whose path leads out. Links of a folder are followed, and each folder is listed once.

    Raises:
        DatasetError: there is nothing, or no whole archive.
    """
    left_out = LeftOut() if left_out is None else left_out
    if path.is_dir():
        files = {file.parts: file for file in _of_folder(path, left_out)}
    else:
        files = {file.parts: file for file in members(path)}
    for parts in [parts for parts in files if hidden_part(parts) is not None]:
        left_out.add(*parts)
        del files[parts]
    return [files[parts] for parts in sorted(files)]


def members(path: Path) -> list[File]:
    """The regular files of an archive, hidden ones too, as they come.

    Raises:
        DatasetError: there is no such file, or it is no whole archive.
    """
    name = path.name.lower()
    if not path.is_file() or not name.endswith((*ARCHIVES, *COMPRESSED)):
        raise DatasetError(f"there is no folder, .tar or .zip at {path}.")
    kind = ".zip" if name.endswith(".zip") else ".tar"
    try:
        found = list(_of_zip(path) if kind == ".zip" else _of_tar(path))
    except (OSError, *BROKEN) as error:
        if name.endswith(COMPRESSED):
            where = f"{shlex.quote(str(path))} -C {shlex.quote(str(path.parent))}"
            raise DatasetError(f"unpack {path} first: tar -xzf {where}") from error
        raise DatasetError(
            f"{path} is no whole {kind} archive ({first_line(error)}): get it again."
        ) from error
    return [f for f in found if f.parts and f.parts[0] != "/" and ".." not in f.parts]


def _of_folder(path: Path, left_out: LeftOut) -> Iterator[File]:
    seen = set[tuple[int, int]]()
    for at, folders, names in os.walk(path, onerror=_refuse, followlinks=True):
        status = os.stat(at)
        if (status.st_dev, status.st_ino) in seen:  # a link to a folder that holds it
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        parts = Path(at).relative_to(path).parts
        left_out.folders.update((*parts, name) for name in folders if is_hidden(name))
        folders[:] = [name for name in folders if not is_hidden(name)]
        for name in names:
            file = Path(at, name)
            try:
                status = file.stat()
            except OSError:  # a link to nothing
                left_out.add(*parts, name)
                continue
            if stat.S_ISREG(status.st_mode):
                yield File((*parts, name), status.st_size, file.read_bytes)
            else:
                left_out.add(*parts, name)


def _refuse(error: OSError) -> None:
    """Raise: a folder that cannot be listed may hold images, and without them numbers are wrong."""
    raise error


def _of_tar(path: Path) -> Iterator[File]:
    with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:", encoding="utf-8") as tar:
        while (entry := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined] # or it keeps them all
            if entry.isreg() and not entry.issparse():
                read = partial(_stretch, path, entry.offset_data, entry.size)
                yield File(PurePosixPath(entry.name).parts, entry.size, read)
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
        if not info.is_dir() and not stat.S_ISLNK(info.external_attr >> 16):
            parts = PurePosixPath(info.filename).parts
            yield File(parts, info.file_size, partial(read, info.filename))


def images_among(files: Sequence[File], left_out: LeftOut | None = None) -> list[File]:
    """The images of a list of files; others are counted."""
    for file in files:
        if left_out is not None and not file.is_image:
            left_out.add(*file.parts)
    return [file for file in files if file.is_image]


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


def labels_by_folder(name: str, where: Path, files: Sequence[File]) -> tuple[list[int], list[str]]:
    """Labels and class names of images: the first folder of a path is the class.

    Without folders there are neither: labels of -1, no names.

    Raises:
        DatasetError: images beside class folders.
    """
    classes = in_order({file.parts[0] for file in files if len(file.parts) > 1})
    beside = [file.id for file in files if len(file.parts) == 1]
    if classes and beside:
        raise DatasetError(
            f"data set '{name}': {where} has images beside class folders, such as {beside[0]}: "
            f"each must be in a folder of its class."
        )
    index = {class_name: label for label, class_name in enumerate(classes)}
    return [index[file.parts[0]] if classes else -1 for file in files], classes
