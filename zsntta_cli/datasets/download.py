"""Known sets into the data root: fetched, verified, and unpacked where no reader takes an archive.

A file at https://… or file://… comes by urllib and is resumed with a Range header. It takes its
name once it is whole and what its checksum says; a folder once all of it is there.
"""

import contextlib
import hashlib
import http.client
import os
import shutil
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.tree import BROKEN
from zsntta_cli.errors import DatasetError, first_line
from zsntta_cli.files import scratch, take_name, writing
from zsntta_cli.progress import ConsoleReporter, Reporter

_MEGABYTE = 10**6
_ROOM = 2.3  # times an archive's size: what it and its content take, at most about
_BLOCK = 2**20  # bytes that are written at a time
_SILENCE = 30  # seconds without a byte until a connection counts as cut
_IN_VAIN = 5  # attempts in a row that bring nothing new, until it is given up
_PAUSE = 1.0  # seconds before the second of these, twice as many before each further one
_FINAL = (400, 401, 403, 404, 405, 410, 451)  # statuses that are the same a little later
_ALL_THERE = 416  # the status where nothing lies behind the byte that is asked for


def fetch(
    name: str, entry: DatasetEntry, root: Path, reporter: Reporter, mirror: str = ""
) -> Iterator[str]:
    """Fetch what lacks of a known set: lines that say what is where.

    `mirror` is another address below which the files lie, each by its own name.

    Raises:
        DatasetError: it has no plain address, cannot be had, or is not what it should be.
        StoreError: it cannot be written.
    """
    if not entry.layout:
        yield "it is built in"
    elif not entry.files and (place := entry.place(root)):
        yield f"{place} is there already"
    elif not entry.files:
        raise DatasetError(
            f"no plain address is known: get it from {entry.home} and put {entry.layout} into "
            f"{root}."
        )
    for file in entry.files:
        target, folder = root / file.file, root / file.unpacks
        if file.unpacks and folder.exists():
            yield f"{folder} is there already"
            continue
        aside = target.with_name(f"{target.name}.differs")
        if target.exists():
            facts, _ = _facts(target, target, file.checksum, reporter)
        else:
            address, begun = file.address, target.with_name(f".{target.name}.begun")
            if mirror:
                address = f"{mirror.rstrip('/')}/{PurePosixPath(urlsplit(address).path).name}"
            with _alone(target):
                _download(name, address, begun, _ROOM if file.unpacks else 1, reporter)
                facts, is_well = _facts(begun, target, file.checksum, reporter)
                take_name(begun, target if is_well else aside)
            if not is_well:
                raise DatasetError(f"{facts}. What came is kept as {aside}.")
        yield f"{target}: {facts}"
        if file.unpacks:
            try:
                unpack(target, folder, reporter)
            except DatasetError as error:
                take_name(target, aside)
                raise DatasetError(f"{error} It is kept as {aside}.") from error
            yield f"{folder}: unpacked ({target} is not needed any more)"


