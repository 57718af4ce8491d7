"""Classes from example photos, compared with classes from names, on your own features.

    python benchmarks/class_photos.py features/my-clip --pairs pets:dtd,pets:sun,cars:dtd

The script reads feature files that `zsntta extract` or `zsntta cache import` wrote. Some images of
each ID class are drawn as examples and left out of the stream (but one image of each class always
stays in it). Streams are shuffled and decided online. The tables, in Markdown, have percentages,
averaged over pairs and seeds:

classifier   accuracy by names and by photos, the share of examples that are nearest to their class
             when left out of it, and the logit scale
acc_h        Acc_H by noise ratio; at 0 % Acc_S, followed by the share of the images flagged
cells        the number of cases (pair, seed, ratio, photos) in which cull is above ZS-CLIP, with
             classes from photos
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zsntta_cli import Detector
from zsntta_cli.cache import store
from zsntta_cli.cache.store import Features
from zsntta_cli.detection.photos import class_features
from zsntta_cli.methods.scores import unit

RATIOS = (0, 0.01, 0.05, 0.1, 0.25, 0.5)
METHODS = ("zs-clip", "cull")


class Classes(NamedTuple):
    """What a stream's images are compared with."""

    form: str
    features: np.ndarray  # (C, D)
    scale: float


class Cell(NamedTuple):
    """The result of one method on one stream."""

    acc_h: float  # Acc_S without noise
    flagged: float  # clean images


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of one encoder's feature files")
    parser.add_argument("--pairs", required=True, help="ID:OOD,ID:OOD")
    parser.add_argument("--photos", default="2,4,8", help="examples per class")
    parser.add_argument("--seeds", type=int, default=2)
    return parser.parse_args()


def drawn(labels: np.ndarray, photos: int, generator: np.random.Generator) -> np.ndarray:
    """Which images (N,) are examples: that many of each class, but one of it remains."""
    order = generator.permutation(len(labels))
    is_example = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        own = order[labels[order] == label]
        is_example[own[: min(photos, len(own) - 1)]] = True
    return is_example


def stream(own: int, others: int, ratio: float, generator: np.random.Generator) -> np.ndarray:
    """The rows of a stream in order; rows from `own` on are noise."""
    noise = round(own * ratio / (1 - ratio))
    if noise > others:
        noise, own_kept = others, round(others * (1 - ratio) / ratio)
    else:
        own_kept = own
    kept = np.concatenate(
        [generator.permutation(own)[:own_kept], own + generator.permutation(others)[:noise]]
    )
    return generator.permutation(kept)


def cell(method: str, classes: Classes, rows: np.ndarray, labels: np.ndarray) -> Cell:
    """The result of a method on features (N, D) with labels (N,), where -1 is noise."""
    detector = Detector(classes.features, classes.scale, method=method)
    verdicts = detector.update(rows)
    is_clean, flagged = labels >= 0, verdicts.flagged
    right = ~flagged & (verdicts.class_index == labels)
    acc_s, clean_flagged = right[is_clean].mean(), flagged[is_clean].mean()
    if is_clean.all():
        return Cell(acc_s, clean_flagged)
    acc_n = flagged[~is_clean].mean()
    return Cell(2 * acc_s * acc_n / max(acc_s + acc_n, 1e-12), clean_flagged)


def measured(id_set: Features, ood_set: Features, photos: int, seed: int) -> Any:
    """Accuracies (names, photos, left out), the scale, and results by classes, method and ratio."""
    generator = np.random.default_rng(seed)
    rows, labels = id_set.image_features.astype(np.float32), id_set.labels
    is_example = drawn(labels, photos, generator)
    made = class_features(rows[is_example], labels[is_example])
    [text] = (text.features for text in id_set.texts.values())
    forms = (
        Classes("names", text, id_set.identity["logit_scale"]),
        Classes("photos", made.features, made.scale),
    )
    kept, kept_labels = rows[~is_example], labels[~is_example]
    accuracies = [((unit(kept) @ one.features.T).argmax(1) == kept_labels).mean() for one in forms]
    # Features may be raw or of unit norm: their cosines are the same.
    everything = np.concatenate([kept, ood_set.image_features.astype(np.float32)])
    all_labels = np.append(kept_labels, np.full(len(ood_set), -1))
    cells = {}
    for ratio in RATIOS:
        order = stream(len(kept), len(ood_set), ratio, generator)
        for one in forms:
            for method in METHODS:
                cells[one.form, method, ratio] = cell(
                    method, one, unit(everything[order]) * 10, all_labels[order]
                )
    return (*accuracies, made.right / made.judged, made.scale), cells


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown, with its first column aligned to the left."""
    print("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
    print()


def main() -> None:
    given = options()
    pairs = [tuple(pair.split(":")) for pair in given.pairs.split(",")]
    sets = {name: store.read(given.folder / f"{name}.h5") for name in dict.fromkeys(sum(pairs, ()))}
    counts = [int(count) for count in given.photos.split(",")]
    results = {
        count: [
            measured(sets[own], sets[other], count, seed)
            for own, other in pairs
            for seed in range(given.seeds)
        ]
        for count in counts
    }
    rows = []
    for count, runs in results.items():
        *shares, scale = np.mean([figures for figures, _ in runs], 0)
        rows.append([f"{count}", *(f"{100 * share:.1f}" for share in shares), f"{scale:.0f}"])
    table(["photos a class", "names", "photos", "left out", "logit scale"], rows)
    rows = []
    for count, runs in results.items():
        for form in ("names", "photos"):
            for method in METHODS:
                means = [
                    100 * np.mean([cells[form, method, ratio] for _, cells in runs], 0)
                    for ratio in RATIOS
                ]
                shown = [f"{acc_h:.1f}" for acc_h, _ in means]
                shown.insert(1, f"{means[0][1]:.0f}")
                rows.append([f"{count}, {form}, {method}", *shown])
    table(["photos a class", "0 %", "flagged", *(f"{100 * r:g} %" for r in RATIOS[1:])], rows)
    for label, ratios in (("clean", RATIOS[:1]), ("with noise", RATIOS[1:])):
        gains = [
            cells["photos", "cull", ratio].acc_h - cells["photos", "zs-clip", ratio].acc_h
            for runs in results.values()
            for _, cells in runs
            for ratio in ratios
        ]
        above = f"{sum(gain > 0 for gain in gains)} of {len(gains)} cells"
        print(f"{label}: by photos cull is above ZS-CLIP in {above}, worst {100 * min(gains):.1f}")


if __name__ == "__main__":
    main()
