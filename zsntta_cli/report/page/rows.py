"""Rows: runs that differ in their seed alone, named by how they differ from other rows."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zsntta_cli.methods import METHODS
from zsntta_cli.report.page.entries import Entry, Spot, all_settings, spots
from zsntta_cli.results.frame import PRESET, shown
from zsntta_cli.settings import StreamSettings, ThresholdSettings
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, preset_of

METRICS = {
    "acc_s": "Acc_S", "acc_n": "Acc_N", "acc_h": "Acc_H", "auroc": "AUROC", "fpr95": "FPR95",
}  # fmt: skip
LOWER_IS_BETTER = ("fpr95",)
_OF_STREAM = ("ratio", "seed", "order", "ood_fill", "rounded_odds", "limit")  # told by the spot

Flat = dict[str, Any]


@dataclass(frozen=True)
class Value:
    """A metric of one cell: mean and sample deviation over seeds."""

    mean: float
    std: float = math.nan
    is_best: bool = False

    def text(self, with_std: bool) -> str:
        """Percent with two digits; a dash where there is no sample."""
        if math.isnan(self.mean):
            return "-"
        spread = f"±{100 * self.std:.2f}" if with_std and not math.isnan(self.std) else ""
        return f"{100 * self.mean:.2f}{spread}"


@dataclass(frozen=True, eq=False)
class Row:
    """Runs of one method with the same settings on the same stream, but for the seed."""

    spot: Spot
    label: str  # the method and what sets it apart from its other rows
    entries: tuple[Entry, ...]  # by seed

    @property
    def first(self) -> Record:
        """The record of its first seed."""
        return self.entries[0].record

    @property
    def method(self) -> str:
        """Its name in METHODS."""
        return self.first.settings.method

    @property
    def by_seed(self) -> dict[int, Entry]:
        """Its runs."""
        return {entry.record.settings.stream.seed: entry for entry in self.entries}

    @functools.cached_property
    def values(self) -> dict[str, Value]:
        """Mean and deviation over seeds of each of METRICS; no deviation of one run."""
        return {name: folded([measured(e, name) for e in self.entries]) for name in METRICS}

    @property
    def main(self) -> str:
        """The metric that it is ranked by."""
        return "acc_h" if self.spot.ratio else "acc_s"


def measured(entry: Entry, metric: str) -> float:
    """A metric of a run, as a fraction."""
    return entry.record.metric(metric)


def folded(values: Sequence[float]) -> Value:
    """Mean and sample deviation; nan where there is none."""
    mean, n = math.fsum(values) / len(values), len(values)
    if n == 1:
        return Value(mean)
    return Value(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)))


def rows_of(entries: Sequence[Entry]) -> list[Row]:
    """The rows, in the order of the runs."""
    flats = [_flat(entry.record) for entry in entries]
    where = spots(entries)
    told = _told_apart(entries, flats)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, (spot, flat) in enumerate(zip(where, flats, strict=True)):
        own = tuple((k, v) for k, v in flat.items() if k != "seed")
        groups.setdefault((spot, entries[i].record.settings.method, own), []).append(i)
    made = []
    for (spot, method, _), places in groups.items():
        label = _label(method, flats[places[0]], told[spot.stream.encoder, spot.stream.id_set])
        made.append(Row(spot, label, tuple(entries[i] for i in places)))
    return made


def _flat(record: Record) -> Flat:
    """All that may set one row of a method apart from another."""
    settings = record.settings
    known = {settings.id_set, settings.ood_set, f"text/{settings.id_set}"}
    others = {
        f"features of {name}": digest[:8]
        for name, digest in sorted(record.digests.items())
        if name not in known
    }
    values = all_settings(settings)
    preset = _preset(settings.method, settings.stream, settings.threshold, settings.options)
    return {PRESET: preset, "prompt": settings.prompt, **values, **others}


@functools.lru_cache(maxsize=10_000)
def _preset(method: str, stream: StreamSettings, threshold: ThresholdSettings, options: Any) -> str:
    """As `preset_of`, which is slow to ask for each of thousands of runs."""
    return preset_of(RunSettings(method, "", "", None, "", stream, threshold, options))


def _told_apart(entries: Sequence[Entry], flats: Sequence[Flat]) -> dict[Any, dict[str, list[str]]]:
    """By encoder and ID set, by method: what differs between its runs, the preset's own apart."""
    seen: dict[Any, dict[str, dict[str, dict[Any, set[Any]]]]] = {}
    for entry, flat in zip(entries, flats, strict=True):
        settings = entry.record.settings
        names = seen.setdefault((settings.encoder, settings.id_set), {}).setdefault(
            settings.method, {}
        )
        for name, value in flat.items():
            if name not in _OF_STREAM:
                group = None if name == PRESET else flat[PRESET]
                names.setdefault(name, {}).setdefault(group, set()).add(value)
    return {
        where: {
            method: [name for name, groups in names.items() if max(map(len, groups.values())) > 1]
            for method, names in methods.items()
        }
        for where, methods in seen.items()
    }


def _label(method: str, flat: Flat, told: dict[str, list[str]]) -> str:
    parts = [
        str(flat[PRESET]) if name == PRESET else f"{name.replace('_', ' ')} {_shown(name, flat)}"
        for name in told[method]
    ]
    return f"{method} ({', '.join(parts)})" if parts else method


def _shown(name: str, flat: Flat) -> str:
    return shown(name, flat.get(name))


def decides(row: Row) -> bool:
    """Whether the row's method has a decision rule, and so accuracies."""
    return METHODS[row.method].decides
