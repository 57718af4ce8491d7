"""Known sets into the data root: fetched, verified, and unpacked where no reader takes an archive.

A file takes its name once it is whole and what its checksum says; a folder once all of it is there.
"""

import contextlib
import gzip
import hashlib
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from zsntta_cli.datasets.catalogue import DatasetEntry, Download
from zsntta_cli.datasets.download import fetch_file
from zsntta_cli.datasets.tree import COMPRESSED, every_file, is_archive
from zsntta_cli.errors import DatasetError, first_line
from zsntta_cli.files import scratch_folder, take_name, writing
from zsntta_cli.progress import Advance, Reporter

_MEGABYTE = 10**6
_ROOM = 1.3  # times a compressed archive's size: what its content takes, at most about
_BROKEN = (tarfile.TarError, zlib.error, EOFError, ValueError)


def fetch(
    name: str, entry: DatasetEntry, root: Path, reporter: Reporter, mirror: str = ""
) -> list[str]:
    """Fetch what lacks of a known set: lines that say what is where.

    `mirror` is another address below which the files lie, each by its own name.

    Raises:
        DatasetError: it has no plain address, cannot be had, or is not what it should be.
        StoreError: it cannot be written.
    """
    if not entry.layout:
        return ["it is built in"]
    if not entry.files and (place := entry.place(root)):
        return [f"{place} is there already"]
    if not entry.files:
        raise DatasetError(
            f"no plain address is known: get it from {entry.home} and put {entry.layout} into "
            f"{root}."
        )
    return [line for file in entry.files for line in _Fetch(name, file, root, reporter).run(mirror)]


@dataclass(frozen=True)
class _Fetch:
    """One file of a set, on its way to the data root."""

    name: str
    file: Download
    root: Path
    reporter: Reporter

    @property
    def target(self) -> Path:
        return self.root / self.file.file

    def run(self, mirror: str) -> Iterator[str]:
        """Fetch, verify and unpack what is not there yet."""
        folder = self.root / self.file.unpacks
        if self.file.unpacks and folder.exists():
            yield f"{folder} is there already"
            return
        is_there = self.target.exists()
        facts = self._verified() if is_there else self._got(mirror)
        yield f"{self.target}: {facts}"
        if self.file.unpacks:
            with self.reporter.waiting(lambda: f"unpacking {self.target}"):
                unpack(self.target, folder)
            yield f"{folder}: unpacked ({self.target} is not needed any more)"

    def _got(self, mirror: str) -> str:
        """Fetch the file: what is known of its content."""
        address = self.file.address
        if mirror:
            address = f"{mirror.rstrip('/')}/{PurePosixPath(urlsplit(address).path).name}"
        came = self.target.with_name(f"{self.target.name}.came")
        with _alone(self.target), contextlib.ExitStack() as stack:
            progress = _Progress(self, came.parent, stack)
            fetch_file(address, came, progress.begin, progress.reach)
            try:
                facts = self._verify(came)
            except DatasetError as error:
                aside = self.target.with_name(f"{self.target.name}.differs")
                take_name(came, aside)
                raise DatasetError(f"{error} What came is kept as {aside}.") from error
            take_name(came, self.target)
        return facts

    def _verified(self) -> str:
        """What is known of a file that was there already, though it be another than published."""
        try:
            return self._verify(self.target)
        except DatasetError as error:
            return str(error)

    def _verify(self, path: Path) -> str:
        """What is known of a file's content; DatasetError where it is not what it should be."""
        with self.reporter.waiting(lambda: f"checking {path}"):
            kind, _, digest = self.file.checksum.partition(":")
            with path.open("rb") as content:
                actual = hashlib.file_digest(content, kind or "sha256").hexdigest()
            if not digest:
                self._check_whole(path)
                size = f"{path.stat().st_size:,} bytes, sha256 {actual}"
                return f"no checksum is published: {size}"
        if actual != digest:
            raise DatasetError(
                f"{path} is not the file that is known: its {kind} is {actual}, must be {digest}."
            )
        return f"{path.stat().st_size:,} bytes, {kind} as published"

    def _check_whole(self, path: Path) -> None:
        """Raise DatasetError for an archive that is none, or ends too early."""
        if self.target.name.endswith(COMPRESSED):
            try:
                with gzip.open(path) as content:
                    while content.read(_MEGABYTE):  # to its end, where its checksum is
                        pass
            except (OSError, *_BROKEN) as error:
                raise DatasetError(f"{path} is no whole archive ({first_line(error)}).") from error
        elif is_archive(self.target):
            every_file(path)


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Keep others from fetching the same file.

    Raises:
        DatasetError: somebody does.
    """
    path = target.with_name(f".{target.name}.lock")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
    try:
        with lock.acquire(blocking=False):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
    except Timeout as error:
        raise DatasetError(f"another process is fetching {target}.") from error


@dataclass
class _Progress:
    """Tells how far a file is, from when its size is known."""

    fetch: _Fetch
    folder: Path
    stack: contextlib.ExitStack
    advance: Advance | None = None
    done: int = 0  # megabytes
    lacking: int = 0  # bytes

    def begin(self, lacking: int) -> None:
        """DatasetError where the disk has no room for what lacks, and for its content."""
        content = int(_ROOM * lacking) if self.fetch.file.unpacks else 0
        _check_room(self.folder, lacking + content)
        self.lacking = lacking

    def reach(self, size: int) -> None:
        """Show so many bytes: more, or fewer where a file has to begin again."""
        if self.advance is None:
            total = (size + self.lacking) // _MEGABYTE
            self.advance = self.stack.enter_context(
                self.fetch.reporter.track(self.fetch.name, total, "MB")
            )
        self.advance(size // _MEGABYTE - self.done)
        self.done = size // _MEGABYTE


def _check_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DatasetError(
            f"{needed / 1e9:,.1f} GB are needed in {folder}, {free / 1e9:,.1f} GB are free",
            remedy="other-room",
        )


def unpack(archive: Path, folder: Path) -> None:
    """Make a folder of the folder of its name in a tar: all of it, or nothing.

    Regular files alone are written, and none of them outside.

    Raises:
        DatasetError: no whole tar, without such a folder, or with a path that leads out of it.
    """
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(folder.parent) as scratch:
            content = scratch / folder.name
            _unpack_below(archive, content)
            os.sync()
            os.rename(content, folder)


def _unpack_below(archive: Path, content: Path) -> None:
    try:
        with tarfile.open(archive, "r|*") as tar:
            for entry in tar:
                place = _place(archive, PurePosixPath(entry.name).parts, content.name)
                if place and entry.isreg() and (source := tar.extractfile(entry)):
                    path = content.joinpath(*place)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("wb") as sink:
                        shutil.copyfileobj(source, sink)
    except _BROKEN as error:
        raise DatasetError(f"{archive} is no whole tar archive ({first_line(error)}).") from error
    if not content.exists():
        raise DatasetError(f"{archive} has no folder {content.name} with files.")


def _place(archive: Path, parts: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """The path below the first folder of a name; nothing of what lies elsewhere."""
    if ".." in parts or parts[:1] == ("/",):
        raise DatasetError(f"{archive} is not unpacked: {'/'.join(parts)} leads out of it.")
    return parts[parts.index(folder) + 1 :] if folder in parts[:-1] else ()
