"""Open-set splits: some classes of a cached set become an ID set, the others its OOD set.

As the open-set literature makes them (six of CIFAR-10's classes against four, 20 of Tiny-ImageNet's
against 180): near OOD, of one set's own kind. Nothing is encoded again.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import DATASET, FeatureSet, Text
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import read_features, read_sample_ids, write_features
from zsntta_cli.errors import SettingsError, StoreError


def split_names(name: str) -> tuple[str, str]:
    """Names of the two sets that a split makes."""
    return f"{name}-id", f"{name}-ood"


def ood_of(id_set: str) -> str:
    """The OOD set of a split's ID set; nothing for a name that no split has."""
    stem = id_set.removesuffix("-id")
    return split_names(stem)[1] if stem != id_set else ""


def drawn_classes(total: int, count: int, seed: int) -> list[int]:
    """`count` of a set's classes, drawn by a seed, in order.

    Raises:
        SettingsError: none, or no class left for the OOD set.
    """
    if not 0 < count < total:
        raise SettingsError(f"id-classes is {count}, must be in [1, {total - 1}].")
    generator = np.random.Generator(np.random.PCG64(seed))
    return sorted(generator.permutation(total)[:count].tolist())


def named_classes(path: Path, class_names: Sequence[str]) -> list[int]:
    """The classes that a file names, a name a line, in the set's order.

    Raises:
        StoreError: no such file. SettingsError: a name that is no class, or no class is left.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read the class names {path} ({error}).") from error
    wanted = {line.strip() for line in lines if line.strip()}
    strange = sorted(wanted - set(class_names))
    if strange:
        raise SettingsError(f"{path}: '{strange[0]}' is no class of the set.")
    if not 0 < len(wanted) < len(class_names):
        raise SettingsError(
            f"{path} names {len(wanted)} of {len(class_names)} classes: some, not all."
        )
    return [i for i, name in enumerate(class_names) if name in wanted]


def split(path: Path, name: str, chosen: Sequence[int]) -> Iterator[Path]:
    """Write the two sets of a split beside the file of the set, which keeps all its classes.

    Raises:
        StoreError: the set has no labels, or other features are there under these names.
    """
    whole = read_features(path)
    if not whole.class_names or (whole.labels < 0).any():
        raise StoreError(f"'{whole.name}' has no class labels, and so no classes to split.")
    ids = np.array(read_sample_ids(path), dtype=object)
    is_id = np.isin(whole.labels, chosen)
    rest = [i for i in range(len(whole.class_names)) if i not in set(chosen)]
    parts = zip(split_names(name), (is_id, ~is_id), (list(chosen), rest), strict=True)
    for part, rows, classes in parts:
        yield _write(whole, part, rows, classes, ids[rows].tolist(), with_text=part.endswith("-id"))


def _write(
    whole: FeatureSet,
    name: str,
    rows: NDArray[np.bool_],
    classes: list[int],
    ids: list[str],
    *,
    with_text: bool,
) -> Path:
    """Write the rows of some classes, numbered anew; a file with the same is left as it is."""
    target = feature_path(whole.path.parents[1], whole.path.parent.name, name)
    labels = np.searchsorted(classes, whole.labels[rows]).astype(np.int32)
    source = {**whole.source, "split": {"of": whole.name, "classes": classes}}
    if target.exists():
        existing = read_features(target)
        if (existing.source, existing.identity) == (source, whole.identity):
            return target
        raise StoreError(f"{target} holds another split or set", remedy="other-split")
    texts = whole.text_features if with_text else {}
    write_features(
        target,
        kind=DATASET,
        name=name,
        encoder=whole.identity,
        source=source,
        blocks=[whole.image_features[rows]],
        labels=labels,
        sample_ids=ids,
        class_names=[whole.class_names[i] for i in classes],
        texts=[Text(template, text[classes]) for template, text in texts.items()],
        normalized=whole.normalized,
        machine=whole.machine,
    )
    return target
