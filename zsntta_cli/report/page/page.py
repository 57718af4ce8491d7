"""The report page: one file that loads nothing, and is readable without its script."""

import base64
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from zsntta_cli.errors import SettingsError, StoreError, counted
from zsntta_cli.report.classes import classes_sheet
from zsntta_cli.report.comparisons import means, ratio
from zsntta_cli.report.forms import html_table
from zsntta_cli.report.page import TITLE
from zsntta_cli.report.page.document import document
from zsntta_cli.report.sheet import AVERAGE, Sheet, SheetRow
from zsntta_cli.report.tables import View, compared, table_sheet, usual
from zsntta_cli.results import frame
from zsntta_cli.results.compare import paired_t_test
from zsntta_cli.results.frame import Filters, ResultTable, chosen
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.record import Record

ACCURACIES = (
    "Acc_S is the share of ID samples that are called clean and classified correctly, Acc_N the "
    "share of OOD samples that are called noise, Acc_H their harmonic mean. ± is the standard "
    "deviation over seeds; a seed is an order of the stream."
)
_BEYOND, _UNTESTED = "yes", "not tested: fewer than 5 seeds in common"


@dataclass(frozen=True)
class ReportPage:
    """A page, and how many runs and rows it shows."""

    html: str
    runs: int
    rows: int
    left_out: Sequence[str]  # what is not on it, and why


def page(kept: Iterable[Record], title: str = TITLE, filters: Filters | None = None) -> ReportPage:
    """A report of kept runs, of those that `filters` choose; the order of the runs does not matter.

    Raises:
        StoreError: there is nothing to show.
        SettingsError: no run fits the filters.
    """
    current_runs, left_out = frame.current(list(kept))
    if not current_runs:
        raise StoreError(": ".join(["there is no result to report", *left_out]))
    tables = frame.tables(chosen(current_runs, filters) if filters else current_runs)
    shown = list(map(usual, tables))
    rows = [row for table in tables for row in table.rows]
    records = [record for row in rows for record in row.records]
    sections = {
        "In short": _in_short(shown), "Results": _results(tables, shown),
        "How it was made": _made(tables, records),
    }  # fmt: skip
    html = document(
        __package__, "page", ["page.js"], title=title, about=_about(records, left_out),
        sections=[(name, part) for name, part in sections.items() if part],
    )  # fmt: skip
    return ReportPage(html, len(records), sum(len(row.runs) for row in rows), left_out)


def _about(records: Sequence[Record], left_out: Sequence[str]) -> list[str]:
    """What the page shows and what not."""
    stopped = 0
    shown: dict[str, dict[str, None]] = {"Methods": {}, "ID sets": {}, "Encoders": {}}
    for record in records:
        run = record.settings
        for of_kind, name in zip(
            shown.values(), (run.method, run.id_set, run.encoder), strict=True
        ):
            of_kind[name] = None
        stopped += record.unfinished > 0
    lists = " ".join(f"{what}: {', '.join(names)}." for what, names in shown.items())
    lines = [f"{counted(len(records), 'run')}. {lists}"]
    if stopped:
        many = counted(stopped, "run")
        lines.append(f"Stopped before its end: {many}. What was stopped enters no mean.")
    return lines + [f"Left out: {reason}." for reason in left_out]


# In short.


def _in_short(tables: Sequence[ResultTable]) -> Markup:
    """Which method has the highest mean Acc_H, where, and whether seeds explain it."""
    rows = [row for table in tables for row in _firsts(table)]
    if not rows:
        return Markup("")
    wins, beyond = Counter[str](), Counter[str]()
    for row in rows:
        wins[row.labels[2]] += 1
        beyond[row.labels[2]] += row.labels[-1] == _BEYOND
    sentences = [
        f"{method} has the highest mean Acc_H in {count} of {len(rows)} comparisons of methods "
        f"(an ID set at a noise ratio), in {beyond[method]} of them beyond what seeds explain."
        for method, count in wins.most_common()
    ]
    heads = ("ID set", "Noise", "Highest", "Acc_H", "Next", "Acc_H", "Beyond seeds")
    sheet = Sheet("The highest mean Acc_H at each noise ratio", heads, {}, rows)
    sheet.notes.append(
        "Means are over the OOD sets of a table and its seeds. Beyond seeds: Student's paired t "
        "test over seeds at 5 %, corrected for the number of rivals (Holm). Seeds say nothing "
        "about other sets."
    )
    return _paragraphs(sentences) + Markup(html_table(sheet))


def _firsts(table: ResultTable) -> Iterator[SheetRow]:
    """The best and the next method of each contest under noise."""
    metric = METRICS["acc_h"]
    column = AVERAGE if len(table.ood_sets) > 1 else table.columns[0]
    for rows in table.contests():
        if not rows[0].ratio:
            continue
        values = compared(table, rows, column, metric)
        rivals = [one for one in values if not one[0].advantage and one[1].is_whole]
        rivals.sort(key=lambda one: -one[1].mean)
        best = [one for one in rivals if one[2].is_best]
        if not best or len(best) == len(rivals):
            continue
        (_, highest, _), (following, second, _) = best[0], rivals[len(best)]
        is_tested = paired_t_test(highest.by_seed, second.by_seed) is not None
        verdict = _BEYOND if is_tested else _UNTESTED
        if close := [row.method for row, _, mark in rivals if mark.is_close]:
            verdict = f"no: not told apart from {', '.join(close)}"
        labels = (
            f"{table.id_set}, {table.encoder}", frame.shown("ratio", rows[0].ratio),
            ", ".join(row.method for row, _, _ in best), metric.text(highest.mean, highest.std),
            following.method, metric.text(second.mean, second.std), verdict,
        )  # fmt: skip
        yield SheetRow(labels, {})


