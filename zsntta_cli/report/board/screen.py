"""The board in 80 columns."""

import textwrap
from collections.abc import Iterator, Sequence

from zsntta_cli.methods import WORDS
from zsntta_cli.report.board.contenders import INJECTED, WHOLE
from zsntta_cli.report.board.lines import (
    COLUMNS,
    OTHER_COLUMNS,
    BoardColumn,
    Results,
    board_rows,
    pair_contest,
)
from zsntta_cli.report.board.page import INJECTIONS, cost
from zsntta_cli.report.board.plan import Plan
from zsntta_cli.results.ranking import RankMark
from zsntta_cli.simulation.notes import strongest

_WIDTH, LABEL = 80, 23  # characters
_LETTERS = {WORDS: "w", INJECTED: "n", WHOLE: "s"}
_LATE = "d"
_BEST, _CLOSE = "*", "~"
_OF_CLOSE = "~ not distinguishable from the best (t test over seeds, Holm, 5 %)\n"
_LEGEND = """\
* the best mean of a column
µs an item as measured in these runs; w: given words, n: injected noise,
s: the whole stream, so no rival; d: answers some items late, a block at a time
"""


def screen(plan: Plan, results: Results) -> str:
    """A table for each kind of injection, and how to read it."""
    notes = strongest(note for record in results.values() for note in record.notes)
    below = "".join(f"{textwrap.fill(note, 80)}\n" for note in notes)
    tables = [_table(plan, results, noise) for noise in plan.noises]
    has_close = any(_CLOSE in table for table in tables)
    return "\n".join([*tables, _OF_CLOSE * has_close + _LEGEND + below])


def _table(plan: Plan, results: Results, noise: str) -> str:
    count = len(plan.pairs)
    title = f"Mean of {count} pair{'s' * (count > 1)} in %, {INJECTIONS[noise]}"
    lines = [title, *_rows(plan, results, noise, COLUMNS)]
    contest = pair_contest(plan, results, noise)
    if contest.is_contest:
        lines += textwrap.wrap(contest.summary(), _WIDTH)
    in_orders = _rows(plan, results, noise, OTHER_COLUMNS)
    lines += ["", "Acc_H on other streams: shuffled, in other orders, all images once", *in_orders]
    return "".join(f"{line}\n" for line in lines)


def _rows(
    plan: Plan, results: Results, noise: str, columns: Sequence[BoardColumn]
) -> Iterator[str]:
    """The lines of a table, beginning with its heads."""
    for heads, time in zip(_heads(columns), ("", "µs"), strict=True):
        yield _line("", [f"{head} " for head in heads], time, "")
    rows = board_rows(plan, results, noise, columns=columns)
    for row in rows if columns is COLUMNS else [row for row in rows if row.contender.decides]:
        cells = [
            column.text(value, with_std=False) + _sign(mark)
            for value, column, mark in zip(row.values, columns, row.marks, strict=True)
        ]
        letters = "".join(_LETTERS[name] for name in row.contender.given(noise))
        letters += _LATE * bool(row.contender.delay)
        yield _line(row.contender.label, cells, cost(row), letters)


def _heads(columns: Sequence[BoardColumn]) -> list[list[str]]:
    """Two lines of heads: the metric above, the stream below; an order has its number below it."""
    if columns is not OTHER_COLUMNS:
        return [list(part) for part in zip(*(c.head.split(" ", 1) for c in columns), strict=True)]
    names = [column.stream.name.partition(":") for column in columns]
    above = [name[:7] if number else "" for name, _, number in names]
    return [above, [number or name for name, _, number in names]]


def _sign(mark: RankMark) -> str:
    return _BEST if mark.is_best else _CLOSE if mark.is_close else " "


def _line(label: str, cells: list[str], time: str, letters: str) -> str:
    numbers = "".join(f"{cell:>8}" for cell in cells)
    return f"{label:{LABEL}}{numbers}{time:>6} {letters}".rstrip()
