"""The report page: one file that loads nothing, and is readable without its script."""

import base64
import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from zsntta_cli.errors import SettingsError, StoreError, counted
from zsntta_cli.report.comparisons import means, ratio
from zsntta_cli.report.forms import html_table
from zsntta_cli.report.page import TITLE
from zsntta_cli.report.page.document import document
from zsntta_cli.report.sheet import AVERAGE, Best, Close, Sheet
from zsntta_cli.report.tables import View, classes_sheet, compared, table_sheet, usual
from zsntta_cli.results import frame
from zsntta_cli.results.frame import ResultTable, paired_t_test
from zsntta_cli.results.selection import Filters, chosen, current
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.record import Record

ACCURACIES = (
    "Acc_S is the share of ID samples that are called clean and classified correctly, Acc_N the "
    "share of OOD samples that are called noise, Acc_H their harmonic mean. ± is the standard "
    "deviation over seeds; a seed is an order of the stream."
)


class ReportPage(NamedTuple):
    """A page, and the number of runs and rows that it shows."""

    html: str
    runs: int
    rows: int
    left_out: Sequence[str]  # what is not on it, and why


class Part(NamedTuple):
    """A part of a section: a paragraph, a table, a collapsed table with a summary, or a figure."""

    text: str = ""  # the paragraph, the summary, or the caption
    sheet: Sheet | None = None
    image: str = ""  # SVG in base64
    alt: str = ""


def page(kept: Iterable[Record], title: str = TITLE, filters: Filters | None = None) -> ReportPage:
    """A report of the kept runs that `filters` select; the order of the runs does not matter.

    Raises:
        StoreError: there is nothing to show.
        SettingsError: no run matches the filters.
    """
    current_runs, left_out = current(list(kept))
    if not current_runs:
        raise StoreError(": ".join(["there is no result to report", *left_out]))
    tables = frame.tables(chosen(current_runs, filters) if filters else current_runs)
    usual_tables = [usual(table) for table in tables]
    rows = [row for table in tables for row in table.rows]
    records = [record for row in rows for record in row.records]
    sections = {
        "In short": list(_in_short(usual_tables)), "Results": list(_results(tables, usual_tables)),
        "How it was made": list(_made(tables, records)),
    }  # fmt: skip
    html = document(
        __package__, "page", title=title, about=_about(records, left_out),
        sections={name: parts for name, parts in sections.items() if parts},
        drawn=lambda sheet: Markup(html_table(sheet)),
    )  # fmt: skip
    return ReportPage(html, len(records), sum(len(row.runs) for row in rows), left_out)


def _about(records: Sequence[Record], left_out: Sequence[str]) -> list[str]:
    """What the page shows and what not."""
    runs, line = [run.settings for run in records], f"{counted(len(records), 'run')}."
    for what, name in {"Methods": "method", "ID sets": "id_set", "Encoders": "encoder"}.items():
        line += f" {what}: {', '.join(dict.fromkeys(getattr(run, name) for run in runs))}."
    lines = [line]
    if stopped := sum(record.unfinished > 0 for record in records):
        lines.append(f"Stopped early: {counted(stopped, 'run')}. Stopped runs enter no mean.")
    return lines + [f"Left out: {reason}." for reason in left_out]


def _in_short(tables: Sequence[ResultTable]) -> Iterator[Part]:
    """Which method has the highest mean Acc_H, where, and whether seeds explain it."""
    heads = ("ID set", "Noise", "Highest", "Acc_H", "Next", "Acc_H", "Beyond seeds")
    rows = [labels for table in tables for labels in _firsts(table)]
    sheet = Sheet("The highest mean Acc_H at each noise ratio", heads, rows=rows)
    for method, count in Counter(labels[2] for labels in sheet.rows).most_common():
        over = (
            f"{count} of {len(sheet.rows)} comparisons of methods (one per ID set and noise ratio)"
        )
        yield Part(f"{method} has the highest mean Acc_H in {over}.")
    sheet.notes.append(
        "Means are over the OOD sets of a table and its seeds. Beyond seeds: Student's paired t "
        "test over seeds at 5 %, corrected for the number of rivals (Holm). Seeds say nothing "
        "about other sets."
    )
    if sheet.rows:
        yield Part(sheet=sheet)


def _firsts(table: ResultTable) -> Iterator[list[str]]:
    """The best and the next method of each contest under noise."""
    column = AVERAGE if len(table.columns) > 1 else table.columns[0]
    for rows in table.contests():
        values = compared(table, rows, column, METRICS["acc_h"]) if rows[0].ratio else []
        rivals = [rival for rival in values if not rival[0].advantage and rival[1].is_whole]
        rivals.sort(key=lambda rival: -rival[1].mean)
        best = [row.method for row, _, text in rivals if isinstance(text, Best)]
        if not best or len(best) == len(rivals):
            continue
        (_, highest, first), (following, second, next_best) = rivals[0], rivals[len(best)]
        is_tested = paired_t_test(highest.by_seed, second.by_seed) is not None
        verdict = "yes" if is_tested else "not tested: fewer than 5 seeds in common"
        if close := [row.method for row, _, text in rivals if isinstance(text, Close)]:
            verdict = f"no: not distinguishable from {', '.join(close)}"
        yield [
            f"{table.id_set}, {table.encoder}", frame.shown("ratio", rows[0].ratio),
            ", ".join(best), str(first), following.method, str(next_best), verdict,
        ]  # fmt: skip


