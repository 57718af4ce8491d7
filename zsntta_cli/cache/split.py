"""Splits of a cached set by its classes. Nothing is encoded again.

A split by classes is that of the open-set literature (six of CIFAR-10's classes against four, 20 of
Tiny-ImageNet's against 180): some classes become an ID set, and the others its OOD set, which is
noise of the same kind.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import DATASET, FeatureSet, Text
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import add_texts, read_features, read_sample_ids, write_features
from zsntta_cli.errors import SettingsError, StoreError, counted, first_line


def split_names(name: str) -> tuple[str, str]:
    """The names of the ID set and the OOD set that a split makes."""
    return f"{name}-id", f"{name}-ood"


def ood_of(id_set: str) -> str:
    """The name of the OOD set that belongs to a split's ID set; empty for any other name."""
    stem = id_set.removesuffix("-id")
    return split_names(stem)[1] if stem != id_set else ""


def drawn_classes(total: int, count: int, seed: int) -> list[int]:
    """Draw `count` of a set's `total` classes at random, by a seed, and give them in order.

    Raises:
        SettingsError: the ID set or the OOD set would have no class.
    """
    if not 0 < count < total:
        raise SettingsError(f"id-classes is {count}, must be in [1, {total - 1}].")
    generator = np.random.Generator(np.random.PCG64(seed))
    return sorted(generator.permutation(total)[:count].tolist())


def named_classes(path: Path, class_names: Sequence[str]) -> list[int]:
    """Read the classes that a file names, one name on each line, and give them in the set's order.

    Raises:
        StoreError: the file cannot be read.
        SettingsError: a name is no class, or the file names none or all of the classes.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read the class names {path} ({first_line(error)}).") from error
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
        StoreError: images have no labels, or files of these names hold other features.
    """
    whole = read_features(path)
    if not whole.class_names:
        raise StoreError(f"'{whole.name}' has no class labels, and so no classes to split.")
    if unlabelled := int((whole.labels < 0).sum()):
        raise StoreError(
            f"'{whole.name}' has {counted(unlabelled, 'image')} without a label, in neither part "
            f"of a split: extract or import the set without them."
        )
    is_id = np.isin(whole.labels, chosen)
    rest = [i for i in range(len(whole.class_names)) if i not in set(chosen)]
    parts = zip(split_names(name), (is_id, ~is_id), (list(chosen), rest), strict=True)
    for part, rows, classes in parts:
        yield _write(
            whole, part, rows, classes,
            labels=np.searchsorted(classes, whole.labels[rows]).astype(np.int32),
            class_names=[whole.class_names[i] for i in classes],
            texts=whole.texts(classes) if part.endswith("-id") else (),
        )  # fmt: skip


def _write(
    whole: FeatureSet,
    name: str,
    rows: NDArray[np.bool_],
    classes: Sequence[int],
    *,
    labels: NDArray[np.int32],
    class_names: Sequence[str],
    texts: Sequence[Text],
) -> Path:
    """Write some rows of a set; a file that has the same rows only gets the texts that it lacks."""
    target = feature_path(whole.path.parents[1], whole.path.parent.name, name)
    before = whole.source.get("split", {})  # the set may be one of a split itself
    of = {"of": before.get("of", whole.name), **({"from": before} if before else {})}
    source = {**whole.source, "split": {**of, "classes": classes}}
    if target.exists():
        existing = read_features(target)
        if (existing.source, existing.identity) != (source, whole.identity):
            raise StoreError(f"{target} holds another split or set", remedy="other-split")
        missing = [text for text in texts if text.template not in existing.text_features]
        if missing:
            add_texts(target, missing)
        return target
    ids = np.array(read_sample_ids(whole.path), dtype=object)[rows]
    write_features(
        target,
        kind=DATASET,
        name=name,
        encoder=whole.identity,
        source=source,
        blocks=[whole.image_features[rows]],
        labels=labels,
        sample_ids=ids.tolist(),
        class_names=class_names,
        texts=texts,
        normalized=whole.normalized,
        machine=whole.machine,
    )
    return target
