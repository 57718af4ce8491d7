"""How often ZS-CLIP and cull are correct with the scores mcm and match, by number of classes.

    zsntta extract --model tiny
    python tools/match_table.py features/tiny

The ID set is K random classes of `shapes` for each seed. The values are Acc_H in percent, averaged
over 25, 50 and 75 % noise and all seeds, and at 0 % the share of clean images called noise.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Features
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.match import Match
from zsntta_cli.settings import MATCH, SCORES, ThresholdSettings
from zsntta_cli.simulation.metrics import harmonic_mean

RATIOS = (0.0, 0.25, 0.5, 0.75)
PROMPT = "a photo of a {}."


def stream(
    shapes: Features, other: Features, classes: NDArray[np.int64], ratio: float, seed: int
) -> tuple[StreamData, NDArray[np.int64]]:
    """A shuffled stream of some classes and another set, and its labels (T,), -1 for noise."""
    rng = np.random.default_rng((seed, 1))
    rows = np.flatnonzero(np.isin(shapes.labels, classes))
    count = round(len(rows) * ratio / (1 - ratio))
    noise = rng.choice(len(other), count, replace=count > len(other))
    parts = shapes.image_features[rows], other.image_features[noise]
    features = np.concatenate(parts).astype(np.float32)
    labels = np.append(np.searchsorted(classes, shapes.labels[rows]), np.full(count, -1))
    text, scale = shapes.texts[PROMPT].features[classes], shapes.identity["logit_scale"]
    order = rng.permutation(len(labels))
    return StreamData.scored(features[order], text, scale, seed=seed), labels[order]


def figure(method: str, data: StreamData, labels: NDArray[np.int64]) -> float:
    """Acc_H of a stream in percent; for a clean stream, the share of it called noise."""
    chosen = METHODS[method]
    found: Any = chosen(data, chosen.settings(), ThresholdSettings()).push(data)
    clean = labels >= 0
    if clean.all():
        return 100 * float(found.is_noise.mean())
    right = ~found.is_noise & (found.class_index == labels)
    return 100 * harmonic_mean(float(right[clean].mean()), float(found.is_noise[~clean].mean()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of an encoder's features")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    shapes = store.read(options.folder / "shapes.h5")
    bias, most = shapes.identity.get("logit_bias"), len(shapes.class_names)
    print("| OOD | K | " + " | ".join(f"{m} {s}" for m in ("zs-clip", "cull") for s in SCORES))
    for name in ("glyphs", "other-shapes"):
        other = store.read(options.folder / f"{name}.h5")
        for count in sorted({1, 2, 5, most}):
            cells: dict[tuple[str, str, bool], list[float]] = {}
            for seed in range(options.seeds):
                drawn = np.random.default_rng(seed).permutation(most)[:count]
                for ratio in RATIOS:
                    data, labels = stream(shapes, other, np.sort(drawn), ratio, seed)
                    for method in ("zs-clip", "cull"):
                        for score in SCORES:
                            scored = Match(bias)(data) if score == MATCH else data
                            of = cells.setdefault((method, score, ratio > 0), [])
                            of.append(figure(method, scored, labels))
            shown = [
                f"{np.mean(cells[m, s, True]):.1f} / {np.mean(cells[m, s, False]):.1f}"
                for m in ("zs-clip", "cull") for s in SCORES
            ]  # fmt: skip
            print(f"| {name} | {count} | " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
