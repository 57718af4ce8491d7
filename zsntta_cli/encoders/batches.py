"""Batches of pixels: threads read and resize images ahead of the encoder.

Decoding and resizing release the GIL, so threads are enough and nothing has to be pickled.
Arithmetic (scaling, normalising) is left to the encoder, which does it for a whole batch.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.images import UNREADABLE, ImageSet
from zsntta_cli.errors import DatasetError, ZsnttaError, first_line

_TASK = 16  # images that one thread reads at a time
_AHEAD = 3  # batches in memory before the one being encoded

Pixels = NDArray[np.uint8]
Resize = Callable[[Image.Image], Pixels]
# The pixels (b, H, W, 3) of those of B images that could be read, and a mask (B,) of these.
PixelBatch = tuple[Pixels, NDArray[np.bool_]]


def load_batches(
    images: ImageSet,
    batches: Sequence[Sequence[int]],
    resize: Resize,
    workers: int,
    skip_broken: bool,
) -> Iterator[PixelBatch]:
    """Give the batches in order, each with a mask of the images that could be read.

    Raises:
        DatasetError: an image is broken, and broken images are not skipped.
    """
    waiting: deque[list[Future[list[Pixels | None]]]] = deque()
    upcoming = iter(batches)
    threads = ThreadPoolExecutor(workers)

    read = partial(_read, images, resize, skip_broken)
    try:
        # Tasks of the next batches are submitted before a batch is waited for, so that threads
        # read while the encoder works; no more than these batches are in memory.
        for _ in range(len(batches)):
            while len(waiting) <= _AHEAD and (rows := next(upcoming, None)) is not None:
                starts = range(0, len(rows), _TASK)
                waiting.append([threads.submit(read, rows[i : i + _TASK]) for i in starts])
            pixels = [*chain.from_iterable(map(Future.result, waiting.popleft()))]
            readable = [image for image in pixels if image is not None]
            stacked = np.stack(readable) if readable else np.empty((0, 0, 0, 3), np.uint8)
            yield stacked, np.array([image is not None for image in pixels])
    finally:
        threads.shutdown(cancel_futures=True)


def _read(
    images: ImageSet, resize: Resize, skip_broken: bool, rows: Sequence[int]
) -> list[Pixels | None]:
    """Read the pixels of some rows, with None for a broken image."""
    pixels: list[Pixels | None] = []
    for i in rows:
        try:
            pixels.append(resize(images.read(i)))
        except ZsnttaError:  # it says what is wrong already, and may be a ValueError
            raise
        except UNREADABLE as error:
            if not skip_broken:
                raise unreadable(images, i, error) from error
            pixels.append(None)
    return pixels


def unreadable(images: ImageSet, i: int, error: Exception) -> DatasetError:
    """Make the error for a broken image."""
    of_set = f" of '{images.name}'" if images.name else ""
    return DatasetError(
        f"cannot read image '{images.sample_ids[i]}'{of_set} ({first_line(error)}): "
        "mend or remove it, or leave such images out with --skip-broken"
    )
