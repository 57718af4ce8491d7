"""What autocast's float16 changes, on cached features: ZS-CLIP's logits, AdaND's detector.

    python benchmarks/autocast.py --features-dir features --encoder NAME --pair ID,OOD ...

The same streams are run three times: as they are; with logits as `--precision amp` makes them of
the features; and, AdaND alone, with its detector under autocast too, which the released code has
and this package does not. What autocast does within the encoder is no part of it: features are
given. Points of each metric: the mean change over seeds and its range, and in brackets the standard
deviation of the metric itself over seeds.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets import default_prompt
from zsntta_cli.methods.detectors import adand
from zsntta_cli.methods.detectors.linear import LinearDetector, sigmoid
from zsntta_cli.methods.scores import AutocastScale
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.sources import Library

METRICS = ("acc_s", "acc_n", "acc_h", "auroc", "fpr95")


def half(values: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(values, np.float16).astype(np.float32)


class Autocast(Library):
    """Feature files whose logits are autocast's."""

    def scale(self, encoder_name: str, prompt: str, name: str) -> float:
        return AutocastScale(super().scale(encoder_name, prompt, name))


class HalfDetector(LinearDetector):
    """The linear layer under autocast: float32 weights, products in float16, no loss is scaled."""

    def __init__(self, weight: NDArray[np.floating], bias: NDArray[np.floating]) -> None:
        self.layer = np.column_stack([weight, bias]).astype(np.float32)  # (2, D + 1)
        self.means, self.squares, self.steps = *np.zeros((2, *self.layer.shape), np.float32), 0

    def _outputs(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        layer = half(self.layer)
        return half(half(features) @ layer[:, :-1].T + layer[:, -1])

    def logits(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        outputs = self._outputs(features).astype(np.float64)
        return outputs[:, 0] - outputs[:, 1]

    def after(
        self, features: NDArray[np.float32], is_noise: NDArray[np.bool_], learning_rate: float
    ) -> "HalfDetector":
        noise = half((sigmoid(self.logits(features)) - is_noise) / len(features))
        error = np.stack([noise, -noise])
        gradient = half(np.column_stack([error @ half(features), error.sum(axis=1)]))
        new = HalfDetector(self.layer[:, :-1], self.layer[:, -1])
        new.steps = self.steps + 1
        new.means = self.means + np.float32(0.1) * (gradient - self.means)
        new.squares = self.squares + np.float32(0.001) * (gradient**2 - self.squares)
        mean, square = new.means / (1 - 0.9**new.steps), new.squares / (1 - 0.999**new.steps)
        new.layer = (self.layer - learning_rate * mean / (np.sqrt(square) + 1e-8)).astype(
            np.float32
        )
        return new

    @property
    def dim(self) -> int:
        return self.layer.shape[1] - 1


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features-dir", type=Path, default=Path("features"))
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--pair", action="append", required=True, metavar="ID,OOD")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ratio", type=float, default=0.5)
    parser.add_argument("--noise", default="none", help="injected: gaussian, where it is cached")
    return parser.parse_args()


def measured(
    chosen: argparse.Namespace, simulator: Simulator, method: str, pair: str
) -> NDArray[np.float64]:
    """Metrics (S, M) in percent of a method's runs, a row a seed."""
    id_set, ood_set = pair.split(",")
    runs = [
        build_run(
            method, chosen.encoder, id_set, ood_set, default_prompt(id_set), "paper",
            ratio=chosen.ratio, noise=chosen.noise, seed=seed,
        )
        for seed in range(chosen.seeds)
    ]  # fmt: skip
    records = [simulator.run(run) for run in runs]
    return 100 * np.array([[record.metric(name) for name in METRICS] for record in records])


def main() -> None:
    chosen = options()
    plain, autocast = Simulator(chosen.features_dir), Simulator(chosen.features_dir)
    autocast._library = Autocast(chosen.features_dir)
    print(f"{'':34}" + "".join(f"{name:>28}" for name in METRICS))
    for pair in chosen.pair:
        for method in ("zs-clip", "adand"):
            before = measured(chosen, plain, method, pair)
            print(f"{pair:20}{method:14}" + "".join(f"{v:28.2f}" for v in before.mean(axis=0)))
            show("logits", measured(chosen, autocast, method, pair), before)
            if method == "adand":
                with_half = with_detector(HalfDetector, chosen, plain, pair)
                show("detector", with_half, before)
                show("both", with_detector(HalfDetector, chosen, autocast, pair), before)


def with_detector(
    detector: Callable[..., LinearDetector],
    chosen: argparse.Namespace,
    simulator: Simulator,
    pair: str,
) -> NDArray[np.float64]:
    usual = adand.LinearDetector
    adand.LinearDetector = detector
    try:
        return measured(chosen, simulator, "adand", pair)
    finally:
        adand.LinearDetector = usual


def show(what: str, after: NDArray[np.float64], before: NDArray[np.float64]) -> None:
    change, spread = after - before, before.std(axis=0, ddof=1)
    columns = zip(*(f(axis=0) for f in (change.mean, change.min, change.max)), spread, strict=True)
    cells = [f"{mean:+.2f} {low:+.2f}…{high:+.2f} ({own:.2f})" for mean, low, high, own in columns]
    print(f"{'':20}{what:14}" + "".join(f"{cell:>28}" for cell in cells))


if __name__ == "__main__":
    main()
