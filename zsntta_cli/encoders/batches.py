"""Batches of pixels: threads read and resize images ahead of the encoder.

Decoding and resizing release the GIL, so threads are enough and nothing has to be pickled.
Arithmetic (scaling, normalising) is left to the encoder, which does it for a whole batch.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.images import UNREADABLE, ImageSet
from zsntta_cli.errors import DatasetError, ZsnttaError, first_line

_TASK = 4  # items that a thread reads at a time: a task costs some 50 µs
_AHEAD = 3  # batches in memory before the one being encoded

Pixels = NDArray[np.uint8]
Item = TypeVar("Item")
Result = TypeVar("Result")


def read_ahead(
    read: Callable[[Item], Result],
    batches: Iterable[Sequence[Item]],
    workers: int,
    ahead: int = _AHEAD,
) -> Iterator[list[Result]]:
    """Yield what `read` returns for the items of each batch, in order, while threads read ahead."""
    threads, waiting = ThreadPoolExecutor(workers), deque[Iterator[list[Result]]]()

    def read_some(items: Sequence[Item]) -> list[Result]:
        return [*map(read, items)]

    try:
        for batch in batches:
            starts = range(0, len(batch), _TASK)
            waiting.append(threads.map(read_some, [batch[i : i + _TASK] for i in starts]))
            if len(waiting) > ahead:
                yield [*chain.from_iterable(waiting.popleft())]
        while waiting:
            yield [*chain.from_iterable(waiting.popleft())]
    finally:
        threads.shutdown(cancel_futures=True)


def load_batches(
    images: ImageSet,
    batches: Iterable[Sequence[int]],
    resize: Callable[[Image.Image], Pixels],
    workers: int,
    skip_broken: bool,
) -> Iterator[tuple[Pixels, NDArray[np.bool_]]]:
    """Yield batches of images by their rows, in order.

    Each has the pixels (b, H, W, 3) of the readable ones of B images, and a mask (B,) of these.

    Raises:
        DatasetError: an image is broken, and broken images are not skipped.
    """

    def read(row: int) -> Pixels | None:
        try:
            return resize(images.read(row))
        except UNREADABLE as error:
            if isinstance(error, ZsnttaError):  # it says what is wrong
                raise
            if skip_broken:
                return None
            raise unreadable(images, row, error) from error

    for pixels in read_ahead(read, batches, workers):
        readable = [image for image in pixels if image is not None]
        stacked = np.stack(readable) if readable else np.empty((0, 0, 0, 3), np.uint8)
        yield stacked, np.array([image is not None for image in pixels])


def unreadable(images: ImageSet, row: int, error: Exception) -> DatasetError:
    """Make the error for a broken image."""
    image = f"'{images.sample_ids[row]}'" + (f" of '{images.name}'" if images.name else "")
    way = "repair or remove it, or omit such images with --skip-broken"
    return DatasetError(f"cannot read image {image} ({first_line(error)}): {way}")
