"""cull compared with ZS-CLIP, at any share of noise and in any order, on your own features.

    python benchmarks/detector.py features/my-clip --far pets:dtd,cars:sun397 --near pets:12,cars:98

The script reads feature files that `zsntta extract` or `zsntta cache import` wrote. *Far* are pairs
of sets. *Near* are random choices of that many classes of a set, whose other classes are the noise.
A stream has as many ID images as its share of noise permits, and no injected noise. The tables, in
Markdown, have Acc_H in percent (Acc_S without noise), averaged over pairs and seeds; the number of
cases (a pair at a share of noise, or in an order) in which cull is more than 1 point below ZS-CLIP;
and the worst of them:

shares     by the share of noise, shuffled
orders     by the order of the ID images, at 5 and 25 % noise
cautious   the same shares, where only images that are noise by their own evidence are flagged
constants  the effect of each constant of cull, on the far and the near pairs (seed 0)

`--low` sets the level of an encoder for which it is unknown, such as an imported one.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.identity import is_level_known
from zsntta_cli.cache.split import chosen_classes
from zsntta_cli.cache.store import Features
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import StreamData
from zsntta_cli.settings import StreamSettings, ThresholdSettings
from zsntta_cli.simulation.stream import build_stream

SHARES = (0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.97, 0.99, 0.995)
NOISY, USUAL = (0.05, 0.25), SHARES[:6]
ORDERS = ("shuffled", "class", "dirichlet:0.1", "burst", "late", "first")
CONSTANTS: dict[str, tuple[float, ...]] = {
    "cull_first": (32, 128), "cull_low": (1.5, 2.5), "cull_high": (2, 4), "cull_many": (0.02, 0.1),
    "cull_tail": (3, 12, 1e9), "cull_tail_deviations": (1.5, 6), "cull_prior": (0.15, 0.6, 0),
    "cull_ring": (512, 2048),
}  # fmt: skip


class Pair(NamedTuple):
    """The images of an ID set and of a set of noise, scored once."""

    name: str
    pool: StreamData
    labels: NDArray[np.int32]  # (N,) of the ID images, which are the first of the pool

    def acc_h(self, method: str, share: float, order: str, seed: int, **settings: Any) -> float:
        """Acc_H of a stream in percent; Acc_S without noise."""
        generator = np.random.default_rng(seed)
        count, others = len(self.labels), len(self.pool) - len(self.labels)
        if share:
            count = max(min(count, int(others * (1 - share) / share)), 1)
        rows = np.sort(generator.permutation(len(self.labels))[:count])
        labels = self.labels[rows]
        wanted = StreamSettings(ratio=share, seed=seed, noise="none", order=order)
        items = build_stream(wanted, count, others, 0, labels)
        is_id = items.kind == 0
        index = np.where(is_id, rows[np.where(is_id, items.row, 0)], len(self.labels) + items.row)
        data = self.pool.part(index)
        chosen = METHODS[method]
        found = chosen(data, chosen.settings(**settings), ThresholdSettings()).push(data)
        assert found.is_noise is not None
        right = ~found.is_noise & (found.class_index == labels[np.where(is_id, items.row, 0)])
        acc_s = 100 * float(right[is_id].mean())
        if is_id.all():
            return acc_s
        acc_n = 100 * float(found.is_noise[~is_id].mean())
        return 2 * acc_s * acc_n / max(acc_s + acc_n, 1e-9)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of one encoder's feature files")
    parser.add_argument("--far", default="", help="ID:OOD,ID:OOD")
    parser.add_argument("--near", default="", help="SET:CLASSES,SET:CLASSES")
    parser.add_argument("--splits", type=int, default=5, help="random choices of classes per set")
    parser.add_argument("--tables", default="shares,orders,cautious,constants")
    parser.add_argument("--methods", default="zs-clip,cull")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--low", type=float, help="level of the encoder, in nats")
    return parser.parse_args()


def scored(
    name: str, own: Features, noise: Features, classes: Sequence[int], is_noise: Any
) -> Pair:
    """A pair: the images of some classes, and some rows of a set of noise."""
    [text] = own.texts.values()
    rows = np.flatnonzero(np.isin(own.labels, classes))
    features = np.concatenate([own.image_features[rows], noise.image_features[is_noise]])
    pool = StreamData.scored(
        features.astype(np.float32), text.features[classes], own.identity["logit_scale"],
        generic=own.generic, is_level_known=is_level_known(own.identity),
    )  # fmt: skip
    return Pair(name, pool, np.searchsorted(classes, own.labels[rows]).astype(np.int32))


def far_pairs(given: argparse.Namespace) -> Iterator[Pair]:
    for pair in filter(None, given.far.split(",")):
        own, noise = (store.read(given.folder / f"{name}.h5") for name in pair.split(":"))
        yield scored(pair, own, noise, range(len(own.class_names)), slice(None))


def near_pairs(given: argparse.Namespace) -> Iterator[Pair]:
    for part in filter(None, given.near.split(",")):
        name, count = part.split(":")
        whole = store.read(given.folder / f"{name}.h5")
        for seed in range(given.splits):
            classes = chosen_classes(count, whole.class_names, seed)
            others = np.flatnonzero(~np.isin(whole.labels, classes))
            yield scored(f"{part}-s{seed}", whole, whole, classes, others)


class Table:
    """Values of pairs by methods and columns, printed as they are measured."""

    def __init__(self, given: argparse.Namespace, pairs: Sequence[Pair]) -> None:
        self.given, self.pairs = given, pairs
        self.own = {} if given.low is None else {"cull_low": given.low}

    def cells(self, method: str, share: float, order: str, **settings: Any) -> NDArray[np.float64]:
        """The mean over seeds for each pair (P,)."""
        own = {**self.own, **settings} if method == "cull" else {}
        seeds = range(self.given.seeds)
        return np.array([
            np.mean([pair.acc_h(method, share, order, seed, **own) for seed in seeds])
            for pair in self.pairs
        ])  # fmt: skip

    def print(self, columns: Sequence[tuple[float, str]], **settings: Any) -> None:
        """Print a row for each method, and how often it is below ZS-CLIP."""
        named = [
            f"{100 * share:g} %" + (f" {o}" if o != "shuffled" else "") for share, o in columns
        ]
        head = ["", *named, "> 1 below", "worst"]
        print("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1))
        zs_clip = None
        for method in self.given.methods.split(","):
            found = np.array([self.cells(method, *column, **settings) for column in columns])
            zs_clip = found if zs_clip is None else zs_clip
            below = found - zs_clip
            at, pair = np.unravel_index(below.argmin(), below.shape)
            worst = (
                f"{below.min():.1f} ({self.pairs[pair].name}, {named[at]})" if below.any() else ""
            )
            cells = [
                *(f"{mean:.1f}" for mean in found.mean(1)),
                f"{(below < -1).sum()} of {below.size}",
            ]
            print("| " + " | ".join([method, *cells, worst]) + " |", flush=True)
        print()


def constants(table: Table) -> None:
    table.given.seeds = 1
    shares = [table.cells("zs-clip", share, "shuffled") for share in SHARES]
    print("| constant | | noisy | 0 % | worst |\n|---|---|---:|---:|---:|")
    tried: list[dict[str, float]] = [{}]
    tried += [{name: value} for name, values in CONSTANTS.items() for value in values]
    for settings in tried:
        found = np.array([table.cells("cull", share, "shuffled", **settings) for share in SHARES])
        [(name, value)] = settings.items() or [("as they are", "")]
        shown = found[1:].mean(), found[0].mean(), (found - shares).min()
        print(
            f"| {name} | {value} | " + " | ".join(f"{one:.1f}" for one in shown) + " |", flush=True
        )
    print()


TABLES: dict[str, Callable[[Table], None]] = {
    "shares": lambda table: table.print([(share, "shuffled") for share in SHARES]),
    "orders": lambda table: table.print([(share, o) for share in NOISY for o in ORDERS]),
    "cautious": lambda table: table.print([(s, "shuffled") for s in SHARES], cautious=True),
    "constants": constants,
}


def main() -> None:
    given = options()
    for kind, pairs in (("far", [*far_pairs(given)]), ("near", [*near_pairs(given)])):
        for name in given.tables.split(",") if pairs else ():
            print(f"{kind}, {name}: {', '.join(pair.name for pair in pairs)}\n", flush=True)
            TABLES[name](Table(given, pairs))


if __name__ == "__main__":
    main()
