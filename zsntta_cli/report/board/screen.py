"""The board in 80 columns."""

from collections.abc import Iterator

from zsntta_cli.methods import WORDS
from zsntta_cli.report.board.contenders import INJECTED, WHOLE
from zsntta_cli.report.board.lines import COLUMNS, Results, board_rows
from zsntta_cli.report.board.page import INJECTIONS, cost
from zsntta_cli.report.board.plan import Plan

LABEL = 23  # characters
_LETTERS = {WORDS: "w", INJECTED: "n", WHOLE: "s"}
_LEGEND = """\
* the best, or not significantly worse (paired t test over runs, Holm, 5 %)
µs an item as measured in these runs; w: given words, n: injected noise,
s: the whole stream, so no rival
"""


def screen(plan: Plan, results: Results) -> str:
    """A table for each kind of injection, and how to read it."""
    return "\n".join([*(_table(plan, results, noise) for noise in plan.noises), _LEGEND])


def _table(plan: Plan, results: Results, noise: str) -> str:
    count = len(plan.pairs)
    title = f"Mean of {count} pair{'s' * (count > 1)} in %, {INJECTIONS[noise]}"
    names = [column.head.split(" ", 1) for column in COLUMNS]
    above = _row("", [f"{metric} " for metric, _ in names], "", "")
    below = _row("", [f"{ratio} " for _, ratio in names], "µs", "")
    return "".join(f"{line}\n" for line in [title, above, below, *_body(plan, results, noise)])


def _body(plan: Plan, results: Results, noise: str) -> Iterator[str]:
    for row in board_rows(plan, results, noise):
        values = zip(row.values, COLUMNS, row.marked, strict=True)
        cells = [
            column.text(value, with_std=False) + "* "[not is_marked]
            for value, column, is_marked in values
        ]
        letters = "".join(_LETTERS[name] for name in row.contender.given(noise))
        yield _row(row.contender.label, cells, cost(row), letters)


def _row(label: str, cells: list[str], much: str, letters: str) -> str:
    shown = "".join(f"{cell:>8}" for cell in cells)
    return f"{label:{LABEL}}{shown}{much:>6} {letters}".rstrip()
