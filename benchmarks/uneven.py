"""Reduce sets to a few classes of uneven sizes, as in people's folders; each result is a new set.

    python benchmarks/uneven.py features/my-clip pets --classes 12 --rate 0.75 --seeds 0,1,2

This writes `pets-12-x0.75-s0` and so on beside `pets`. The seed chooses that many of its classes,
and class j keeps a share RATE^j of its images, at least one. The names of the sets are printed.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.store import Features


def uneven_rows(
    labels: NDArray[np.integer], classes: int, rate: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of labels (N,) that a reduced set keeps, and its classes in ascending order."""
    generator = np.random.default_rng(seed)
    chosen = generator.permutation(int(labels.max()) + 1)[:classes]
    kept = []
    for place, label in enumerate(chosen):
        rows = generator.permutation(np.flatnonzero(labels == label))
        kept.append(rows[: max(1, round(len(rows) * rate**place))])
    return np.sort(np.concatenate(kept)), np.sort(chosen)


def write_cut(whole: Features, name: str, classes: int, rate: float, seed: int) -> Path:
    """Write a reduced set under a name, beside the set."""
    rows, chosen = uneven_rows(whole.labels, classes, rate, seed)
    ids = store.read_sample_ids(whole.path)
    path = feature_path(whole.path.parent.parent, whole.path.parent.name, name)
    texts = [replace(text, features=text.features[chosen]) for text in whole.texts.values()]
    cut = replace(
        whole, path=path, name=name, source={**whole.source, "name": name},
        image_features=whole.image_features[rows],
        labels=np.searchsorted(chosen, whole.labels[rows]).astype(np.int32),
        class_names=tuple(whole.class_names[label] for label in chosen),
        texts={text.template: text for text in texts},
    )  # fmt: skip
    store.write(cut, [ids[row] for row in rows])
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of one encoder's feature files")
    parser.add_argument("name", help="a set with labels")
    parser.add_argument("--classes", type=int, required=True)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--seeds", default="0,1,2")
    given = parser.parse_args()
    whole = store.read(given.folder / f"{given.name}.h5")
    for seed in map(int, given.seeds.split(",")):
        name = f"{given.name}-{given.classes}-x{given.rate:g}-s{seed}"
        write_cut(whole, name, given.classes, given.rate, seed)
        print(name)


if __name__ == "__main__":
    main()
