"""Tables of cull beside ZS-CLIP and AdaND, on features of your own.

    python benchmarks/detector.py features/my-clip --pairs pets:dtd,cars:sun397
    python benchmarks/uneven.py features/my-clip pets --classes 3
    python benchmarks/detector.py features/my-clip --pairs pets-3-x1-s0:dtd --tables acc_h,pairs

reads feature files as `zsntta extract`, `zsntta cache import` and `zsntta cache split` make them,
and replays streams without injected noise. Tables, in Markdown, percent, means over pairs and
seeds; at 0 % noise Acc_H is Acc_S:

summary        Acc_H of ZS-CLIP and cull by noise ratio, the mean of the noisy ones, in how many
               cells (a pair at a ratio) cull is more than 1 and 2.5 below ZS-CLIP, the worst
acc_h, auroc   of ZS-CLIP, AdaND and cull by noise ratio
flag           precision / recall / share of all images flagged
pairs          each pair's Acc_H of cull less that of ZS-CLIP
orders         Acc_S / Acc_N / Acc_H of ordered streams, at 5 and 25 %
short          streams of few images: mean Acc_H at 5, 10, 25 and 50 %
constants      what each of cull's is worth, halved, doubled or left out: the mean Acc_H of the
               noisy ratios, that of clean streams, the worst cell less ZS-CLIP
"""

import argparse
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import zsntta_cli
from zsntta_cli.simulation.record import Record

RATIOS = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75)
ORDERS = ("shuffled", "class", "burst", "late", "first")
LENGTHS = (100, 200, 500, 1000, 2000)
CONSTANTS = {
    "cull_first": (32, 128), "cull_tail": (3, 12, 1e9), "cull_tail_deviations": (1.5, 6),
    "cull_prior": (0.15, 0.6, 0), "cull_ring": (512, 2048),
}  # fmt: skip


class Contender(NamedTuple):
    """A row of a table."""

    label: str
    method: str
    settings: tuple[tuple[str, float], ...] = ()


ZS_CLIP = Contender("ZS-CLIP", "zs-clip")
CULL = Contender("**cull**", "cull")
CONTENDERS = ZS_CLIP, Contender("AdaND", "adand"), CULL


def names(text: str) -> list[str]:
    return text.split(",")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of feature files of one encoder")
    parser.add_argument("--pairs", type=names, required=True, help="ID:OOD,ID:OOD")
    parser.add_argument("--tables", type=names, default=list(TABLES))
    parser.add_argument("--seeds", type=names, default=["0", "1", "2"])
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


