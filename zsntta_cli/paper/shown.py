"""A table of the paper for people, as sheets, and for programs, as rows.

A row takes three lines: the measured values, the printed ones, and the differences. This module
does not import NumPy.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, NamedTuple

from zsntta_cli.paper.compare import Number, counts
from zsntta_cli.paper.tables import AVERAGE, LEAD, PaperTable
from zsntta_cli.report import sheet
from zsntta_cli.report.forms import in_form
from zsntta_cli.report.sheet import Marked, Sheet

if TYPE_CHECKING:
    from zsntta_cli.simulation.notes import RunNote

_HEADS = {
    "acc_s": "Acc_S", "acc_n": "Acc_N", "acc_h": "Acc_H", "auroc": "AUROC", "fpr95": "FPR95(ID+)",
}  # fmt: skip
_BEYOND = "! is beyond what seeds explain: by Student's t, less than 5 % of equal experiments"
_ONE_SEED = (
    "a difference from one seed is not marked where the paper prints no ± to judge it by: "
    "--seed 0-4 measures five"
)
_SPREAD = "± of an average here: the mean of the sets' deviations, as in the paper"
_OTHERS = "numbers of sets that are not the published ones are not marked"


class TableContent(NamedTuple):
    """The numbers of a table, and the lines around them."""

    table: PaperTable
    numbers: Sequence[Number]
    above: Sequence[str] = ()  # below the title
    command: str = ""  # that shows the table
    is_printed_alone: bool = False


def render(contents: Sequence[TableContent], form: str, to_file: bool = False) -> str:
    """Render tables one after the other, in one of FORMS."""
    sheets = chain.from_iterable(map(_sheets, contents))
    rows = chain.from_iterable(map(_rows, contents))
    return in_form(form, sheets, rows, to_file)


def _rows(content: TableContent) -> Iterator[dict[str, Any]]:
    """A row for each number, in percent; what is not known is None."""
    for number in content.numbers:
        place, measured, printed = number.cell.place, number.measured, number.printed
        lacks, other = measured and measured.lacks, number.is_of_other_images
        notes = printed.remark, lacks, "not of the published sets" * other
        facts = {
            "table": content.table.number, "encoder": place.encoder, "id_set": place.id_set,
            "row": place.row, "method": number.cell.table.rows[place.row]["method"],
            "ratio": place.ratio, "ood_set": place.ood_set, "metric": number.metric,
            "measured": number.mean, "measured_std": number.sets_std,
            "seeds": " ".join(map(str, measured.by_seed)) if measured else None,
            "printed": printed.value, "printed_std": printed.std, "difference": number.difference,
            "beyond": None if math.isnan(number.most) else number.is_beyond,
            "note": "; ".join(filter(None, notes)) or None,
        }  # fmt: skip
        for name, value in facts.items():
            if isinstance(value, float):  # nan is no number; adding leaves something behind digits
                facts[name] = None if math.isnan(value) else round(value, 10)
        yield facts


def _sheets(content: TableContent) -> list[Sheet]:
    """A sheet for each part of a table; the last one has the notes."""
    table, parts = content.table, dict[tuple[str, str], list[Number]]()
    letters: dict[str, str] = {}  # of doubtful numbers, by the doubt
    for number in content.numbers:
        place = number.cell.place
        id_set = "" if table.columns == "id_set" else place.id_set
        parts.setdefault((place.encoder, id_set), []).append(number)
    has_encoders, sheets = len({encoder for encoder, _ in parts}) > 1, list[Sheet]()
    for (encoder, id_set), numbers in parts.items():
        title = f"{encoder} {id_set}".strip() if has_encoders else id_set
        sheets.append(_part(content, title, numbers, letters))
    sheets[0].above = (f"Table {table.number} ({table.name}): {table.title}", *content.above)
    notes = [f"{letter}: {remark}" for remark, letter in letters.items()]
    notes += _notes(table, content.numbers)
    sheets[-1].notes = notes if content.is_printed_alone else [*notes, counts(content.numbers)]
    return sheets


def _part(
    content: TableContent, title: str, numbers: Sequence[Number], letters: dict[str, str]
) -> Sheet:
    """The sheet of some numbers: up to three lines for each row."""
    columns: dict[str, dict[str, None]] = {}  # the heads of each
    by_row: dict[str, list[Number]] = {}
    for number in numbers:
        columns.setdefault(_column(number), {})[_HEADS[number.metric.removesuffix(LEAD)]] = None
        by_row.setdefault(number.cell.place.row, []).append(number)
    part = Sheet(
        title, (content.table.head,), {name: (*heads,) for name, heads in columns.items()},
        command=content.command,
    )  # fmt: skip
    for row, of_row in by_row.items():
        has_printed = any(number.printed.is_there for number in of_row)
        has_both = not all(math.isnan(number.difference) for number in of_row)
        labels = [row, "  paper" * has_printed, "  difference" * has_both]  # empty: no such line
        labels = ["", row, ""] if content.is_printed_alone else labels
        has_rule = has_printed and not content.is_printed_alone and bool(part.rows)
        lines: list[dict[str, list[str]]] = [{}, {}, {}]
        for number in of_row:
            for line, text in zip(lines, _texts(number, letters), strict=True):
                line.setdefault(_column(number), []).append(text)
        for label, line in zip(labels, lines, strict=True):
            if label:
                part.add([label], line, has_rule and label == row)
    return part


def _column(number: Number) -> str:
    """The name of the column that a number is in."""
    place, columns = number.cell.place, number.cell.table.columns
    if number.metric.endswith(LEAD):
        return "against ZS-CLIP"
    if columns == "ratio":
        return f"{place.ratio:.0%} noise"
    name = str(getattr(place, columns))
    return sheet.AVERAGE if name == AVERAGE else name


def _texts(number: Number, letters: dict[str, str]) -> tuple[str, str, str]:
    """The measured value, the printed one, with a letter if it is doubtful, and the difference."""
    sign = "+" * number.metric.endswith(LEAD)
    value, std, remark = number.printed
    printed, difference = _text(value, std, sign), _text(number.difference, sign="+")
    if remark:
        printed = Marked(printed + letters.setdefault(remark, ascii_lowercase[len(letters)]))
    if number.is_beyond:
        difference = Marked(f"{difference}!")
    return _text(number.mean, number.sets_std, sign), printed, difference


def _text(value: float, std: float = math.nan, sign: str = "") -> str:
    """A number with two decimal places, and its ±; a dash for nan."""
    if math.isnan(value):
        return "-"
    return f"{value:{sign}.2f}" + ("" if math.isnan(std) else f"±{std:.2f}")


def _notes(table: PaperTable, numbers: Sequence[Number]) -> list[str]:
    """The notes that a reader of the table needs."""
    lacking: dict[tuple[str, str, str], dict[str, None]] = {}  # rows without the same average
    noted: dict[RunNote, None] = {}  # what is to be known of the measured runs
    compared = [number for number in numbers if not math.isnan(number.difference)]
    for number in numbers:
        noted |= dict.fromkeys(note for record in number.records for note in record.notes)
        if (measured := number.measured) and measured.lacks:
            place = number.cell.place.id_set, _column(number), measured.lacks
            lacking.setdefault(place, {})[number.cell.place.row] = None
    notes = [*table.notes] * any(number.printed.is_there for number in numbers)
    notes += [_SPREAD] * any(n.measured and len(n.measured.by_seed) > 1 for n in numbers)
    for (id_set, column, lacks), names in lacking.items():
        notes.append(f"{id_set}, {column}: no average of {', '.join(names)} with {lacks}")
    if noted:
        from zsntta_cli.simulation.notes import strongest  # it imports NumPy

        notes += strongest(noted)
    notes += [_OTHERS] * any(number.is_of_other_images for number in compared)
    notes += [_ONE_SEED] * any(math.isnan(number.most) for number in compared)
    return [*map("note: {}".format, notes), *[_BEYOND] * any(n.is_beyond for n in compared)]
