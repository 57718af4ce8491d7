"""Files at https://… or file://…, fetched and resumed: the only module that uses fsspec."""

import glob
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import take_name, writing

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_BLOCK = 2**23  # bytes of a request
_SILENCE = 30  # seconds without a byte until a connection counts as cut
_IN_VAIN = 5  # attempts in a row that bring nothing new, until it is given up
_PAUSE = 1.0  # seconds before the second of these, twice as many before each further one
_GONE = (404, 410)
_BUSY = (408, 425, 429, 500, 502, 503, 504)  # statuses that may be others a little later


class MissingAtStore(StoreError):
    """The error for a file that a place does not have."""


class Unread(StoreError):
    """The error for a file that a place has, or may have, and that does not come."""


class Busy(Unread):
    """The error for a server that asks for patience."""


class BrokenOff(Unread):
    """The error for a connection that there is not, or that broke off."""


def file_system(address: str) -> "tuple[AbstractFileSystem, str]":
    """Find the file system of an address, and the path within it.

    Raises:
        StoreError: it is no address that can be read.
    """
    from fsspec.core import url_to_fs

    try:
        system, root = url_to_fs(address, **_patience(urlsplit(address).scheme))
    except (ImportError, ValueError) as error:
        raise StoreError(f"'{address}' cannot be read ({first_line(error)}).") from error
    return system, root.rstrip("/")


def _patience(scheme: str) -> dict[str, Any]:
    """Options of a file system: a file may take long to come, but not fall silent."""
    if scheme not in ("http", "https"):
        return {}
    from aiohttp import ClientTimeout

    timeout = ClientTimeout(total=None, sock_connect=_SILENCE, sock_read=_SILENCE)
    return {"client_kwargs": {"timeout": timeout}}


@contextmanager
def reaching(place: str) -> Iterator[None]:
    """Turn errors of a file system into one line."""
    try:
        yield
    except FileNotFoundError as error:
        cause = error.__cause__  # fsspec raises this also for a server that does not answer
        if cause is None or isinstance(cause, FileNotFoundError):
            raise MissingAtStore(f"there is no {place}.") from error
        raise _unread(place, cause) from error
    except StoreError:
        raise
    except Exception as error:  # each file system has errors of its own
        raise _unread(place, error) from error


def _unread(place: str, error: BaseException) -> StoreError:
    """The error for what a file system raises: HTTP's tells by its status whether to ask again."""
    status = getattr(error, "status", None)
    if status in _GONE:
        return MissingAtStore(f"there is no {place}.")
    if status:
        kind = Busy if status in _BUSY else Unread
        reason = getattr(error, "message", "")
        return kind(f"{place} answers {status}{f' {reason}' if reason else ''}.")
    return BrokenOff(f"cannot read {place} ({first_line(error) or type(error).__name__}).")


def append(
    system: "AbstractFileSystem",
    path: str,
    target: Path,
    begun: int,
    size: int | None,
    reach: Callable[[int], None] = lambda _: None,
) -> None:
    """Append a file's bytes from `begun` on to the `target` that has those before; 0: begin anew.

    `size` is the size of the file in bytes, if that is known; `reach` is told how many are there.
    """
    start = begun if size is None or begun <= size else 0
    try:
        with system.open(path, "rb", block_size=_BLOCK) as source:
            if start:
                source.seek(start)
            _write(source, target, start, size, reach)
    except ValueError:  # the server only sends whole files
        with system.open(path, "rb", block_size=0) as source:
            _write(source, target, 0, size, reach)


def _write(
    source: IO[bytes], target: Path, start: int, size: int | None, reach: Callable[[int], None]
) -> None:
    """Write an open file to the `target`, behind the bytes that it has up to `start`."""
    with writing(target):
        sink = target.open("ab" if start else "wb")
    with sink:
        reach(start)
        for block in _blocks(source, None if size is None else size - start):
            with writing(target):
                sink.write(block)
                sink.flush()
            reach(sink.tell())


def _blocks(source: IO[bytes], lacking: int | None) -> Iterator[bytes]:
    """Read blocks of an open file, up to `lacking` bytes if that is known; it may end before."""
    if lacking is None:
        yield from iter(lambda: source.read(_BLOCK), b"")
        return
    while lacking > 0 and (block := source.read(min(_BLOCK, lacking))):
        lacking -= len(block)
        yield block


def fetch_file(
    address: str,
    target: Path,
    begin: Callable[[int], None] = lambda _: None,
    reach: Callable[[int], None] = lambda _: None,
) -> None:
    """Fetch a file into `target`, which is absent or whole; an incomplete file is kept beside it.

    A connection that breaks off is taken up again as long as that brings more. `begin` is told how
    many bytes are to come, before they do, and `reach` how many are there.

    Raises:
        MissingAtStore: there is no such file.
        StoreError: the file cannot be fetched, or only a part of it came.
    """
    if target.exists():
        return
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    most = in_vain = 0
    begun = None
    while in_vain < _IN_VAIN:
        if in_vain:
            time.sleep(_PAUSE * 2 ** (in_vain - 1))
        try:
            info = _info(address)
            begun = target.with_name(f".{target.name}.{_version(address, info)}.begun")
            _go_on(address, info, begun, begin, reach)
            _finish(begun, target)
            return
        except (Busy, BrokenOff) as error:
            if begun is None and isinstance(error, BrokenOff):  # there may be no network
                raise
            reason = error
        came = begun.stat().st_size if begun and begun.exists() else 0
        in_vain = 1 if came > most else in_vain + 1
        most = max(most, came)
    if not most:
        raise reason
    raise BrokenOff(
        f"{address} broke off after {most:,} bytes: what came is kept, and the same command goes "
        f"on."
    ) from reason


def _info(address: str) -> Mapping[str, Any]:
    """What a place says of a file: its size, and facts of its version."""
    with reaching(address):
        system, path = file_system(address)
        info: Mapping[str, Any] = system.info(path)
    return info


def _go_on(
    address: str,
    info: Mapping[str, Any],
    begun: Path,
    begin: Callable[[int], None],
    reach: Callable[[int], None],
) -> None:
    """Fetch what lacks of a file, in one attempt; BrokenOff where it is not whole then."""
    size = info.get("size")
    start = begun.stat().st_size if begun.exists() and size is not None else 0
    if size is not None:
        begin(max(size - start, 0))
    system, path = file_system(address)
    try:
        with reaching(address):
            append(system, path, begun, start, size, reach)
        came = begun.stat().st_size
        if size is not None and came != size:
            raise BrokenOff(f"{address} ended after {came:,} of {size:,} bytes.")
        if _version(address, _info(address)) != _version(address, info):
            begun.unlink()  # which may be of both
            raise BrokenOff(f"{address} has changed while it came.")
    finally:
        if begun.exists() and not begun.stat().st_size:
            begun.unlink()


def _finish(begun: Path, target: Path) -> None:
    """Give a whole file its name, and forget what there is of older versions."""
    with writing(target):
        if not begun.exists():  # of no bytes
            begun.touch()
        for other in target.parent.glob(f".{glob.escape(target.name)}.*.begun"):
            if other != begun:
                other.unlink()
        take_name(begun, target)


def _version(address: str, info: Mapping[str, Any]) -> str:
    """A digest of what a file system says of a file's version: versions must not be mixed."""
    keys = ("ETag", "etag", "LastModified", "Last-Modified", "mtime", "size")
    facts = [address, *(str(info.get(key, "")) for key in keys)]
    return hashlib.sha256(" ".join(facts).encode()).hexdigest()[:8]
