"""Sets whose images a file lists: OpenOOD's lists of paths, CoOp's splits of data sets.

OpenOOD 1.5 is arXiv 2306.09301, CoOp arXiv 2109.01134. What a list says is read from the list.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from zsntta_cli.datasets.images import ImageSet, pick_rows
from zsntta_cli.datasets.names import LISTS
from zsntta_cli.datasets.readers.archives import folder_or_archive
from zsntta_cli.datasets.readers.folders import images_in, listed_images, require_path
from zsntta_cli.errors import DatasetError, first_line

_IMAGES = "images_largescale"  # OpenOOD's folders
_LISTS = "benchmark_imglist/imagenet"


def openood(name: str, root: Path, *, path: str, listed: str) -> ImageSet:
    """A set of OpenOOD's: a folder or an archive; of it what the list has, where there is one."""
    is_within = (root / _IMAGES / path).exists()
    images = folder_or_archive(name, root / _IMAGES if is_within else root, path=path)
    places = (
        place / file for place in (root, root / _LISTS) for file in (listed, f"test_{listed}")
    )
    place = next((place for place in places if place.is_file()), None)
    return _chosen(images, place, path) if place else images


def _chosen(images: ImageSet, listed: Path, path: str) -> ImageSet:
    """The images of a list, whose lines are a path and a label; the label is -1 for all."""
    lines = _text(images.name, listed).splitlines()
    paths = [line.rpartition(" ")[0].strip() for line in lines if line.strip()]
    below = path.partition("/")[2]
    ids = [p.removeprefix(f"{path}/").removeprefix(f"{below}/" if below else "") for p in paths]
    rows = {sample_id: row for row, sample_id in enumerate(images.sample_ids)}
    missing = [sample_id for sample_id in ids if sample_id not in rows]
    if missing or not ids:
        example = f", such as {missing[0]}" if missing else ""
        raise DatasetError(
            f"data set '{images.name}': {len(missing):,} of {len(ids):,} images of {listed} are "
            f"missing{example}."
        )
    chosen = np.array(sorted({rows[sample_id] for sample_id in ids}), np.int64)
    return _with_lists(pick_rows(images, chosen), [listed])


def coop(name: str, root: Path, *, path: str, split: str, images: str) -> ImageSet:
    """The test split of one of CoOp's data sets, with the class names that its file gives."""
    base, listed = root / path / images, root / path / split
    parts = _parts(name, require_path(listed))
    test = parts["test"]
    names = dict(sorted((label, names) for part in parts.values() for _, label, names in part))
    if list(names) != list(range(len(names))):
        raise DatasetError(f"data set '{name}': the labels of {listed} are not 0, 1, 2 and so on.")
    paths = [base / _inner(name, listed, place) for place, _, _ in test]
    labels = [label for _, label, _ in test]
    found = listed_images(name, require_path(base), paths, labels, list(names.values()))
    return _with_lists(found, [listed])


def _parts(name: str, path: Path) -> dict[str, list[tuple[str, int, str]]]:
    """The parts of a split: paths, labels and class names of images."""
    try:
        content: Any = json.loads(_text(name, path))
        parts = {part: [_row(*row) for row in content[part]] for part in ("train", "val", "test")}
    except (ValueError, TypeError, KeyError) as error:
        raise DatasetError(
            f"data set '{name}': {path} is no split as CoOp has them, with train, val and test of "
            f"rows [path, label, class name] ({first_line(error)})."
        ) from error
    names = {(label, class_name) for part in parts.values() for _, label, class_name in part}
    if len(names) != len({label for label, _ in names}):
        raise DatasetError(f"data set '{name}': {path} has a label with two class names.")
    return parts


def _row(place: str, label: int, class_name: str) -> tuple[str, int, str]:
    if not (isinstance(place, str) and isinstance(class_name, str)) or type(label) is not int:
        raise TypeError(f"a row is {place!r}, {label!r}, {class_name!r}")
    return place, label, class_name


def _inner(name: str, listed: Path, place: str) -> str:
    """A path below a set's folder; SUN397's own begin with a slash."""
    inner = place.lstrip("/")
    if ".." in PurePosixPath(inner).parts:
        raise DatasetError(f"data set '{name}': {listed} names {place}, which is outside of it.")
    return inner


def aircraft(name: str, root: Path, *, path: str) -> ImageSet:
    """FGVC-Aircraft's test split, by variant, as CoOp takes it: from the set's own text files."""
    base = root / path
    variants, listed = base / "variants.txt", base / "images_variant_test.txt"
    class_names = _text(name, require_path(variants)).splitlines()
    index = {class_name: label for label, class_name in enumerate(class_names)}
    rows = [line.partition(" ") for line in _text(name, require_path(listed)).splitlines()]
    unknown = [variant for _, _, variant in rows if variant not in index]
    if unknown:
        raise DatasetError(f"data set '{name}': '{unknown[0]}' of {listed} is not in {variants}.")
    paths = [base / "images" / f"{number}.jpg" for number, _, _ in rows]
    labels = [index[variant] for _, _, variant in rows]
    images = listed_images(name, require_path(base / "images"), paths, labels, class_names)
    return _with_lists(images, [variants, listed])


def coop_imagenet(name: str, root: Path, *, path: str) -> ImageSet:
    """ImageNet's validation set under the names of CoOp's classnames.txt, a wnid and its name."""
    listed = require_path(root / path / "classnames.txt")
    rows = [line.split(maxsplit=1) for line in _text(name, listed).splitlines() if line.strip()]
    if not rows or any(len(row) != 2 for row in rows):
        raise DatasetError(
            f"data set '{name}': {listed} is not made of lines of a wnid and a name."
        )
    names = dict(rows)
    own, usual = root / path / "images" / "val", root / path / "val"
    base = own if own.is_dir() else require_path(usual)
    paths = [image for wnid in sorted(names) for image in images_in(base / wnid)]
    index = {wnid: label for label, wnid in enumerate(sorted(names))}
    labels = [index[image.relative_to(base).parts[0]] for image in paths]
    images = listed_images(name, base, paths, labels, [names[wnid].strip() for wnid in index])
    return _with_lists(images, [listed])


def _text(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"data set '{name}': {path} is no text in UTF-8.") from error


def _with_lists(images: ImageSet, lists: Sequence[Path]) -> ImageSet:
    """The set with the digests of the lists that it is of."""
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in lists}
    return replace(images, facts={**images.facts, LISTS: digests})
