"""A table of the paper for people, as sheets, and for programs, as rows.

A row takes three lines: the measured values, the printed ones, and the differences. This module
does not import NumPy.
"""

import math
from collections.abc import Callable, Iterator, Sequence
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
_LEAD_COLUMN = "against ZS-CLIP"
_BEYOND = "! is beyond what seeds explain: by Student's t, less than 5 % of equal experiments"
_ONE_SEED = (
    "a difference from one seed is not marked where the paper prints no ± to judge it by: "
    "--seed 0-4 measures five"
)
_SPREAD = "± of an average here: the mean of the sets' deviations, as in the paper"
_OTHERS = "numbers of sets that are not the published ones are not marked"
COLUMNS = (
    "table", "encoder", "id_set", "row", "method", "ratio", "ood_set", "metric", "measured",
    "measured_std", "seeds", "printed", "printed_std", "difference", "beyond", "note",
)  # fmt: skip


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
    return in_form(form, sheets, rows, to_file, COLUMNS)


def _rows(content: TableContent) -> Iterator[dict[str, Any]]:
    """A row for each number, in percent; what is not known is None."""
    for number in content.numbers:
        place, measured, printed = number.cell.place, number.measured, number.printed
        notes = [printed.remark] if printed and printed.remark else []
        notes += [measured.lacks] if measured and measured.lacks else []
        notes += ["not of the published sets"] * number.is_of_other_images
        facts = {
            "table": content.table.number, **place._asdict(), "metric": number.metric,
            "method": number.cell.table.rows[place.row]["method"],
            "measured": measured.mean if measured else None,
            "measured_std": number.sets_std,
            "seeds": " ".join(map(str, measured.by_seed)) if measured else None,
            "printed": printed.value if printed else None,
            "printed_std": printed.std if printed else None,
            "difference": number.difference,
            "beyond": None if math.isnan(number.most) else number.is_beyond,
            "note": "; ".join(notes) or None,
        }  # fmt: skip
        for name, value in facts.items():
            if isinstance(value, float):  # nan is no number; adding leaves something behind digits
                facts[name] = None if math.isnan(value) else round(value, 10)
        yield {name: facts[name] for name in COLUMNS}


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
    by_row: dict[str, list[tuple[str, Number]]] = {}
    for number in numbers:
        column = _column(number)
        columns.setdefault(column, {})[_HEADS[number.metric.removesuffix(LEAD)]] = None
        by_row.setdefault(number.cell.place.row, []).append((column, number))
    part = Sheet(
        title, (content.table.head,), {name: (*heads,) for name, heads in columns.items()},
        command=content.command,
    )  # fmt: skip
    for row, of_row in by_row.items():
        is_printed = is_compared = False
        for _, number in of_row:
            is_printed |= number.printed is not None
            is_compared |= not math.isnan(number.difference)
        lines: list[tuple[str, Callable[[Number, dict[str, str]], str]]] = [(row, _measured)]
        if content.is_printed_alone:
            lines = [(row, _printed)]
        elif is_printed:
            lines.append(("  paper", _printed))
        if is_compared:
            lines.append(("  difference", _difference))
        has_rule = len(lines) > 1 and bool(part.rows)
        for label, text in lines:
            texts: dict[str, list[str]] = {}
            for column, number in of_row:
                texts.setdefault(column, []).append(text(number, letters))
            part.add([label], texts, has_rule and label == row)
    return part


def _column(number: Number) -> str:
    """The name of the column that a number is in."""
    place, columns = number.cell.place, number.cell.table.columns
    if number.metric.endswith(LEAD):
        return _LEAD_COLUMN
    if columns == "ratio":
        return f"{place.ratio:.0%} noise"
    name = str(getattr(place, columns))
    return sheet.AVERAGE if name == AVERAGE else name


def _text(number: Number, value: float, std: float = math.nan, is_signed: bool = False) -> str:
    """A number with its decimal places; a dash for nan, and a sign for differences."""
    if math.isnan(value):
        return "-"
    sign = "+" if is_signed or number.metric.endswith(LEAD) else ""
    return f"{value:{sign}.2f}" + ("" if math.isnan(std) else f"±{std:.2f}")


def _measured(number: Number, _letters: dict[str, str]) -> str:
    return _text(number, number.measured.mean, number.sets_std) if number.measured else "-"


def _printed(number: Number, letters: dict[str, str]) -> str:
    """The printed number, with the letter of a note if it is doubtful."""
    if number.printed is None:
        return "-"
    value, std, remark = number.printed
    text = _text(number, value, math.nan if std is None else std)
    if not remark:
        return text
    return Marked(text + letters.setdefault(remark, ascii_lowercase[len(letters)]))


def _difference(number: Number, _letters: dict[str, str]) -> str:
    """The difference, with a mark if seeds do not explain it."""
    text = _text(number, number.difference, is_signed=True)
    return Marked(f"{text}!") if number.is_beyond else text


def _notes(table: PaperTable, numbers: Sequence[Number]) -> list[str]:
    """The notes that a reader of the table needs."""
    lacking: dict[tuple[str, str, str], dict[str, None]] = {}  # rows without the same average
    noted: dict[RunNote, None] = {}  # what is to be known of the measured runs
    is_printed = has_spread = is_other = is_of_one_seed = is_beyond = False
    for number in numbers:
        is_printed |= number.printed is not None
        if not (measured := number.measured):
            continue
        for record in number.records:
            noted |= dict.fromkeys(record.notes)
        has_spread |= len(measured.by_seed) > 1
        if measured.lacks:
            place = number.cell.place.id_set, _column(number), measured.lacks
            lacking.setdefault(place, {})[number.cell.place.row] = None
        if not math.isnan(number.difference):
            is_other |= number.is_of_other_images
            is_of_one_seed |= math.isnan(number.most)
            is_beyond |= number.is_beyond
    notes = [*table.notes] * is_printed + [_SPREAD] * has_spread
    for (id_set, column, lacks), names in lacking.items():
        notes.append(f"{id_set}, {column}: no average of {', '.join(names)}: there is {lacks}")
    if noted:
        from zsntta_cli.simulation.notes import strongest  # it imports NumPy

        notes += strongest(noted)
    notes += [_OTHERS] * is_other + [_ONE_SEED] * is_of_one_seed
    return [*map("note: {}".format, notes), *[_BEYOND] * is_beyond]
