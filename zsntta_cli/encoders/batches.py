"""Images to batches of pixels, read and resized by threads ahead of the encoder.

Decoding and resizing release the GIL, so threads are enough and nothing has to be pickled; drawing
does not, so many pictures are drawn by processes. What is arithmetic (scaling, normalising) is left
to the encoder, a batch at a time.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.drawn.builtin import RenderedImages
from zsntta_cli.datasets.drawn.children import drawing
from zsntta_cli.datasets.images import UNREADABLE, ImageSet
from zsntta_cli.errors import DatasetError, ZsnttaError, first_line

_TASK = 16  # images that one thread reads at a time
_AHEAD = 3  # batches in memory before the one being encoded
_CHILDREN = 4  # that draw: more than a CPU's encoder keeps busy
_MANY = 6_000  # pictures to draw, three seconds: a process takes a third of one to start

Pixels = NDArray[np.uint8]
Resize = Callable[[Image.Image], Pixels]
Fetch = Callable[[Sequence[int]], ImageSet]
PixelBatch = tuple[Pixels, NDArray[np.bool_]]  # (b, H, W, 3) of the readable of B images, (B,)


def load_batches(
    images: ImageSet,
    batches: Sequence[Sequence[int]],
    resize: Resize,
    workers: int,
    skip_broken: bool,
) -> Iterator[PixelBatch]:
    """The batches in order, each with a mark on which of its images could be read.

    Raises:
        DatasetError: a broken image, unless such are skipped.
    """
    waiting: deque[list[Future[list[Pixels | None]]]] = deque()
    upcoming = iter(batches)
    threads = ThreadPoolExecutor(workers)
    with _fetching(images, workers, sum(map(len, batches))) as fetch:

        def read(rows: Sequence[int]) -> list[Pixels | None]:
            return _read(fetch(rows), rows, resize, skip_broken)

        try:
            for _ in range(len(batches)):
                while len(waiting) <= _AHEAD and (rows := next(upcoming, None)) is not None:
                    tasks = [rows[start : start + _TASK] for start in range(0, len(rows), _TASK)]
                    waiting.append([threads.submit(read, task) for task in tasks])
                yield _collate([image for task in waiting.popleft() for image in task.result()])
        finally:
            threads.shutdown(cancel_futures=True)


@contextmanager
def _fetching(images: ImageSet, workers: int, count: int) -> Iterator[Fetch]:
    """What gives the set to read some rows of: as it is, or with their pictures drawn elsewhere."""
    source = images.read
    if (
        workers == 1
        or count < _MANY
        or not (isinstance(source, RenderedImages) and source.is_drawn)
    ):
        yield lambda _: images
        return
    with drawing(source, min(workers, _CHILDREN)) as draw:
        yield lambda rows: replace(
            images, read=dict(zip(rows, draw(rows), strict=True)).__getitem__
        )


def _read(
    images: ImageSet, rows: Sequence[int], resize: Resize, skip_broken: bool
) -> list[Pixels | None]:
    """Pixels of some rows, None for a broken image."""
    pixels: list[Pixels | None] = []
    for i in rows:
        try:
            pixels.append(resize(images.read(i)))
        except ZsnttaError:  # which says what is wrong already, and may be a ValueError
            raise
        except UNREADABLE as error:
            if not skip_broken:
                raise unreadable(images, i, error) from error
            pixels.append(None)
    return pixels


def unreadable(images: ImageSet, i: int, error: Exception) -> DatasetError:
    """The error for a broken image."""
    return DatasetError(
        f"cannot read image '{images.sample_ids[i]}' of '{images.name}' ({first_line(error)})",
        remedy="skip-broken",
    )


def _collate(pixels: list[Pixels | None]) -> PixelBatch:
    readable = [image for image in pixels if image is not None]
    stacked = np.stack(readable) if readable else np.empty((0, 0, 0, 3), np.uint8)
    return stacked, np.array([image is not None for image in pixels])
