"""Feature files that several tests write or import; none of it is a test."""

import hashlib
import json
from pathlib import Path

import numpy as np
from made import refused

from zsntta_cli.cache import store
from zsntta_cli.cache.npz import import_features
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.errors import StoreError
from zsntta_cli.settings import ImportSettings

PETS = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float16)
LABELS = np.array([0, 1, 0, -1, 1, 0], np.int32)
UNIT = np.eye(2, 4, dtype=np.float32)
TEXTS = [Text("a {}.", UNIT), Text("b {}.", UNIT[::-1].copy(), 20.0)]
PET_IDS = ["a.jpg", "ü/ß.jpg", "猫.png", "d", "e", "f"]


def write_pets(path, **changes):
    """Write a file of six pets with whatever is changed: the digest of its features."""
    content = {
        "kind": DATASET, "name": path.stem, "encoder": {"model": "m", "logit_scale": 100.0},
        "source": {"images": 6}, "blocks": [PETS[:4], PETS[4:]], "labels": LABELS,
        "sample_ids": PET_IDS, "class_names": ["cat", "dog"], "texts": TEXTS,
    }  # fmt: skip
    return write_features(path, **(content | changes))


def write_features(
    path, *, encoder, source, blocks, labels, sample_ids, class_names=(), texts=(), **more
):
    """Write a feature file of blocks of rows, by its parts: the digest of its features."""
    features = Features(
        path, identity=encoder, source=source, labels=labels, class_names=tuple(class_names),
        texts={text.template: text for text in texts}, image_features=np.concatenate(blocks),
        **more,
    )  # fmt: skip
    return store.write(features, sample_ids).digest


def reseal(file):
    """Seal an open HDF5 file that was changed by hand, as docs/files.md says it."""

    def said(group, name):
        return group.attrs[name].decode() if name in group.attrs else ""

    def held(name):
        if file[name].size > 10_000:
            raise ValueError("it declares what no test needs to read")
        return file[name][()]

    groups = file["text"].values() if "text" in file else ()
    names = held("class_names").tolist() if "class_names" in file else []
    sealed = {
        "encoder": said(file, "encoder"), "digest": said(file, "digest"),
        "normalized": bool(file.attrs["normalized"]),
        "class_names": [name.decode() for name in names],
        "texts": sorted([said(g, "template"), said(g, "digest"), said(g, "logit_scale")]
                        for g in groups),
    }  # fmt: skip
    if "generic_text" in file:
        digest = hashlib.sha256(held("generic_text").tobytes()).hexdigest()
        sealed["generic"] = [said(file["generic_text"], "source"), digest]
    file.attrs["seal"] = np.bytes_(hashlib.sha256(json.dumps(sealed).encode()).hexdigest())


def imported(features, name="pets", root="features", **plan):
    """Import features that were made elsewhere: what was written, and what was noted."""
    notes = []
    what = ImportSettings(features=Path(features), **plan)
    new = import_features(name, what, Path(root), notes.append)
    return store.read(new.path), " ".join(notes)


def not_imported(*parts, features, error=StoreError, **plan):
    """An import is refused in one line that says all of `parts`, and changes no file."""
    before = {path: path.read_bytes() for path in Path().rglob("*.h5")}
    with refused(*parts, error=error):
        imported(features, **plan)
    assert {path: path.read_bytes() for path in Path().rglob("*.h5")} == before
