"""What there is of a set: on disk, cached, and whether it is as the catalogue says."""

import glob
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from zsntta_cli.datasets import miscounted
from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.images import SUFFIXES, UNREADABLE, ImageSet
from zsntta_cli.errors import first_line

BUILT_IN, YES, NO, PARTLY = "built in", "yes", "no", "in part"
_CHUNK = 1024  # images that wait for a thread at a time


def on_disk(entry: DatasetEntry, data_root: Path) -> str:
    """Whether the files of a set are there, told by their names alone."""
    if not entry.layout:
        return BUILT_IN
    patterns = _patterns(entry.layout)
    counts = [_count(pattern, data_root, not entry.parameters) for pattern in patterns]
    if not any(counts):
        return NO
    images = sum(n for p, n in zip(patterns, counts, strict=True) if _of_images(p))
    if any(map(_of_images, patterns)) and images < entry.images and not entry.parameters:
        return f"{images:,} of {entry.images:,} images"
    return YES if all(counts) else PARTLY


def _patterns(layout: str) -> list[str]:
    """The paths that a layout names: `a/<class>/*.jpg`, or `a/ with b.txt, <number>.npy and c/`."""
    top, _, rest = re.sub(r"<[^>]*>", "*", layout).partition(" with ")
    below = [path for path in re.split(r", | and ", rest) if " " not in path]
    paths = [top + path for path in below if path.endswith("/") or "." in path] or [top]
    return [path + "*" * path.endswith("/") for path in paths]


def _of_images(pattern: str) -> bool:
    return "*" in pattern and Path(pattern).suffix.lower() in SUFFIXES


def _count(pattern: str, data_root: Path, all_images: bool) -> int:
    """How many images fit a pattern; of what else there is, or can be millions, whether any."""
    matches = glob.iglob(pattern, root_dir=data_root)
    if all_images and _of_images(pattern):
        return sum(1 for _ in matches)
    return int(next(matches, None) is not None)


def problems(images: ImageSet, expected: DatasetEntry | None) -> Iterator[str]:
    """What is wrong with a set that was read, its images unopened; nothing if all is well."""
    if expected is not None:
        yield from _differences(images, expected)
    if len(set(images.sample_ids)) < len(images):
        yield f"{len(images) - len(set(images.sample_ids)):,} sample ids are there twice"
    if not images.class_names:
        return
    labels, classes = images.labels, len(images.class_names)
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        yield f"{wrong.sum():,} labels are not within 0 and {classes - 1}"
    without = sorted(set(range(classes)) - set(np.unique(labels).tolist()))
    if without:
        first = images.class_names[without[0]]
        yield f"{len(without)} classes have no image (the first is '{first}')"


def _differences(images: ImageSet, expected: DatasetEntry) -> Iterator[str]:
    """What differs from the catalogue's numbers; 'all' of a corrupted set has multiples of them."""
    if miscounted(images.name, len(images)):
        yield f"{len(images):,} images, must be {expected.images:,}"
    flat = expected.role == "ood" and not images.class_names
    if len(images.class_names) != expected.classes and not flat:
        yield f"{len(images.class_names)} classes, must be {expected.classes}"


def broken(images: ImageSet, advance: Callable[[int], None], workers: int) -> Iterator[str]:
    """Open every image, by threads: the ids of those that cannot be read, and why."""
    with ThreadPoolExecutor(workers) as threads:
        for start in range(0, len(images), _CHUNK):
            rows = range(start, min(start + _CHUNK, len(images)))
            for i, reason in zip(rows, threads.map(partial(_reason, images), rows), strict=True):
                advance(1)
                if reason:
                    yield f"{images.sample_ids[i]}: {reason}"


def _reason(images: ImageSet, i: int) -> str:
    """Why an image cannot be read, nothing if it can."""
    try:
        images.read(i)
    except UNREADABLE as error:
        return first_line(error)
    return ""
