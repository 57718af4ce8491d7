"""The rows of the board: averages over pairs, marks, cost."""

import math
import statistics
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from zsntta_cli.errors import counted
from zsntta_cli.progress import Reporter
from zsntta_cli.report.board.contenders import WHOLE, Contender
from zsntta_cli.report.board.plan import MIDDLE, OTHERS, RATIOS, BoardStream, Pair, Plan, Spot
from zsntta_cli.report.page import BASELINE
from zsntta_cli.report.pairs import PairContest
from zsntta_cli.results.frame import CLEAN, Value, average, average_by_seed, worst_tenth
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.results.obtain import run_all
from zsntta_cli.results.ranking import RankMark, average_marks
from zsntta_cli.results.running import Jobs
from zsntta_cli.simulation.metrics import METRICS, metrics_of
from zsntta_cli.simulation.record import Record

Results = Mapping[Spot, Record]


def obtain_results(plan: Plan, jobs: Jobs, reporter: Reporter, keeping: Keeping) -> Results:
    """The records of all runs, computed or taken from the store; Ctrl-C keeps finished ones."""
    runs, started = plan.runs(), time.monotonic()
    wanted = list(dict.fromkeys(runs.values()))
    records = run_all(plan.root, wanted, jobs, None, reporter, keeping)
    reporter.note(f"{counted(len(wanted), 'run')} in {time.monotonic() - started:,.0f} s")
    by_run = dict(zip(wanted, records, strict=True))
    return {spot: by_run[run] for spot, run in runs.items()}


class BoardColumn(NamedTuple):
    """A metric on one kind of stream."""

    metric: str
    stream: BoardStream

    @property
    def head(self) -> str:
        """The names of the metric and of the stream."""
        return f"{METRICS[self.metric].head} {self.stream.name}"

    def text(self, value: Value, with_std: bool = True) -> str:
        """A value as the board shows it."""
        return METRICS[self.metric].text(value.mean, value.std if with_std else math.nan)


COLUMNS = (
    *(BoardColumn("acc_h" if stream.ratio else "acc_s", stream) for stream in RATIOS),
    BoardColumn("auroc", MIDDLE),
)
# Beside the shuffled stream of as many OOD as ID samples.
OTHER_COLUMNS = tuple(BoardColumn("acc_h", stream) for stream in (MIDDLE, *OTHERS))
_BOTH_FPR95 = ("fpr95", "fpr95_ood")
WORST = BoardColumn("acc_h", MIDDLE)  # whose worst tenth of runs is shown


def columns_of_a_page() -> tuple[BoardColumn, ...]:
    """The columns over all pairs on a page, which has more room than a screen."""
    return (*COLUMNS, *(BoardColumn(name, MIDDLE) for name in _BOTH_FPR95))


def columns_of_a_pair() -> tuple[BoardColumn, ...]:
    """The columns of the table of a single pair."""
    names = [metric.name for metric in metrics_of("accuracy")]
    return tuple(BoardColumn(name, MIDDLE) for name in (*names, "auroc", *_BOTH_FPR95))


@dataclass(frozen=True)
class BoardRow:
    """One row: a value and a mark for each column."""

    contender: Contender
    values: tuple[Value, ...]
    marks: tuple[RankMark, ...]
    microseconds: float  # an item
    worst: float  # the mean of the worst tenth of its runs


def board_rows(
    plan: Plan,
    results: Results,
    noise: str,
    pair: Pair | None = None,
    columns: Sequence[BoardColumn] = (),
) -> list[BoardRow]:
    """The rows over all pairs, or on one, the best first: by Acc_H, then by AUROC."""
    columns = columns or (columns_of_a_pair() if pair else COLUMNS)
    records = _by_label(plan, results, noise, pair)
    cells = [_column(plan, records, column, pair) for column in columns]
    rows = []
    for contender, *in_columns in zip(plan.running, *cells, strict=True):
        values, marks = zip(*in_columns, strict=True)
        by_spot = records[contender.label]
        worst = worst_tenth(_by_seed(plan, by_spot, WORST, pair), METRICS[WORST.metric])
        rows.append(BoardRow(contender, values, marks, _cost(by_spot.values()), worst))
    return sorted(rows, key=lambda row: _rank(row, columns))


def _by_label(
    plan: Plan, results: Results, noise: str, pair: Pair | None = None
) -> dict[str, dict[Spot, Record]]:
    """The records of the running contenders, over all pairs or on one."""
    records: dict[str, dict[Spot, Record]] = {one.label: {} for one in plan.running}
    for spot, record in results.items():
        if spot.noise == noise and pair in (None, spot.pair):
            records[spot.label][spot] = record
    return records


def pair_contest(plan: Plan, results: Results, noise: str) -> PairContest:
    """Acc_H at 50 % noise over all pairs, of methods that decide before the stream's end."""
    column, records = BoardColumn("acc_h", MIDDLE), _by_label(plan, results, noise)
    rivals = [one.label for one in plan.running if one.decides and WHOLE not in one.inputs]
    by_pair = {
        label: {
            (pair.id_set, pair.ood_set or CLEAN): by_seed
            for pair, by_seed in _by_seed(plan, records[label], column, None).items()
        }
        for label in rivals
    }
    return PairContest(METRICS[column.metric], by_pair, BASELINE)


def _column(
    plan: Plan, records: Mapping[str, Mapping[Spot, Record]], column: BoardColumn, pair: Pair | None
) -> list[tuple[Value, RankMark]]:
    """Averages of the contenders with their marks; seeds, not pairs, are the replicates."""
    metrics = [_by_seed(plan, records[one.label], column, pair) for one in plan.running]
    by_seed = list(map(average_by_seed, metrics))
    # What sees the whole stream before it decides is shown, and no rival.
    competes = [WHOLE not in one.inputs for one in plan.running]
    marks = average_marks(by_seed, column.metric, competes)
    return list(zip(map(average, metrics), marks, strict=True))


def _by_seed(
    plan: Plan, runs: Mapping[Spot, Record], column: BoardColumn, pair: Pair | None
) -> dict[Pair, dict[int, float]]:
    """A metric by seed on each pair of the table, or on each ID set if the stream is clean."""
    pairs = plan.pairs if column.stream.ratio else [Pair(name, None) for name in plan.id_sets]
    by_pair: dict[Pair, dict[int, float]] = {each: {} for each in ([pair] if pair else pairs)}
    for spot, record in runs.items():
        if spot.stream == column.stream and not record.unfinished:
            by_pair[spot.pair][spot.seed] = record.metric(column.metric)
    return by_pair


def _cost(records: Collection[Record]) -> float:
    """Microseconds per item of the method alone: the median of its runs, since one run compiles."""
    if not records:
        return math.nan
    return 1e6 * statistics.median(r.seconds / sum(r.counts.values()) for r in records)


def _rank(row: BoardRow, columns: Sequence[BoardColumn]) -> tuple[bool, bool, float, str]:
    """Scores without decisions and rows that lack a pair come last; ties are ordered by name."""
    metric = "acc_h" if row.contender.decides else "auroc"
    means = [v.mean for v, c in zip(row.values, columns, strict=True) if c.metric == metric]
    mean = statistics.fmean(means) if means else math.nan
    lacks = math.isnan(mean)
    return not row.contender.decides, lacks, 0.0 if lacks else -mean, row.contender.label
