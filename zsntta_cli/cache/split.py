"""Splits of a cached set, by its classes or by its images. Nothing is encoded again.

A split by classes is that of the open-set literature (six of CIFAR-10's classes against four, 20 of
Tiny-ImageNet's against 180): some classes become an ID set, and the others its OOD set, which is
noise of the same kind. A split by images gives a part to choose settings on, and the rest to report
on.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import DATASET, FeatureSet, Text
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import add_texts, read_features, read_sample_ids, write_features
from zsntta_cli.datasets.names import BESIDE, REST, TUNE, image_parts
from zsntta_cli.errors import SettingsError, StoreError, first_line, short


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
        StoreError: the set has no labels, or files of these names hold other features.
    """
    whole = read_features(path)
    if not whole.class_names or (whole.labels < 0).any():
        raise StoreError(f"'{whole.name}' has no class labels, and so no classes to split.")
    is_id = np.isin(whole.labels, chosen)
    rest = [i for i in range(len(whole.class_names)) if i not in set(chosen)]
    parts = zip(split_names(name), (is_id, ~is_id), (list(chosen), rest), strict=True)
    for part, rows, classes in parts:
        yield _write(
            whole, part, rows, {"classes": classes},
            labels=np.searchsorted(classes, whole.labels[rows]).astype(np.int32),
            class_names=[whole.class_names[i] for i in classes],
            texts=whole.texts(classes) if part.endswith("-id") else (),
        )  # fmt: skip


def split_images(path: Path, share: Fraction, seed: int) -> Iterator[Path]:
    """Write a share of a set's images, drawn at random by a seed, and the rest: TUNE and REST.

    Both parts keep all classes and all text features, and get those that were added to the set
    since the split. `image_parts` gives their names.

    Raises:
        SettingsError: a part would have no image.
        StoreError: the set has no images, or files of these names hold other features.
    """
    whole = read_features(path)
    if whole.kind != DATASET:
        raise StoreError(f"'{whole.name}' is no data set, so it has no images to split.")
    is_drawn = drawn_images(whole.labels, share, seed)
    texts = whole.texts()
    parts = zip((TUNE, REST), image_parts(whole.name, seed), (is_drawn, ~is_drawn), strict=True)
    for part, name, rows in parts:
        drawn = {"part": part, "images": f"{float(100 * share):g}%", "seed": seed}
        yield _write(
            whole, name, rows, {**drawn, "digest": whole.digest},
            labels=whole.labels[rows], class_names=whole.class_names, texts=texts,
        )  # fmt: skip


def parsed_share(text: str) -> Fraction:
    """Parse a share of a set's images, a text such as "20%" or "12.5%".

    Raises:
        SettingsError: the text is no share, or the share is not between 0 and 100 %.
    """
    if not re.fullmatch(r"\d{1,3}(\.\d{1,9})?%", text) or not 0 < Fraction(text[:-1]) < 100:
        raise SettingsError(f"images is '{short(text)}', must be a share such as 20%.")
    return Fraction(text[:-1]) / 100


def drawn_images(labels: NDArray[np.int32], share: Fraction, seed: int) -> NDArray[np.bool_]:
    """Draw a share of each class, to within one image, and give a mask (N,) of images by labels.

    All drawn images together are the share of all images, rounded to a whole number. Of the
    classes' counts, those with the largest fractional parts are rounded up.

    Raises:
        SettingsError: a part would have no image.
    """
    count = math.floor(share * len(labels) + Fraction(1, 2))
    if not 0 < count < len(labels):
        shown = f"{float(100 * share):g}%"
        raise SettingsError(f"images is {shown}, of {len(labels):,} images: both parts need some.")
    generator = np.random.Generator(np.random.PCG64(seed))
    order = generator.permutation(len(labels))
    _, of_class, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    wanted = [share * size for size in sizes.tolist()]
    counts = [math.floor(number) for number in wanted]
    in_any_order = generator.permutation(len(sizes)).tolist()
    by_remainder = sorted(in_any_order, key=lambda i: counts[i] - wanted[i])
    for i in by_remainder[: count - sum(counts)]:
        counts[i] += 1
    is_drawn = np.zeros(len(labels), np.bool_)
    for i, number in enumerate(counts):
        is_drawn[order[of_class[order] == i][:number]] = True
    return is_drawn


def _compared(source: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a source that must agree, without the keys BESIDE, which older files lack."""
    return {key: value for key, value in source.items() if key not in BESIDE}


def _write(
    whole: FeatureSet,
    name: str,
    rows: NDArray[np.bool_],
    split_by: Mapping[str, Any],
    *,
    labels: NDArray[np.int32],
    class_names: Sequence[str],
    texts: Sequence[Text],
) -> Path:
    """Write some rows of a set; a file that has the same rows only gets the texts that it lacks."""
    target = feature_path(whole.path.parents[1], whole.path.parent.name, name)
    before = whole.source.get("split", {})  # the set may be a part itself
    of = {"of": before.get("of", whole.name), **({"from": before} if before else {})}
    source = {**whole.source, "split": {**of, **split_by}}
    if target.exists():
        existing = read_features(target)
        if (_compared(existing.source), existing.identity) != (_compared(source), whole.identity):
            remedy = "other-part" if "part" in split_by else "other-split"
            raise StoreError(f"{target} holds another split or set", remedy=remedy)
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
