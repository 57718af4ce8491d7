"""The board in 80 columns."""

import textwrap

from zsntta_cli.methods import WORDS
from zsntta_cli.report.board.contenders import INJECTED, WHOLE
from zsntta_cli.report.board.lines import COLUMNS, Results, board_rows, pair_contest
from zsntta_cli.report.board.page import INJECTIONS, cost
from zsntta_cli.report.board.plan import Plan
from zsntta_cli.results.ranking import RankMark
from zsntta_cli.simulation.notes import strongest

_WIDTH, LABEL = 80, 23  # characters
_LETTERS = {WORDS: "w", INJECTED: "n", WHOLE: "s"}
_BEST, _CLOSE = "*", "~"
_OF_CLOSE = "~ not distinguishable from the best (t test over seeds, Holm, 5 %)\n"
_LEGEND = """\
* the best mean of a column
µs an item as measured in these runs; w: given words, n: injected noise,
s: the whole stream, so no rival
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
    metrics, ratios = zip(*(column.head.split(" ", 1) for column in COLUMNS), strict=True)
    lines = [
        f"Mean of {count} pair{'s' * (count > 1)} in %, {INJECTIONS[noise]}",
        _line("", [f"{metric} " for metric in metrics], "", ""),
        _line("", [f"{ratio} " for ratio in ratios], "µs", ""),
    ]
    for row in board_rows(plan, results, noise):
        cells = [
            column.text(value, with_std=False) + _sign(mark)
            for value, column, mark in zip(row.values, COLUMNS, row.marks, strict=True)
        ]
        letters = "".join(_LETTERS[name] for name in row.contender.given(noise))
        lines.append(_line(row.contender.label, cells, cost(row), letters))
    contest = pair_contest(plan, results, noise)
    if contest.is_contest:
        lines += textwrap.wrap(contest.summary(), _WIDTH)
    return "".join(f"{line}\n" for line in lines)


def _sign(mark: RankMark) -> str:
    return _BEST if mark.is_best else _CLOSE if mark.is_close else " "


def _line(label: str, cells: list[str], time: str, letters: str) -> str:
    numbers = "".join(f"{cell:>8}" for cell in cells)
    return f"{label:{LABEL}}{numbers}{time:>6} {letters}".rstrip()
