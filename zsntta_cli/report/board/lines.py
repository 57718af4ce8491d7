"""The rows of the board: means over pairs, their deviation over seeds, marks, cost."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from zsntta_cli.report.board.contenders import WHOLE, Contender
from zsntta_cli.report.board.measuring import Results
from zsntta_cli.report.board.plan import MIDDLE, RATIOS, Pair, Plan, Spot
from zsntta_cli.results.frame import fold
from zsntta_cli.results.ranking import average_marks
from zsntta_cli.simulation.record import Record

_METRICS = {"acc_s": "Acc_S", "acc_n": "Acc_N", "acc_h": "Acc_H", "auroc": "AUROC"}


@dataclass(frozen=True)
class Value:
    """A metric of one cell: mean and sample standard deviation over seeds."""

    mean: float
    std: float = math.nan
    is_best: bool = False

    def text(self, with_std: bool) -> str:
        """Percent with two digits; a dash where there is no sample."""
        if math.isnan(self.mean):
            return "-"
        spread = f"±{100 * self.std:.2f}" if with_std and not math.isnan(self.std) else ""
        return f"{100 * self.mean:.2f}{spread}"


_NOTHING = Value(math.nan)


class Column(NamedTuple):
    """A metric at a noise ratio."""

    metric: str
    ratio: float

    @property
    def head(self) -> str:
        """Its name and its ratio."""
        return f"{_METRICS[self.metric]} {self.ratio:.0%}".replace("%", " %")


COLUMNS = (
    *(Column("acc_h" if ratio else "acc_s", ratio) for ratio in RATIOS),
    Column("auroc", MIDDLE),
)
OF_A_PAIR = tuple(Column(metric, MIDDLE) for metric in ("acc_s", "acc_n", "acc_h", "auroc"))


@dataclass(frozen=True)
class Line:
    """One row; a value is best where it is, or where it is not significantly worse."""

    contender: Contender
    values: tuple[Value, ...]  # of the columns
    microseconds: float  # an item


_ByRun = Mapping[tuple[Pair, int], float]  # by pair and seed


def lines(plan: Plan, results: Results, noise: str, pair: Pair | None = None) -> list[Line]:
    """The rows of all pairs, or of one by OF_A_PAIR; best first: by Acc_H, then by AUROC."""
    columns = OF_A_PAIR if pair else COLUMNS
    rows: dict[str, dict[Spot, Record]] = {one.label: {} for one in plan.running}
    for spot, record in results.items():
        if spot.noise == noise and pair in (None, spot.pair):
            rows[spot.label][spot] = record
    cells = [_column(plan, [_of_runs(row, c) for row in rows.values()], c) for c in columns]
    made = [
        Line(one, values, _cost(list(rows[one.label].values())))
        for one, values in zip(plan.running, zip(*cells, strict=True), strict=True)
    ]
    return sorted(made, key=lambda line: _rank(line, columns))


def _of_runs(row: Mapping[Spot, Record], column: Column) -> _ByRun:
    """A metric of each run; nothing where a score alone has no decision to judge."""
    found = {
        (spot.pair, spot.seed): _metric(record, column.metric)
        for spot, record in row.items()
        if spot.ratio == column.ratio
    }
    return {} if any(map(math.isnan, found.values())) else found


def _metric(record: Record, metric: str) -> float:
    return record.metric(metric)


def _column(plan: Plan, runs: Sequence[_ByRun], column: Column) -> list[Value]:
    """Means and deviations, marked among those that see no item before they decide on it."""
    rivals = [i for i, one in enumerate(plan.running) if WHOLE not in one.inputs]
    found = average_marks([runs[i] for i in rivals], column.metric)
    marked = {i for i, mark in zip(rivals, found, strict=True) if mark.is_marked}
    values = []
    for i, own in enumerate(runs):
        mean = _over_seeds(own) if own else _NOTHING
        values.append(Value(mean.mean, mean.std, i in marked))
    return values


def _over_seeds(runs: _ByRun) -> Value:
    """The mean over pairs, folded over seeds."""
    by_seed: dict[int, list[float]] = {}
    for (_, seed), value in runs.items():
        by_seed.setdefault(seed, []).append(value)
    value = fold({seed: math.fsum(some) / len(some) for seed, some in by_seed.items()})
    return Value(value.mean, value.std)


def _cost(records: Sequence[Record]) -> float:
    """Microseconds an item, of the method alone: the median of its runs, since one compiles."""
    if not records:
        return math.nan
    return 1e6 * statistics.median(r.seconds / sum(r.counts.values()) for r in records)


def _rank(line: Line, columns: Sequence[Column]) -> tuple[bool, float, str]:
    """Scores without decisions come last; the name decides among equals."""
    metric = "acc_h" if line.contender.decides else "auroc"
    means = [v.mean for v, c in zip(line.values, columns, strict=True) if c.metric == metric]
    return not line.contender.decides, -math.fsum(means) / len(means), line.contender.label
