"""Rows of methods that the paper lacks, in the layout of its tables, and a test over pairs.

Such a method runs on the streams of the table's row of AdaND, with its own settings.
"""

from collections.abc import Mapping, Sequence

from zsntta_cli.methods import METHODS
from zsntta_cli.paper.cells import PaperCell, cells
from zsntta_cli.paper.measuring import value
from zsntta_cli.paper.printed.published import AVERAGE
from zsntta_cli.paper.printed.tables import PaperTable
from zsntta_cli.paper.runs import Wishes, rival_name, streams, wished_cells
from zsntta_cli.report.pairs import SPEAKS_ONCE, PairContest
from zsntta_cli.report.sheet import Sheet
from zsntta_cli.results.compare import ByPair
from zsntta_cli.results.frame import CLEAN
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings

_OURS = "adand"
Results = Mapping[RunSettings, Record]


def rival_sheets(table: PaperTable, wishes: Wishes, results: Results) -> list[Sheet]:
    """Compare the added methods with the table's AdaND over pairs, by the test of all reports."""
    every = [c for c in wished_cells(table, wishes) if not c.is_lead]
    metric = "acc_h" if "acc_h" in table.metrics else table.metrics[0]
    if not wishes.methods or metric not in METRICS:
        return []
    labels = {method: rival_name(method) for method in wishes.methods}
    by_label: dict[str, ByPair] = {
        label: _by_pair([c for c in every if c.row == (label,)], wishes, results, metric)
        for label in labels.values()
    }
    ours = [cell for cell in cells(table, wishes.encoder) if cell.of.method == _OURS]
    by_label[table.ours] = _by_pair(
        [cell for cell in ours if not cell.is_lead and cell.row == ours[0].row],
        wishes, results, metric,
    )  # fmt: skip
    contest = PairContest(METRICS[metric], by_label)
    if not contest.is_contest:
        return []
    title = f"Added methods and {table.ours} over pairs, by {METRICS[metric].head}"
    notes = [f"note: {text}" for text in (SPEAKS_ONCE, contest.about(), *contest.notes())]
    return [Sheet(title, ("Method",), contest.columns, contest.rows(), notes)]


def _by_pair(of_row: Sequence[PaperCell], wishes: Wishes, results: Results, metric: str) -> ByPair:
    """A metric of a row by pair and seed, on the streams with noise."""
    by_pair: dict[tuple[str, str], dict[int, float]] = {}
    for cell in of_row:
        if cell.of.ood_set == AVERAGE and any(c.of.ood_set != AVERAGE for c in of_row):
            continue
        for of_set in streams(cell, wishes):
            for run in of_set:
                if run.ood_set and METHODS[run.method].decides:
                    seeds = by_pair.setdefault((run.id_set, run.ood_set or CLEAN), {})
                    if run in results:
                        seeds[run.stream.seed] = value(results[run], metric) / 100
    return by_pair
