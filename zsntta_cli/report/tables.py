"""Results as sheets in the paper's form, a sheet for each ID set and encoder.

Rows are methods and settings that vary; columns are OOD sets, followed by their average. All
numbers come from the frame (results/frame.py); forms/ draws the sheets.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.errors import unknown
from zsntta_cli.report.forms import FORMS, draw, write_rows
from zsntta_cli.report.sheet import AVERAGE, Best, Close, Labels, Marked, Sheet, SheetRow
from zsntta_cli.results import frame
from zsntta_cli.results.compare import RankMark, marks
from zsntta_cli.results.frame import PRESET, SEEDS, SETS, ResultRow, ResultTable, Value
from zsntta_cli.settings import StreamSettings, ratio_text
from zsntta_cli.simulation.metrics import DETECTION, METRICS, Metric, metrics_of
from zsntta_cli.simulation.notes import OFFLINE, UNDECIDED, strongest
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import differing_settings

_FEW = 30  # noise samples: one of them is 3 points of Acc_N and more
_OF_STREAMS = {field.name for field in fields(StreamSettings)}  # no settings of a method
_NO_SET = "-"  # heads the column of streams that are all clean
_INJECTED = "°"
_RECALL = {"acc_n": "Recall"}  # what `flags` calls it: of the samples to look at
_SPREADS = {
    SEEDS: "± of an average is its own standard deviation over seeds.",
    SETS: "± of an average is the mean of its sets' standard deviations, as the paper's.",
}


@dataclass(frozen=True)
class View:
    """What tables show of results, and under which names."""

    report: str = "accuracy"  # which metrics: one of REPORTS
    spread: str = SEEDS  # whose deviation the ± of an average is
    metrics: tuple[str, ...] = ()  # by name, in place of the report's
    labels: Mapping[str, str] = field(default_factory=dict)  # of methods, in place of their names
    aggregate: bool = False  # of csv and json: seeds folded, with averages, in place of the runs
    caption: str = ""  # of LaTeX's tables
    reference: str = ""  # what LaTeX refers to them by
    command: str = ""  # that makes the tables

    @property
    def shown(self) -> tuple[Metric, ...]:
        """The metrics in the columns.

        Raises:
            SettingsError: there is no such metric.
        """
        for name in self.metrics:
            if name not in METRICS:
                raise unknown("columns", name, tuple(METRICS), "docs/results.md lists them")
        return tuple(METRICS[name] for name in self.metrics) or metrics_of(self.report)

    def head(self, metric: Metric) -> str:
        """The head of a metric's column."""
        is_flags = self.report == "flags" and not self.metrics
        return _RECALL.get(metric.name, metric.head) if is_flags else metric.head


def render(records: Sequence[Record], form: str, view: View, to_file: bool = False) -> str:
    """Results as a text in one of FORMS; `table` is drawn for the terminal, if there is one.

    csv has a row for each run and json the complete records; if the view is of aggregates, both
    have what the tables show.
    """
    if not FORMS[form].of_rows:
        return draw(sheets(records, view), form, to_file)
    from zsntta_cli.results import tidy

    if view.aggregate:
        rows = tidy.table_rows(frame.tables(records), view.spread)
    elif form == "json":
        return write_rows([record.to_dict() for record in records], form)
    else:
        rows = tidy.run_rows(records)
    return write_rows(rows, form, tidy.columns())


def sheets(records: Iterable[Record], view: View) -> list[Sheet]:
    """The sheets of some runs, independent of their order."""
    return [table_sheet(table, view) for table in frame.tables(records)]


def table_sheet(table: ResultTable, view: View) -> Sheet:
    """The sheet of a table of the frame."""
    varying = table.varying
    columns = [name or _NO_SET for name in _columns(table)]
    heads: Labels = tuple(map(view.head, view.shown))
    notes, rows = list[str](), list[SheetRow]()
    texts = _texts(table, view)
    has_groups = len({row.method for row in table.rows}) < len(table.rows)
    for row in table.rows:
        labels = _labels(row, varying, view)
        is_next = has_groups and bool(rows) and rows[-1].labels[0] != labels[0]
        rows.append(SheetRow(labels, texts[row], is_next))
        notes += _missing(table, row, labels, view)
    records = [record for row in table.rows for record in row.records]
    names = {row: view.labels.get(row.method, row.method) for row in table.rows}
    notes += reference_notes(names)
    notes += (
        _injected(table.rows)
        + _few(records)
        + stopped_notes(records)
        + run_notes(records, view.shown)
    )
    notes += sweep_notes(texts)
    if AVERAGE in columns and any("±" in text for by in texts.values() for text in by[AVERAGE]):
        notes.append(_SPREADS[view.spread])
    return Sheet(
        _title(table, varying), ("Method", *map(_head, varying)),
        dict.fromkeys(columns, heads), rows, notes, view.caption, view.reference, view.command,
    )  # fmt: skip


