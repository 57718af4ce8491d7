"""What the page answers first: which method is best, by how much, and where it is not."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from zsntta_cli.errors import counted
from zsntta_cli.report.page.document import PageSheet
from zsntta_cli.report.page.headline import Marks, name_of
from zsntta_cli.report.page.rows import PageTable, RunRow
from zsntta_cli.report.sheet import SheetRow
from zsntta_cli.results import compare
from zsntta_cli.results.compare import SEEDS_NEEDED, RankMark
from zsntta_cli.results.frame import labels, shown
from zsntta_cli.simulation.metrics import METRICS, Metric

_HEADS = ("Noise", "Best", "Ahead of the next", "Where another is better")
_NOWHERE = "nowhere"


@dataclass(frozen=True)
class Answer:
    """The sentences and the table that stand first; no table where nothing is compared."""

    sentences: Sequence[str]
    sheets: Sequence[PageSheet]


@dataclass(frozen=True)
class _Line:
    """The answer for rows that saw the same samples."""

    noise: str
    best: str
    mean: str
    next: str
    lead: float  # in points
    is_close: bool
    is_tested: bool
    elsewhere: Sequence[str]  # the sets on which another is better
    metric: Metric


def answer(tables: Iterable[PageTable], marks: Marks) -> Answer:
    """The best mean of each noise ratio, over the OOD sets of each table, with what is next."""
    bodies: dict[str, list[_Line]] = {}
    for table in tables:
        for stream, rows in table.by_stream().items():
            names = labels(rows)
            contests = itertools.groupby(rows, key=lambda row: row.ratio)
            lines = [_line(table, list(group), names, marks) for _, group in contests]
            bodies[name_of(stream)] = [line for line in lines if line]
    bodies = {head: lines for head, lines in bodies.items() if lines}
    every = [line for lines in bodies.values() for line in lines]
    if not every:
        return Answer([], [])
    texts = {head: [SheetRow(_texts(line), {}) for line in lines] for head, lines in bodies.items()}
    title = "The best mean over the OOD sets, in %"
    return Answer(
        list(_sentences(every)), [PageSheet(title, _HEADS, {"": ()}, texts, kind="answer")]
    )


def _line(
    table: PageTable, rows: Sequence[RunRow], names: dict[RunRow, str], marks: Marks
) -> _Line | None:
    """The answer for some rows; None where no two of them can be ranked."""
    metric, sets = METRICS["acc_h" if rows[0].ratio else "acc_s"], table.results.ood_sets
    columns = sets or tuple(table.ood_sets(rows))
    by_seed = [row.average_by_seed(columns, metric.name) for row in rows]
    values = [row.average(columns, metric.name) for row in rows]
    competes = [row.competes for row in rows]
    row_marks = dict(zip(rows, compare.marks(by_seed, metric, competes), strict=True))
    places = dict(zip(rows, compare.ranks(values, competes, metric), strict=True))
    means = {row: 100 * value.mean for row, value in zip(rows, values, strict=True)}
    best = [row for row in rows if row_marks[row].is_best]
    others = [row for row in rows if places[row] is not None and row not in best]
    if not best or not others:
        return None
    second = min(others, key=lambda row: places[row] or 0)
    return _Line(
        noise=shown("ratio", rows[0].ratio),
        best=" and ".join(names[row] for row in best),
        mean=f"{means[best[0]]:.2f} {metric.head}",
        next=names[second],
        lead=means[best[0]] - means[second],
        is_close=row_marks[second].is_close,
        is_tested=row_marks[second].p is not None,
        elsewhere=list(_elsewhere(best[0], rows, names, metric, marks)),
        metric=metric,
    )


def _elsewhere(
    best: RunRow, rows: Sequence[RunRow], names: dict[RunRow, str], metric: Metric, marks: Marks
) -> Iterator[str]:
    """The sets on which another row is best, with its lead over the one that is best overall."""
    for ood_set in best.runs:
        on_set = {row: marks[row, ood_set, metric.name] for row in rows if ood_set in row.runs}
        winners = [row for row, mark in on_set.items() if mark.is_best]
        if winners and not on_set[best].is_best:
            gap = (
                winners[0].value(ood_set, metric.name).mean - best.value(ood_set, metric.name).mean
            )
            yield f"{ood_set}: {names[winners[0]]} {_points(100 * gap, on_set[best])}"


def _points(gap: float, mark: RankMark) -> str:
    return f"+{gap:.2f}" + " (not distinguishable)" * mark.is_close


def _texts(line: _Line) -> tuple[str, ...]:
    close = " (not distinguishable)" * line.is_close
    ahead = f"{line.lead:.2f} on {line.next}{close}"
    return line.noise, f"{line.best}, {line.mean}", ahead, "; ".join(line.elsewhere) or _NOWHERE


def _sentences(lines: Sequence[_Line]) -> Iterator[str]:
    """Who is best how often, and by how much, under noise or else on clean streams."""
    under_noise = [line for line in lines if line.metric.name == "acc_h"] or lines
    head = under_noise[0].metric.head
    for name, count in Counter(line.best for line in under_noise).most_common():
        leads = sorted(line.lead for line in under_noise if line.best == name)
        ends = dict.fromkeys(f"{lead:.2f}" for lead in (leads[0], leads[-1]))
        yield (
            f"{name} {'have' if ' and ' in name else 'has'} the best mean {head} in {count} of "
            f"{counted(len(under_noise), 'comparison')}, "
            f"{' to '.join(ends)} points ahead of the next."
        )
    if not any(line.is_tested for line in under_noise):
        yield f"With fewer than {SEEDS_NEEDED} seeds no difference is tested against chance."
