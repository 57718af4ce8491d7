"""Sets in parts: whole batches each, so that joined they are what one extraction would have made.

The folder `NAME.parts/` beside `NAME.h5` has a feature file for each part, `00003-of-00064.h5`,
which describes the whole set. The parts stay where they are until somebody removes them.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import part_path, parts_folder
from zsntta_cli.cache.identity import SAME_ENCODER, check_same
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.names import SKIPPED
from zsntta_cli.errors import MissingParts, SettingsError, StoreError


def part_rows(images: int, index: int, of: int, batch_size: int) -> range:
    """The rows of part `index`, from 1, of `of` parts of a set: whole batches.

    Raises:
        SettingsError: there are more parts than batches.
    """
    batches = -(-images // batch_size)
    if of > batches:
        raise SettingsError(
            f"part is {index}/{of}, but {images:,} images are {batches} batches of {batch_size}: "
            f"take N of {batches} or less, or a smaller --batch-size."
        )
    first, last = (i * batches // of * batch_size for i in (index - 1, index))
    return range(first, min(last, images))


def join_parts(path: Path) -> Features:
    """Join the parts of the set at `path`, and return the set's description.

    Raises:
        StoreError: parts are missing, broken, or of another encoder, set or size of batches; or
            another set is at `path`.
    """
    files = _files(path)
    parts = [store.read(file, rows=False) for file in files]
    first = parts[0]
    for part in parts[1:]:
        then = "remove the part that is wrong, and extract it"
        check_same(part.path, part.identity, first.identity, then=then)
        for what, of_part, of_first in (
            ("set", _source(part), _source(first)), ("size or type", _form(part), _form(first)),
        ):  # fmt: skip
            keys = sorted({*of_part, *of_first})
            check_same(part.path, of_part, of_first, keys, what=what, then=then)
    labels = np.concatenate([part.labels for part in parts])
    skipped = [sample_id for part in parts for sample_id in part.source.get(SKIPPED, ())]
    whole = replace(
        store.read(files[0]), path=path, labels=labels, part=None, digest="",
        source={**_source(first), **({SKIPPED: skipped} if skipped else {})},
        created=max(part.created for part in parts),
    )  # fmt: skip
    if path.exists():
        _check_replaceable(path, whole)
    ids = [*chain.from_iterable(map(store.read_sample_ids, files))]
    return replace(whole, digest=store.write(whole, ids, _rows(files)))


def _files(path: Path) -> list[Path]:
    """The files of all parts of the set at `path`, in order.

    Raises:
        MissingParts: one is missing. StoreError: there are none, or those of several divisions.
    """
    folder = parts_folder(path)
    files = sorted(folder.glob("[0-9]*-of-*[0-9].h5"))
    if not files:
        raise StoreError(f"no parts at {folder}", remedy="extract-parts")
    divisions = {file.stem.partition("-of-")[2] for file in files}
    if len(divisions) > 1:
        listed = " and ".join(str(int(of)) for of in sorted(divisions))
        raise StoreError(f"{folder} has parts of {listed}: remove those that are not meant.")
    of = int(divisions.pop())
    expected = [part_path(path, index, of) for index in range(1, of + 1)]
    if missing := tuple(i for i, file in enumerate(expected, 1) if file not in files):
        raise MissingParts(path.stem, str(folder), missing, of)
    return expected


def _source(part: Features) -> dict[str, object]:
    return {key: value for key, value in part.source.items() if key != SKIPPED}


def _form(part: Features) -> dict[str, object]:
    """What all parts have alike beside their encoder and set."""
    return {
        "batch-size": part.machine.get("batch_size"),
        "type": str(part.image_features.dtype),
        "classes": part.class_names,
    }


def _check_replaceable(path: Path, whole: Features) -> None:
    """Refuse to replace a file that is not the one that parts are joined to."""
    there = store.read(path, rows=False)
    then = "remove it, or take another --features-dir"
    check_same(path, there.identity, whole.identity, SAME_ENCODER, then=then)
    check_same(path, there.source, whole.source, whole.source, what="set", then=then)
    if {*there.texts} - {*whole.texts}:
        raise StoreError(f"{path} is there, and has text features that its parts lack: {then}.")


def _rows(files: list[Path]) -> Iterator[NDArray[np.floating]]:
    return (store.read(file).image_features for file in files)
