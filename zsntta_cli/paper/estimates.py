"""How long runs will take: as kept ones took, or as it was measured here, or as the paper says."""

import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import read_header
from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.paper.wanted import is_timed
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.stream import stream_sizes

# Seconds an item on two CPU cores (docs/speed.md): 88 replays of 44 pairs, reading and scoring
# their features, in 18 s; TDA at 1,000 classes.
_REPLAY, _TDA = 4.4e-6, 77e-6
# Table 4, seconds a sample of ImageNet on one A800: item by item, and of Tent in batches. Tent item
# by item is not in it: as SoTTA.
_PAPER = {"sotta": 0.1193, "tpt": 0.3219, "tent": 0.0037, "adand+tent": 0.0037}
_ONE_BY_ONE = 0.1193
_FROZEN = {1: 0.1125, 128: 0.0015}  # ZS-CLIP's, by batch size: that of the encoder
PAPERS = "at the paper's own speed (its table 4, one A800)"
KEPT = "as those that are kept took"
MEASURED = "as measured on two CPU cores"


@dataclass(frozen=True)
class Estimate:
    """How long some runs take, and whose word that is."""

    items: int
    seconds: float
    source: str

    @property
    def text(self) -> str:
        """In words."""
        return duration(self.seconds)


def estimate(
    root: Path, runs: Sequence[RunSettings], kept: Mapping[RunSettings, Record]
) -> Estimate:
    """The time of some runs, one after the other; one source is told where all are of one."""
    size = sizes(root)
    rates = _kept_rates(kept)
    items, seconds, sources = 0, 0.0, dict[str, None]()
    for run in runs:
        count = sum(stream_sizes(run.stream, size(run.encoder, run.id_set), _ood(run, size)))
        rate, source = _rate(run, rates)
        items, seconds = items + count, seconds + rate * count
        sources[source] = None
    return Estimate(items, seconds, ", or ".join(sources))


Size = Callable[[str, str], int]


def sizes(root: Path) -> Size:
    """Images of a set by an encoder's folder and its name: of its features, else as published."""

    @functools.cache
    def size(folder: str, name: str) -> int:
        try:
            return read_header(feature_path(root, folder, name)).images
        except (StoreError, OSError):
            return datasets.known(name).images

    return size


def _ood(run: RunSettings, size: Size) -> int:
    return size(run.encoder, run.ood_set) if run.ood_set else 0


def _kept_rates(kept: Mapping[RunSettings, Record]) -> dict[str, float]:
    """Seconds an item of a method, the median of its kept runs."""
    rates: dict[str, list[float]] = {}
    for run, record in kept.items():
        rates.setdefault(run.method, []).append(record.seconds / sum(record.counts.values()))
    return {method: statistics.median(some) for method, some in rates.items()}


def _rate(run: RunSettings, rates: Mapping[str, float]) -> tuple[float, str]:
    """Seconds an item of a run, and whose word that is.

    A replay's kept seconds are of the method alone: reading and scoring come on top.
    """
    if is_timed(run) and not METHODS[run.method].live:
        return _FROZEN[run.options.batch_size], PAPERS
    if not METHODS[run.method].live:
        usual = _TDA if run.method == "tda" else _REPLAY
        return max(usual, rates.get(run.method, 0)), MEASURED
    if run.method in rates:
        return rates[run.method], KEPT
    one_by_one = run.method == "tent" and run.options.batch_size == 1
    return _ONE_BY_ONE if one_by_one else _PAPER[run.method], PAPERS


def duration(seconds: float) -> str:
    """Seconds in words: the unit that reads best."""
    for most, unit, size in ((90, "s", 1), (5400, "min", 60), (360_000, "h", 3600)):
        if seconds < most:
            return f"{max(1, round(seconds / size)):,} {unit}"
    return f"{seconds / 86_400:,.0f} days"
