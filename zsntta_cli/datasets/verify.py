"""Whether a set that was read is as the catalogue says, and what tells it from others."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from zsntta_cli.datasets import miscounted, whole_counts
from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.images import UNREADABLE, ImageSet
from zsntta_cli.datasets.names import LISTS
from zsntta_cli.errors import counted, first_line

_CHUNK = 1024  # images that wait for a thread at a time


def problems(images: ImageSet, expected: DatasetEntry | None) -> Iterator[str]:
    """What is wrong with a set that was read, its images unopened; nothing if all is well."""
    classes = len(images.class_names)
    if expected is not None:
        if miscounted(images.name, len(images)):
            wanted = whole_counts(images.name)[0]
            yield f"{counted(len(images), 'image')}, must be {wanted:,}"
        if classes != expected.classes and (classes or expected.role != "ood"):
            yield f"{counted(classes, 'class', 'classes')}, must be {expected.classes}"
    if twice := len(images) - len(set(images.sample_ids)):
        yield f"{twice:,} sample ids are there twice"
    if not images.class_names:
        return
    wrong = (images.labels < 0) | (images.labels >= classes)
    if wrong.any():
        yield f"{wrong.sum():,} labels are not within 0 and {classes - 1}"
    if without := sorted(set(range(classes)) - set(np.unique(images.labels).tolist())):
        what = counted(len(without), "class", "classes")
        yield f"{what} without an image (the first is '{images.class_names[without[0]]}')"


def facts(images: ImageSet) -> Iterator[str]:
    """What should be known of how a set was read, and what tells it from others: its digests."""
    yield from images.notes
    lists: Mapping[str, str] = {
        "its sample ids": _digest(images.sample_ids),
        **({"its class names": _digest(images.class_names)} if images.class_names else {}),
        **images.facts.get(LISTS, {}),
    }
    yield from (f"sha256 of {name}: {digest}" for name, digest in lists.items())


def _digest(lines: Sequence[str]) -> str:
    """The digest of a file with these lines, as sha256sum has it."""
    content = "".join(f"{line}\n" for line in lines)
    return hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()


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
