"""Exports: a feature file becomes an .npz, which `imports` makes the same features of.

The arrays are `image_features` (N, D), `labels` (N,), `sample_ids` (N,), `class_names` (C,), and
class text features (C, D): `text_features`, `text_features_1`, … of the `templates` in their order,
with `logit_scales` (NaN: the encoder's). `encoder` is a JSON text, the encoder's identity.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import find
from zsntta_cli.cache.identity import names_a_folder, public_identity
from zsntta_cli.datasets.names import WORDS
from zsntta_cli.errors import StoreError, short
from zsntta_cli.files import check_target, whole_file, writing


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    path: Path
    images: int
    dim: int
    note: str  # empty if there is nothing to note


def text_key(index: int) -> str:
    """The key of the text features of a template, by its place."""
    return f"text_features_{index}" if index else "text_features"


def export_features(
    path: Path, target: Path, without_ids: bool = False, overwrite: bool = False
) -> Exported:
    """Write a feature file as .npz, whole or not at all.

    Raises:
        StoreError: the target exists already, the set has no images, or the file is broken or
            cannot be written.
    """
    if not check_target(target) and not overwrite and _has_content(target):
        raise StoreError(f"{target} is there already", remedy="overwrite-output")
    features, ids = store.read(path), store.read_sample_ids(path)
    if features.kind == WORDS:
        raise StoreError(f"'{path.stem}' has no images, so there is nothing to export.")
    texts = [*features.texts.values()]
    arrays = {
        "image_features": features.image_features,
        "labels": features.labels,
        "normalized": np.array(features.normalized),
        "encoder": np.array(json.dumps(public_identity(features.identity))),
        **({} if without_ids else {"sample_ids": np.array(ids, np.str_)}),
        **({"class_names": np.array(features.class_names)} if features.class_names else {}),
        **({"templates": np.array([text.template for text in texts])} if texts else {}),
        "logit_scales": np.array([text.logit_scale for text in texts], np.float64),
        **{text_key(i): text.features for i, text in enumerate(texts)},
    }
    with whole_file(target) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    leading = next((name for name in ids if names_a_folder(name)), "")
    note = (
        f"sample ids have folders of this machine ('{short(leading)}'): --without-ids leaves them "
        f"out"
        if leading and not without_ids
        else ""
    )
    return Exported(target, len(features), features.dim, note)


def only_file(root: Path, name: str, encoder: str | None) -> Path:
    """The feature file of a set, by the only encoder that has it if none is named.

    Raises:
        MissingFeatures: the set is not cached. StoreError: it is of several encoders.
    """
    paths = find(root, [name], encoder)
    if len(paths) > 1:
        encoders = ", ".join(path.parent.name for path in paths)
        raise StoreError(f"'{name}' is cached of {encoders}: choose one with --encoder NAME.")
    return paths[0]


def _has_content(file: Path) -> bool:
    with writing(file):
        return file.exists() and file.stat().st_size > 0
