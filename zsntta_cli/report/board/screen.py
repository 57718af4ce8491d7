"""The board in 80 columns."""

import textwrap

from zsntta_cli.methods import WORDS
from zsntta_cli.report.board.contenders import INJECTED, WHOLE
from zsntta_cli.report.board.lines import COLUMNS, Results, board_rows, pair_contest
from zsntta_cli.report.board.page import INJECTIONS, cost
from zsntta_cli.report.board.plan import Plan
from zsntta_cli.simulation.notes import strongest

_WIDTH, LABEL = 80, 23  # characters
_LETTERS = {WORDS: "w", INJECTED: "n", WHOLE: "s"}
_LEGEND = """\
* the best, or not significantly worse (paired t test over runs, Holm, 5 %)
µs an item as measured in these runs; w: given words, n: injected noise,
s: the whole stream, so no rival
"""


def screen(plan: Plan, results: Results) -> str:
    """A table for each kind of injection, and how to read it."""
    notes = strongest(note for record in results.values() for note in record.notes)
    below = "".join(f"{textwrap.fill(note, 80)}\n" for note in notes)
    tables = (_table(plan, results, noise) for noise in plan.noises)
    return "\n".join([*tables, _LEGEND + below])


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
            column.text(value, with_std=False) + ("*" if is_marked else " ")
            for value, column, is_marked in zip(row.values, COLUMNS, row.marked, strict=True)
        ]
        letters = "".join(_LETTERS[name] for name in row.contender.given(noise))
        lines.append(_line(row.contender.label, cells, cost(row), letters))
    contest = pair_contest(plan, results, noise)
    if contest.is_contest:
        lines += textwrap.wrap(contest.summary(), _WIDTH)
    return "".join(f"{line}\n" for line in lines)


def _line(label: str, cells: list[str], time: str, letters: str) -> str:
    numbers = "".join(f"{cell:>8}" for cell in cells)
    return f"{label:{LABEL}}{numbers}{time:>6} {letters}".rstrip()
