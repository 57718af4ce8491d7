"""Tables on a terminal: what fits is shown in its width, and no value is cut or folded."""

import os
import re
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sheets import sheets_of_any_size

from zsntta_cli.report.forms import in_form
from zsntta_cli.report.sheet import AVERAGE, Best, Close, Sheet


def on_terminal(sheet, width):
    """The lines that a terminal of some width gets, without colours."""
    env = {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(width), "LINES": "50"}
    with mock.patch.dict(os.environ, env):
        return re.sub(r"\x1b\[[0-9;]*m", "", in_form("table", [sheet])).splitlines()


def blocks_of(lines, labels):
    """The cells of each table behind its labels, line by line."""
    blocks = []
    for line in lines:
        if line.startswith("┏"):
            blocks.append([])
        if line.startswith(("┃", "│")):
            blocks[-1].append([c.strip() for c in re.split("[┃│]", line)[1:-1]][labels:])
    return blocks


LEAST = 3 * (12 + 3) + 1  # three labels as narrow as they get


@settings(max_examples=200)
@given(sheets_of_any_size(), st.integers(LEAST + 90, 250))
@example(Sheet("", ("Method",), {"a": ("b",)}, [["x", "81.50"]]), 60)
def test_a_table_fits_the_terminal_and_has_every_value_whole(sheet, width):
    lines = on_terminal(sheet, width)
    assert max(map(len, lines)) <= width
    heads, labels = 1 + any(map(any, sheet.columns.values())), len(sheet.heads)
    blocks = blocks_of(lines, labels)
    shown = [text for of in blocks for row in of[heads:] for cell in row for text in cell.split()]
    wanted = [text for row in sheet.rows for text in row[labels:]]
    assert sorted(text.rstrip("~") for text in shown if text != "~") == sorted(wanted)
    if len(blocks) > 1 and AVERAGE in sheet.columns:
        assert blocks[0][0][0] == AVERAGE
    if len(blocks) > 1:  # it would not have fitted
        wide = max(map(len, in_form("table", [sheet], to_file=True).splitlines()[1:]))
        assert wide > width


def test_in_a_file_a_table_is_as_wide_as_it_needs():
    columns = dict.fromkeys("abcdefghijk", ("Acc_S", "Acc_N", "Acc_H"))
    sheet = Sheet("", ("Method",), columns, [["adand", *["81.50±0.25"] * 33]])
    assert in_form("table", [sheet], to_file=True).splitlines()[-2].count("81.50±0.25") == 33


def test_digits_are_aligned_whatever_has_a_mark():
    rows = [["a", Close("83.40±0.18")], ["b", "83.53±0.09"], ["c", Best("9.00")]]
    lines = on_terminal(Sheet("", ("Method",), {"svhn": ("Acc_H",)}, rows), 80)
    shown = [line for line in lines if line.startswith("│")]
    ends = [line.index(text) + len(text) for line, (_, text) in zip(shown, rows, strict=True)]
    assert len({*ends}) == 1


def test_a_single_metric_stands_in_the_title_once():
    sheet = Sheet("ID: shapes", ("Method",), {"a": ("Acc_H",), "b": ("Acc_H",)})
    assert (sheet.title, sheet.columns) == ("ID: shapes: Acc_H", {"a": ("",), "b": ("",)})
    several = {"a": ("Acc_H",), "b": ("AUROC",)}
    assert Sheet("ID: shapes", ("Method",), several).columns == several


def test_many_rows_are_lines_without_a_frame():
    sheet = Sheet("", ("Name",), {"a": ("x",)}, [[f"row {i}", f"{i}"] for i in range(1_001)])
    lines = in_form("table", [sheet]).splitlines()
    assert lines[-1].split() == ["row", "1000", "1000"]
    assert len({len(line) for line in lines[1:]}) == 1
