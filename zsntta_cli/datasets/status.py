"""What there is of a set: on disk, cached, and whether it is as the catalogue says."""

import glob
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from zsntta_cli.datasets import miscounted, whole_counts
from zsntta_cli.datasets.catalogue import CATALOGUE, DatasetEntry
from zsntta_cli.datasets.images import SUFFIXES, UNREADABLE, ImageSet
from zsntta_cli.datasets.names import LISTS
from zsntta_cli.datasets.presence import BUILT_IN
from zsntta_cli.datasets.sizes import Sizes, image_sizes, in_words
from zsntta_cli.errors import counted, first_line

YES, NO, PARTLY = "yes", "no", "in part"
_CHUNK = 1024  # images that wait for a thread at a time


def on_disk(entry: DatasetEntry, data_root: Path) -> str:
    """Whether the files of a set are there, told by their names alone."""
    if not entry.layout:
        return BUILT_IN
    patterns = _patterns(entry.layout)
    counts = [_count(pattern, data_root, not entry.parameters) for pattern in patterns]
    if not any(counts):
        is_elsewhere = any((data_root / place).is_dir() for place in entry.elsewhere)
        return YES if is_elsewhere or _is_packed(entry, data_root) else NO
    images = sum(n for p, n in zip(patterns, counts, strict=True) if _of_images(p))
    if any(map(_of_images, patterns)) and images < entry.images and not entry.parameters:
        return f"{images:,} of {entry.images:,} images"
    return YES if all(counts) else PARTLY


def _is_packed(entry: DatasetEntry, data_root: Path) -> bool:
    """Whether the archives are there that are read instead of the layout."""
    return bool(entry.packed) and all((data_root / file).is_file() for file in entry.packed)


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
        yield from _other_sizes(images, expected)
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
        what = counted(len(without), "class", "classes")
        yield f"{what} without an image (the first is '{first}')"


def _differences(images: ImageSet, expected: DatasetEntry) -> Iterator[str]:
    """What differs from the catalogue's numbers."""
    if miscounted(images.name, len(images)):
        yield f"{counted(len(images), 'image')}, must be {whole_counts(images.name)[0]:,}"
    flat = expected.role == "ood" and not images.class_names
    if len(images.class_names) == 1 != expected.classes:
        yield f"all images are in one folder, {images.class_names[0]}: move them a folder up"
    elif len(images.class_names) != expected.classes and not flat:
        yield f"{counted(len(images.class_names), 'class', 'classes')}, must be {expected.classes}"


def _other_sizes(images: ImageSet, expected: DatasetEntry) -> Iterator[str]:
    """What images have another size than they should, and which variant of the set has that."""
    if not (expected.side or expected.variants):
        return
    sizes = image_sizes(images)
    if not sizes or _is_square(sizes, expected.side):
        return
    own = [name for name in expected.variants if _is_square(sizes, CATALOGUE[name].side)]
    if own:
        yield f"its images are {in_words(sizes)}: they are those of '{own[0]}'"
    elif expected.side:
        yield f"its images are {in_words(sizes)}, must be {expected.side} x {expected.side}"


def _is_square(sizes: Sizes, side: int) -> bool:
    return bool(side) and set(sizes) == {(side, side)}


def facts(images: ImageSet) -> Iterator[str]:
    """What tells a set from others of its name: sizes of images, and digests of its lists."""
    yield f"images of {in_words(image_sizes(images)) or 'no size'}"
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
