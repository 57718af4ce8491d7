"""What `zsntta detect` flags in a folder with little noise, on features of your own.

    python benchmarks/flags.py features/my-clip --id pets --ood dtd,cars,sun397

reads feature files as `zsntta extract` and `zsntta cache import` make them. A folder is so many
images, a share of them from the OOD set, drawn anew in each draw and decided in hindsight. Cells:
clean images flagged, noise found, precision of the flag, in %, of the counts of all draws together.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from zsntta_cli import OnlineDetector
from zsntta_cli.cache.features import FeatureSet
from zsntta_cli.cache.hdf5 import read_features

METHODS = ("zs-clip", "adand", "ridge")
ALL = "all"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of feature files of one encoder")
    parser.add_argument("--id", required=True)
    parser.add_argument("--ood", required=True, help="one or several, with commas")
    parser.add_argument("--images", default=f"200,1000,{ALL}")
    parser.add_argument("--ratio", default="0,0.01,0.05,0.1")
    parser.add_argument("--draws", type=int, default=5)
    return parser.parse_args()


def drawn(id_set: FeatureSet, ood_set: FeatureSet, images: str, ratio: float, seed: int):
    """Features of a folder, and which of them are noise."""
    generator = np.random.default_rng(seed)
    own, others = (generator.permutation(len(one)) for one in (id_set, ood_set))
    if images == ALL:
        noise = min(round(len(own) * ratio / (1 - ratio)), len(others))
    else:
        noise = round(int(images) * ratio)
        own = own[: int(images) - noise]
    features = np.concatenate(
        [id_set.image_features[own], ood_set.image_features[others[:noise]]]
    ).astype(np.float32)
    return features, np.arange(len(features)) >= len(own)


def counts(id_set: FeatureSet, ood_set: FeatureSet, images: str, ratio: float, draws: int):
    """Clean images, those flagged, noise, that found: of all draws, a row a method."""
    [text] = id_set.text_features.values()
    totals = np.zeros((len(METHODS), 4), int)
    for seed in range(draws):
        features, is_noise = drawn(id_set, ood_set, images, ratio, seed)
        for row, method in enumerate(METHODS):
            detector = OnlineDetector(
                text, id_set.identity["logit_scale"], method, normalized=id_set.normalized
            )
            flagged = detector.decide_all(features, seed=seed).noise
            clean = (~is_noise).sum(), (flagged & ~is_noise).sum()
            totals[row] += *clean, is_noise.sum(), (flagged & is_noise).sum()
    return totals


def cell(count: np.ndarray) -> str:
    clean, wrong, noise, found = count
    parts = (wrong / clean, found / noise if noise else None, found / max(wrong + found, 1))
    shown = (f"{100 * one:.0f}" if one is not None else "–" for one in parts)
    return " / ".join(list(shown)[: 3 if noise else 1])


def main() -> None:
    given = options()
    id_set = read_features(given.folder / f"{given.id}.h5")
    oods = [read_features(given.folder / f"{name}.h5") for name in given.ood.split(",")]
    table = Table("images", "noise", *METHODS, title=f"{given.id} with {given.ood}")
    for images in given.images.split(","):
        for ratio in map(float, given.ratio.split(",")):
            some = oods if ratio else oods[:1]
            total = sum(counts(id_set, one, images, ratio, given.draws) for one in some)
            table.add_row(images, f"{100 * ratio:.0f} %", *map(cell, total))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
