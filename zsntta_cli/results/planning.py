"""What runs would cost: which are kept, which lack features, how long the others take.

Nothing is run or written. A time is estimated only from kept runs with equal settings.
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import read_header
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.errors import MissingText, StoreError, ZsnttaError
from zsntta_cli.results.keeping import Keeping, kept_before
from zsntta_cli.results.listing import settings_of
from zsntta_cli.results.store import RecordStore
from zsntta_cli.settings import NO_NOISE
from zsntta_cli.simulation.digests import Foreseen
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library
from zsntta_cli.simulation.stream import stream_sizes

NeededFile = tuple[str, str]  # the folder of an encoder, the name of a set or of a noise pool


def needed_files(run: RunSettings) -> list[NeededFile]:
    """The feature files of a run's images: its ID set, its OOD set, its injected noise."""
    pool = noise_name(run.stream.noise) if run.stream.noise != NO_NOISE else None
    sets = filter(None, (run.id_set, run.ood_set, pool))
    return [(run.encoder, name) for name in sets]


@dataclass(frozen=True)
class Estimate:
    """How long some runs would take, judged by kept runs."""

    seconds: float  # of their methods
    runs: int  # that it is of
    unknown: int  # runs that no kept run is like
    basis: int  # kept runs that it goes by


@dataclass(frozen=True)
class Foresight:
    """What some runs would cost."""

    root: Path
    runs: Sequence[RunSettings]
    kept: frozenset[RunSettings]
    lacking: Mapping[RunSettings, ZsnttaError | None]  # why a run cannot be; None: files missing
    missing: Mapping[str, Sequence[str]]  # sets without features, by the folder of their encoder
    estimate: Estimate

    @cached_property
    def left(self) -> list[RunSettings]:
        """The runs that would be computed."""
        return [run for run in self.runs if run not in self.kept and run not in self.lacking]

    @property
    def reasons(self) -> list[ZsnttaError]:
        """Why runs that have all their files cannot be computed, each reason once."""
        return list({str(error): error for error in self.lacking.values() if error}.values())


def foresee(root: Path, runs: Sequence[RunSettings], keeping: Keeping) -> Foresight:
    """What some runs would cost.

    Raises:
        StoreError: the store cannot be read.
    """
    runs = list(dict.fromkeys(runs))
    kept = frozenset(kept_before(root, runs, keeping))
    lacking: dict[RunSettings, ZsnttaError | None] = {}
    foreseen, library = Foreseen(root), Library(root)
    for run in (run for run in runs if run not in kept):
        if _absent_files(root, run):
            lacking[run] = None
        elif foreseen.digests(run) is None:
            lacking[run] = _reason(root, library, run)
    missing: dict[str, list[str]] = {}
    absent = (file for run in lacking for file in _absent_files(root, run))
    for folder, name in dict.fromkeys(absent):
        missing.setdefault(folder, []).append(name)
    to_run = [run for run in runs if run not in kept and run not in lacking]
    return Foresight(root, runs, kept, lacking, missing, estimate(root, to_run, keeping.path))


def _absent_files(root: Path, run: RunSettings) -> list[NeededFile]:
    return [file for file in needed_files(run) if not feature_path(root, *file).exists()]


def _reason(root: Path, library: Library, run: RunSettings) -> ZsnttaError:
    """Why a run that has all its files cannot be computed."""
    try:
        header = read_header(feature_path(root, run.encoder, run.id_set))
        if run.prompt not in header.templates:
            return MissingText(run.prompt, run.id_set, header.templates)
        library.more_text(run)
        library.sources(run)
    except ZsnttaError as error:
        return error
    return StoreError(f"{run.method} on '{run.id_set}' cannot be run on these features.")


Likeness = tuple[str, str, str, frozenset[tuple[str, Any]]]


Rates = Mapping[Likeness, Sequence[float]]  # seconds an item of kept runs that are alike


def estimate(
    root: Path, runs: Sequence[RunSettings], store: Path, rates: Rates | None = None
) -> Estimate:
    """How long runs would take, by the seconds per item of kept runs that are like each.

    Alike are runs of one method with the same settings on the same ID set by the same encoder.
    `rates`: the rates of the store, if they were read before.
    """
    rates = (kept_rates(store) if runs else {}) if rates is None else rates
    images = lru_cache(maxsize=None)(
        lambda folder, name: read_header(feature_path(root, folder, name)).images if name else 0
    )
    seconds, basis, unknown = list[float](), dict[Likeness, int](), 0
    for run in runs:
        like = (run.method, run.encoder, run.id_set, frozenset(vars(run.options).items()))
        if of_like := rates.get(like):
            sizes = (images(run.encoder, run.id_set), images(run.encoder, run.ood_set))
            seconds.append(statistics.median(of_like) * sum(stream_sizes(run.stream, *sizes)))
            basis[like] = len(of_like)
        else:
            unknown += 1
    return Estimate(math.fsum(seconds), len(seconds), unknown, sum(basis.values()))


def kept_rates(store: Path) -> Rates:
    """Seconds per item of all kept runs, by method, encoder, ID set and settings."""
    rates: dict[Likeness, list[float]] = {}
    if not store.exists():
        return rates
    with RecordStore(store) as records:
        counts = records.values("$.counts")
        for run in records.summaries():
            names, flat = json.loads(run.options or "{}"), settings_of(run)
            options = frozenset((name, flat[name]) for name in names)
            items = sum(json.loads(counts.get(run.key) or "{}").values())
            if items:
                like = (run.method, run.encoder, run.id_set, options)
                rates.setdefault(like, []).append(run.seconds / items)
    return rates


def count_by_method(foresight: Foresight) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """Counts of runs by method and ID set: all, kept, to be computed, and lacking something."""
    counts: dict[tuple[str, str], list[int]] = {}
    for run in foresight.runs:
        place = 1 if run in foresight.kept else 3 if run in foresight.lacking else 2
        of_method = counts.setdefault((run.method, run.id_set), [0, 0, 0, 0])
        of_method[0] += 1
        of_method[place] += 1
    return {of: (every, kept, left, lack) for of, (every, kept, left, lack) in counts.items()}
