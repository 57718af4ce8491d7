"""Items to digests and pixels, by threads that read ahead of the encoder."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.detection.encoding.store import Stamp
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.errors import first_line

# A file that is written twice within its clock's step may keep its stamp (FAT has steps of two
# seconds): one that was changed less than so many seconds ago is read again the next time.
_SETTLED = 4.0

Pixels = NDArray[np.uint8]
Resize = Callable[[Image.Image], Pixels]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Read:
    """What was found in an item: an error, or its digest and, of a new one, its pixels."""

    digest: bytes = b""
    pixels: Pixels | None = None
    stamp: Stamp | None = None  # of a file that can be told from what it may become
    error: str = ""


def read(item: Item, seen: set[bytes], resize: Resize | None) -> Read:
    """Read an item; its pixels only where its digest was not seen, and there is what resizes."""
    before = trusted(item)
    try:
        content = item.load()
        is_new = content.digest not in seen and resize is not None
        image = content.image() if is_new else None
    except Exception as error:  # of a damaged image PIL raises nearly anything
        return Read(error=first_line(error).partition(" <_io.")[0])  # PIL names the object
    pixels = resize(image) if image is not None and resize is not None else None
    return Read(content.digest, pixels, before if stamp_of(item) == before else None)


def stamp_of(item: Item) -> Stamp | None:
    """Size and times of the file that an item lies in; None where there is none."""
    if item.file is None:
        return None
    try:
        status = os.stat(item.file)
    except (OSError, ValueError):
        return None
    return Stamp(status.st_size, f"{status.st_mtime_ns} {status.st_ctime_ns}")


def trusted(item: Item) -> Stamp | None:
    """The stamp of a file that was not changed just now."""
    if (stamp := stamp_of(item)) is None:
        return None
    latest = max(map(int, stamp.changed.split())) / 1e9
    return stamp if time.time() - latest > _SETTLED else None


def ahead(
    threads: ThreadPoolExecutor,
    function: Callable[[int], Result],
    chunks: Iterable[Sequence[int]],
    more: int,
) -> Iterator[tuple[Sequence[int], list[Result]]]:
    """Chunks with the results of their numbers, in order; `more` are worked on meanwhile."""
    waiting: deque[tuple[Sequence[int], list[Future[Result]]]] = deque()
    try:
        for chunk in chunks:
            waiting.append((chunk, [threads.submit(function, i) for i in chunk]))
            while sum(len(futures) for _, futures in waiting) > more + len(waiting[0][0]):
                first, futures = waiting.popleft()
                yield first, [future.result() for future in futures]
        while waiting:
            first, futures = waiting.popleft()
            yield first, [future.result() for future in futures]
    finally:
        for _, futures in waiting:
            for future in futures:
                future.cancel()
