"""What answers teach a detector, on your own features.

    python benchmarks/learn.py features/my-clip --id pets,cars --ood dtd,sun397

The script reads feature files that `zsntta extract` or `zsntta cache import` wrote. A folder is a
number of images, some of them from the OOD set, decided in hindsight. With `--split K`, K random
classes are ID, and images of the others are noise. Answers are the labels of the images that a
person sees first on the review page, alternately the next borderline and the next suspicious one.
The values are AUROC / precision / recall in percent, on the images without an answer, before and
after learning, averaged over all folders. The last column is the largest loss of AUROC in one
folder.
"""

import argparse
import copy
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from zsntta_cli import Detector, Verdicts
from zsntta_cli.cache import store

Features = NDArray[np.floating]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of one encoder's feature files")
    parser.add_argument("--id", required=True, help="one set, or several separated by commas")
    parser.add_argument("--ood", default="", help="as --id; none with --split")
    parser.add_argument("--split", type=int, help="classes that are ID; the others are noise")
    parser.add_argument("--images", default="500,2000")
    parser.add_argument("--ratio", default="0.05,0.1,0.25")
    parser.add_argument("--answers", default="10,20,40,100")
    parser.add_argument("--draws", type=int, default=2)
    return parser.parse_args()


def worlds(given: argparse.Namespace, seed: int) -> Iterator[tuple[Detector, Features, Features]]:
    """Detectors with features of ID and noise images to draw from."""
    for id_set in (store.read(given.folder / f"{name}.h5") for name in given.id.split(",")):
        [text] = (text.features for text in id_set.texts.values())
        scale, rows = id_set.identity["logit_scale"], id_set.image_features
        if given.split:
            drawn = np.random.default_rng(seed).permutation(len(text))[: given.split]
            own = np.isin(id_set.labels, drawn)
            pairs = [(text[np.sort(drawn)], rows[own], rows[~own])]
        else:
            names = [name for name in given.ood.split(",") if name != id_set.name]
            oods = (store.read(given.folder / f"{name}.h5") for name in names)
            pairs = [(text, rows, ood.image_features) for ood in oods]
        for words, clean, noise in pairs:
            yield Detector(words, scale, normalized=id_set.normalized), clean, noise


def folders(given: argparse.Namespace) -> Iterator[tuple[Detector, Features, Mask]]:
    """New detectors, the features of folders, and which of them are noise."""
    for seed in range(given.draws):
        for detector, clean, noise in worlds(given, seed):
            for images in map(int, given.images.split(",")):
                for ratio in map(float, given.ratio.split(",")):
                    generator = np.random.default_rng(seed)
                    count = max(round(images * ratio), 1)
                    own = clean[generator.permutation(len(clean))[: images - count]]
                    other = noise[generator.permutation(len(noise))[:count]]
                    order = generator.permutation(len(own) + len(other))
                    features = np.concatenate([own, other]).astype(np.float32)[order]
                    yield detector, features, order >= len(own)


def shown_first(margins: Features, count: int) -> Numbers:
    """The numbers of the images that the review page shows first."""
    orders = (np.argsort(values, kind="stable") for values in (abs(margins), -margins))
    turns = zip(*orders, strict=True)
    return np.array(list(dict.fromkeys(chain.from_iterable(turns)))[:count])


def figures(verdicts: Verdicts, noise: Mask, rest: Numbers) -> list[float]:
    """AUROC, precision and recall in percent, on the images of some numbers."""
    flagged, noise = verdicts.flagged[rest], noise[rest]
    right = (flagged & noise).sum()
    area = roc_auc_score(noise, verdicts.margin[rest])
    return [100 * area, 100 * right / max(flagged.sum(), 1), 100 * right / noise.sum()]


def taught(
    detector: Detector, features: Features, noise: Mask, counts: Sequence[int]
) -> Iterator[tuple[int, list[list[float]]]]:
    """The values on the other images by number of answers, before and after learning them."""
    before = detector.decide_all(features)
    for count in counts:
        labelled = shown_first(before.margin, count)
        rest = np.setdiff1d(np.arange(len(features)), labelled)
        if len(rest) < len(features) / 2 or len(set(noise[rest])) < 2:
            continue
        learner = copy.deepcopy(detector)
        learner.feedback(features[labelled], noise[labelled])
        after = learner.decide_all(features)
        yield count, [figures(each, noise, rest) for each in (before, after)]


def cell(values: Features) -> str:
    return " / ".join(f"{value:.1f}" for value in values)


def main() -> None:
    given = options()
    counts = [int(count) for count in given.answers.split(",")]
    by_count: dict[int, list[list[list[float]]]] = {count: [] for count in counts}
    for detector, features, noise in folders(given):
        for count, pair in taught(detector, features, noise, counts):
            by_count[count].append(pair)
    title = f"{given.id} with {given.ood or f'classes beyond {given.split}'}"
    table = Table("answers", "folders", "without", "learned", "largest loss", title=title)
    for count, pairs in by_count.items():
        if pairs:
            values = np.array(pairs)
            loss = max((values[:, 0, 0] - values[:, 1, 0]).max(), 0)
            means = map(cell, values.mean(0))
            table.add_row(f"{count}", f"{len(pairs)}", *means, f"{loss:.1f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