def _results(tables: Sequence[ResultTable], usual_tables: Sequence[ResultTable]) -> Iterator[Part]:
    """For each ID set and encoder its table, a figure and, collapsed, what else there is.

    The average of a table, beside the methods, is seen before the table is scrolled.
    """
    yield Part(ACCURACIES)
    accuracies, detection = (View(name, is_average_first=True) for name in ("accuracy", "ood"))
    for whole, table in zip(tables, usual_tables, strict=True):
        decided = replace(table, rows=[row for row in table.rows if row.decides])
        noisy = replace(table, rows=[row for row in table.rows if row.ratio])
        unusual = replace(whole, rows=[row for row in whole.rows if row not in table.rows])
        if decided.rows:
            yield Part(sheet=table_sheet(decided, accuracies))
            yield from _figure(decided)
        if noisy.rows:
            yield Part("How the scores rank ID and OOD samples", table_sheet(noisy, detection))
        if (by_class := classes_sheet(table)).rows:
            yield Part(by_class.title, by_class)
        if unusual.rows:
            title = f"Other settings of the same methods: {counted(len(unusual.rows), 'row')}"
            yield Part(title, table_sheet(unusual, accuracies))


def _figure(table: ResultTable) -> Iterator[Part]:
    """Acc_H against the noise ratio; of a single ratio the methods' means over the sets."""
    from zsntta_cli.report.drawing import PAGE, drawn

    runs = [run for row in table.rows for run in row.records if row.ratio]
    ratios = {row.ratio for row in table.rows if row.ratio and not isinstance(row.ratio, str)}
    what = "Acc_H against the noise ratio" if len(ratios) > 1 else "Mean accuracies"
    with contextlib.suppress(SettingsError):  # a method alone, or scores that decide nothing
        figure = ratio(runs) if len(ratios) > 1 else means(runs)
        name = f"{what}, ID: {table.id_set}, {table.encoder}"
        image = base64.b64encode(drawn(figure, "svg", PAGE, has_outlines=False)).decode()
        titles = "; ".join(panel.title for panel in figure.panels)
        yield Part(name, image=image, alt=f"{name}: {titles}")
        yield from map(Part, figure.sentences)


def _made(tables: Sequence[ResultTable], records: Sequence[Record]) -> Iterator[Part]:
    """The commands of each row, the features that were read, and by which versions."""
    for table in tables:
        title = f"The commands: ID: {table.id_set}, {table.encoder}"
        columns = {"": ("Runs", "s per run", "Peak MiB")}
        sheet = Sheet(title, ("Method", "Noise", "Command", "Device"), columns)
        varying = frame.varying(table.rows)
        for row in table.rows:
            name, runs = frame.label(row, varying[row.method]), row.records
            typed = "\n".join(sorted({run.command for run in runs} - {""}))
            devices = ", ".join(sorted({run.device for run in runs}))
            seconds = sum(run.seconds for run in runs) / len(runs)  # of the method alone
            peak = max(run.memory for run in runs) / 2**20
            values = {"": [str(len(runs)), f"{seconds:.3g}", f"{peak:,.0f}"]}
            sheet.add([name, frame.shown("ratio", row.ratio), typed, devices], values)
        yield Part(title, sheet)
    features, days = Counter[tuple[str, ...]](), dict[tuple[str, ...], list[str]]()
    for record in records:
        encoder = record.settings.encoder
        features.update((name, encoder, digest) for name, digest in record.digests.items())
        made_by = ", ".join(f"{name} {number}" for name, number in sorted(record.versions.items()))
        days.setdefault((made_by, record.device, record.revision), []).append(record.created[:10])
    read = Sheet(
        "Features that the runs used (text/SET: class text, logit scale, normalisation)",
        ("Features", "Encoder", "SHA-256", "Runs"),
    )  # fmt: skip
    versions = Sheet(
        "Versions and devices", ("Made by", "Device", "Revision", "First", "Last", "Runs")
    )
    for key in sorted(
        features, key=lambda key: (frame.set_place(key[0].removeprefix("text/")), key)
    ):
        read.rows.append([*key, str(features[key])])
    for key, on in sorted(days.items()):
        versions.rows.append([*key, min(on), max(on), str(len(on))])
    yield from (Part(sheet.title, sheet) for sheet in (read, versions) if sheet.rows)
