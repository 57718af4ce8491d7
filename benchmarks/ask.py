"""What questions about a folder, answered with its labels, improve, on your own features.

    python benchmarks/ask.py features/my-clip --id pets --ood dtd,cars,sun397
    python benchmarks/ask.py features/my-clip --id pets --classes 12 --draws 3

The script reads feature files that `zsntta extract` or `zsntta cache import` wrote. A folder is a
set, or a number of images, some of them noise, decided by cull in hindsight. `--classes` draws that
many of the set's classes; if no OOD set is named, images of its other classes are the noise. The
values are Acc_H in percent (Acc_S without noise), followed by the share of clean images that are
flagged. An image is flagged if it is above its threshold, so without an answer both noise and
unsure are. `learned` are the values after the same number of answers was learned (`feedback`).
Values are means over OOD sets and draws. `--low` sets the level of an encoder for which it is
unknown.
"""

import argparse
import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from zsntta_cli import Detector, Verdicts
from zsntta_cli.cache import store
from zsntta_cli.cache.identity import is_level_known
from zsntta_cli.cache.store import Features
from zsntta_cli.simulation.metrics import harmonic_mean


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of one encoder's feature files")
    parser.add_argument("--id", required=True)
    parser.add_argument("--ood", default="", help="one set, or several separated by commas")
    parser.add_argument("--classes", type=int, help="ID classes to draw; all by default")
    parser.add_argument("--images", type=int, help="images per folder; all by default")
    parser.add_argument("--ratio", default="0,0.01,0.05,0.1,0.25,0.5,0.75")
    parser.add_argument("--questions", default="0,5,10,20")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--low", type=float, help="level of the encoder, in nats")
    return parser.parse_args()


class Folder(NamedTuple):
    """The images of a folder, and what they are."""

    text: NDArray[np.float32]
    features: NDArray[np.float32]
    labels: NDArray[np.int64]  # -1: noise


def drawn(
    given: argparse.Namespace, id_set: Features, ood_set: Features | None, ratio: float,
    seed: int,
) -> Folder:  # fmt: skip
    """A folder with a share of noise, whose images the seed chooses."""
    generator = np.random.default_rng(seed)
    [text] = (text.features for text in id_set.texts.values())
    chosen = np.sort(generator.permutation(len(text))[: given.classes])
    is_own = np.isin(id_set.labels, chosen)
    rows = np.flatnonzero(~is_own) if ood_set is None else np.arange(len(ood_set))
    source = id_set if ood_set is None else ood_set
    own, others = generator.permutation(np.flatnonzero(is_own)), generator.permutation(rows)
    total = min(given.images or len(own) / (1 - ratio), len(own) / (1 - ratio))
    if ratio:
        total = min(total, len(others) / ratio)
    noise = round(total * ratio)
    own, others = own[: round(total) - noise], others[:noise]
    labels = np.r_[np.searchsorted(chosen, id_set.labels[own]), np.full(noise, -1)]
    shown = [id_set.image_features[own], source.image_features[others]]
    return Folder(text[chosen], np.concatenate(shown).astype(np.float32), labels)


def figures(folder: Folder, verdicts: Verdicts, asked: NDArray[np.int64]) -> tuple[float, float]:
    """Acc_H (Acc_S without noise) and the share of clean images that are flagged.

    Images whose numbers are `asked` count as correct, because they were answered.
    """
    labels, flagged = folder.labels, verdicts.margin > 0
    flagged[asked] = labels[asked] < 0
    is_clean = labels >= 0
    accuracy = (~flagged & (verdicts.class_index == labels))[is_clean].mean()
    if not is_clean.all():
        accuracy = harmonic_mean(accuracy, flagged[~is_clean].mean())
    return float(accuracy), float(flagged[is_clean].mean())


def after(
    folder: Folder, detector: Detector, first: Verdicts, count: int, seed: int
) -> list[tuple[float, float]]:
    """The values after that many questions, all answered correctly, and after learning them."""
    _, different = np.unique(folder.features, axis=0, return_index=True)  # no copy is asked about
    order = np.argsort(abs(first.margin), kind="stable")
    asked = order[np.isin(order, different)][:count]
    learned = copy.deepcopy(detector)
    learned.feedback(folder.features[asked], folder.labels[asked] < 0)
    again = learned.decide_all(folder.features, seed=seed)
    return [figures(folder, first, asked), figures(folder, again, asked)]


def main() -> None:
    given = options()
    counts = [int(count) for count in given.questions.split(",")]
    id_set = store.read(given.folder / f"{given.id}.h5")
    names = given.ood.split(",") if given.ood else []
    oods: list[Features | None] = [store.read(given.folder / f"{name}.h5") for name in names]
    oods = oods or [None]
    title = f"{given.id} with {given.ood or 'its other classes'}"
    named = [f"{count} {what}" for count in counts for what in ("questions", "learned")]
    table = Table("noise", *named, title=title)
    for ratio in map(float, given.ratio.split(",")):
        rows = []
        for ood in oods if ratio else oods[:1]:
            for seed in range(given.draws):
                folder = drawn(given, id_set, ood, ratio, seed)
                detector = Detector(
                    folder.text, id_set.identity["logit_scale"], normalized=id_set.normalized,
                    generic=id_set.generic, is_level_known=is_level_known(id_set.identity),
                    cull_low=given.low,
                )  # fmt: skip
                first = detector.decide_all(folder.features, seed=seed)
                every = (after(folder, detector, first, count, seed) for count in counts)
                rows.append([pair for both in every for pair in both])
        cells = 100 * np.mean(rows, 0)
        table.add_row(f"{100 * ratio:.0f} %", *(f"{acc:.1f} / {share:.0f}" for acc, share in cells))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
