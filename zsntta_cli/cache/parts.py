"""Sets in parts of whole batches. Joined, they are what one extraction would have made.

The folder `NAME.parts/` beside `NAME.h5` has a feature file for each part, `00003-of-00064.h5`,
which describes the whole set. The parts stay until somebody removes them.
"""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import PARTS, entries
from zsntta_cli.cache.identity import check_same
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.names import SKIPPED, check_plain
from zsntta_cli.errors import SettingsError, StoreError, first_of
from zsntta_cli.files import scratch, writing

_FILES = "[0-9]*-of-*[0-9].h5"
_NAMED = 8  # of many missing parts


def part_path(path: Path, index: int, of: int) -> Path:
    """The feature file of a part, by its number from 1, of the set to be joined at `path`."""
    return path.with_name(f"{path.stem}{PARTS}") / f"{index:05d}-of-{of:05d}.h5"


def part_rows(images: int, index: int, of: int, batch_size: int) -> range:
    """The rows of part `index`, from 1, of `of` parts of a set: whole batches.

    Raises:
        SettingsError: there are more parts than batches.
    """
    batches = -(-images // batch_size)
    if of > batches:
        raise SettingsError(
            f"part is {index}/{of}, but {images:,} images are {batches} batches of {batch_size}: "
            f"use at most {batches} parts, or a smaller --batch-size."
        )
    first, last = (i * batches // of * batch_size for i in (index - 1, index))
    return range(first, min(last, images))


def parts_of(root: Path, name: str, encoder_name: str | None = None) -> list[Path]:
    """The paths at which the parts of a set are to be joined, of one encoder or of all.

    Raises:
        StoreError: the set has no parts.
    """
    check_plain("set", name)
    paths = list[Path]()
    for folder in entries(root, encoder_name):
        if folder.name == f"{name}{PARTS}" and any(folder.glob(_FILES)):
            paths.append(folder.with_suffix(".h5"))
    if paths:
        return paths
    raise StoreError(
        f"no parts of '{name}' in {root / (encoder_name or '')}/: zsntta extract --dataset NAME=… "
        f"--part 1/64 makes one."
    )


def join_parts(path: Path) -> Features:
    """Join the parts of the set at `path` unless it exists, and return the set's features.

    Raises:
        StoreError: parts are missing or broken, their encoder, set or batch size differs, or a
            different set is at `path`.
    """
    files = _files(path)
    parts = [store.read(file, rows=False) for file in files]
    first, expected = parts[0], _made_as(parts[0])
    for part in parts:
        check_same(
            part.path, _made_as(part), expected, expected, what="extraction",
            then="remove the wrong part, and extract it again",
        )  # fmt: skip
    if path.exists():
        joined, then = store.read(path, rows=False), "remove it, or choose another --features-dir"
        check_same(path, _made_as(joined), expected, expected, then=then)
        return joined
    skipped = [sample_id for part in parts for sample_id in part.source.get(SKIPPED, ())]
    dtype, shape = first.image_features.dtype, (sum(map(len, parts)), first.dim)
    with writing(path), scratch(path.parent) as temporary:  # the set may not fit into memory
        with temporary.open("wb") as rows:
            for file in files:
                rows.write(store.read(file).image_features.tobytes())
        whole = replace(
            store.read(files[0]), path=path, labels=np.concatenate([part.labels for part in parts]),
            image_features=np.memmap(temporary, dtype, "r", shape=shape),
            source={**first.source, SKIPPED: skipped} if skipped else first.source,
            created=max(part.created for part in parts),
        )  # fmt: skip
        return store.write(whole, [*chain.from_iterable(map(store.read_sample_ids, files))])


def _files(path: Path) -> list[Path]:
    """The files of all parts of the set at `path`, in order: StoreError if one is missing."""
    folder = part_path(path, 1, 1).parent
    files = [*folder.glob(_FILES)]
    of, *other_counts = sorted({int(file.stem.partition("-of-")[2]) for file in files})
    if other_counts:
        raise StoreError(
            f"{folder} has parts of {of} and {other_counts[0]}: remove the unwanted ones."
        )
    expected = [part_path(path, index, of) for index in range(1, of + 1)]
    if missing := [str(i) for i, file in enumerate(expected, 1) if file not in files]:
        raise StoreError(
            f"{folder} lacks {len(missing):,} of {of:,} parts, {first_of(missing, _NAMED)}: run "
            f"zsntta extract with the same options and --part {missing[0]}/{of}."
        )
    return expected


def _made_as(part: Features) -> dict[str, Any]:
    """What parts of one extraction share: encoder, images, batches, type, classes."""
    return {
        **{key: value for key, value in part.source.items() if key != SKIPPED},
        **part.identity,
        "batch-size": part.machine.get("batch_size"),
        "type": str(part.image_features.dtype),
        "dims": part.dim,
        "classes": part.class_names,
    }
