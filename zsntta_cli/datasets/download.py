"""Fetch known sets into the data root, verify them, and unpack archives that no reader accepts.

A file at https://… or file://… is fetched by urllib and resumed with a Range header. It takes its
name once it is complete and matches its checksum; a folder takes its name once it is complete.
"""

import hashlib
import http.client
import os
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from filelock import FileLock, Timeout

from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.tree import BROKEN
from zsntta_cli.errors import DatasetError, first_line
from zsntta_cli.files import scratch, take_name, writing
from zsntta_cli.progress import Reporter

_BLOCK = 2**20  # bytes that are read and written at a time
_SILENCE = 30  # seconds without a byte until a connection counts as lost
_IN_VAIN = 5  # attempts in a row without a new byte
_PAUSE = 1.0  # seconds before an attempt after one in vain, doubled each time
_FINAL = (400, 401, 403, 404, 405, 410, 451)  # statuses that stay the same
_BEYOND = 416  # the status if nothing follows the requested byte


def fetch(
    name: str, entry: DatasetEntry, root: Path, reporter: Reporter, mirror: str = ""
) -> Iterator[str]:
    """Fetch the missing files of a known set, and report each in a line.

    `mirror` is another address that has the files, each under its own name.

    Raises:
        DatasetError: the set has no plain address, is not available, or is not as published.
        StoreError: it cannot be written.
    """
    if not entry.layout:
        yield "it is built in"
    elif not entry.files and (place := entry.place(root)):
        yield f"{place} already exists"
    elif not entry.files:
        way = f"download it from {entry.home} and put {entry.layout} into {root}"
        raise DatasetError(f"no plain address is known: {way}.")
    for file in entry.files:
        target, folder = root / file.file, root / file.unpacks
        if file.unpacks and folder.exists():
            yield f"{folder} already exists"
            continue
        if target.exists():
            facts, _ = checked(target, file.checksum, reporter)
        else:
            address = f"{mirror.rstrip('/')}/{target.name}" if mirror else file.address
            facts = _fetch_file(name, address, target, file.checksum, reporter)
        yield f"{target}: {facts}"
        if file.unpacks:
            try:
                unpack(target, folder, reporter)
            except DatasetError as error:
                take_name(target, _aside(target))
                raise DatasetError(f"{error} It is kept as {_aside(target)}.") from error
            yield f"{folder}: unpacked ({target} is no longer needed)"


def _fetch_file(name: str, address: str, target: Path, checksum: str, reporter: Reporter) -> str:
    """Fetch a file, and return what is known of it; only a published one takes its name."""
    begun = target.with_name(f".{target.name}.begun")
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            raise DatasetError(f"another process is fetching {target}.") from error
        try:
            _download(name, address, begun, reporter)
            facts, is_published = checked(begun, checksum, reporter)
            take_name(begun, target if is_published else _aside(target))
        finally:
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()
    if not is_published:
        raise DatasetError(f"{target} {facts}. The download is kept as {_aside(target)}.")
    return facts


def _aside(target: Path) -> Path:
    return target.with_name(f"{target.name}.differs")


def checked(path: Path, checksum: str, reporter: Reporter) -> tuple[str, bool]:
    """What is known of a file's content, in words, and whether it is as published."""
    kind, _, published = checksum.partition(":")
    status = path.stat()
    with reporter.waiting(lambda: f"checking {path}"):
        actual = _digest(path, kind or "sha256", status.st_size, status.st_mtime_ns)
    if not published:
        return f"no checksum is published: {status.st_size:,} bytes, sha256 {actual}", True
    if actual != published:
        return f"is not the published file: its {kind} is {actual}, must be {published}", False
    return f"{status.st_size:,} bytes, {kind} as published", True


@cache  # one archive has many corrupted sets
def _digest(path: Path, kind: str, _size: int, _mtime: int) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, kind).hexdigest()


def _download(name: str, address: str, begun: Path, reporter: Reporter) -> None:
    """Fetch a file, resume where it broke off, and retry as long as more arrives."""
    in_vain, most = 0, _size(begun)
    while in_vain < _IN_VAIN:
        time.sleep(_PAUSE * 2**in_vain if in_vain else 0)
        reason = "it ended too early"
        try:
            if _attempt(name, address, begun, reporter):
                return
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason, status = first_line(error), getattr(error, "code", 0)
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                if status == _BEYOND:
                    if error.headers.get("Content-Range") == f"bytes */{_size(begun)}":
                        return  # all had arrived before
                    begun.unlink(missing_ok=True)  # what arrived is of another file
            if status in _FINAL or not (status or begun.exists()):
                raise DatasetError(f"cannot read {address} ({reason}).") from error
        arrived = _size(begun)
        in_vain, most = (0, arrived) if arrived > most else (in_vain + 1, most)
    kept = f"after {most:,} bytes, which are kept: run the same command to resume"
    raise DatasetError(f"{address} broke off {kept if most else f'({reason})'}.")


def _size(begun: Path) -> int:
    return begun.stat().st_size if begun.exists() else 0


def _attempt(name: str, address: str, begun: Path, reporter: Reporter) -> bool:
    """Append the missing bytes of a file in one attempt; return whether it is then complete."""
    start = _size(begun)
    request = urllib.request.Request(address, headers={"Range": f"bytes={start}-"} if start else {})
    with urllib.request.urlopen(request, timeout=_SILENCE) as answer:
        start = start if answer.headers.get("Content-Range") else 0  # it may send all of it
        length = answer.headers.get("Content-Length")
        size = start + int(length or 0)
        with (
            begun.open("ab" if start else "wb") as sink,
            reporter.track(name, -(-size // _BLOCK), "MiB") as tell,
        ):
            tell(start // _BLOCK)
            while block := answer.read(_BLOCK):
                with writing(begun):
                    sink.write(block)
                    sink.flush()
                tell(1)
            return length is None or sink.tell() == size


def unpack(archive: Path, folder: Path, reporter: Reporter) -> None:
    """Unpack the folder of this name from a tar, completely or not at all.

    Only regular files are written, and none outside the folder.

    Raises:
        DatasetError: the tar is incomplete, lacks the folder, or has a path that leads out of it.
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
                reason = first_line(error)
                raise DatasetError(f"{archive} cannot be unpacked ({reason}).") from error
            if not (place / folder.name).exists():
                raise DatasetError(f"{archive} has no folder {folder.name} with files.")
            os.sync()
            os.rename(place / folder.name, folder)