class Runs:
    """Replays of the pairs, made when they are asked for and kept beside the features."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.pairs = [tuple(pair.split(":")) for pair in given.pairs]
        self._folder, self._jobs = given.folder, given.jobs
        self._seeds = [int(seed) for seed in given.seeds]

    def __call__(self, contender: Contender, pair: tuple[str, ...], **stream: Any) -> list[Record]:
        """The runs of one contender on one pair, a record a seed."""
        id_set, ood_set = pair
        return zsntta_cli.simulate(
            contender.method, id_set=id_set, ood_set=ood_set,
            encoder=self._folder.name, features_dir=self._folder.parent, jobs=self._jobs,
            noise="none", seed=self._seeds, **dict(contender.settings), **stream,
        )  # fmt: skip

    def mean(self, metric: str, contender: Contender, **stream: Any) -> float:
        """The mean over seeds and pairs, in percent."""
        pairs = [np.mean(values(self(contender, pair, **stream), metric)) for pair in self.pairs]
        return 100 * float(np.mean(pairs))


def values(records: Iterable[Record], metric: str) -> NDArray[np.float64]:
    """A metric of runs, (R,); without noise Acc_H is Acc_S."""
    found = []
    for record in records:
        is_clean = metric == "acc_h" and not record.settings.stream.ratio
        measured = {**record.accuracies, **record.detection, **record.flags}
        found.append(measured["acc_s" if is_clean else metric])
    return np.array(found, float)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table in Markdown, its first column to the left."""
    print("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
    print()


def percent(ratio: float) -> str:
    return f"{100 * ratio:g} %"


def by_ratio(runs: Runs, metric: str, ratios: Sequence[float]) -> None:
    rows = (
        [one.label, *(f"{runs.mean(metric, one, ratio=ratio):.2f}" for ratio in ratios)]
        for one in CONTENDERS
    )
    table(["", *map(percent, ratios)], rows)


def summary(runs: Runs) -> None:
    cells = {
        one.label: np.array(
            [
                [values(runs(one, pair, ratio=r), "acc_h").mean() for r in RATIOS]
                for pair in runs.pairs
            ]
        )
        for one in (ZS_CLIP, CULL)
    }
    rows = []
    for label, found in cells.items():
        below = 100 * (found - cells[ZS_CLIP.label])
        counts = [f"{(below < -points).sum()} of {below.size}" for points in (1, 2.5)]
        means = [f"{100 * mean:.2f}" for mean in (*found.mean(0), found[:, 1:].mean())]
        rows.append([label, *means, *counts, f"{below.min():.1f}"])
    table(["", *map(percent, RATIOS), "noisy", "> 1 below", "> 2.5 below", "worst"], rows)


def flag(runs: Runs) -> None:
    def cell(contender: Contender, ratio: float) -> str:
        shown = [f"{runs.mean('flagged', contender, ratio=ratio):.1f}"]
        for metric in ("acc_n", "precision"):
            shown.insert(0, f"{runs.mean(metric, contender, ratio=ratio):.1f}" if ratio else "–")
        return " / ".join(shown)

    ratios = RATIOS[:5]
    table(
        ["", *map(percent, ratios)],
        ([one.label, *(cell(one, ratio) for ratio in ratios)] for one in CONTENDERS),
    )


def pairs(runs: Runs) -> None:
    def difference(pair: tuple[str, ...], ratio: float) -> str:
        means = [values(runs(one, pair, ratio=ratio), "acc_h").mean() for one in (CULL, ZS_CLIP)]
        return f"{100 * (means[0] - means[1]):.1f}"

    rows = (["+".join(pair), *(difference(pair, r) for r in RATIOS)] for pair in runs.pairs)
    table(["", *map(percent, RATIOS)], rows)


def orders(runs: Runs) -> None:
    def cell(contender: Contender, ratio: float, order: str) -> str:
        stream = {"ratio": ratio, "order": order}
        s, n, h = (runs.mean(m, contender, **stream) for m in ("acc_s", "acc_n", "acc_h"))
        return f"{s:.0f}/{n:.0f}/{h:.1f}"

    rows = (
        [f"{percent(ratio)} {order}", *(cell(one, ratio, order) for one in CONTENDERS)]
        for ratio in (0.05, 0.25) for order in ORDERS
    )  # fmt: skip
    table(["noise, `--order`", *(one.label for one in CONTENDERS)], rows)


def short(runs: Runs) -> None:
    def cell(contender: Contender, length: int) -> str:
        means = [
            runs.mean("acc_h", contender, ratio=ratio, limit=length)
            for ratio in (0.05, 0.1, 0.25, 0.5)
        ]
        return f"{np.nanmean(means):.2f}"

    rows = ([str(length), *(cell(one, length) for one in CONTENDERS)] for length in LENGTHS)
    table(["images", *(one.label for one in CONTENDERS)], rows)


def constants(runs: Runs) -> None:
    def cells(contender: Contender) -> NDArray[np.float64]:
        return np.array([
            [100 * values(runs(contender, pair, ratio=r), "acc_h").mean() for r in RATIOS]
            for pair in runs.pairs
        ])  # fmt: skip

    zs_clip = cells(ZS_CLIP)
    changed = [(name, value) for name, tried in CONSTANTS.items() for value in tried]
    rows = []
    for settings in ((), *((one,) for one in changed)):
        found = cells(CULL._replace(settings=settings))
        shown = (found[:, 1:].mean(), found[:, 0].mean(), (found - zs_clip).min())
        [(name, value)] = settings or [("as they are", np.nan)]
        rows.append([name, f"{value:g}" if settings else "", *(f"{one:.1f}" for one in shown)])
    table(["constant", "", "noisy", "0 %", "worst"], rows)


TABLES: dict[str, Callable[[Runs], None]] = {
    "summary": summary,
    "acc_h": lambda runs: by_ratio(runs, "acc_h", RATIOS),
    "flag": flag,
    "auroc": lambda runs: by_ratio(runs, "auroc", RATIOS[1:]),
    "pairs": pairs,
    "orders": orders,
    "short": short,
    "constants": constants,
}


def main() -> None:
    given = options()
    warnings.simplefilter("ignore", UserWarning)  # that AdaND never starts on short streams
    runs = Runs(given)
    for name in given.tables:
        print(f"{name}: {', '.join('+'.join(pair) for pair in runs.pairs)}\n")
        TABLES[name](runs)


if __name__ == "__main__":
    main()
