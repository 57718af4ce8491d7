"""Known sets into the data root: fetched, verified, and unpacked where no reader takes an archive.

A file at https://… or file://… comes by urllib and is resumed with a Range header. It takes its
name once it is whole and what its checksum says; a folder once all of it is there.
"""

import contextlib
import glob
import gzip
import hashlib
import http.client
import os
import re
import shutil
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from zsntta_cli.datasets.catalogue import DatasetEntry, Download
from zsntta_cli.datasets.tree import COMPRESSED
from zsntta_cli.errors import DatasetError, first_line
from zsntta_cli.files import scratch_folder, take_name, writing
from zsntta_cli.progress import Advance, Reporter

_MEGABYTE = 10**6
_ROOM = 1.3  # times a compressed archive's size: what its content takes, at most about
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError)
_BLOCK = 2**20  # bytes that are written at a time
_SILENCE = 30  # seconds without a byte until a connection counts as cut
_IN_VAIN = 5  # attempts in a row that bring nothing new, until it is given up
_PAUSE = 1.0  # seconds before the second of these, twice as many before each further one
_BUSY = (408, 425, 429, 500, 502, 503, 504)  # statuses that may be others a little later
_CUT = (OSError, http.client.HTTPException)  # what urllib raises of a connection

Reach = Callable[[int, int | None], None]  # is told how many bytes are there, and of how many


class _BrokenOffError(Exception):
    """An attempt that may be taken up again, and why it ended."""


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
    return [line for file in entry.files for line in _have(name, file, root, reporter, mirror)]


def _have(name: str, file: Download, root: Path, reporter: Reporter, mirror: str) -> Iterator[str]:
    """Fetch, verify and unpack what is not there yet of one file of a set."""
    target, folder = root / file.file, root / file.unpacks
    if file.unpacks and folder.exists():
        yield f"{folder} is there already"
        return
    if target.exists():
        facts, _ = _facts(target, target.name, file.checksum, reporter)
    else:
        address = file.address
        if mirror:
            address = f"{mirror.rstrip('/')}/{PurePosixPath(urlsplit(address).path).name}"
        came = target.with_name(f"{target.name}.came")
        with _alone(target), contextlib.ExitStack() as stack:
            fetch_file(address, came, _progress(name, file, came.parent, reporter, stack))
            facts, is_well = _facts(came, target.name, file.checksum, reporter)
            if not is_well:
                aside = target.with_name(f"{target.name}.differs")
                take_name(came, aside)
                raise DatasetError(f"{facts} What came is kept as {aside}.")
            take_name(came, target)
    yield f"{target}: {facts}"
    if file.unpacks:
        with reporter.waiting(lambda: f"unpacking {target}"):
            unpack(target, folder)
        yield f"{folder}: unpacked ({target} is not needed any more)"


def _facts(path: Path, name: str, checksum: str, reporter: Reporter) -> tuple[str, bool]:
    """What is known of a file's content, and whether it is what it should be.

    Without a published checksum an archive has to be whole.
    """
    kind, _, published = checksum.partition(":")
    with reporter.waiting(lambda: f"checking {path}"), path.open("rb") as content:
        actual = hashlib.file_digest(content, kind or "sha256").hexdigest()
        content.seek(0)
        try:
            if not published and name.endswith(COMPRESSED):
                with gzip.open(content) as packed:
                    while packed.read(_BLOCK):  # to its end, where its checksum is
                        pass
            elif not published and name.endswith(".zip"):
                zipfile.ZipFile(content).close()
        except (OSError, *_BROKEN) as error:
            return f"{path} is no whole archive ({first_line(error)}).", False
    size = f"{path.stat().st_size:,} bytes"
    if not published:
        return f"no checksum is published: {size}, sha256 {actual}", True
    if actual != published:
        line = f"{path} is not the file that is known: its {kind} is {actual}, must be {published}."
        return line, False
    return f"{size}, {kind} as published", True


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


