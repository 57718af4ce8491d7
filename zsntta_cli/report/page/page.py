"""The report page: one file that loads nothing, and is readable without its script."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from zsntta_cli.errors import StoreError, counted
from zsntta_cli.report.page import ACCURACIES, TITLE, figures, provenance
from zsntta_cli.report.page.document import PageSheet, document
from zsntta_cli.report.page.headline import headlines, legend
from zsntta_cli.report.page.provenance import Card
from zsntta_cli.results import frame
from zsntta_cli.results.frame import ResultRow, current, latest_of_each
from zsntta_cli.simulation.record import Record


@dataclass(frozen=True)
class ReportPage:
    """A page, and how many runs and rows it shows."""

    html: str
    runs: int
    rows: int
    left_out: Sequence[str]  # what is not on it, and why


@dataclass(frozen=True)
class Section:
    """A part of the page: HTML, then tables, then folded tables."""

    name: str
    html: str = ""
    sheets: Sequence[PageSheet] = ()
    cards: Sequence[Card] = ()


def page(kept: Iterable[Record], title: str = TITLE) -> ReportPage:
    """A report of kept runs; the order of the runs does not matter.

    Raises:
        StoreError: there is nothing to show.
    """
    current_runs, left_out = current(list(kept))
    runs = latest_of_each(current_runs)
    if not runs:
        raise StoreError(": ".join(["there is no result to report", *left_out]))
    tables = frame.tables(runs)
    results = [sheet for table in tables for sheet in headlines(table)]
    rows = [row for table in tables for row in table.rows]
    sections = [
        Section("Results", _paragraphs([ACCURACIES, legend(results)]), results),
        Section("Acc_H against the noise ratio", figures.sweeps(tables)),
        Section(
            "How each row was made",
            sheets=[sheet for table in tables for sheet in provenance.commands(table)],
        ),
        Section("Settings in full", cards=provenance.settings(tables)),
        Section(
            "Features and versions",
            sheets=[provenance.features(runs), provenance.versions(runs)],
        ),
    ]
    html = document(
        __package__,
        "page",
        ["page.js"],
        title=title,
        about=_about(rows),
        remarks=_remarks(runs, left_out),
        sections=[part for part in sections if part.html or part.sheets or part.cards],
    )
    return ReportPage(html, len(runs), _count_rows(rows), left_out)


def _paragraphs(sentences: Sequence[str]) -> Markup:
    return Markup("\n").join(Markup("<p>{}</p>").format(text) for text in sentences if text)


def _count_rows(rows: Sequence[ResultRow]) -> int:
    """How many rows the results have, one for each OOD set."""
    return sum(len(row.runs) for row in rows)


def _about(rows: Sequence[ResultRow]) -> str:
    """What the page shows."""
    names = {
        "Methods": [row.method for row in rows],
        "ID sets": [row.stream.id_set for row in rows],
        "Encoders": [row.stream.encoder for row in rows],
    }
    lists = (f"{what}: {', '.join(dict.fromkeys(all_))}." for what, all_ in names.items())
    count = sum(len(row.records) for row in rows)
    return " ".join([f"{counted(count, 'run')} in {counted(_count_rows(rows), 'row')}.", *lists])


def _remarks(records: Sequence[Record], left_out: Sequence[str]) -> list[str]:
    """What a reader has to know before the tables."""
    stopped = sum(bool(record.unfinished) for record in records)
    of_stopped = (
        f"Stopped before its end: {counted(stopped, 'run')}. What was stopped enters no mean."
    )
    return [of_stopped] * bool(stopped) + [f"Left out: {reason}." for reason in left_out]
