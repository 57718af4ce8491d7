"""What `zsntta detect` flags in a folder with little noise, on your own features.

    python benchmarks/flags.py features/my-clip --id pets --ood dtd,cars,sun397
    python benchmarks/flags.py features/my-clip --id imagenet --ood dtd --classes 40 --uneven 0.97
    python benchmarks/flags.py features/my-clip --id pets --ood dtd --online

The script reads feature files that `zsntta extract` or `zsntta cache import` wrote. A folder is a
number of images, some of them from the OOD set. Each draw makes a new folder, which is decided in
hindsight, or image by image with `--online`. `--classes` draws that many of the ID set's classes,
and class j keeps a share UNEVEN^j of its images.

The values are percentages over all draws: clean images flagged, noise found, and precision of the
flag. An image that cull flags is noise by its own evidence, or unsure because of the other images
alone. For the unsure, the table has the shares of clean images and of noise. The last column is the
largest share of clean images in one draw that are called noise. `--low` sets the level of an
encoder for which it is unknown, such as an imported one.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from uneven import uneven_rows

from zsntta_cli import Detector, Verdicts
from zsntta_cli.cache import store
from zsntta_cli.cache.identity import is_level_known
from zsntta_cli.cache.store import Features

METHODS = ("zs-clip", "adand", "cull")
COLUMNS = ("ZS-CLIP", "AdaND", "cull: flagged", "noise", "unsure")
WORST = "clean as noise, worst draw"
ALL = "all"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of one encoder's feature files")
    parser.add_argument("--id", required=True)
    parser.add_argument("--ood", required=True, help="one set, or several separated by commas")
    parser.add_argument("--images", default=f"60,200,1000,{ALL}")
    parser.add_argument("--ratio", default="0,0.01,0.05,0.1,0.25")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--classes", type=int, help="ID classes to draw; all by default")
    parser.add_argument("--uneven", type=float, default=1.0, help="the j-th keeps UNEVEN^j")
    parser.add_argument("--online", action="store_true", help="decide as the images come")
    parser.add_argument("--low", type=float, help="level of the encoder, in nats")
    return parser.parse_args()


class Folder(NamedTuple):
    """Images in a random order, and the classes that they should have."""

    text: NDArray[np.float32]
    features: NDArray[np.float32]
    is_noise: NDArray[np.bool_]


def drawn(
    given: argparse.Namespace, sets: tuple[Features, Features], images: str, ratio: float,
    seed: int,
) -> Folder:  # fmt: skip
    """A folder of a number of images, or of all images."""
    id_set, ood_set = sets
    [text] = (text.features for text in id_set.texts.values())
    count = given.classes or len(text)
    rows, chosen = uneven_rows(id_set.labels, count, given.uneven, seed)
    generator = np.random.default_rng(seed)
    own, others = generator.permutation(rows), generator.permutation(len(ood_set))
    if images == ALL:
        noise = min(round(len(own) * ratio / (1 - ratio)), len(others))
    else:
        total = min(int(images), len(own))
        noise = round(total * ratio)
        own = own[: total - noise]
    shown = [id_set.image_features[own], ood_set.image_features[others[:noise]]]
    features = np.concatenate(shown).astype(np.float32)
    order = generator.permutation(len(features))
    return Folder(text[chosen], features[order], order >= len(own))


def decided(
    given: argparse.Namespace, of: Features, folder: Folder, method: str, seed: int
) -> Verdicts:
    """The verdicts of a method that knows nothing else."""
    scale = of.identity["logit_scale"]
    own = {"cull_low": given.low} if method == "cull" and given.low is not None else {}
    detector = Detector(
        folder.text, scale, method=method, normalized=of.normalized, generic=of.generic,
        is_level_known=is_level_known(of.identity), **own,
    )  # fmt: skip
    if given.online:
        return detector.update(folder.features)
    return detector.decide_all(folder.features, seed=seed)


def counted(is_noise: NDArray[np.bool_], flagged: NDArray[np.bool_]) -> tuple[int, ...]:
    """The numbers of clean images, flagged clean images, noise, and flagged noise."""
    clean = ~is_noise
    return clean.sum(), (flagged & clean).sum(), is_noise.sum(), (flagged & is_noise).sum()


def counts(
    given: argparse.Namespace, sets: tuple[Features, Features], images: str, ratio: float
) -> tuple[NDArray[np.int64], float]:
    """The counts of all draws, with a row for each column of the table, and the worst draw."""
    totals, worst = np.zeros((len(COLUMNS), 4), int), 0.0
    for seed in range(given.draws):
        folder = drawn(given, sets, images, ratio, seed)
        flags = []
        for method in METHODS:
            verdicts = decided(given, sets[0], folder, method, seed)
            flags.append(verdicts.noise | verdicts.unsure)
        flags += verdicts.noise, verdicts.unsure  # those of the last method
        totals += [counted(folder.is_noise, flagged) for flagged in flags]
        worst = max(worst, float(verdicts.noise[~folder.is_noise].mean()))
    return totals, worst


def cell(count: NDArray[np.int64], *, precision: bool = True) -> str:
    clean, wrong, noise, found = count
    parts = [wrong / clean]
    if noise:
        parts.append(found / noise)
    if noise and precision:
        parts.append(found / (wrong + found) if wrong + found else np.nan)
    return " / ".join("–" if np.isnan(part) else f"{100 * part:.0f}" for part in parts)


def main() -> None:
    given = options()
    id_set = store.read(given.folder / f"{given.id}.h5")
    oods = [store.read(given.folder / f"{name}.h5") for name in given.ood.split(",")]
    table = Table("images", "noise", *COLUMNS, WORST, title=f"{given.id} with {given.ood}")
    for images in given.images.split(","):
        for ratio in map(float, given.ratio.split(",")):
            some = oods if ratio else oods[:1]
            found = [counts(given, (id_set, ood), images, ratio) for ood in some]
            total = np.sum([total for total, _ in found], 0)
            worst = max(worst for _, worst in found)
            cells = [cell(count) for count in total[:-1]]
            cells += [cell(total[-1], precision=False), f"{100 * worst:.0f}"]
            table.add_row(images, f"{100 * ratio:.0f} %", *cells)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
