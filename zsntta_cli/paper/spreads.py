"""The variance of a difference by chance alone: by the order and by the choice of OOD images.

This module does not import NumPy.
"""

import functools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zsntta_cli.paper.cells import cells
from zsntta_cli.paper.comparing import ROUNDING, Measured
from zsntta_cli.paper.printed.tables import FIVE_SEEDS, TABLES
from zsntta_cli.paper.runs import Streams, Wishes, streams
from zsntta_cli.paper.sampling import (
    UNKNOWN_VARIANCE,
    Variance,
    choice_variance,
    is_chosen,
    pooled,
    total,
)
from zsntta_cli.simulation.runs import RunSettings

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record

_PERCENT = 100**2  # the factor of a variance from fractions to percent
_STEADY = "zs-clip"  # a method of which only the threshold depends on the stream


@dataclass(frozen=True)
class OrderSpreads:
    """The ± over five orders that tables 20 and 21 print, by stream and by method."""

    of_stream: dict[tuple[RunSettings, str], Variance]  # by the run with seed 0 and metric
    of_method: dict[tuple[str, str], Variance]  # by method and metric: the mean over their streams

    def of(self, run: RunSettings, metric: str) -> Variance:
        """The variance of a run's metric over orders, in percent; nan for other metrics.

        A stream without a printed ± has the mean of its method's printed variances; methods with
        AdaND as detector have AdaND's, and all others that are not printed have ZS-CLIP's.
        """
        once = replace(run, stream=replace(run.stream, seed=0))
        return self.of_stream.get((once, metric)) or self.of_usual(run.method, metric)

    def of_usual(self, method: str, metric: str) -> Variance:
        """The mean of a method's printed variances, or of AdaND's or ZS-CLIP's in its place."""
        stand_in = "adand" if method.startswith("adand") else _STEADY
        place = (method, metric) if (method, metric) in self.of_method else (stand_in, metric)
        return self.of_method.get(place, UNKNOWN_VARIANCE)


@functools.cache
def order_spreads(wishes: Wishes) -> OrderSpreads:
    """The printed ± of tables 20 and 21 for the streams of these wishes.

    A printed ± of 0.00 counts as half a unit of its last digit, the most that it can be.
    """
    once, of_stream = replace(wishes, seeds=(0,)), {}
    of_method = defaultdict(list)
    for table in (table for table in TABLES if table.seeds == FIVE_SEEDS):
        for cell in cells(table, wishes.encoder):
            runs = [run for seeds in streams(cell, once) for run in seeds]
            if len(runs) > 1:  # an average, whose ± is not its own standard deviation
                continue
            for metric, number in zip(cell.metrics, cell.published, strict=False):
                variance = Variance(max(number.std, ROUNDING) ** 2, len(table.seeds) - 1)
                of_stream[runs[0], metric] = variance
                of_method[cell.of.method, metric].append(variance)
    return OrderSpreads(of_stream, {place: pooled(every) for place, every in of_method.items()})


def difference_variance(
    measured: Measured,
    parts: Sequence[Streams],
    results: "Mapping[RunSettings, Record]",
    metric: str,
    printed: OrderSpreads,
    seeds: int,
) -> Variance:
    """The variance, in percent, of measured - published if only chance separates them.

    `parts` are the streams that the number is an average over, and those that are subtracted from
    it. `seeds` is the number of seeds of which the paper's number is the mean.

    The choice of OOD images counts for both numbers. It changes the metric and also the threshold,
    the latter about as much as the order changes ZS-CLIP's, which is added if there is a choice.
    """
    count, sets = len(measured.seeds), len(parts[0])
    records = [
        [next(results[run] for run in of_set if run in results) for of_set in part]
        for part in parts
    ]
    if count > 1:
        order = Variance(measured.std**2, count - 1)
    else:
        orders = [printed.of(r.settings, metric) for of_part in records for r in of_part]
        order = total(orders).times(1 / sets**2)
    choices = [choice for of_part in records for choice in _choices(of_part, metric, printed)]
    return total([order.times(1 / count + 1 / seeds), total(choices).times(2 / sets**2)])


def _choices(records: "Sequence[Record]", metric: str, printed: OrderSpreads) -> Iterator[Variance]:
    """The variances of a metric's sum over streams by the choice of OOD images, set by set.

    Streams with the same OOD set, such as those of corruptions, have the same OOD images, so their
    deviations add up.
    """
    threshold = printed.of_usual(_STEADY, metric)
    by_set = defaultdict(list)
    for record in records:
        by_set[record.settings.ood_set].append(record)
    for of_set in by_set.values():
        deviations = [math.sqrt(choice_variance(record, metric)) for record in of_set]
        yield Variance(_PERCENT * math.fsum(deviations) ** 2)
        if is_chosen(of_set[0]):
            yield threshold.times(len(of_set) ** 2)
