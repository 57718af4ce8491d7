"""What is measured for a cell: the frame's average over OOD sets or corruptions, from records."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from zsntta_cli.datasets.names import SetName
from zsntta_cli.paper.cells import PaperCell, cells
from zsntta_cli.paper.comparing import ROUNDING, Comparison, Measured
from zsntta_cli.paper.printed.published import AVERAGE
from zsntta_cli.paper.printed.tables import FIVE_SEEDS, METHOD_NAMES, TABLES, set_name
from zsntta_cli.paper.runs import Streams, Wishes, streams
from zsntta_cli.results import frame
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings

Results = Mapping[RunSettings, Record]

_MINUS = "_minus_zs-clip"


def compare(every: Sequence[PaperCell], wishes: Wishes, results: Results) -> list[Comparison]:
    """All metrics of a table's cells beside what is published."""
    spreads = _paper_spreads(wishes) if any(cell.published for cell in every) else {}
    comparisons = []
    for cell in every:
        runs, base = streams(cell, wishes), _base(cell, every, wishes)
        once = streams(cell, replace(wishes, seeds=(0,)))
        for metric, number in zip_longest(cell.metrics, cell.published):
            measured = measure(runs, base, results, metric)
            paper_spread = spreads.get((once, metric), math.nan)
            deviation = _deviation(measured, paper_spread, len(cell.table.seeds))
            comparisons.append(Comparison(cell, metric, measured, number, deviation))
    return comparisons


def _deviation(measured: Measured | None, paper_spread: float, seeds: int) -> float:
    """The standard deviation of measured - published, the means of so many seeds each.

    One spread stands for both: the measured seeds', or else the paper's.
    """
    if measured is None or measured.lacks:
        return math.nan
    count = len(measured.seeds)
    std = measured.std if count > 1 else paper_spread
    return std * math.sqrt(1 / count + 1 / seeds)


def _base(cell: PaperCell, every: Sequence[PaperCell], wishes: Wishes) -> Streams:
    """The streams of ZS-CLIP that a cell is the difference to; none of any other cell."""
    if not cell.is_lead:
        return ()
    row, column = (METHOD_NAMES["zs-clip"],), set_name(AVERAGE)
    [base] = [c for c in every if (c.group, c.row, c.column) == (cell.group, row, column)]
    return streams(base, wishes)


def measure(runs: Streams, base: Streams, results: Results, metric: str) -> Measured | None:
    """A metric of the streams, in percent; None where there is no result of any.

    `base`: streams that are subtracted set by set, of a metric "…_minus_zs-clip".
    """
    name = metric.removesuffix(_MINUS)
    by_set = _by_set(runs, results, name)
    if base:
        subtracted = _by_set(base, results, name)
        by_set = {key: _difference(by_set[key], subtracted.get(key, {})) for key in by_set}
    if not any(by_set.values()):
        return None
    value = frame.average(by_set)
    sets_std = frame.average(by_set, frame.SETS).std
    records = tuple(results[run] for seeds in runs for run in seeds if run in results)
    return Measured(value.mean, value.std, sets_std, value.seeds, value.lacks, records)


def _by_set(runs: Streams, results: Results, metric: str) -> dict[str, dict[int, float]]:
    """A metric by what a stream is of and by seed, of the runs that there are results of."""
    return {
        _set_of(seeds[0]): {r.stream.seed: value(results[r], metric) for r in seeds if r in results}
        for seeds in runs
    }


def _set_of(run: RunSettings) -> str:
    """What sets a cell's streams apart: the corruption of the ID set, or the OOD set."""
    is_corrupted = bool(SetName.parse(run.id_set).parameters)
    return run.id_set if is_corrupted else set_name(run.ood_set or "clean")


def _difference(by_seed: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return {seed: by_seed[seed] - other[seed] for seed in by_seed if seed in other}


def value(record: Record, metric: str) -> float:
    """A metric of a run: percent, seconds a test sample, or GiB.

    A sample's time has its share of the injected images: the paper's AdaND takes 9/8 of ZS-CLIP's.
    """
    if metric == "time_s":
        return record.seconds / (record.counts["id"] + record.counts["ood"])
    if metric == "memory_gib":
        return record.memory / 2**30
    return 100 * record.metric(metric)


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
