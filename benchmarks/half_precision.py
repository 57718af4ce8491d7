"""What storing features in half precision changes: decisions by method, on the same streams.

    python benchmarks/half_precision.py [--features-dir features] [--encoder real] [--draws 3]

Features that were published in float16 no longer tell the encoder's own values. Each draw therefore
replaces every value by a random one that float16 would round to it, uniformly within half a unit in
the last place. The draw is replayed in float32, and compared with the file as it is stored. If a
set's file is float32, its features are the encoder's own, and are rounded instead.

The table has, of 1,000 test samples, how many change their class and how many their noise decision,
and the change of Acc_H in points, the largest over all pairs and draws. Noise is 50 %, nothing is
injected, and the seed is 0.
"""

import argparse
import itertools
import tempfile
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets import default_prompt
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

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


def drawn(features: Features, draw: int) -> NDArray[np.floating]:
    """Rows in float32, as the encoder may have computed them before float16 rounded them."""
    stored = features.image_features[:]
    if stored.dtype != np.float16 or not len(features):
        return stored
    rng = np.random.default_rng((draw, zlib.crc32(features.name.encode())))
    unit = np.spacing(np.abs(stored)).astype(np.float32)
    rows = stored.astype(np.float32) + unit * rng.uniform(-0.5, 0.5, stored.shape)
    return rows.astype(np.float32)


def rounded(features: Features) -> NDArray[np.floating]:
    """Rows as float16 stores them."""
    return features.image_features[:].astype(np.float16)


def copied(
    given: argparse.Namespace, root: Path, rows: Callable[[Features], NDArray[np.floating]]
) -> Simulator:
    """Runs on copies of all files, with different rows."""
    for path in sorted((given.features_dir / given.encoder).glob("*.h5")):
        features, target = store.read(path), root / given.encoder / path.name
        other = replace(features, path=target, image_features=rows(features))
        store.write(other, store.read_sample_ids(path))
    return Simulator(root)


def differences(
    given: argparse.Namespace, stored: Simulator, own: Simulator, method: str
) -> list[NDArray[np.float64]]:
    """The shares of different classes and noise decisions of each pair, and the change of Acc_H."""
    changes = []
    for id_set, ood_set in itertools.product(given.id_sets, given.ood_sets):
        more = {"words": f"not-{id_set}"} if method in WITH_WORDS else {}
        run = build_run(
            method, given.encoder, id_set, ood_set, default_prompt(id_set), "paper", ratio=0.5,
            noise="none", **more,
        )  # fmt: skip
        before, after = own.replay(run), stored.replay(run)
        other_class = before.judged.class_index != after.judged.class_index
        decisions = [replay.judged.is_noise for replay in (before, after)]
        other_noise = np.not_equal(*map(np.asarray, decisions))
        acc_h = after.record().metric("acc_h") - before.record().metric("acc_h")
        changes.append(
            np.array([1000 * other_class.mean(), 1000 * other_noise.mean(), 100 * acc_h])
        )
    return changes


def main() -> None:
    given = options()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        stored = copied(given, Path(folder, "stored"), rounded)
        draws = [
            copied(given, Path(folder, str(draw)), partial(drawn, draw=draw))
            for draw in range(given.draws)
        ]
        print("| method | classes of 1,000 | noise decisions of 1,000 | Acc_H, at most |")
        print("|---|---:|---:|---:|")
        for method in given.methods:
            rows = np.array(
                [row for own in draws for row in differences(given, stored, own, method)]
            )
            classes, noise, _ = rows.mean(axis=0)
            acc_h = rows[np.abs(rows[:, 2]).argmax(), 2]
            print(f"| `{method}` | {classes:.1f} | {noise:.1f} | {acc_h:+.2f} |", flush=True)


if __name__ == "__main__":
    main()