# The results.


def _results(tables: Sequence[ResultTable], shown: Sequence[ResultTable]) -> Markup:
    """For each ID set and encoder its table, a figure and, folded, what else there is."""
    parts = [_paragraphs([ACCURACIES])]
    for whole, table in zip(tables, shown, strict=True):
        decided = replace(table, rows=tuple(row for row in table.rows if row.decides))
        noisy = replace(table, rows=tuple(row for row in table.rows if row.ratio))
        others = replace(whole, rows=tuple(row for row in whole.rows if row not in table.rows))
        parts += [_table(decided)] * bool(decided.rows) + [_figure(decided)]
        if noisy.rows:
            said = "How the scores rank ID and OOD samples"
            parts.append(_folded(said, _table(noisy, "ood")))
        if (by_class := classes_sheet(table)).rows:
            parts.append(_folded(by_class.title, html_table(by_class)))
        if others.rows:
            said = f"Other settings of the same methods: {counted(len(others.rows), 'row')}"
            parts.append(_folded(said, _table(others)))
    return Markup("").join(parts)


def _table(table: ResultTable, report: str = "accuracy") -> Markup:
    """A table whose average, beside the methods, is seen before the table is scrolled."""
    sheet = table_sheet(table, View(report))
    columns = sorted(sheet.columns.items(), key=lambda column: column[0] != AVERAGE)
    return Markup(html_table(replace(sheet, columns=dict(columns))))


def _folded(summary: str, html: str) -> Markup:
    folded = Markup("<details><summary>{}</summary>\n{}</details>\n")
    return folded.format(summary, Markup(html))


def _figure(table: ResultTable) -> Markup:
    """Acc_H against the noise ratio; of a single ratio the methods' means over the sets."""
    from zsntta_cli.report.drawing import PAGE, drawn

    runs = [run for row in table.rows for run in row.records if row.ratio]
    ratios = {row.ratio for row in table.rows if row.ratio and not isinstance(row.ratio, str)}
    what = "Acc_H against the noise ratio" if len(ratios) > 1 else "Mean accuracies"
    try:
        figure = ratio(runs) if len(ratios) > 1 else means(runs)
    except SettingsError:  # a method alone, or scores that decide nothing
        return Markup("")
    name = f"{what}, ID: {table.id_set}, {table.encoder}"
    image = Markup(
        '<figure><img alt="{}: {}" src="data:image/svg+xml;base64,{}">'
        "<figcaption>{}.</figcaption></figure>\n{}"
    )
    panels = "; ".join(panel.title for panel in figure.panels)
    content = base64.b64encode(drawn(figure, "svg", PAGE, has_outlines=False)).decode()
    return image.format(name, panels, content, name, _paragraphs(figure.sentences))


def _paragraphs(sentences: Sequence[str]) -> Markup:
    return Markup("\n").join(Markup("<p>{}</p>").format(text) for text in sentences)


# How it was made.


def _made(tables: Sequence[ResultTable], records: Sequence[Record]) -> Markup:
    """The commands of each row, the features that were read, and by which versions."""
    sheets = [*map(_commands, tables), _features(records), _versions(records)]
    return Markup("").join(
        _folded(sheet.title, html_table(sheet)) for sheet in sheets if sheet.rows
    )


def _commands(table: ResultTable) -> Sheet:
    """For each row the commands that made it, its time and its memory."""
    names = frame.labels(table.rows)
    rows = []
    for row in table.rows:
        facts = [(one.command, one.device, one.seconds, one.memory) for one in row.records]
        commands, devices, seconds, memory = zip(*facts, strict=True)
        typed = "\n".join(sorted({*commands} - {""}))
        mean = sum(seconds) / len(seconds)  # of the method alone
        values = (str(len(facts)), f"{mean:.3g}", f"{max(memory) / 2**20:,.0f}")
        ratio_text = frame.shown("ratio", row.ratio)
        texts = (names[row], ratio_text, typed, ", ".join(sorted({*devices})))
        rows.append(SheetRow(texts, {"": values}))
    heads = ("Method", "Noise", "Command", "Device")
    title = f"The commands: ID: {table.id_set}, {table.encoder}"
    return Sheet(title, heads, {"": ("Runs", "s a run", "Peak MiB")}, rows)


def _features(records: Sequence[Record]) -> Sheet:
    """The digests of all features that the runs read."""
    counts = Counter(
        (frame.set_place(name.removeprefix("text/")), name, record.settings.encoder, digest)
        for record in records
        for name, digest in record.digests.items()
    )
    title = "Features that the runs saw; text/SET: class text, logit scale, whether normalised"
    rows = [SheetRow((*key[1:], str(counts[key])), {}) for key in sorted(counts)]
    return Sheet(title, ("Features", "Encoder", "SHA-256", "Runs"), {}, rows)


def _versions(records: Sequence[Record]) -> Sheet:
    """The versions that made the runs, and when."""
    days: dict[tuple[str, ...], list[str]] = {}
    for record in records:
        made_by = ", ".join(f"{name} {number}" for name, number in sorted(record.versions.items()))
        days.setdefault((made_by, record.device, record.revision), []).append(record.created[:10])
    rows = [
        SheetRow((*key, min(on), max(on), str(len(on))), {}) for key, on in sorted(days.items())
    ]
    heads = ("Made by", "Device", "Revision", "First", "Last", "Runs")
    return Sheet("Versions and devices", heads, {}, rows)
