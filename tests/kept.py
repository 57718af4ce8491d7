"""Record runs that several tests make by hand; none of it is a test."""

import math

from made import PROMPT

from zsntta_cli.simulation.metrics import METRICS, Measures, harmonic_mean
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import build_run, revision

VERSIONS = {"zsntta": "0.1.0", "numpy": "2.4.6", "python": "3.11.7"}
FIRST = "2026-01-02T03:04:05+00:00"


def kept_run(
    method="zs-clip", ood="glyphs", ratio=0.5, seed=0, *, known=8, caught=8, samples=10,
    id_set="shapes", encoder="tiny", prompt=PROMPT, digests=None, curves=None, record=None,
    **values,
):  # fmt: skip
    """A run with so many of its ID samples right and OOD samples caught.

    `samples`: ID samples; as many OOD samples at a ratio of one half, or of the sets' own.
    `digests` and `record` take the place of single values of the record.
    """
    settings = build_run(method, encoder, id_set, ood, prompt, ratio=ratio, seed=seed, **values)
    share = 0.5 if isinstance(ratio, str) else ratio
    n_ood = round(samples * share / (1 - share))
    acc_s = min(known, samples) / samples
    acc_n = min(caught, n_ood) / n_ood if n_ood else math.nan
    seen = {id_set: "1" * 64, f"text/{id_set}": "2" * 64}
    seen |= {ood: "3" * 64} if n_ood else {}
    seen |= {"noise-gaussian": "4" * 64} if settings.stream.noise != "none" else {}
    facts = {
        "settings": settings, "accuracies": accuracies(acc_s, acc_n),
        "detection": measures("detection", auroc=0.9),
        "flags": Measures(precision=0.5, flagged=0.5, clean_flagged=0.5),
        "counts": {"id": samples, "ood": n_ood, "noise": 0}, "repeated": {},
        "digests": seen | (digests or {}), "seconds": 0.25, "created": FIRST,
        "versions": VERSIONS, "revision": revision(method), "memory": 100 * 2**20,
        "curves": curves or {},
    }  # fmt: skip
    return Record(**facts | (record or {}))


def run_of(method, values=(0.5, 0.5), curves=None, id_set="shapes", ood_set="glyphs", **settings):
    """A run with an Acc_S and an Acc_N of its own."""
    return kept_run(
        method, ood_set, id_set=id_set, samples=100, curves=curves,
        record={"accuracies": accuracies(*values)}, **settings,
    )  # fmt: skip


def accuracies(acc_s, acc_n):
    return measures("accuracies", acc_s=acc_s, acc_n=acc_n, acc_h=harmonic_mean(acc_s, acc_n))


def measures(group, **values):
    """All metrics of a part of a record: those that are not given are a quarter."""
    names = [metric.name for metric in METRICS.values() if metric.group == group]
    return Measures(dict.fromkeys(names, 0.25) | values)


def curves(points=64, bins=50):
    """Curves as a run has them, of no particular shape."""
    items = [100 * (i + 1) for i in range(points)]
    rising = [round(0.5 + 0.4 * i / points, 6) for i in range(points)]
    return {
        "scores": {
            "low": 0.0, "high": 1.0, "id": [*range(bins)], "ood": [*range(bins, 0, -1)],
        },
        "thresholds": {"item": items, "zero_shot": rising, "detector": [None, *rising[:-1]]},
    }  # fmt: skip