def _columns(table: ResultTable) -> list[str]:
    """The OOD sets of a table and, if there are several, their average."""
    return [*table.columns, *[AVERAGE] * (len(table.columns) > 1)]


def _labels(row: ResultRow, varying: Sequence[str], view: View) -> Labels:
    """The labels at the beginning of a row."""
    values = (frame.label_text(name, row.settings.get(name)) for name in varying)
    method = view.labels.get(row.method, row.method)
    return (Marked(f"{method}{_INJECTED}") if _is_injected(row) else method, *values)


def _is_injected(row: ResultRow) -> bool:
    """Whether further noise images stood in its streams."""
    return any(run.counts.get("noise") for run in row.records)


def _injected(rows: Iterable[ResultRow]) -> list[str]:
    """A note on the rows in whose streams further noise images stood."""
    kinds = dict.fromkeys(str(row.settings["noise"]) for row in rows if _is_injected(row))
    what = f"{_INJECTED} marks a method into whose streams noise images ({', '.join(kinds)}) were"
    return [f"{what} injected; no metric counts these."] if kinds else []


def _head(name: str) -> str:
    return "Noise" if name == "ratio" else frame.setting_name(name)


def _texts(table: ResultTable, view: View) -> dict[ResultRow, dict[str, list[str]]]:
    """The texts of all rows by column, marked among rows that saw the same samples."""
    texts: dict[ResultRow, dict[str, list[str]]] = {row: {} for row in table.rows}
    for rows in table.contests():
        for column in _columns(table):
            for metric in view.shown:
                for row, value, mark in compared(table, rows, column, metric, view.spread):
                    if column == AVERAGE or row.on(column):
                        text = marked_text(metric.text(value.mean, value.std), mark)
                        texts[row].setdefault(column or _NO_SET, []).append(text)
    return texts


def compared(
    table: ResultTable,
    rows: Sequence[ResultRow],
    column: str,
    metric: Metric,
    spread: str = SEEDS,
) -> Iterator[tuple[ResultRow, Value, RankMark]]:
    """The values of a column, an OOD set or the average, and their marks among these rows."""
    if column == AVERAGE:
        by_set = [row.by_set(table.ood_sets, metric.name) for row in rows]
        values = [frame.average(of_row, spread) for of_row in by_set]
        by_seed = [frame.average_by_seed(of_row) for of_row in by_set]
    else:
        values = [row.value(column, metric.name) for row in rows]
        by_seed = [row.by_seed(column, metric.name) for row in rows]
    row_marks = marks(by_seed, metric, [row.competes for row in rows])
    return zip(rows, values, row_marks, strict=True)


def marked_text(text: str, mark: RankMark) -> str:
    """A value's text with its mark, for any form."""
    return Best(text) if mark.is_best else Close(text) if mark.is_close else text


def reference_notes(names: Mapping[ResultRow, str]) -> list[str]:
    """Notes on the rows, by name, that know more than an online method may."""
    notes = (
        f"{name} {row.advantage}, so it is shown for reference, and never marked."
        for row, name in names.items()
        if row.advantage
    )
    return list(dict.fromkeys(notes))


def _missing(table: ResultTable, row: ResultRow, labels: Labels, view: View) -> list[str]:
    """Why a row has no average."""
    lacks = frame.average(row.by_set(table.ood_sets, view.shown[0].name)).lacks
    if len(table.columns) < 2 or not lacks:
        return []
    return [f"{', '.join(labels)} has no average: it has {lacks}."]


# What all rows have in common, and what a reader must know of them.


