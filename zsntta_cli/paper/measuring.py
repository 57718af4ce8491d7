"""What is measured for a cell: means over OOD sets or corruptions, by seed, from records."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from zsntta_cli.paper.cells import Cell, cells
from zsntta_cli.paper.comparing import ROUNDING, Comparison, Measured, published_number
from zsntta_cli.paper.printed.names import METHODS, shown
from zsntta_cli.paper.printed.published import AVERAGE
from zsntta_cli.paper.printed.tables import FIVE_SEEDS, TABLES
from zsntta_cli.paper.wanted import Streams, Wishes, streams
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings

Results = Mapping[RunSettings, Record]

_MINUS = "_minus_zs-clip"


def compare(some: Sequence[Cell], wishes: Wishes, results: Results) -> list[Comparison]:
    """All metrics of a table's cells beside what is published."""
    known = _paper_spreads(wishes) if any(cell.published for cell in some) else {}
    made = []
    for cell in some:
        own = streams(cell, wishes)
        base = _base(cell, some, wishes)
        once = streams(cell, replace(wishes, seeds=(0,)))
        for i, metric in enumerate(cell.metrics):
            found, number = measure(own, base, results, metric), published_number(cell, i)
            paper = known.get((once, metric), math.nan)
            deviation = _deviation(found, paper, len(cell.table.seeds))
            made.append(Comparison(cell, metric, found, number, deviation))
    return made


def _deviation(found: Measured | None, paper: float, seeds: int) -> float:
    """The standard deviation of measured - published, the means of so many seeds each.

    One spread stands for both: the measured seeds', or else the paper's.
    """
    if found is None:
        return math.nan
    std = found.std if found.seeds > 1 else paper
    return std * math.sqrt(1 / found.seeds + 1 / seeds)


def _base(cell: Cell, some: Sequence[Cell], wishes: Wishes) -> Streams:
    """The streams of ZS-CLIP that a cell is the difference to; none of any other cell."""
    if not cell.is_lead:
        return ()
    [base] = [
        streams(one, wishes)
        for one in some
        if (one.group, one.row) == (cell.group, (METHODS["zs-clip"],))
        and one.column == shown(AVERAGE)
    ]
    return base


def measure(own: Streams, base: Streams, results: Results, metric: str) -> Measured | None:
    """A metric of the streams that there are results of; None where there are none.

    `base`: streams whose mean is subtracted, of a metric "…_minus_zs-clip".
    """
    name = metric.removesuffix(_MINUS)
    rows = _values(own, results, name)
    others = _values(base, results, name)
    parts = len(rows) < len(own) or len(others) < len(base)
    if not rows or (base and parts):  # means over other sets are no difference
        return None
    means = [statistics.fmean(column) for column in zip(*rows, strict=True)]
    if others:
        theirs = [statistics.fmean(column) for column in zip(*others, strict=True)]
        means = [one - other for one, other in zip(means, theirs, strict=True)]
    stds = [_std(row) for row in rows]
    return Measured(
        statistics.fmean(means), _std(means), statistics.fmean(stds), len(means), len(rows),
        len(own),
    )  # fmt: skip


def _values(some: Streams, results: Results, metric: str) -> list[list[float]]:
    """By stream that has results of all its seeds: the metric of each seed."""
    return [
        [value(results[run], metric) for run in seeds]
        for seeds in some
        if all(run in results for run in seeds)
    ]


def value(record: Record, metric: str) -> float:
    """A metric of a run: percent, seconds a test sample, or GiB.

    A sample's time has its share of the injected images: the paper's AdaND takes 9/8 of ZS-CLIP's.
    """
    if metric == "time_s":
        return record.seconds / (record.counts["id"] + record.counts["ood"])
    if metric == "memory_gib":
        return record.memory / 2**30
    return 100 * record.metric(metric)


def _std(values: Sequence[float]) -> float:
    known = len(values) > 1 and not any(map(math.isnan, values))
    return statistics.stdev(values) if known else math.nan


def _paper_spreads(wishes: Wishes) -> dict[tuple[Streams, str], float]:
    """The ± that the paper prints, by the streams that it is of and by metric.

    A printed ± of 0.00 may be up to half of its last digit.
    """
    once = replace(wishes, seeds=(0,))
    return {
        (streams(cell, once), metric): max(number.std, ROUNDING)
        for table in TABLES
        if table.seeds == FIVE_SEEDS
        for cell in cells(table, wishes.encoder)
        for metric, number in zip(cell.metrics, cell.published, strict=False)
    }
