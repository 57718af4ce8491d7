"""Results as sheets in the paper's form, a sheet for each ID set and encoder.

Rows are methods and settings that vary; columns are OOD sets, followed by their average. All
numbers come from the frame (results/frame.py); forms/ draws the sheets.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.errors import unknown
from zsntta_cli.report.forms import FORMS, draw, in_form
from zsntta_cli.report.sheet import AVERAGE, Best, Close, Labels, Marked, Sheet, SheetRow
from zsntta_cli.results import frame
from zsntta_cli.results.compare import RankMark, marks
from zsntta_cli.results.frame import PRESET, SEEDS, SETS, ResultRow, ResultTable, Value
from zsntta_cli.settings import StreamSettings, ratio_text
from zsntta_cli.simulation.metrics import DETECTION, METRICS, Metric
from zsntta_cli.simulation.notes import OFFLINE, UNDECIDED, RunNote, strongest
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import differing_settings

_FEW = 30  # noise samples: one of them is 3 points of Acc_N and more
_OF_STREAMS = {field.name for field in fields(StreamSettings)}  # no settings of a method
_IN_TITLE = ("ratio", "order", "limit", PRESET)  # settings, where all rows share them
_NO_SET = "-"  # heads the column of streams that are all clean
_INJECTED = "°"
_RECALL = {"acc_n": "Recall"}  # what `flags` calls it: of the samples to look at
_SPREADS = {
    SEEDS: "± of an average is its own standard deviation over seeds.",
    SETS: "± of an average is the mean of its sets' standard deviations, as the paper's.",
}


@dataclass(frozen=True)
class View:
    """What tables show of results, and under which names.

    Raises:
        SettingsError: there is no such metric.
    """

    report: str = "accuracy"  # which metrics: one of REPORTS
    spread: str = SEEDS  # whose deviation the ± of an average is
    metrics: tuple[str, ...] = ()  # by name, in place of the report's
    labels: Mapping[str, str] = field(default_factory=dict)  # of methods, in place of their names
    aggregate: bool = False  # of csv and json: seeds folded, with averages, in place of the runs
    caption: str = ""  # of LaTeX's tables
    reference: str = ""  # what LaTeX refers to them by
    command: str = ""  # that makes the tables
    shown: tuple[Metric, ...] = field(init=False)  # in the columns

    def __post_init__(self) -> None:
        for name in self.metrics:
            if name not in METRICS:
                raise unknown("columns", name, tuple(METRICS), "docs/results.md lists them")
        named = tuple(METRICS[name] for name in self.metrics)
        of_report = tuple(one for one in METRICS.values() if self.report in one.reports)
        object.__setattr__(self, "shown", named or of_report)

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
        rows = [record.to_dict() for record in records]
    else:
        rows = tidy.run_rows(records)
    return in_form(form, (), rows, to_file, tidy.columns())


def sheets(records: Iterable[Record], view: View) -> list[Sheet]:
    """The sheets of some runs, independent of their order."""
    return [table_sheet(table, view) for table in frame.tables(records)]


def table_sheet(table: ResultTable, view: View) -> Sheet:
    """The sheet of a table of the frame."""
    varying = table.varying
    columns = [*table.columns, *[AVERAGE] * (len(table.columns) > 1)]
    texts = _texts(table, columns, view)
    names = {row: view.labels.get(row.method, row.method) for row in table.rows}
    injected = {  # into whose streams further noise images were put, and of which kind
        row: str(row.settings["noise"])
        for row in table.rows
        if any(run.counts.get("noise") for run in row.records)
    }
    has_groups = len({row.method for row in names}) < len(table.rows)
    notes, rows = list[str](), list[SheetRow]()
    for row, method in names.items():
        if row in injected:
            method = Marked(f"{method}{_INJECTED}")
        labels = method, *(frame.label_text(name, row.settings.get(name)) for name in varying)
        is_next = has_groups and bool(rows) and rows[-1].labels[0] != labels[0]
        rows.append(SheetRow(labels, texts[row], is_next))
        if AVERAGE in columns:
            lacks = row.average(table.ood_sets, view.shown[0].name).lacks
            if lacks:
                notes.append(f"{', '.join(labels)} has no average: it has {lacks}.")
    notes += _notes(names, injected.values(), view) + sweep_notes(texts)
    if any("±" in text for by_column in texts.values() for text in by_column.get(AVERAGE, ())):
        notes.append(_SPREADS[view.spread])
    heads = ("Noise" if name == "ratio" else frame.setting_name(name) for name in varying)
    metrics: Labels = tuple(map(view.head, view.shown))
    return Sheet(
        _title(table, varying), ("Method", *heads),
        dict.fromkeys((name or _NO_SET for name in columns), metrics),
        rows, notes, view.caption, view.reference, view.command,
    )  # fmt: skip


def _texts(
    table: ResultTable, columns: Sequence[str], view: View
) -> dict[ResultRow, dict[str, list[str]]]:
    """The texts of all rows by column, marked among rows that saw the same samples."""
    texts: dict[ResultRow, dict[str, list[str]]] = {row: {} for row in table.rows}
    for rows in table.contests():
        for column in columns:
            for metric in view.shown:
                for row, value, mark in compared(table, rows, column, metric, view.spread):
                    if column == AVERAGE or row.on(column):
                        text = metric.text(value.mean, value.std)
                        text = (
                            Best(text) if mark.is_best else Close(text) if mark.is_close else text
                        )
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
    values, rivals = list[Value](), list[Value]()
    for row in rows:
        if column == AVERAGE:
            value = row.average(table.ood_sets, metric.name, spread)
        else:
            value = row.value(column, metric.name)
        values.append(value)
        rivals.append(frame.NOTHING if row.advantage else value)
    return zip(rows, values, marks(rivals, metric), strict=True)


# What all rows have in common, and what a reader must know of them.


def _title(table: ResultTable, varying: Sequence[str]) -> str:
    """The settings that all rows share, and over how few sets an average is."""
    settings, parts = table.rows[0].settings, [f"ID: {table.id_set}"]
    told = {name: settings[name] for name in _IN_TITLE if name not in varying}
    if "ratio" in told:
        parts.append(f"noise {frame.shown('ratio', told['ratio'])}")
    if told.get("order", StreamSettings.order) != StreamSettings.order:
        parts.append(f"order {told['order']}")
    if told.get("limit"):
        parts.append(f"first {told['limit']:,} samples")
    parts.append(table.encoder)
    if PRESET in told:
        parts.append(f"preset {told[PRESET]}")
    partners = datasets.partners(table.id_set)
    present = set(partners).intersection(table.ood_sets)
    if len(table.ood_sets) > 1 and len(present) < len(partners):
        parts.append(f"average over {len(present)} of its {len(partners)} OOD sets")
    return ", ".join(parts)


def _notes(names: Mapping[ResultRow, str], injected: Iterable[str], view: View) -> list[str]:
    """What a reader of some rows, by the names of their methods, has to know.

    `injected` are the kinds of noise images that were put into streams.
    """
    records = [record for row in names for record in row.records]
    notes = dict[str, None]()
    for row, name in names.items():
        if row.advantage:
            notes[f"{name} {row.advantage}, so it is shown for reference, and never marked."] = None
    if kinds := ", ".join(dict.fromkeys(injected)):
        what = f"{_INJECTED} marks a method into whose streams noise images ({kinds})"
        notes[f"{what} were injected; no metric counts these."] = None
    few = {
        f"{r.counts['ood']} against {r.settings.ood_set} at {ratio_text(r.settings.stream.ratio)}"
        for r in records
        if 0 < r.counts["ood"] < _FEW
    }
    of_few = [f"FEW noise samples: {'; '.join(sorted(few))}."] if few else []
    return [*notes, *of_few, *run_notes(records, view.shown)]


def run_notes(records: Iterable[Record], shown: Iterable[Metric]) -> list[str]:
    """What a reader of some metrics of these runs has to know: which stopped, and their notes."""
    stopped, notes = list[str](), list[RunNote]()
    for record in records:
        notes += record.notes
        if record.unfinished:
            run, items = record.settings, sum(record.counts.values())
            stopped.append(
                f"PARTIAL: {run.method} against {run.ood_set or 'no OOD set'} was stopped after "
                f"{items:,} of {items + record.unfinished:,} items; it enters no average."
            )
    has_decisions = any(metric.group != DETECTION for metric in shown)
    return stopped + strongest(notes, (OFFLINE,) if has_decisions else (OFFLINE, UNDECIDED))


def usual(table: ResultTable) -> ResultTable:
    """A table with, of each method, the rows of the settings that most runs share, at all ratios.

    A preset's own settings come before others, those of the preset that most runs have first.
    """
    presets, groups = Counter[str](), dict[Any, list[ResultRow]]()
    for row in table.rows:
        presets[row.settings[PRESET]] += len(row.records)
        settings = tuple({**row.settings, "ratio": None}.items())
        groups.setdefault((row.method, row.stream, settings), []).append(row)

    def place(group: Sequence[ResultRow]) -> tuple[bool, int, int]:
        run, preset = group[0].records[0].settings, group[0].settings[PRESET]
        has_default = run.prompt == datasets.default_prompt(run.id_set)
        is_own = has_default and {*differing_settings(run, preset)} <= {"ratio", "seed"}
        return not is_own, -presets[preset], -sum(len(row.records) for row in group)

    most_used: dict[str, list[ResultRow]] = {}
    for group in sorted(groups.values(), key=place):
        most_used.setdefault(group[0].method, group)
    rows = tuple(row for row in table.rows if row in most_used[row.method])
    return replace(table, rows=rows)


def sweep_notes(texts: Mapping[ResultRow, Mapping[str, Sequence[str]]]) -> list[str]:
    """Which methods are the best of several settings that were run on the reported streams."""
    swept: dict[str, dict[str, None]] = {}

    def kind(row: ResultRow) -> Any:
        return row.stream, row.ratio, row.method, row.settings[PRESET], row.settings["prompt"]

    for rows in frame.grouped(texts, kind).values():
        names = [
            name
            for name in frame.differing(rows)
            if name not in _OF_STREAMS and not name.startswith(frame.FEATURES_OF)
        ]
        shown = (text for row in rows for of_column in texts[row].values() for text in of_column)
        if names and any(isinstance(text, Best) for text in shown):
            swept.setdefault(rows[0].method, {}).update(dict.fromkeys(names))
    return [
        f"Several settings of {method} ({', '.join(map(frame.setting_name, names))}) were run on "
        f"the streams that this table reports, so the best of them is optimistic: choose settings "
        f"on other sets, as docs/experiments.md shows."
        for method, names in swept.items()
    ]