def _title(table: ResultTable, varying: Sequence[str]) -> str:
    settings = table.rows[0].settings
    ratio = [] if "ratio" in varying else [f"noise {frame.shown('ratio', settings['ratio'])}"]
    order = settings["order"]
    is_told = "order" in varying or order == StreamSettings.order
    kind = [] if is_told else [f"order {order}"]
    limit = settings["limit"]
    head = [f"first {limit:,} samples"] if limit and "limit" not in varying else []
    preset = [] if PRESET in varying else [f"preset {settings[PRESET]}"]
    parts = [*ratio, *kind, *head, table.encoder, *preset, *_over(table)]
    return ", ".join([f"ID: {table.id_set}", *parts])


def _over(table: ResultTable) -> list[str]:
    """The words of a title on an average over fewer OOD sets than the benchmark has."""
    partners = datasets.partners(table.id_set)
    present = [name for name in table.ood_sets if name in partners]
    is_part = partners and len(table.ood_sets) > 1 and len(present) < len(partners)
    return [f"average over {len(present)} of its {len(partners)} OOD sets"] if is_part else []


def _few(records: Sequence[Record]) -> list[str]:
    """A note on streams with too few noise samples for a judgement."""
    few = {
        f"{r.counts['ood']} against {r.settings.ood_set} at {ratio_text(r.settings.stream.ratio)}"
        for r in records
        if 0 < r.counts["ood"] < _FEW
    }
    return [f"FEW noise samples: {'; '.join(sorted(few))}."] if few else []


def run_notes(
    records: Iterable[Record], shown: Iterable[Metric] = tuple(METRICS.values())
) -> list[str]:
    """What a reader of some metrics of these runs has to know, besides `reference_notes`."""
    has_decisions = any(metric.group != DETECTION for metric in shown)
    notes = (note for record in records for note in record.notes)
    return strongest(notes, (OFFLINE,) if has_decisions else (OFFLINE, UNDECIDED))


def stopped_notes(records: Sequence[Record]) -> list[str]:
    """A note on each run that was stopped."""
    return [
        f"PARTIAL: {r.settings.method} against {r.settings.ood_set or 'no OOD set'} was stopped "
        f"after {sum(r.counts.values()):,} of {sum(r.counts.values()) + r.unfinished:,} items; it "
        f"enters no average."
        for r in records
        if r.unfinished
    ]


def usual_rows(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Of each method the rows of the settings that most of its runs share, at all ratios.

    A preset's own settings come before others, those of the preset that most runs have first.
    """
    presets = Counter(row.settings[PRESET] for row in rows for _ in row.records)
    by_method: dict[str, dict[Any, list[ResultRow]]] = {}
    for row in rows:
        key = row.stream, tuple(item for item in row.settings.items() if item[0] != "ratio")
        by_method.setdefault(row.method, {}).setdefault(key, []).append(row)

    def place(group: Sequence[ResultRow]) -> tuple[bool, int, int]:
        runs = sum(len(row.records) for row in group)
        return not _is_of_preset(group[0]), -presets[group[0].settings[PRESET]], -runs

    usual = {row for groups in by_method.values() for row in min(groups.values(), key=place)}
    return [row for row in rows if row in usual]


def _is_of_preset(row: ResultRow) -> bool:
    """Whether a row has no settings but its preset's."""
    run = row.records[0].settings
    changed = differing_settings(run, row.settings[PRESET])
    return {*changed} <= {"ratio", "seed"} and run.prompt == datasets.default_prompt(run.id_set)


def sweep_notes(texts: Mapping[ResultRow, Mapping[str, Sequence[str]]]) -> list[str]:
    """Which methods are the best of several settings that were run on the reported streams."""
    swept: dict[str, dict[str, None]] = {}
    groups: dict[Any, list[ResultRow]] = {}
    for row in texts:
        key = row.stream, row.ratio, row.method, row.settings[PRESET], row.settings["prompt"]
        groups.setdefault(key, []).append(row)
    for rows in groups.values():
        of_method = [name for name in frame.differing(rows) if name not in _OF_STREAMS]
        names = [name for name in of_method if not name.startswith(frame.FEATURES_OF)]
        if names and any(_is_best(texts[row]) for row in rows):
            swept.setdefault(rows[0].method, {}).update(dict.fromkeys(names))
    return [
        f"Several settings of {method} ({', '.join(map(frame.setting_name, names))}) were run on "
        f"the streams that this table reports, so the best of them is optimistic: choose settings "
        f"on other sets, as docs/experiments.md shows."
        for method, names in swept.items()
    ]


def _is_best(by_column: Mapping[str, Sequence[str]]) -> bool:
    return any(isinstance(text, Best) for texts in by_column.values() for text in texts)
