"""The measured value of a cell, from records: frame.py's average over OOD sets or corruptions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from zsntta_cli.datasets.names import SetName
from zsntta_cli.paper.cells import PaperCell
from zsntta_cli.paper.comparing import Comparison, Measured
from zsntta_cli.paper.printed.published import AVERAGE
from zsntta_cli.paper.printed.tables import METHOD_NAMES, set_name
from zsntta_cli.paper.runs import Streams, Wishes, miscounted_files, streams
from zsntta_cli.results import frame
from zsntta_cli.results.keeping import NeededFile, needed_files
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings

Results = Mapping[RunSettings, Record]

_MINUS = "_minus_zs-clip"


def compare(every: Sequence[PaperCell], wishes: Wishes, results: Results) -> list[Comparison]:
    """Compare all metrics of a table's cells with what is published."""
    miscounted = miscounted_files(wishes.root, results)
    comparisons = []
    for cell in every:
        runs, base = streams(cell, wishes), _base(cell, every, wishes)
        for metric, number in zip_longest(cell.metrics, cell.published):
            measured = measure(runs, base, results, metric)
            if measured and miscounted:
                measured = replace(measured, miscounted=_counts((*runs, *base), miscounted))
            comparisons.append(Comparison(cell, metric, measured, number))
    return comparisons


def _counts(runs: Streams, miscounted: Mapping[NeededFile, str]) -> tuple[str, ...]:
    """The sets of some streams that are not the published ones, with counts, each once."""
    files = needed_files(run for of_set in runs for run in of_set)
    return tuple(f"'{file[1]}' ({miscounted[file]})" for file in files if file in miscounted)


def _base(cell: PaperCell, every: Sequence[PaperCell], wishes: Wishes) -> Streams:
    """The streams of ZS-CLIP that are subtracted in a cell of differences; none for other cells."""
    if not cell.is_lead:
        return ()
    row, column = (METHOD_NAMES["zs-clip"],), set_name(AVERAGE)
    [base] = [c for c in every if (c.group, c.row, c.column) == (cell.group, row, column)]
    return streams(base, wishes)


def measure(runs: Streams, base: Streams, results: Results, metric: str) -> Measured | None:
    """Measure a metric of the streams, in percent; None if there is no result of any.

    `base` are streams that are subtracted set by set, for a metric "…_minus_zs-clip".
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
    """A metric in percent by the set of a stream and by seed, for the runs that have results."""
    return {
        _set_of(of_set[0]): {
            run.stream.seed: 100 * results[run].metric(metric) for run in of_set if run in results
        }
        for of_set in runs
    }


def _set_of(run: RunSettings) -> str:
    """The set in which a cell's streams differ: the corrupted ID set, or the OOD set."""
    is_corrupted = bool(SetName.parse(run.id_set).parameters)
    return run.id_set if is_corrupted else set_name(run.ood_set or "clean")


def _difference(by_seed: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return {seed: by_seed[seed] - other[seed] for seed in by_seed if seed in other}
