"""Teach a detector images that a person labelled."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.hdf5 import read_sample_ids
from zsntta_cli.detection.detecting import DetectRun
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.sources.item import of_file
from zsntta_cli.errors import DatasetError


class LabelledImage(NamedTuple):
    """A person's answer about an image, and where the image is."""

    noise: bool
    source: str
    frame: int | None
    content: str | None  # SHA-256 of the file, in hexadecimal


def teach(run: DetectRun, images: Sequence[LabelledImage]) -> int:
    """Give a run's detector the answers whose images are available, and return how many.

    Kept features are found by the image's content; otherwise the image is read at its old place.

    Raises:
        DatasetError: no image is available.
    """
    features = _of_set(run, images) if run.cached else _of_files(run.encoding, images)
    rows = [(row, one.noise) for row, one in zip(features, images, strict=True) if row is not None]
    if not rows:
        raise DatasetError(
            f"nothing can be learned: not one of the {len(images):,} images that were corrected "
            f"is here."
        )
    run.detector.feedback(
        features=np.array([row for row, _ in rows], np.float32),
        noise=np.array([noise for _, noise in rows]),
    )
    return len(rows)


def _of_set(run: DetectRun, images: Sequence[LabelledImage]) -> list[NDArray[np.floating] | None]:
    """Features of the images of a cached set, by their ids."""
    assert run.cached
    numbers = {name: i for i, name in enumerate(read_sample_ids(run.cached.path))}
    rows = run.cached.image_features
    places = (numbers.get(one.source) for one in images)
    return [None if i is None else rows[i] for i in places]


def _of_files(
    encoding: Encoding, images: Sequence[LabelledImage]
) -> list[NDArray[np.floating] | None]:
    """Features of files, by their content, or encoded from their old places."""
    digests = [bytes.fromhex(one.content or "") for one in images]
    kept = encoding.store.features({digest for digest in digests if digest})
    rows: list[NDArray[np.floating] | None] = [kept.get(digest) for digest in digests]
    are_here = ((i, rows[i] is None and _is_here(one)) for i, one in enumerate(images))
    lacking = [i for i, is_here in are_here if is_here]
    encoded = encoding.images([of_file(Path(images[i].source)) for i in lacking])
    for i, image in zip(lacking, encoded, strict=True):
        rows[i] = image.features
    return rows


def _is_here(image: LabelledImage) -> bool:
    """Whether an image is still at its place, with the content that a person saw."""
    path = Path(image.source)
    if image.frame is not None or not path.is_file():
        return False
    if image.content is None:
        return True
    try:
        return of_file(path).load().digest.hex() == image.content
    except OSError:
        return False