def fetch_lacking(name: str, entry: DatasetEntry, root: Path) -> None:
    """Fetch what lacks of a set that comes at once, and unpack an archive of it that lies there.

    Raises:
        DatasetError: it cannot be had.
    """
    lacks = any(not (root / (file.unpacks or file.file)).exists() for file in entry.files)
    if lacks and not any((root / place).exists() for place in entry.places):
        reporter = ConsoleReporter()
        for line in fetch(name, entry, root, reporter):
            reporter.note(f"{name}: {line}")


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Keep others from fetching the same file.

    Raises:
        DatasetError: somebody does. StoreError: nothing can be written there.
    """
    path = target.with_name(f".{target.name}.lock")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(path).acquire(blocking=False):
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
        except Timeout as error:
            raise DatasetError(f"another process is fetching {target}.") from error


def _facts(path: Path, target: Path, checksum: str, reporter: Reporter) -> tuple[str, bool]:
    """What is known of the content of a file for `target`, and whether it is what it should be."""
    kind, _, published = checksum.partition(":")
    with reporter.waiting(lambda: f"checking {target}"), path.open("rb") as content:
        actual = hashlib.file_digest(content, kind or "sha256").hexdigest()
    size = f"{path.stat().st_size:,} bytes"
    if not published:
        return f"no checksum is published: {size}, sha256 {actual}", True
    if actual != published:
        words = f"is not the file that is known: its {kind} is {actual}, must be {published}"
        return f"{target} {words}", False
    return f"{size}, {kind} as published", True


def _download(name: str, address: str, begun: Path, room: float, reporter: Reporter) -> None:
    """Fetch a file, from where it broke off; as long as that brings more, it is tried again.

    Raises:
        DatasetError: there is no such file, it cannot be had, or only a part of it came.
    """
    in_vain, most = 0, -1
    while in_vain < _IN_VAIN - 1:
        came = begun.stat().st_size if begun.exists() else 0
        in_vain, most = (0, came) if came > most else (in_vain + 1, most)
        time.sleep(_PAUSE * 2**in_vain if in_vain else 0)
        reason = "it ends too soon"
        try:
            if _attempt(name, address, begun, room, reporter):
                return
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason, status = first_line(error), getattr(error, "code", 0)
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                if status == _ALL_THERE and came:
                    if error.headers.get("Content-Range") == f"bytes */{came}":
                        return
                    begun.unlink()  # it is shorter now
            if status in _FINAL or not (status or begun.exists()):
                raise DatasetError(f"cannot read {address} ({reason}).") from error
    kept = f"after {most:,} bytes: what came is kept, and the same command goes on"
    raise DatasetError(f"{address} broke off {kept if most > 0 else f'({reason})'}.")


def _attempt(name: str, address: str, begun: Path, room: float, reporter: Reporter) -> bool:
    """Append what lacks of a file, in one attempt: whether it is whole then.

    Raises:
        DatasetError: the disk has no room for it.
    """
    start = begun.stat().st_size if begun.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={start}-"} if start else {})
    with urllib.request.urlopen(request, timeout=_SILENCE) as answer:
        start = start if answer.headers.get("Content-Range") else 0  # it may send all of it
        length = answer.headers.get("Content-Length")
        lacks, free = int(length or 0), shutil.disk_usage(begun.parent).free
        if lacks * room > free:
            raise DatasetError(
                f"{lacks * room / 1e9:,.1f} GB are needed in {begun.parent}, {free / 1e9:,.1f} GB "
                f"are free: make room, or take another folder with --data-root"
            )
        total = max(1, (start + lacks) // _MEGABYTE)
        with begun.open("ab" if start else "wb") as sink, reporter.track(name, total, "MB") as tell:
            tell(start // _MEGABYTE)
            while block := answer.read(_BLOCK):
                before = sink.tell() // _MEGABYTE
                with writing(begun):
                    sink.write(block)
                    sink.flush()
                tell(sink.tell() // _MEGABYTE - before)
            return length is None or sink.tell() == start + lacks


def unpack(archive: Path, folder: Path, reporter: Reporter) -> None:
    """Make a folder of the folder of its name in a tar: all of it, or nothing.

    Regular files alone are written, and none of them outside.

    Raises:
        DatasetError: no whole tar, without such a folder, or with a path that leads out of it.
    """
    with writing(folder), reporter.waiting(lambda: f"unpacking {archive}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch(folder.parent, is_folder=True) as place:
            try:
                with tarfile.open(archive, "r|*") as tar:
                    for entry in tar:
                        parts = PurePosixPath(entry.name).parts
                        if entry.isreg() and folder.name in parts[:-1]:
                            below = "/".join(parts[parts.index(folder.name) :])
                            tar.extract(entry.replace(name=below), place, filter="data")
            except BROKEN as error:
                raise DatasetError(
                    f"{archive} cannot be unpacked ({first_line(error)})."
                ) from error
            if not (place / folder.name).exists():
                raise DatasetError(f"{archive} has no folder {folder.name} with files.")
            os.sync()
            os.rename(place / folder.name, folder)
