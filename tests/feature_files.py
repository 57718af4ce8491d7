"""A feature file of six pets, written with whatever is changed of it; none of it is a test."""

import numpy as np

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, Text

PETS = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float16)
LABELS = np.array([0, 1, 0, -1, 1, 0], np.int32)
UNIT = np.eye(2, 4, dtype=np.float32)
TEXTS = [Text("a {}.", UNIT), Text("b {}.", UNIT[::-1].copy(), 20.0)]
PET_IDS = ["a.jpg", "ü/ß.jpg", "猫.png", "d", "e", "f"]


def write_pets(path, **changes):
    """Write the file: the digest of its features."""
    content = {
        "kind": DATASET, "name": path.stem, "encoder": {"model": "m", "logit_scale": 100.0},
        "source": {"images": 6}, "blocks": [PETS[:4], PETS[4:]], "labels": LABELS,
        "sample_ids": PET_IDS, "class_names": ["cat", "dog"], "texts": TEXTS,
    }  # fmt: skip
    return hdf5.write_features(path, **(content | changes))
