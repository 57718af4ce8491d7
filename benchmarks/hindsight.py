"""How often a folder should be shown before its last pass decides, on features of your own.

    python benchmarks/hindsight.py features/my-clip --id pets --ood dtd --classes 5 --draws 6

reads feature files as `zsntta extract` and `zsntta cache import` make them. A draw takes some
classes of the ID set and some of their images; noise is of the OOD set, and, as "near", of the ID
set's other classes. What is above the threshold counts as noise, as in `simulate`, whether noise
or unsure. Cells, in Markdown: mean of the draws of Acc_H, at 0 % noise of Acc_S; bold is as
often as a folder of so many images is shown.
"""

import argparse
from pathlib import Path

import numpy as np

from zsntta_cli import OnlineDetector
from zsntta_cli.cache import store
from zsntta_cli.cache.store import Features
from zsntta_cli.detection.stepping import passes_for
from zsntta_cli.simulation.metrics import harmonic_mean

NEAR = "near"


def numbers(text: str) -> list[float]:
    return [float(one) for one in text.split(",")]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of feature files of one encoder")
    parser.add_argument("--id", required=True)
    parser.add_argument("--ood", required=True)
    parser.add_argument("--classes", type=int, help="drawn of the ID set's; all by default")
    parser.add_argument("--images", type=numbers, default=[60, 200, 500])
    parser.add_argument("--ratio", type=numbers, default=[0, 0.05, 0.25])
    parser.add_argument("--passes", type=numbers, default=[1, 2, 3, 4, 5, 8])
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--method", default="cull")
    return parser.parse_args()


class Draw:
    """Some classes of an ID set, and images in the detector's order: clean, then noise."""

    def __init__(self, given: argparse.Namespace, sets: list[Features], seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.id_set, self.ood_set = sets
        count = len(self.id_set.class_names)
        self.chosen = np.sort(self.rng.permutation(count)[: given.classes or count])
        self.is_own = np.isin(self.id_set.labels, self.chosen)

    def rows(self, images: int, ratio: float, noise: str) -> tuple[np.ndarray, np.ndarray]:
        """Features, and labels among the chosen classes, -1 for noise."""
        own = self.rng.permutation(np.flatnonzero(self.is_own))[:images]
        others = self.id_set.image_features[~self.is_own]
        pool = others if noise == NEAR else self.ood_set.image_features
        count = min(round(len(own) * ratio / (1 - ratio)), len(pool))
        features = np.concatenate(
            [self.id_set.image_features[own], pool[self.rng.permutation(len(pool))[:count]]]
        )
        labels = np.searchsorted(self.chosen, self.id_set.labels[own])
        return features.astype(np.float32), np.append(labels, np.full(count, -1))

    def accuracy(self, method: str, features: np.ndarray, labels: np.ndarray, passes: int) -> float:
        text = next(iter(self.id_set.texts.values())).features[self.chosen]
        scale, unit = self.id_set.identity["logit_scale"], self.id_set.normalized
        detector = OnlineDetector(text, scale, method, normalized=unit)
        verdicts, clean = detector.decide_all(features, passes), labels >= 0
        right = (~verdicts.flagged & (verdicts.class_index == labels))[clean].mean()
        return harmonic_mean(right, verdicts.flagged[~clean].mean()) if (~clean).any() else right


def main() -> None:
    given = options()
    sets = [store.read(given.folder / f"{name}.h5") for name in (given.id, given.ood)]
    draws = [Draw(given, sets, seed) for seed in range(given.draws)]
    passes = [int(one) for one in given.passes]
    heads = ["", "images", "noise", "ZS-CLIP", *map(str, passes)]
    print(f"| {' | '.join(heads)} |\n|---|---:|---|" + "---:|" * (len(heads) - 3))
    folder = f"{given.id}, {len(draws[0].chosen)} classes"
    for images in map(int, given.images):
        for ratio in given.ratio:
            for noise in (given.ood, NEAR) if ratio and not draws[0].is_own.all() else (given.ood,):
                shown = [draw.rows(images, ratio, noise) for draw in draws]
                ways = [("zs-clip", 1), *((given.method, one) for one in passes)]
                cells = [
                    np.mean([d.accuracy(m, *s, p) for d, s in zip(draws, shown, strict=True)])
                    for m, p in ways
                ]
                words = [f"{100 * one:.1f}" for one in cells]
                if (used := passes_for(len(shown[0][0]))) in passes:
                    place = 1 + passes.index(used)
                    words[place] = f"**{words[place]}**"
                kind = f"{100 * ratio:g} % {noise}" if ratio else "none"
                print(f"| {folder} | {images} | {kind} | {' | '.join(words)} |", flush=True)


if __name__ == "__main__":
    main()
