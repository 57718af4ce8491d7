"""What storing features in half precision changes: decisions by method, each on the same streams.

    python benchmarks/half_precision.py [--features-dir features] [--encoder real] [--draws 3]

Features that were published in float16 say what was stored, not what was rounded. So each draw
takes for the encoder's own features what float16 would round to the stored ones: every value anew
within half a unit of its last place, evenly. The draw is replayed in float32, and the file as it is
stored. Where a set's file is float32, its features are the encoder's own, and are rounded.

Of 1,000 test samples: how many change their class, how many their noise decision; and the change of
Acc_H in points, the largest of all pairs and draws. 50 % noise, nothing injected, seed 0.
"""

import argparse
import itertools
import warnings
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.store import Features
from zsntta_cli.datasets import default_prompt
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.sources import Library

METHODS = (
    "zs-clip", "adand", "cull", "tda", "oga", "onzeta", "bca", "dota", "dla", "dmn",
    "stata", "transclip", "lame", "cull+oga", "cull+tda", "oodd", "neglabel", "adaneg",
    "tanl", "dde",
)  # fmt: skip
WITH_WORDS = ("neglabel", "adaneg", "tanl", "dde")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features-dir", type=Path, default=Path("features"))
    parser.add_argument("--encoder", default="real")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--id", dest="id_sets", nargs="+", default=["cars", "pets24"])
    parser.add_argument("--ood", dest="ood_sets", nargs="+", default=["dtd", "sun397"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    return parser.parse_args()


class Drawn(Library):
    """Features in float32: as the encoder may have given them before float16 rounded them."""

    def __init__(self, root: Path, draw: int) -> None:
        self._draw = draw
        super().__init__(root)

    def _read_file(self, encoder: str, name: str) -> Features:
        features = super()._read_file(encoder, name)
        if features.image_features.dtype != np.float16 or not len(features):
            return features
        stored = np.asarray(features.image_features[:], np.float16)
        rng = np.random.default_rng((self._draw, zlib.crc32(name.encode())))
        unit = np.spacing(np.abs(stored)).astype(np.float32)
        drawn = stored.astype(np.float32) + unit * rng.uniform(-0.5, 0.5, stored.shape)
        return replace(features, image_features=drawn.astype(np.float32))


class Rounded(Library):
    """Features as float16 keeps them."""

    def _read_file(self, encoder: str, name: str) -> Features:
        features = super()._read_file(encoder, name)
        rows = np.asarray(features.image_features[:], np.float16)
        return replace(features, image_features=rows)


def differences(
    given: argparse.Namespace, stored: Simulator, own: Simulator, method: str
) -> list[NDArray[np.float64]]:
    """Of each pair: the shares of classes and of noise decisions that differ, and of Acc_H."""
    changes = []
    for id_set, ood_set in itertools.product(given.id_sets, given.ood_sets):
        more = {"words": f"not-{id_set}"} if method in WITH_WORDS else {}
        run = build_run(
            method, given.encoder, id_set, ood_set, default_prompt(id_set), "paper", ratio=0.5,
            noise="none", **more,
        )  # fmt: skip
        before, after = own.replay(run), stored.replay(run)
        other_class = before.judged.class_index != after.judged.class_index
        other_noise = before.judged.noise != after.judged.noise
        acc_h = after.record().metric("acc_h") - before.record().metric("acc_h")
        changes.append(
            np.array([1000 * other_class.mean(), 1000 * other_noise.mean(), 100 * acc_h])
        )
    return changes


def main() -> None:
    given = options()
    warnings.simplefilter("ignore")
    stored = Simulator(Rounded(given.features_dir))
    draws = [Simulator(Drawn(given.features_dir, draw)) for draw in range(given.draws)]
    print("| method | classes of 1,000 | noise decisions of 1,000 | Acc_H, at most |")
    print("|---|---:|---:|---:|")
    for method in given.methods:
        rows = np.array([row for own in draws for row in differences(given, stored, own, method)])
        classes, noise, _ = rows.mean(axis=0)
        acc_h = rows[np.abs(rows[:, 2]).argmax(), 2]
        print(f"| `{method}` | {classes:.1f} | {noise:.1f} | {acc_h:+.2f} |", flush=True)


if __name__ == "__main__":
    main()
