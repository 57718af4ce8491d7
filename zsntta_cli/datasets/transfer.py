"""One file over HTTP: into `NAME.part`, gone on with wherever it ended, whole or not there.

A part belongs to one version of one file. `NAME.part.json` says which: its address, size and what
its server calls the version. What no longer fits that is fetched from its start.
"""

import fcntl
import http.client
import json
import os
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any

from zsntta_cli.errors import DatasetError, first_line
from zsntta_cli.files import take_name, write_whole, writing

_BLOCK = 2**20  # bytes written at a time, at most
_TIMEOUT = 30  # seconds without a byte until a connection counts as cut
_IN_VAIN = 5  # attempts in a row that bring nothing new, until it is given up
_PAUSE = 1.0  # seconds before the second of these, twice as many before each further one
_BUSY = (408, 425, 429, 500, 502, 503, 504)  # statuses that may be others a little later
_CUT = (OSError, http.client.HTTPException)  # what a connection that breaks off raises


@dataclass(frozen=True)
class Version:
    """Which file a part is of, as its server tells it."""

    address: str
    size: int = -1  # bytes of the whole file, -1 where it is not told
    etag: str = ""
    modified: str = ""

    @classmethod
    def of(cls, address: str, headers: Message, size: int) -> "Version":
        """The version that a response is of."""
        return cls(address, size, headers.get("ETag", ""), headers.get("Last-Modified", ""))

    @property
    def condition(self) -> dict[str, str]:
        """The header by which a server sends the rest of this version alone, else all anew."""
        strong = self.etag if not self.etag.startswith("W/") else ""
        validator = strong or self.modified
        return {"If-Range": validator} if validator else {}


@dataclass(frozen=True)
class PartialFile:
    """What there is of a file, and of which version it is."""

    path: Path

    @classmethod
    def beside(cls, target: Path) -> "PartialFile":
        """The part of a file."""
        return cls(target.with_name(f"{target.name}.part"))

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def _record(self) -> Path:
        return self.path.with_name(f"{self.path.name}.json")

    def version(self, address: str) -> Version:
        """Of which version it is; nothing but the address of one that does not say."""
        try:
            version = Version(**json.loads(self._record.read_bytes()))
        except (OSError, ValueError, TypeError):
            return Version(address)
        return version if version.address == address else Version(address)

    def begin(self, version: Version) -> None:
        """Forget what there is; what comes now is of this version."""
        os.truncate(self.path, 0)
        write_whole(self._record, json.dumps(asdict(version)).encode())

    def finish(self, target: Path) -> None:
        """Take the file's own name."""
        take_name(self.path, target)
        self._record.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from fetching the same file.

        Raises:
            DatasetError: somebody does.
        """
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("ab")
        with file:
            _lock(file, self.path)
            try:
                yield
            finally:
                if not self.size:
                    self.path.unlink(missing_ok=True)
                    self._record.unlink(missing_ok=True)


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DatasetError(f"another process is fetching {path}.") from error
    except OSError:  # a file system without locks
        return


class _Refused(Exception):
    """An answer that another attempt does not change."""


def transfer(
    address: str,
    part: PartialFile,
    advance: Callable[[int], None],
    check: Callable[[int], None],
) -> int:
    """Fetch what lacks of a file, in as many connections as it takes; the bytes that there are.

    `advance` is told the bytes that there are, and `check` how many the whole takes, before they
    come.

    Raises:
        DatasetError: the server refuses it, or breaks off again and again.
    """
    first = best = part.size
    in_vain, reason = 0, ""
    while in_vain < _IN_VAIN:
        if in_vain:
            time.sleep(_PAUSE * 2 ** (in_vain - 1))
        try:
            if _attempt(address, part, advance, check):
                return part.size
            reason = f"the connection broke off after {part.size:,} bytes"
        except _Refused as error:
            raise DatasetError(f"{address} {error}.") from error
        except _CUT as error:
            cause = getattr(error, "reason", error)
            reason = first_line(cause) if isinstance(cause, Exception) else first_line(error)
            if best == first and isinstance(cause, socket.gaierror):  # no network, or no such name
                break
        in_vain = 0 if part.size > best else in_vain + 1
        best = max(best, part.size)
    raise DatasetError(f"{address} cannot be fetched ({reason}).")


def _attempt(
    address: str, part: PartialFile, advance: Callable[[int], None], check: Callable[[int], None]
) -> bool:
    """Fetch over one connection; whether the file is whole then."""
    version = part.version(address)
    start = (
        part.size if version.size > 0 else 0
    )  # what is of no known version cannot be gone on with
    if start and start == version.size:
        advance(start)
        return True
    response = _ask(address, version, start)
    if response is None:  # the server has less than that, or another file
        part.begin(Version(address))
        return False
    with response:
        if start and not _goes_on(response, version, start):
            start = 0
            if response.status == http.client.PARTIAL_CONTENT:
                part.begin(Version(address))
                return False
        if not start:
            version = Version.of(address, response.headers, _length(response))
            part.begin(version)
        if version.size >= 0:
            check(version.size - start)
        advance(start)
        _append(response, part.path, start, advance)
    return part.size == version.size or version.size < 0


def _ask(address: str, version: Version, start: int) -> Any:
    """A server's response; None where it has no bytes from `start` on."""
    headers = {"User-Agent": "zsntta", "Accept-Encoding": "identity"}
    if start:
        headers |= {"Range": f"bytes={start}-", **version.condition}
    try:
        request = urllib.request.Request(address, headers=headers)
        return urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if start and error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            return None
        if error.code in _BUSY:
            raise
        raise _Refused(f"answers {error.code} {error.reason}") from error
    except ValueError as error:
        raise _Refused(f"is no address ({first_line(error)})") from error


def _length(response: Any) -> int:
    """Bytes of the whole file, -1 where a response does not tell."""
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdigit() else -1


def _goes_on(response: Any, version: Version, start: int) -> bool:
    """Whether a response is the rest of the same version from `start` on."""
    if response.status != http.client.PARTIAL_CONTENT:
        return False
    span = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
    if span is None or (int(span[1]), int(span[2])) != (start, version.size):
        return False
    told = Version.of(version.address, response.headers, version.size)
    same_tag = told.etag == version.etag or not (told.etag and version.etag)
    same_time = told.modified == version.modified or not (told.modified and version.modified)
    return same_tag and same_time


def _append(response: Any, path: Path, start: int, advance: Callable[[int], None]) -> None:
    """Write a response's body behind the bytes that there are."""
    with path.open("r+b") as file:
        file.seek(start)
        while block := response.read1(_BLOCK):
            _write(file, path, block)
            advance(file.tell())


def _write(file: IO[bytes], path: Path, block: bytes) -> None:
    with writing(path):  # a full disk is no cut connection
        file.write(block)
        file.flush()
