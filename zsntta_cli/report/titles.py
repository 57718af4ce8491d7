"""Titles of tables: what all of their rows have in common, and what a reader must know of them."""

from collections.abc import Sequence
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import preset_of

PRESET = "preset"  # the name of what is told by it, in place of its settings
_FEW = 30  # noise samples: one of them is 3 points of Acc_N and more


def title(
    id_set: str,
    records: Sequence[Record],
    varying: Sequence[str],
    ood_sets: Sequence[str],
    spread: str,
) -> str:
    """The title of one ID set's table; `varying` settings stand in its rows."""
    parts = [*_fixed(records[0], varying), *_over(id_set, ood_sets), *_spread(spread)]
    return ", ".join([f"ID: {id_set}", *parts, *_few(records), *_partial(records)])


def shown(name: str, value: Any) -> str:
    """A setting's value as a table has it."""
    if name == "ratio":
        return f"{value:.0%}" if round(value, 2) == value else f"{value:.4g}"
    if name == "fixed":
        return "adaptive" if value is None else str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def _fixed(record: Record, varying: Sequence[str]) -> list[str]:
    """What a title says of the settings that do not vary."""
    ratio = [] if "ratio" in varying else [f"noise {shown('ratio', record.settings.stream.ratio)}"]
    limit = record.settings.stream.limit
    head = [f"first {limit:,} samples"] if limit and "limit" not in varying else []
    preset = [] if PRESET in varying else [f"preset {preset_of(record.settings)}"]
    return [*ratio, *head, record.settings.encoder, *preset]


def _over(id_set: str, ood_sets: Sequence[str]) -> list[str]:
    """What a title says of an average over fewer OOD sets than the benchmark has."""
    partners = datasets.partners(id_set)
    present = [name for name in ood_sets if name in partners]
    few = partners and len(ood_sets) > 1 and len(present) < len(partners)
    return [f"average over {len(present)} of its {len(partners)} OOD sets"] if few else []


def _spread(spread: str) -> list[str]:
    """What a title says of the ± of averages."""
    whose = {"seeds": "their own over seeds", "sets": "the mean of the sets'"}
    return [f"± of averages: {whose[spread]}"] if spread else []


def _few(records: Sequence[Record]) -> list[str]:
    """What a title says of streams with too few noise samples to judge by."""
    few = {
        f"{r.counts['ood']} against {r.settings.ood_set} at {r.settings.stream.ratio:.4g}"
        for r in records
        if 0 < r.counts["ood"] < _FEW
    }
    return [f"FEW noise samples: {'; '.join(sorted(few))}"] if few else []


def _partial(records: Sequence[Record]) -> list[str]:
    """What a title says of a run that was stopped."""
    return [
        f"PARTIAL: {r.settings.method} against {r.settings.ood_set or '-'} stopped after "
        f"{sum(r.counts.values()):,} of {sum(r.counts.values()) + r.unfinished:,} items"
        for r in records
        if r.unfinished
    ]
