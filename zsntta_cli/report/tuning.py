"""Notes below a table on how its rows' settings were chosen, and on which sets."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from zsntta_cli.datasets.names import SetParts
from zsntta_cli.report.sheet import Best
from zsntta_cli.results.frame import FEATURES, PRESET, ResultRow, setting_name, shown
from zsntta_cli.results.tuning import Tuning, tuning_of
from zsntta_cli.settings import StreamSettings
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.record import Record

Texts = Mapping[ResultRow[Any], Mapping[str, Sequence[str]]]  # of rows, by column

# In what rows of a method may differ, and be no two settings of the method or its threshold.
_APART = {PRESET, "encoder", "prompt", FEATURES, *(f.name for f in fields(StreamSettings))}


def selection_notes(texts: Texts) -> list[str]:
    """How settings were chosen, and which values are the best of several on these streams."""
    return [*_of_tuning(texts), *_of_sweeps(texts)]


def _of_tuning(texts: Iterable[ResultRow[Any]]) -> Iterator[str]:
    """On what rows were tuned, and which images that had seen."""
    reported: dict[str, list[tuple[Tuning, Record]]] = {}
    choices: dict[str, None] = {}
    for row in texts:
        for record in (run.record for run in row.every_run):
            if tuning := tuning_of(record):
                choices[f"{row.method}: {_chosen(tuning)}"] = None
                reported.setdefault(row.method, []).append((tuning, record))
    yield from choices
    for method, runs in reported.items():
        yield from _of_overlap(method, runs)


def _chosen(tuning: Tuning) -> str:
    """What was chosen, from how many candidates, on which pairs and by which metric."""
    settings = ", ".join(
        f"{setting_name(name)} {shown(name, value)}" for name, value in tuning.settings.items()
    )
    count = math.prod(map(len, tuning.candidates.values()))
    of = f"of {count:,} {'values' if len(tuning.settings) == 1 else 'combinations'}"
    pairs = ", ".join(f"{pair.id_set} + {pair.ood_set}" for pair in tuning.on)
    at = ", ".join(dict.fromkeys(shown("ratio", pair.ratio) for pair in tuning.on))
    numbers = dict.fromkeys(seed for pair in tuning.on for seed in pair.seeds)
    seeds = f"seed{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
    metric = METRICS.get(tuning.by)
    best = f"{metric.head} {metric.text(tuning.value)}" if metric else tuning.by
    alike = ": all gave the same, so the first was taken" * (len(set(tuning.values)) == 1)
    return f"{settings} was chosen {of} by {best} on {pairs} ({at} noise, {seeds}){alike}."


def _of_overlap(method: str, runs: Iterable[tuple[Tuning, Record]]) -> Iterator[str]:
    """Which of the reported sets a method was tuned on, by the sets' names and digests."""
    selected, seen = dict[str, None](), dict[str, None]()
    for tuning, record in runs:
        sets = [name for name in (record.settings.id_set, record.settings.ood_set) if name]
        for pair in tuning.on:
            tuned = pair.id_set, pair.ood_set
            shared = [n for n in sets if any(_shares(n, of, record, tuning) for of in tuned)]
            seen |= dict.fromkeys(shared)
            if len(shared) == len(sets):
                selected[" + ".join(sets)] = None
    if selected:
        yield (
            f"{method} was tuned on images of {', '.join(selected)}, which this table reports: "
            f"its numbers there are selected on what they report, so they are optimistic."
        )
    elif seen:
        yield (
            f"{method} was tuned on images of {', '.join(seen)}, which streams of this table have "
            f"beside others: its numbers are not of wholly unseen images."
        )


def _shares(name: str, tuned: str, record: Record, tuning: Tuning) -> bool:
    """Whether a set of a run and a set of the tuning share images."""
    digest = record.digests.get(name, "")
    same = bool(digest) and tuning.digests.get(tuned) == digest
    return same or SetParts.parse(name).shares_images(SetParts.parse(tuned))


def _of_sweeps(texts: Texts) -> Iterator[str]:
    """Which methods are the best of several settings that were run on the reported streams."""
    swept: dict[str, dict[str, None]] = {}
    groups: dict[Any, list[ResultRow[Any]]] = {}
    for row in texts:
        key = row.stream, row.ratio, row.method, row.settings[PRESET], row.settings["prompt"]
        groups.setdefault(key, []).append(row)
    for rows in groups.values():
        differing = _differing(rows)
        if differing and any(_is_best(texts[row]) for row in rows):
            swept.setdefault(rows[0].method, {}).update(dict.fromkeys(differing))
    for method, names in swept.items():
        yield (
            f"Several settings of {method} ({', '.join(map(setting_name, names))}) were run on the "
            f"streams that this table reports, so the best of them is optimistic: --tune and "
            f"--tune-on choose settings on other sets."
        )


def _differing(rows: Sequence[ResultRow[Any]]) -> list[str]:
    """The settings of a method and its threshold in which its rows differ."""
    names = dict.fromkeys(name for row in rows for name in row.settings)
    return [
        name
        for name in names
        if name not in _APART
        and not name.startswith("features of ")
        and len({row.settings.get(name) for row in rows}) > 1
    ]


def _is_best(by_column: Mapping[str, Sequence[str]]) -> bool:
    return any(isinstance(text, Best) for texts in by_column.values() for text in texts)
