"""Whether a set matches the catalogue, and the digests that identify it."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from zsntta_cli.datasets import miscounted
from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.images import UNREADABLE, ImageSet
from zsntta_cli.datasets.names import LISTS
from zsntta_cli.errors import counted, first_line

_CHUNK = 1024  # images that wait for a thread at a time


def problems(images: ImageSet, expected: DatasetEntry | None) -> Iterator[str]:
    """What is wrong with a set whose images were not opened; nothing if it is sound."""
    names, used = images.class_names, {*np.unique(images.labels).tolist()}
    if expected is not None:
        if count := miscounted(images.name, len(images)):
            yield count
        if len(names) != expected.classes and (names or expected.role != "ood"):
            yield f"{counted(len(names), 'class', 'classes')}, must be {expected.classes}"
    if twice := len(images) - len(set(images.sample_ids)):
        yield f"{twice:,} sample ids are duplicates"
    if names and (wrong := np.count_nonzero((images.labels < 0) | (images.labels >= len(names)))):
        yield f"{wrong:,} labels are not between 0 and {len(names) - 1}"
    if names and (without := [name for label, name in enumerate(names) if label not in used]):
        what = counted(len(without), "class", "classes")
        yield f"{what} without an image (the first is '{without[0]}')"


def facts(images: ImageSet) -> Iterator[str]:
    """Notes on how a set was read, and the digests that identify it."""
    yield from images.notes
    yield f"sha256 of its sample ids: {_digest(images.sample_ids)}"
    if images.class_names:
        yield f"sha256 of its class names: {_digest(images.class_names)}"
    for name, digest in images.facts.get(LISTS, {}).items():
        yield f"sha256 of {name}: {digest}"


def _digest(lines: Sequence[str]) -> str:
    """The digest of a file with these lines, as sha256sum has it."""
    content = "".join(f"{line}\n" for line in lines)
    return hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()


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
