"""Splits of a cached set by its classes. Nothing is encoded again.

A split by classes is that of the open-set literature (six of CIFAR-10's classes against four, 20 of
Tiny-ImageNet's against 180): some classes become an ID set, and the others its OOD set, which is
noise of the same kind.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.store import Features
from zsntta_cli.errors import SettingsError, StoreError, counted, first_line

_NO_TEXTS: Mapping[str, Any] = {"texts": {}, "generic": None, "generic_source": ""}


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
    whole = store.read(path)
    if not whole.class_names:
        raise StoreError(f"'{whole.name}' has no class labels, and so no classes to split.")
    if unlabelled := int((whole.labels < 0).sum()):
        raise StoreError(
            f"'{whole.name}' has {counted(unlabelled, 'image')} without a label, in neither part "
            f"of a split: extract or import the set without them."
        )
    ids = np.array(store.read_sample_ids(path), dtype=object)
    is_id = np.isin(whole.labels, chosen)
    rest = [i for i in range(len(whole.class_names)) if i not in set(chosen)]
    id_name, ood_name = split_names(name)
    yield _write(_some(whole, id_name, is_id, list(chosen)), ids[is_id].tolist())
    yield _write(replace(_some(whole, ood_name, ~is_id, rest), **_NO_TEXTS), ids[~is_id].tolist())


def _some(whole: Features, name: str, rows: NDArray[np.bool_], classes: Sequence[int]) -> Features:
    """Some rows (N,) of a set, which are all of some of its classes."""
    before = whole.source.get("split", {})  # the set may be one of a split itself
    of = {"of": before.get("of", whole.name), **({"from": before} if before else {})}
    texts = [replace(text, features=text.features[classes]) for text in whole.texts.values()]
    return replace(
        whole,
        path=feature_path(whole.path.parents[1], whole.path.parent.name, name),
        name=name,
        source={**whole.source, "split": {**of, "classes": classes}},
        image_features=whole.image_features[rows],
        labels=np.searchsorted(classes, whole.labels[rows]).astype(np.int32),
        class_names=tuple(whole.class_names[i] for i in classes),
        texts={text.template: text for text in texts},
        created=store.now(),
    )


def _write(part: Features, sample_ids: Sequence[str]) -> Path:
    """Write a set of a split; a file that has the same rows only gets the texts that it lacks."""
    if not part.path.exists():
        store.write(part, sample_ids)
        return part.path
    existing = store.read(part.path, rows=False)
    if (existing.source, existing.identity) != (part.source, part.identity):
        raise StoreError(
            f"{part.path} holds another split or set: name this one otherwise with --name NAME."
        )
    missing = [text for name, text in part.texts.items() if name not in existing.texts]
    generic = part.generic if existing.generic is None else None
    if missing or generic is not None:
        store.add_texts(part.path, missing, generic, part.generic_source)
    return part.path
