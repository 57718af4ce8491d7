"""Recorded runs that are run again here: which features are missing or differ, what comes out."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.lacking import missing_sets
from zsntta_cli.cache.origin import differences_in_words, origins_in
from zsntta_cli.datasets.names import WORDS, SetName
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS, NO_TEXT
from zsntta_cli.results.exchange import read_records
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import revision
from zsntta_cli.simulation.sources import ITEMS, MORE_TEXT, Foreseen, Library

Repeated = tuple[Record, Record]  # what was recorded, and the same settings run here


def recorded_runs(path: Path, no_text: str = "") -> list[Record]:
    """The records of a file whose runs are to be made again, with the presets that they name.

    What needs 'no' text features reads them from the file `no_text`: the path that a record names
    is never opened, because the record may come from anyone. Their digest tells them.

    Raises:
        SettingsError: a run needs such a file, and none is given.
        StoreError: the file holds no records.
    """
    records = []
    for record in read_records(path):
        settings = dataclasses.replace(record.settings, preset=record.preset)
        if METHODS[settings.method].needs == NO_TEXT:
            if not no_text:
                raise SettingsError(
                    f"{settings.method} needs the features of its 'no' text encoder, and the file "
                    f"that a record names is not opened: --set no-text=FILE.npy"
                )
            settings = settings.with_options(no_text=no_text)
        records.append(dataclasses.replace(record, settings=settings))
    return records


def pair_up(recorded: Sequence[Record], records: Sequence[Record]) -> list[Repeated]:
    """Each record with the new one of its run, without runs that Ctrl-C left undone."""
    by_run = {record.settings: record for record in records}
    return [(old, by_run[old.settings]) for old in recorded if old.settings in by_run]


def outcome(repeated: Sequence[Repeated]) -> str:
    """How many records came out as they were, to the bit, as a sentence."""
    same = sum(_is_same(*both) for both in repeated)
    return f"{same:,} of {len(repeated):,} records came out the same to the bit."


def _is_same(old: Record, new: Record) -> bool:
    """Whether all metrics that the old record has, and its counts, are the same to the bit."""
    had = [metric for metric in METRICS.values() if metric.name in getattr(old, metric.group)]
    values = [(old.metric(metric), new.metric(metric)) for metric in had]
    return old.counts == new.counts and all(
        one == other or (math.isnan(one) and math.isnan(other)) for one, other in values
    )


def _check_present(root: Path, runs: Sequence[Record]) -> None:
    """Refuse records of sets that have no feature file here, before anything is run.

    Raises:
        StoreError: sets are missing; it lists all.
    """
    missing: dict[str, list[str]] = {}
    for run in runs:
        folder = run.settings.encoder
        read = [name for name in run.digests if "/" not in name and name != MORE_TEXT]
        for name in dict.fromkeys([*read, *origins_in(run.features)]):
            names = missing.setdefault(folder, [])
            if name not in names and not feature_path(root, folder, name).exists():
                names.append(name)
    if any(missing.values()):
        raise missing_sets({folder: names for folder, names in missing.items() if names}, root)


def differences(root: Path, runs: Sequence[Record]) -> list[str]:
    """What is not here as it was where runs were recorded: features and rules, in sentences.

    This is known before anything is run.

    Raises:
        StoreError: feature files of the records' sets are missing here.
    """
    _check_present(root, runs)
    library, foreseen = Library(root), Foreseen(root)
    sets: dict[tuple[str, str], list[str]] = {}  # by what they are and what differs
    seen = set[tuple[str, str]]()
    for run in runs:
        expected = foreseen.look(run.settings)
        for name, digest in expected.items() if isinstance(expected, dict) else ():
            is_same = run.digests.get(name) == digest
            if not is_same and (run.settings.encoder, name) not in seen:
                seen.add((run.settings.encoder, name))
                about, _, of = name.rpartition("/")
                kind = "the features of the word lists"
                if name != MORE_TEXT:
                    texts = {"text": "the class text features of", ITEMS: "the lists of"}
                    kind = texts.get(about, "the features of")
                sets.setdefault((kind, _what_differs(run, library, name)), []).append(of)
    others = {r.settings.method for r in runs if r.revision != (revision(r.settings.method) or "")}
    sentences = []
    for (kind, why), names in sets.items():
        of_sets = "" if MORE_TEXT in names else f" {', '.join(map(repr, names))}"
        sentences.append(f"{kind}{of_sets} are not those of the record: {why}.")
    return sentences + [f"{m} is of other rules or another source here." for m in sorted(others)]


def _what_differs(run: Record, library: Library, name: str) -> str:
    """How the features behind one of a run's digests differ."""
    if name.startswith(f"{ITEMS}/"):
        return "other images"
    here = library.origins(run.settings)
    recorded = origins_in(run.features)
    if name != MORE_TEXT:
        of = name.rpartition("/")[2]
        return differences_in_words(here.get(of, {}), recorded.get(of, {}))
    lists = {file for file in here if SetName.parse(file).kind == WORDS}
    lists_recorded = {file for file in recorded if SetName.parse(file).kind == WORDS}
    if lists_recorded and lists != lists_recorded:
        return f"{', '.join(sorted(lists))} here, {', '.join(sorted(lists_recorded))} there"
    texts = [f"{f}: {differences_in_words(here[f], recorded.get(f, {}))}" for f in sorted(lists)]
    return "; ".join(texts) or "other text features"
