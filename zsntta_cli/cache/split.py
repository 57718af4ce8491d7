"""Splits of a cached set by its classes. Nothing is encoded again.

A split by classes follows the open-set literature (six of CIFAR-10's classes against four, 20 of
Tiny-ImageNet's against 180): some classes become an ID set, and the others its OOD set, which is
noise of the same kind.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.errors import SettingsError, StoreError, counted


def ood_of(id_set: str) -> str:
    """The name of the OOD set that belongs to a split's ID set; empty for any other name."""
    stem = id_set.removesuffix("-id")
    return f"{stem}-ood" if stem != id_set else ""


def chosen_classes(wanted: str, class_names: Sequence[str], seed: int) -> list[int]:
    """The classes of a split's ID set, in the set's order.

    These are as many as `wanted` says, drawn at random from a seed, or those that the file of this
    name lists, one per line.

    Raises:
        DatasetError: the file cannot be read, or names none.
        SettingsError: a name is not a class, or the ID set or the OOD set would have no class.
    """
    total = len(class_names)
    if wanted.isdecimal():
        if not 0 < int(wanted) < total:
            raise SettingsError(f"id-classes is {wanted}, must be in [1, {total - 1}].")
        generator = np.random.Generator(np.random.PCG64(seed))
        return sorted(generator.permutation(total)[: int(wanted)].tolist())
    from zsntta_cli.datasets.words import read_words  # it loads what draws images

    names = set(read_words(Path(wanted)))
    if strange := sorted(names - set(class_names)):
        raise SettingsError(f"{wanted}: '{strange[0]}' is not a class of the set.")
    if len(names) == total:
        raise SettingsError(f"{wanted} names all {total} classes: must name only some of them.")
    return [i for i, name in enumerate(class_names) if name in names]


def split(path: Path, wanted: str, seed: int, name: str | None = None) -> Iterator[Path]:
    """Write the two sets of a split beside the set's own file, which keeps all its classes.

    Its classes are chosen by `chosen_classes`, and its name usually says how.

    Raises:
        StoreError: images have no labels, or files of these names have different features.
        SettingsError, DatasetError: the classes cannot be chosen.
    """
    whole, ids = store.read(path), np.array(store.read_sample_ids(path), dtype=object)
    if not whole.class_names or not len(whole):
        raise StoreError(
            f"'{whole.name}' has no images with class labels: choose a set that zsntta cache list "
            f"shows with classes."
        )
    if unlabelled := int((whole.labels < 0).sum()):
        raise StoreError(
            f"'{whole.name}' has {counted(unlabelled, 'image')} without a label: extract or import "
            f"the set without them."
        )
    chosen = chosen_classes(wanted, whole.class_names, seed)
    rest = [i for i in range(len(whole.class_names)) if i not in set(chosen)]
    name = name or f"{path.stem}-{f'{wanted}-s{seed}' if wanted.isdecimal() else Path(wanted).stem}"
    without_texts = replace(whole, texts={}, generic=None, generic_source="")
    for source, end, classes in ((whole, "id", chosen), (without_texts, "ood", rest)):
        half = _half(source, f"{name}-{end}", classes)
        if half.path.exists():  # it only gets the texts that it lacks
            existing = store.read(half.path)
            if (existing.source, existing.identity) != (half.source, half.identity):
                raise StoreError(
                    f"{half.path} holds a different split or set: choose another --name NAME."
                )
            texts = {**half.texts, **existing.texts}
            half = replace(half, texts=texts, created=existing.created)
        store.write(half, ids[np.isin(whole.labels, classes)].tolist())
        yield half.path


def _half(whole: Features, name: str, classes: list[int]) -> Features:
    """The images and the texts of some classes of a set, as a set of this name."""
    rows, folder = np.isin(whole.labels, classes), whole.path.parent
    before = whole.source.get("split", {})  # the set may be half of a split itself
    of = {"of": before.get("of", whole.name), **({"from": before} if before else {})}
    texts = dict[str, Text]()
    for template, text in whole.texts.items():
        texts[template] = replace(text, features=text.features[classes])
    return replace(
        whole, name=name, path=feature_path(folder.parent, folder.name, name),
        source={**whole.source, "split": {**of, "classes": classes}},
        image_features=whole.image_features[rows],
        labels=np.searchsorted(classes, whole.labels[rows]).astype(np.int32),
        class_names=tuple(whole.class_names[i] for i in classes), texts=texts, created=store.now(),
    )  # fmt: skip
