"""What `cull` makes of the order of a stream, on features of your own.

    python benchmarks/order.py features/my-clip --id pets,cars --ood sun397,dtd --ratio 0,0.25,0.5

reads feature files as `zsntta extract` and `zsntta cache import` make them; the first ID set goes
with the first OOD set, and so on. Streams have no injected noise; their ID images come in the
orders of `zsntta simulate --order`.

Acc_H in percent (without noise Acc_S), means over pairs and seeds, in Markdown: ZS-CLIP, cull
that ignores the order (`--set cull-order=false`), cull, the least that using the order gained in a
run, the share of runs in which it changed a class. With --rivals (slow) also `cull+stata` and
`cull+lame`: these name whole blocks of 64, so that an answer waits for up to 63 items.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Features
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions, Pool, StreamData
from zsntta_cli.methods.detectors.cull import CullSettings
from zsntta_cli.settings import StreamSettings, ThresholdSettings
from zsntta_cli.simulation.stream import build_stream

ORDERS = ("shuffled", "class", "dirichlet:0.01", "dirichlet:0.1", "burst", "late", "first")
RIVALS = ("cull+stata", "cull+lame")
Floats = NDArray[np.float64]


class Run(NamedTuple):
    """A stream and its truth."""

    data: StreamData
    labels: NDArray[np.int64]  # (T,) -1 for noise

    def acc_h(self, classes: NDArray[np.integer], is_noise: NDArray[np.bool_]) -> float:
        """Acc_H, in percent; without noise Acc_S."""
        clean = self.labels >= 0
        acc_s = 100 * (~is_noise & (classes == self.labels))[clean].mean()
        if clean.all():
            return float(acc_s)
        acc_n = 100 * is_noise[~clean].mean()
        return float(2 * acc_s * acc_n / max(acc_s + acc_n, 1e-9))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of feature files of one encoder")
    parser.add_argument("--id", required=True, help="one or several, with commas")
    parser.add_argument("--ood", required=True, help="as many")
    parser.add_argument("--ratio", default="0,0.25,0.5")
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--rivals", action="store_true", help="StatA and LAME as well")
    return parser.parse_args()


def stream(id_set: Features, ood_set: Features, ratio: float, order: str, seed: int) -> Run:
    """A stream of all ID images and that share of noise, in one of the orders."""
    settings = StreamSettings(ratio=ratio, seed=seed, noise="none", order=order)
    items = build_stream(settings, len(id_set), len(ood_set), 0, id_set.labels)
    is_id = items.kind == 0
    features = np.concatenate([id_set.image_features[:], ood_set.image_features[:]])
    [text] = (text.features for text in id_set.texts.values())
    pool = Pool.scored(features.astype(np.float32), text, id_set.identity["logit_scale"])
    data = StreamData(pool, items.row + ~is_id * len(id_set), np.zeros(len(items), bool))
    return Run(data, np.where(is_id, id_set.labels[np.where(is_id, items.row, 0)], -1))


def decided(data: StreamData, method: str, *, in_order: bool = True) -> Decisions:
    chosen = METHODS[method]
    own = CullSettings(cull_order=in_order) if method == "cull" else chosen.settings()
    return chosen(data, own, ThresholdSettings()).push(data)


def figures(run: Run, rivals: Sequence[str]) -> list[float]:
    """Whether the order changed a class; Acc_H of ZS-CLIP, cull, cull without order, rivals."""
    zs_clip, now = decided(run.data, "zs-clip"), decided(run.data, "cull")
    before = decided(run.data, "cull", in_order=False)
    classes = (decided(run.data, rival).class_index for rival in rivals)
    named = [now.class_index, before.class_index, *classes]
    acc_h = [run.acc_h(classes, now.is_noise) for classes in named]
    changed = float((before.class_index != now.class_index).any())
    return [changed, run.acc_h(zs_clip.class_index, zs_clip.is_noise), *acc_h]


def row(found: NDArray[np.float64]) -> list[str]:
    """The cells of an order, of its runs' figures."""
    changed, zs_clip, now, before, *rivals = found.mean(0)
    least = (found[:, 2] - found[:, 3]).min()
    shown = [
        f"{zs_clip:.2f}",
        f"{before:.2f}",
        f"{now:.2f}",
        f"{least:+.2f}",
        f"{100 * changed:.0f} %",
    ]
    return [*shown, *(f"{rival:.2f}" for rival in rivals)]


def main() -> None:
    given = options()
    ids, oods = given.id.split(","), given.ood.split(",")
    sets = {name: store.read(given.folder / f"{name}.h5") for name in {*ids, *oods}}
    rivals = RIVALS if given.rivals else ()
    head = [
        "noise, order",
        "ZS-CLIP",
        "cull without order",
        "**cull**",
        "least gain",
        "on",
        *rivals,
    ]
    print("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1))
    for ratio in map(float, given.ratio.split(",")):
        for order in ORDERS if ratio else ORDERS[:4]:  # without noise there is none to put anywhere
            found = [
                figures(stream(sets[a], sets[b], ratio, order, int(seed)), rivals)
                for a, b in zip(ids, oods, strict=True)
                for seed in given.seeds.split(",")
            ]
            print(f"| {100 * ratio:g} % {order} | {' | '.join(row(np.array(found)))} |", flush=True)


if __name__ == "__main__":
    main()
