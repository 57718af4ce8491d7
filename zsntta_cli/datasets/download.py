"""A file at https://… or file://…, fetched by urllib and resumed with a Range header."""

import glob
import hashlib
import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.errors import DatasetError, first_line
from zsntta_cli.files import take_name, writing

_BLOCK = 2**20  # bytes that are written at a time
_SILENCE = 30  # seconds without a byte until a connection counts as cut
_IN_VAIN = 5  # attempts in a row that bring nothing new, until it is given up
_PAUSE = 1.0  # seconds before the second of these, twice as many before each further one
_BUSY = (408, 425, 429, 500, 502, 503, 504)  # statuses that may be others a little later
_CUT = (OSError, http.client.HTTPException)  # what urllib raises of a connection


class _BrokenOffError(Exception):
    """An attempt that may be taken up again, and why it ended."""


class _Part(NamedTuple):
    """What a server begins to send."""

    answer: Any
    start: int  # the first byte
    size: int | None  # of the whole file, if the server says it
    begun: Path  # where what came of this version is kept


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
        DatasetError: there is no such file, it cannot be had, or only a part of it came.
        StoreError: it cannot be written.
    """
    if target.exists():
        return
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    most = in_vain = 0
    while in_vain < _IN_VAIN:
        if in_vain:
            time.sleep(_PAUSE * 2 ** (in_vain - 1))
        try:
            part = _open_part(address, target)
            try:
                append(part, target, begin, reach)
            finally:
                part.answer.close()
            with writing(target):
                take_name(part.begun, target)
            return
        except _BrokenOffError as error:
            reason = error
        came = sum(path.stat().st_size for path in _begun(target))
        in_vain = 1 if came > most else in_vain + 1
        most = max(most, came)
    if not most:
        raise DatasetError(f"{reason}.") from reason
    raise DatasetError(
        f"{address} broke off after {most:,} bytes: what came is kept, and the same command goes "
        f"on."
    ) from reason


def _begun(target: Path) -> list[Path]:
    """What came of a file before, of any version of it."""
    return sorted(target.parent.glob(f".{glob.escape(target.name)}.*.begun"))


def _open_part(address: str, target: Path) -> _Part:
    """Ask for what lacks of a file, and for all of it where what came is of another version."""
    before = _begun(target)
    start = before[0].stat().st_size if before else 0
    answer = _asked(address, start, is_begun=bool(before))
    told = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range") or "")
    length = answer.headers.get("Content-Length")
    first = int(told[1]) if told else 0
    stated = told[2] if told else length
    size = None if stated is None else int(stated)
    facts = [address, size, answer.headers.get("ETag"), answer.headers.get("Last-Modified")]
    version = hashlib.sha256(" ".join(map(str, facts)).encode()).hexdigest()[:8]
    begun = target.with_name(f".{target.name}.{version}.begun")
    if first not in (0, start) or (first and begun not in before):
        answer.close()
        for path in before:
            path.unlink()
        return _open_part(address, target)
    for path in before:
        if path != begun:
            path.unlink()
    return _Part(answer, first, size, begun)


def _asked(address: str, start: int, is_begun: bool) -> Any:
    """The answer to a request for a file from a byte on.

    Raises:
        DatasetError: there is no such file, or it cannot be had. _BrokenOffError: not now.
    """
    headers = {"Range": f"bytes={start}-"} if start else {}
    try:
        return urllib.request.urlopen(
            urllib.request.Request(address, headers=headers), timeout=_SILENCE
        )
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
    part: _Part, target: Path, begin: Callable[[int], None], reach: Callable[[int], None]
) -> None:
    """Append what a server sends to what came before.

    Raises:
        _BrokenOffError: it ends before the file does.
    """
    if part.size is not None:
        begin(max(part.size - part.start, 0))
    with writing(target):
        sink = part.begun.open("ab" if part.start else "wb")
    with sink:
        reach(part.start)
        while True:
            try:
                block = part.answer.read(_BLOCK)
            except _CUT as error:
                raise _BrokenOffError(first_line(error)) from error
            if not block:
                break
            with writing(target):
                sink.write(block)
                sink.flush()
            reach(sink.tell())
        came = sink.tell()
    if part.size is not None and came != part.size:
        raise _BrokenOffError(f"it ended after {came:,} of {part.size:,} bytes")
