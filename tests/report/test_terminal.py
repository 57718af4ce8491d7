"""Tables on a terminal: what fits is shown in its width, and no value is cut or folded."""

import os
import re
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sheets import sheets_of_any_size

from zsntta_cli.report.forms import draw
from zsntta_cli.report.sheet import AVERAGE, Sheet, SheetRow


def on_terminal(sheet, width):
    """The lines that a terminal of some width gets, without colours."""
    env = {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(width), "LINES": "50"}
    with mock.patch.dict(os.environ, env):
        return re.sub(r"\x1b\[[0-9;]*m", "", draw([sheet], "table")).splitlines()


def blocks_of(lines, labels):
    """The cells of each table behind its labels, line by line."""
    blocks = []
    for line in lines:
        if line.startswith("┏"):
            blocks.append([])
        if line.startswith(("┃", "│")):
            blocks[-1].append([c.strip() for c in re.split("[┃│]", line)[1:-1]][labels:])
    return blocks


def values_of(rows):
    return sorted(text.rstrip("~ ") for row in rows for cell in row for text in cell.split())


LEAST = 3 * (12 + 3) + 1  # three labels as narrow as they get


@settings(max_examples=200)
@given(sheets_of_any_size(), st.integers(LEAST + 90, 250))
@example(Sheet("", ("Method",), {"a": ("b",)}, [SheetRow(("x",), {"a": ["81.50"]})]), 60)
def test_a_table_fits_the_terminal_and_has_every_value_whole(sheet, width):
    lines = on_terminal(sheet, width)
    assert max(map(len, lines)) <= width
    heads = 1 + any(head for heads in sheet.columns.values() for head in heads)
    blocks = blocks_of(lines, len(sheet.heads))
    shown = values_of(row for block in blocks for row in block[heads:])
    wanted = [text for row in sheet.rows for texts in row.values.values() for text in texts]
    assert shown == sorted(wanted)
    if len(blocks) > 1 and AVERAGE in sheet.columns:
        assert blocks[0][0][0] == AVERAGE
    if len(blocks) > 1:  # it would not have fitted
        wide = max(map(len, draw([sheet], "table", to_file=True).splitlines()[1:]))
        assert wide > width


def test_in_a_file_a_table_is_as_wide_as_it_needs():
    columns = dict.fromkeys([*"abcdefghij", AVERAGE], ("Acc_S", "Acc_N", "Acc_H"))
    row = SheetRow(("adand",), {name: ["81.50±0.25"] * 3 for name in columns})
    lines = draw([Sheet("", ("Method",), columns, [row])], "table", to_file=True).splitlines()
    assert lines[1].split("┃")[-2].strip() == AVERAGE
    assert lines[-2].count("81.50±0.25") == 33


def test_a_single_metric_stands_in_the_title_once():
    sheet = Sheet("ID: shapes", ("Method",), {"a": ("Acc_H",), "b": ("Acc_H",)})
    assert (sheet.title, sheet.columns) == ("ID: shapes: Acc_H", {"a": ("",), "b": ("",)})
    several = {"a": ("Acc_H",), "b": ("AUROC",)}
    assert Sheet("ID: shapes", ("Method",), several).columns == several


def test_many_rows_are_lines_without_a_frame():
    rows = [SheetRow((f"row {i}",), {"a": [f"{i}"]}) for i in range(1_001)]
    lines = draw([Sheet("", ("Name",), {"a": ("x",)}, rows)], "table").splitlines()
    assert lines[-1].split() == ["row", "1000", "1000"]
    assert len({len(line) for line in lines[1:]}) == 1
