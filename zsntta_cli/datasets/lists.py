"""Sets whose images a file lists: OpenOOD's lists of paths, CoOp's splits of data sets.

OpenOOD 1.5 is arXiv 2306.09301, CoOp arXiv 2109.01134. What a list says is read from the list.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from zsntta_cli.datasets.images import ImageSet, pick_rows
from zsntta_cli.datasets.known_sets import by_folder, by_keys, existing, listed
from zsntta_cli.datasets.names import LISTS
from zsntta_cli.errors import DatasetError


def openood(name: str, root: Path, *, places: str, listed: str) -> ImageSet:
    """A set of OpenOOD's: a folder or an archive; of it what the list has, where there is one."""
    images = by_folder(name, root, places=places)
    folders = (root, root / "benchmark_imglist" / "imagenet")
    files = (folder / file for folder in folders for file in (listed, f"test_{listed}"))
    place = next((file for file in files if file.is_file()), None)
    return _chosen(images, place, places.partition("|")[0]) if place else images


def _chosen(images: ImageSet, listed: Path, path: str) -> ImageSet:
    """The images of a list, whose lines are a path and a label; the label is -1 for all."""
    paths = [line.rpartition(" ")[0].strip() for line in listed.read_text().splitlines() if line]
    below = path.partition("/")[2]
    ids = [p.removeprefix(f"{path}/").removeprefix(f"{below}/" if below else "") for p in paths]
    rows = {sample_id: row for row, sample_id in enumerate(images.sample_ids)}
    missing = [sample_id for sample_id in ids if sample_id not in rows]
    if missing or not ids:
        raise DatasetError(
            f"data set '{images.name}': {len(missing):,} of {len(ids):,} images of {listed} are "
            f"missing{f', such as {missing[0]}' if missing else ''}."
        )
    chosen = np.array(sorted({rows[sample_id] for sample_id in ids}), np.int64)
    return _with_lists(pick_rows(images, chosen), [listed])


def coop(name: str, root: Path, *, path: str, split: str, images: str) -> ImageSet:
    """The test split of one of CoOp's data sets, with the class names that its file gives.

    Its parts train, val and test are rows [path, label, class name]; paths of SUN397 begin with a
    slash.
    """
    base, file = root / path / images, root / path / split
    parts = json.loads(file.read_text())
    rows = [row for part in ("train", "val", "test") for row in parts[part]]
    names = dict(sorted((label, class_name) for _, label, class_name in rows))
    if list(names) != list(range(len(names))):
        raise DatasetError(f"data set '{name}': the labels of {file} are not 0, 1, 2 and so on.")
    paths = [base / place.lstrip("/") for place, _, _ in parts["test"]]
    labels = [label for _, label, _ in parts["test"]]
    found = listed(name, existing(base), paths, labels, list(names.values()))
    return _with_lists(found, [file])


def aircraft(name: str, root: Path) -> ImageSet:
    """FGVC-Aircraft's test split, by variant, as CoOp takes it: from the set's own text files."""
    base = root / "fgvc_aircraft"
    files = [base / "variants.txt", base / "images_variant_test.txt"]
    class_names, lines = (file.read_text().splitlines() for file in files)
    rows = [line.partition(" ") for line in lines]
    labels = [class_names.index(variant) for _, _, variant in rows]
    paths = [base / "images" / f"{number}.jpg" for number, _, _ in rows]
    images = listed(name, existing(base / "images"), paths, labels, class_names)
    return _with_lists(images, files)


def coop_imagenet(name: str, root: Path) -> ImageSet:
    """ImageNet's validation set under the names of CoOp's classnames.txt, a wnid and its name."""
    file = root / "imagenet" / "classnames.txt"
    rows = [line.split(maxsplit=1) for line in file.read_text().splitlines() if line.strip()]
    names = {wnid: class_name.strip() for wnid, class_name in sorted(rows)}
    own = root / "imagenet" / "images" / "val"
    base = own if own.is_dir() else existing(root / "imagenet" / "val")
    return _with_lists(by_keys(name, {"": base}, names), [file])


def _with_lists(images: ImageSet, lists: Sequence[Path]) -> ImageSet:
    """The set with the digests of the lists that it is of."""
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in lists}
    return replace(images, facts={**images.facts, LISTS: digests})
