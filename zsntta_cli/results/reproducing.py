"""Whether kept runs give the same results again, to the bit, or how much they differ."""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from zsntta_cli.cache.origin import origins_in
from zsntta_cli.progress import Reporter
from zsntta_cli.results.exchange import RecordedRun
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.obtain import run_all
from zsntta_cli.results.store import RecordStore
from zsntta_cli.simulation.metrics import ACCURACIES, DETECTION, FLAGS, METRICS
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.simulator import LiveFactory


@dataclass(frozen=True)
class Reproduction:
    """A run as it was kept, and as it was computed again."""

    kept: Kept
    again: Kept

    @cached_property
    def differences(self) -> dict[str, float]:
        """By metric, new value minus old value, where they are not the same to the bit.

        Only metrics that the kept record has are compared; nan where one of the two has no value.
        """
        old, new = self.kept.record, self.again.record
        return {
            name: new.metric(name) - old.metric(name)
            for name in METRICS
            if _has(old, name) and not _is_same(old.metric(name), new.metric(name))
        }

    @cached_property
    def other_decisions(self) -> int | None:
        """How many test samples are decided differently; None if no items were kept."""
        old, new = self.kept.items, self.again.items
        if old is None or new is None:
            return None
        if len(old) != len(new):
            return max(len(old), len(new))
        is_other = (old.class_index != new.class_index) | (old.is_noise != new.is_noise)
        return int(np.count_nonzero(is_other))

    @property
    def is_exact(self) -> bool:
        """Whether everything that was kept is the same to the bit."""
        is_same = self.kept.record.counts == self.again.record.counts
        return is_same and not self.differences and not self.other_decisions


def _has(record: Record, metric: str) -> bool:
    return any(metric in getattr(record, group) for group in (ACCURACIES, DETECTION, FLAGS))


def _is_same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def reproduce(
    root: Path,
    runs: Sequence[Kept],
    jobs: int,
    live: LiveFactory,
    reporter: Reporter,
) -> list[Reproduction]:
    """Compute all runs again on the features in a folder; the new results are not kept.

    Runs that Ctrl-C left unfinished are left out.
    """
    with tempfile.TemporaryDirectory(prefix="zsntta-") as folder:
        keeping = Keeping(Path(folder) / "again.sqlite", fresh=True, items=True)
        settings = list(dict.fromkeys(kept.record.settings for kept in runs))
        records = run_all(root, settings, jobs, live, reporter, keeping)
        with RecordStore(keeping.path, create=True) as store:
            items = {kept.record.settings: kept.items for kept in store.all()}
    again = {r.settings: Kept(r, {}, items.get(r.settings)) for r in records if not r.unfinished}
    return [
        Reproduction(kept, again[kept.record.settings])
        for kept in runs
        if kept.record.settings in again
    ]


def as_recorded(kept: Kept) -> RecordedRun:
    """A kept run as a recorded run, which can be repeated."""
    record = kept.record
    return RecordedRun(record.settings, record.digests, origins_in(record.features), record)
