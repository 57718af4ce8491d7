"""Recorded runs on the features that are here: which of them lack, and what of them differs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.origin import Origin, differences_in_words
from zsntta_cli.datasets.names import WORDS, SetName
from zsntta_cli.errors import MissingSets, OtherFeatures
from zsntta_cli.results.exchange import RecordedRun
from zsntta_cli.simulation.digests import MORE_TEXT
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library

Repeated = tuple[RecordedRun, Record]  # what was recorded, and the same settings run here


def check_present(root: Path, runs: Sequence[RecordedRun]) -> None:
    """Refuse records of sets that have no feature file here, before anything is run.

    Raises:
        MissingSets: all that is missing, with how it was made where the records say so.
    """
    missing: dict[str, list[str]] = {}
    origins: dict[str, dict[str, Origin]] = {}
    for run in runs:
        folder = run.settings.encoder
        read = [name for name in run.digests if "/" not in name and name != MORE_TEXT]
        for name in dict.fromkeys([*read, *run.origins]):
            if not feature_path(root, folder, name).exists():
                missing.setdefault(folder, []).append(name)
                if name in run.origins:
                    origins.setdefault(folder, {})[name] = run.origins[name]
    if missing:
        names = {folder: list(dict.fromkeys(names)) for folder, names in missing.items()}
        raise MissingSets(names, str(root), origins)


def pair_up(runs: Sequence[RecordedRun], records: Sequence[Record]) -> list[Repeated]:
    """Each recorded run with its new record; those that Ctrl-C came before are left out."""
    by_run: Mapping[RunSettings, Record] = {record.settings: record for record in records}
    return [(run, by_run[run.settings]) for run in runs if run.settings in by_run]


def check_features(root: Path, repeated: Sequence[Repeated]) -> None:
    """Refuse features that are not those that the recorded runs saw.

    Raises:
        OtherFeatures: the first that differ, and in what.
    """
    for what, differences in other_features(root, repeated).items():
        raise OtherFeatures(what, differences)


def other_features(root: Path, repeated: Sequence[Repeated]) -> dict[str, str]:
    """Which features are not those that the recorded runs saw, and what of them differs."""
    library, differing = Library(root), dict[str, str]()
    for run, record in repeated:
        for name, digest in record.digests.items():
            is_new = "/" in name  # older records do not have these
            if run.digests.get(name, digest if is_new else "") != digest:
                what = _in_words(name)
                if what not in differing:
                    differing[what] = _what_differs(run, library, name)
    return differing


def _in_words(name: str) -> str:
    """What one of a run's digests is of."""
    if name == MORE_TEXT:
        return "the features of the word lists"
    about, _, of = name.rpartition("/")
    return f"the class text features of '{of}'" if about == "text" else f"the features of '{of}'"


def _what_differs(run: RecordedRun, library: Library, name: str) -> str:
    """What differs of the features that one of a run's digests is of."""
    here, there = library.origins(run.settings), run.origins
    if name != MORE_TEXT:
        of = name.rpartition("/")[2]
        return differences_in_words(here.get(of, {}), there.get(of, {}))
    lists = {file for file in here if SetName.parse(file).kind == WORDS}
    lists_there = {file for file in there if SetName.parse(file).kind == WORDS}
    if lists_there and lists != lists_there:
        return f"{', '.join(sorted(lists))} here, {', '.join(sorted(lists_there))} there"
    each = {file: differences_in_words(here[file], there.get(file, {})) for file in sorted(lists)}
    return "; ".join(f"{file}: {words}" for file, words in each.items()) or "other text features"
