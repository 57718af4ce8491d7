"""Recorded runs that are run again here: missing or different features, and the outcome."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from zsntta_cli.cache.lacking import missing_sets
from zsntta_cli.cache.origin import differences_in_words, origins_in
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS, NO_TEXT
from zsntta_cli.results.exchange import read_records
from zsntta_cli.results.grid import foresee
from zsntta_cli.results.store import Keeping
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import revision
from zsntta_cli.simulation.sources import ITEMS, MORE_TEXT, Library

Repeated = tuple[Record, Record]  # what was recorded, and the same settings run here


def recorded_runs(path: Path) -> list[Record]:
    """The records of a file whose runs are to be made again, with the presets that they name.

    Raises:
        SettingsError: a run reads a file that its record names; records may come from anyone.
        StoreError: the file holds no records.
    """
    records = []
    for record in read_records(path):
        settings = dataclasses.replace(record.settings, preset=record.preset)
        if METHODS[settings.method].needs == NO_TEXT:
            raise SettingsError(
                f"{settings.method} reads its 'no' text features, but a file named in a record "
                f"is not opened: run it with --method {settings.method} --set no-text=FILE.npy"
            )
        records.append(dataclasses.replace(record, settings=settings))
    return records


def pair_up(recorded: Sequence[Record], records: Sequence[Record]) -> list[Repeated]:
    """Each record with the new record of its run, without runs that Ctrl-C left out."""
    by_run = {record.settings: record for record in records}
    return [(old, by_run[old.settings]) for old in recorded if old.settings in by_run]


def outcome(repeated: Sequence[Repeated]) -> str:
    """How many records came out the same, bit for bit, as a sentence."""
    same = 0
    for old, new in repeated:  # of metrics, those that the old record has
        had = [name for name, metric in METRICS.items() if name in getattr(old, metric.group)]
        values = [[repr(record.metric(name)) for name in had] for record in (old, new)]
        same += old.counts == new.counts and values[0] == values[1]
    return f"{same:,} of {len(repeated):,} records came out the same, bit for bit."


def differences(root: Path, runs: Sequence[Record]) -> list[str]:
    """What differs here from where runs were recorded: features and rules, in sentences.

    This is known before anything is run.

    Raises:
        StoreError: feature files of the records' sets are missing here.
    """
    if missing := foresee(root, [run.settings for run in runs], Keeping()).missing:
        raise missing_sets(missing, root)
    foreseen = Library(root, rows=False)
    sets: dict[tuple[str, str], dict[str, None]] = {}  # by what they are and what differs
    for run in runs:
        here, recorded = foreseen.look(run.settings), origins_in(run.features)
        digests = here.items() if isinstance(here, dict) else ()  # else the run says what it lacks
        changed = [name for name, digest in digests if run.digests.get(name) != digest]
        origins = foreseen.sources(run.settings).origins() if changed else {}
        for name in changed:
            about, _, of = name.rpartition("/")
            kinds = {"text": "the class text features of", ITEMS: "the lists of"}
            kind, why = kinds.get(about, "the features of"), "other images"
            if name == MORE_TEXT:
                kind, of, why = "the features of the word lists", "", "other words"
            elif about != ITEMS:
                why = differences_in_words(origins.get(of, {}), recorded.get(of, {}))
            sets.setdefault((kind, why), {})[f" '{of}'" if of else ""] = None
    sentences = [
        f"{kind}{','.join(names)} differ from the record's: {why}."
        for (kind, why), names in sets.items()
    ]
    methods = {r.settings.method for r in runs if r.revision != (revision(r.settings.method) or "")}
    return sentences + [f"{m} has other rules or another source here." for m in sorted(methods)]
