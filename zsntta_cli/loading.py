"""Images to batches of tensors, read and preprocessed by threads ahead of the encoder.

Decoding and resizing release the GIL, so threads are enough and nothing has to be pickled.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.errors import DatasetError

if TYPE_CHECKING:
    import torch

_TASK = 16  # images that one thread reads at a time
_AHEAD = 3  # batches in memory before the one being encoded
_UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)  # PIL's own

Preprocess = Callable[[Image.Image], "torch.Tensor"]
Batch = tuple["torch.Tensor", NDArray[np.bool_]]  # (b, 3, H, W) of the readable of B images, (B,)


def load_batches(
    images: ImageSet,
    batches: Sequence[range],
    preprocess: Preprocess,
    workers: int,
    skip_broken: bool,
) -> Iterator[Batch]:
    """The batches in order, each with a mark on which of its images could be read.

    Raises:
        DatasetError: a broken image, unless such are skipped.
    """
    waiting: deque[list[Future[list[torch.Tensor | None]]]] = deque()
    upcoming = iter(batches)
    threads = ThreadPoolExecutor(workers)
    try:
        for _ in range(len(batches)):
            while len(waiting) <= _AHEAD and (rows := next(upcoming, None)) is not None:
                tasks = [rows[start : start + _TASK] for start in range(0, len(rows), _TASK)]
                waiting.append(
                    [threads.submit(_read, images, t, preprocess, skip_broken) for t in tasks]
                )
            yield _collate([tensor for task in waiting.popleft() for tensor in task.result()])
    finally:
        threads.shutdown(cancel_futures=True)


def _read(
    images: ImageSet, rows: range, preprocess: Preprocess, skip_broken: bool
) -> list["torch.Tensor | None"]:
    """Preprocessed images of some rows, None for a broken one."""
    tensors: list[torch.Tensor | None] = []
    for i in rows:
        try:
            tensors.append(preprocess(images.read(i)))
        except _UNREADABLE as error:
            if not skip_broken:
                reason = str(error).splitlines()[0] if str(error) else repr(error)
                raise DatasetError(
                    f"cannot read image '{images.sample_ids[i]}' of '{images.name}' ({reason}): "
                    f"mend or remove it, or leave such images out with --skip-broken."
                ) from error
            tensors.append(None)
    return tensors


def _collate(tensors: list["torch.Tensor | None"]) -> Batch:
    import torch

    readable = [tensor for tensor in tensors if tensor is not None]
    stacked = torch.stack(readable) if readable else torch.empty(0)
    return stacked, np.array([tensor is not None for tensor in tensors])