def _progress(
    name: str, file: Download, folder: Path, reporter: Reporter, stack: contextlib.ExitStack
) -> Reach:
    """What shows how far a file is, and at once refuses one that the disk has no room for."""
    advance: Advance | None = None
    shown = 0  # megabytes; fewer than before where a file has to begin again

    def reach(done: int, size: int | None) -> None:
        nonlocal advance, shown
        if advance is None:
            lacking = (size or done) - done
            needed = int(lacking * (1 + _ROOM)) if file.unpacks else lacking
            if needed > (free := shutil.disk_usage(folder).free):
                raise DatasetError(
                    f"{needed / 1e9:,.1f} GB are needed in {folder}, {free / 1e9:,.1f} GB are free"
                    ": make room, or take another folder with --data-root"
                )
            advance = stack.enter_context(reporter.track(name, (size or done) // _MEGABYTE, "MB"))
        advance(done // _MEGABYTE - shown)
        shown = done // _MEGABYTE

    return reach


# --- One file ---


def fetch_file(address: str, target: Path, reach: Reach = lambda _done, _size: None) -> None:
    """Fetch a file into `target`, which is absent or whole; an incomplete file is kept beside it.

    A connection that breaks off is taken up again as long as that brings more.

    Raises:
        DatasetError: there is no such file, it cannot be had, or only a part of it came.
        StoreError: it cannot be written.
    """
    most = in_vain = 0
    while not target.exists():
        try:
            _go_on(address, target, reach)
        except _BrokenOffError as error:
            came = sum(path.stat().st_size for path in _begun(target))
            in_vain = 1 if came > most else in_vain + 1
            most = max(most, came)
            if in_vain == _IN_VAIN:
                line = f"{address} broke off after {most:,} bytes: what came is kept, and the same "
                raise DatasetError(f"{line}command goes on." if most else f"{error}.") from error
            time.sleep(_PAUSE * 2 ** (in_vain - 1))


def _begun(target: Path) -> list[Path]:
    """What came of a file before, of any version of it."""
    return sorted(target.parent.glob(f".{glob.escape(target.name)}.*.begun"))


def _go_on(address: str, target: Path, reach: Reach) -> None:
    """Fetch what lacks of a file, and all of it where what came is of another version.

    Raises:
        DatasetError: there is no such file, or it cannot be had. _BrokenOffError: not now.
    """
    before = _begun(target)
    start = before[0].stat().st_size if before else 0
    with _asked(address, start, bool(before)) as answer:
        told = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range") or "")
        first, size = (int(told[1]), told[2]) if told else (0, answer.headers.get("Content-Length"))
        facts = [address, size, answer.headers.get("ETag"), answer.headers.get("Last-Modified")]
        version = hashlib.sha256(" ".join(map(str, facts)).encode()).hexdigest()[:8]
        begun = target.with_name(f".{target.name}.{version}.begun")
        is_other = first not in (0, start) or (first and begun not in before)
        for path in before:
            if is_other or path != begun:
                path.unlink()
        if not is_other:
            append(answer, target, begun, first, None if size is None else int(size), reach)
    if is_other:
        _go_on(address, target, reach)


def _asked(address: str, start: int, is_begun: bool) -> Any:
    """The answer to a request for a file from a byte on."""
    headers = {"Range": f"bytes={start}-"} if start else {}
    try:
        request = urllib.request.Request(address, headers=headers)
        return urllib.request.urlopen(request, timeout=_SILENCE)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # all of it came, or it is shorter now
            return _asked(address, 0, is_begun)
        if error.code in (404, 410):
            raise DatasetError(f"there is no {address}.") from error
        line = f"{address} answers {error.code} {error.reason}".rstrip()
        if error.code in _BUSY:
            raise _BrokenOffError(line) from error
        raise DatasetError(f"{line}.") from error
    except (*_CUT, ValueError) as error:
        reason = getattr(error, "reason", error)
        line = first_line(reason) if isinstance(reason, BaseException) else str(reason)
        if is_begun and not isinstance(error, ValueError):
            raise _BrokenOffError(line) from error
        raise DatasetError(f"cannot read {address} ({line}).") from error


def append(
    answer: Any, target: Path, begun: Path, start: int, size: int | None, reach: Reach
) -> None:
    """Append what a server sends to what came before; whole, it takes its name.

    Raises:
        _BrokenOffError: it ends before the file does.
    """
    reach(start, size)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        sink = begun.open("ab" if start else "wb")
    with sink:
        while True:
            try:
                block = answer.read(_BLOCK)
            except _CUT as error:
                raise _BrokenOffError(first_line(error)) from error
            if not block:
                break
            with writing(target):
                sink.write(block)
                sink.flush()
            reach(sink.tell(), size)
        came = sink.tell()
    if size is not None and came != size:
        raise _BrokenOffError(f"it ended after {came:,} of {size:,} bytes")
    with writing(target):
        take_name(begun, target)


# --- Unpacking ---


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
