"""Whether a set matches the catalogue, and the digests that identify it."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from zsntta_cli.datasets import miscounted
from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.images import UNREADABLE, ImageSet
from zsntta_cli.datasets.names import LISTS
from zsntta_cli.errors import counted, first_line

_CHUNK = 1024  # images that wait for a thread at a time


def problems(images: ImageSet, expected: DatasetEntry | None) -> Iterator[str]:
    """What is wrong with a set, without opening its images."""
    names, labels = images.class_names, images.labels
    if expected is not None:
        if count := miscounted(images.name, len(images)):
            yield count
        if len(names) != expected.classes and (names or expected.role != "ood"):
            yield f"{counted(len(names), 'class', 'classes')}, must be {expected.classes}"
    if twice := len(images) - len({*images.sample_ids}):
        yield f"{twice:,} sample ids are duplicates"
    if names and (wrong := np.count_nonzero((labels < 0) | (labels >= len(names)))):
        yield f"{wrong:,} labels are not between 0 and {len(names) - 1}"
    if without := sorted({*range(len(names))} - {*labels.tolist()}):
        what = counted(len(without), "class", "classes")
        yield f"{what} without an image (the first is '{names[without[0]]}')"


def facts(images: ImageSet) -> Iterator[str]:
    """Notes on how a set was read, and the digests of its parts, as sha256sum has them."""
    yield from images.notes
    for what, lines in (("sample ids", images.sample_ids), ("class names", images.class_names)):
        if lines:
            content = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
            yield f"sha256 of its {what}: {hashlib.sha256(content).hexdigest()}"
    for name, digest in images.facts.get(LISTS, {}).items():
        yield f"sha256 of {name}: {digest}"


def broken(images: ImageSet, advance: Callable[[int], None], workers: int) -> Iterator[str]:
    """Open every image in threads, and list the ids of those that cannot be read, with reasons."""

    def reason(i: int) -> str:
        try:
            images.read(i)
        except UNREADABLE as error:
            return first_line(error)
        return ""

    with ThreadPoolExecutor(workers) as threads:
        for start in range(0, len(images), _CHUNK):
            rows = range(start, min(start + _CHUNK, len(images)))
            for i, why in zip(rows, threads.map(reason, rows), strict=True):
                advance(1)
                if why:
                    yield f"{images.sample_ids[i]}: {why}"
