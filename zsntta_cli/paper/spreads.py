"""How far a difference may be off by chance alone: by the order, the choice of OOD images, both.

Light: no NumPy.
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
from zsntta_cli.paper.sampling import Variance, choice_variance, is_chosen, pooled, total
from zsntta_cli.simulation.runs import RunSettings

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record

_PERCENT = 100**2  # of a variance
_STEADY = "zs-clip"  # whose threshold alone follows the stream


@dataclass(frozen=True)
class OrderSpreads:
    """The ± over five orders that tables 20 and 21 print, of their streams and of the methods."""

    of_stream: dict[tuple[RunSettings, str], Variance]  # by the run of seed 0 and metric
    of_method: dict[tuple[str, str], Variance]  # by method and metric: the mean over their streams

    def of(self, run: RunSettings, metric: str) -> Variance:
        """The variance over orders, in percent, of a run's metric.

        Of a stream without a printed ± it is the mean of its method's printed ones; AdaND's also
        where it is combined, ZS-CLIP's for the methods that train nothing. Nan of other metrics.
        """
        once = replace(run, stream=replace(run.stream, seed=0))
        return self.of_stream.get((once, metric)) or self.of_usual(run.method, metric)

    def of_usual(self, method: str, metric: str) -> Variance:
        """The mean of the variances that are printed of a method."""
        stand_in = "adand" if method.startswith("adand") else _STEADY
        place = (method, metric) if (method, metric) in self.of_method else (stand_in, metric)
        return self.of_method.get(place, Variance(math.nan, 0))


@functools.cache
def order_spreads(wishes: Wishes) -> OrderSpreads:
    """The printed ± of tables 20 and 21 for the streams that are wished for.

    A printed ± of 0.00 may be up to half of its last digit.
    """
    once, of_stream = replace(wishes, seeds=(0,)), {}
    of_method = defaultdict(list)
    for table in (table for table in TABLES if table.seeds == FIVE_SEEDS):
        for cell in cells(table, wishes.encoder):
            runs = [run for seeds in streams(cell, once) for run in seeds]
            if len(runs) > 1:  # an average: its ± is no deviation of it
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
    """The variance, in percent, of measured - published where nothing but chance is between them.

    `parts`: the streams that the number is an average over, and those that are subtracted from it.
    `seeds`: how many the paper's number is the mean of.

    The choice of OOD images counts on either side. Beside the metric it moves the threshold, about
    as much as the order moves that of ZS-CLIP, which is added where there is a choice.
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

    Streams with the same OOD set, such as those of corruptions, have the same images of it.
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
