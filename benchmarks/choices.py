"""What each of our own choices in a newer method changes, measured on the same streams.

    python benchmarks/choices.py [--features-dir features] [--encoder real] [--seeds 2] [--only oga]

The choices are those of docs/compared.md, "where it differs, and why", that a setting can undo. For
each one the table has Acc_S, Acc_N, Acc_H and AUROC of the method as it is here, averaged over
pairs and seeds, and how they change with the other choice. Feature files are those that
`benchmarks/real_features.py` makes, and the words of an ID set are `not-SET`. Noise is 50 %, and
nothing is injected unless the method itself injects it.
"""

import argparse
import statistics
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zsntta_cli as zsntta

METRICS = ("acc_s", "acc_n", "acc_h", "auroc")


@dataclass(frozen=True)
class Choice:
    """One line: a method, its setting here and the alternative."""

    method: str
    other: dict[str, Any]
    here: dict[str, Any] = field(default_factory=dict)


CHOICES = (
    Choice("oga", {"oga_short_means": True}),
    Choice("onzeta", {"onzeta_mix_items": 0}),
    Choice("onzeta", {"onzeta_mix_items": 2000}),
    Choice("onzeta", {"onzeta_balance": 0.5}),
    Choice("bca", {"bca_mean_items": 100.0}),
    Choice("dla", {"dla_strength": 0.4}),
    Choice("dla", {"dla_strength": 1.6}),
    Choice("stata", {"block": 128}),
    Choice("transclip", {"block": 128}),
    Choice("lame", {"block": 128}),
    Choice("lame", {"lame_steps": 1}),
    Choice("oodd", {"oodd_temperature": 1.0}),
    Choice("oodd", {"batch_size": 64}),
    Choice("adaneg", {"adaneg_shots": 9}),
    Choice("adaneg", {"adaneg_sure": 0.5}),
    Choice("adaneg", {"adaneg_shots": 9, "adaneg_sure": 0.5}),
    Choice("tanl", {"queue": 20_000}),
    Choice("neglabel", {"group_mass": "mean"}),
    Choice("neglabel", {"mined_share": 0.15, "grouping": "random"}),
    Choice("dde", {"dde_exclusion": 0.0}),
    Choice("dde", {"dde_gate": 0.1}),
    Choice("dde", {"dde_doubled": True}),
    Choice("dde", {"dde_cells": "grid"}),
)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features-dir", type=Path, default=Path("features"))
    parser.add_argument("--encoder", default="real")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--id", dest="id_sets", nargs="+", default=["cars", "pets24"])
    parser.add_argument("--ood", dest="ood_sets", nargs="+", default=["dtd", "sun397"])
    parser.add_argument("--only", nargs="+", help="methods", default=[])
    return parser.parse_args()


def needs_words(method: str) -> bool:
    return method in ("neglabel", "adaneg", "tanl", "dde")


def means(given: argparse.Namespace, method: str, values: dict[str, Any]) -> dict[str, float]:
    """The mean of each metric over pairs and seeds, without metrics that the method lacks."""
    records = []
    for id_set in given.id_sets:
        words: dict[str, Any] = {"words": f"not-{id_set}"} if needs_words(method) else {}
        records += zsntta.simulate(
            method, id_set=id_set, ood_set=given.ood_sets, encoder=given.encoder,
            features_dir=given.features_dir, ratio=0.5, noise="none", seed=range(given.seeds),
            **words, **values,
        )  # fmt: skip
    metrics = [{**r.accuracies, **r.detection} for r in records]
    return {m: 100 * statistics.fmean(values[m] for values in metrics) for m in METRICS}


def settings_text(values: dict[str, Any]) -> str:
    return ", ".join(f"{k.replace('_', '-')} {v}" for k, v in values.items())


def main() -> None:
    given = options()
    warnings.simplefilter("ignore")
    print("| method | the other choice | " + " | ".join(METRICS) + " | change of each |")
    print("|---|---|" + "---:|" * len(METRICS) + "---|")
    known = dict[str, dict[str, float]]()
    for choice in CHOICES:
        if given.only and choice.method not in given.only:
            continue
        here = known.setdefault(choice.method, {}) or means(given, choice.method, choice.here)
        known[choice.method] = here
        other = means(given, choice.method, {**choice.here, **choice.other})
        values = " | ".join(f"{here[m]:.2f}" for m in METRICS)
        changes = ", ".join(f"{other[m] - here[m]:+.2f}" for m in METRICS)
        print(
            f"| `{choice.method}` | {settings_text(choice.other)} | {values} | {changes} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
