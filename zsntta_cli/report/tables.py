"""Results as sheets in the paper's form: a sheet for each ID set and encoder, or for one run.

Rows are methods and settings that vary; columns are OOD sets, followed by their average. All
numbers come from the frame (results/frame.py); forms.py draws the sheets.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from zsntta_cli import datasets
from zsntta_cli.errors import unknown
from zsntta_cli.report.forms import FORMS, in_form
from zsntta_cli.report.sheet import AVERAGE, Best, Close, Marked, Row, Sheet
from zsntta_cli.results import frame
from zsntta_cli.results.frame import PRESET, SEEDS, SETS, ResultRow, ResultTable, Value
from zsntta_cli.settings import StreamSettings, ratio_text
from zsntta_cli.simulation.metrics import DETECTION, METRICS, Judged, Metric, class_counts
from zsntta_cli.simulation.notes import OFFLINE, UNDECIDED, RunNote, strongest
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import differing_settings

if TYPE_CHECKING:
    from zsntta_cli.results.repeating import Repeated
    from zsntta_cli.simulation.replay import Replay

_FEW = 30  # noise samples: one of them is 3 points of Acc_N and more
_OF_NO_METHOD = {*StreamSettings.__dataclass_fields__, PRESET, "prompt"}  # settings
_NO_SET = "-"  # heads the column of streams that are all clean
_INJECTED = "°"
_RECALL = {"acc_n": "Recall"}  # what `flags` calls it: of the samples to look at
_SPREADS = {
    SEEDS: "± of an average is its own standard deviation over seeds.",
    SETS: "± of an average is the mean of its sets' standard deviations, as in the paper.",
}


@dataclass(frozen=True)
class View:
    """What tables show of results, and under which names.

    Raises:
        SettingsError: there is no metric of that name.
    """

    report: str = "accuracy"  # which metrics: one of REPORTS
    spread: str = SEEDS  # whose deviation the ± of an average is
    metrics: tuple[str, ...] = ()  # by name, in place of the report's
    labels: Mapping[str, str] = field(default_factory=dict)  # of methods, in place of their names
    aggregate: bool = False  # of csv and json: seeds folded, with averages, in place of the runs
    caption: str = ""  # of LaTeX's tables
    reference: str = ""  # what LaTeX refers to them by
    command: str = ""  # that makes the tables
    is_average_first: bool = False  # before the sets
    # The metrics by the heads of their columns.
    shown: dict[str, Metric] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        heads = _RECALL if self.report == "flags" and not self.metrics else {}
        for name in self.metrics or METRICS:
            if name not in METRICS:
                raise unknown("columns", name, tuple(METRICS), "docs/results.md lists them")
            metric = METRICS[name]
            if self.metrics or self.report in metric.reports:
                self.shown[heads.get(name, metric.head)] = metric


def render(records: Sequence[Record], form: str, view: View, to_file: bool = False) -> str:
    """Results as text in one of FORMS; `table` is drawn for the terminal, if there is one.

    csv has a row for each run, and json has the complete records; with an aggregate view, both have
    what the tables show.
    """
    if not FORMS[form].of_rows:
        sheets = map(partial(table_sheet, view=view), frame.tables(records))
        return in_form(form, sheets, to_file=to_file)
    from zsntta_cli.results import tidy

    if view.aggregate:
        rows = tidy.table_rows(frame.tables(records), view.spread)
    else:
        rows = [r.to_dict() for r in records] if form == "json" else tidy.run_rows(records)
    return in_form(form, (), rows, to_file, tidy.columns())


def table_sheet(table: ResultTable, view: View) -> Sheet:
    """The sheet of a table of the frame, with what its reader must know."""
    varying, metrics = table.varying, list(view.shown.values())
    columns = [*table.columns, *[AVERAGE] * (len(table.columns) > 1)]
    if view.is_average_first and AVERAGE in columns:
        columns = [AVERAGE, *table.columns]
    texts, heads = _texts(table, columns, view), ["Method", *map(frame.setting_name, varying)]
    if "ratio" in varying:
        heads[1 + varying.index("ratio")] = "Noise"
    names = [_NO_SET] if columns == [frame.CLEAN] else columns
    sheet = Sheet(
        _title(table, varying), heads, dict.fromkeys(names, tuple(view.shown)),
        caption=view.caption, reference=view.reference, command=view.command,
    )  # fmt: skip
    has_groups = len({*map(attrgetter("method"), table.rows)}) < len(table.rows)
    notes, injected, last = dict[str, None](), dict[str, None](), ""
    records, has_spread = list[Record](), False
    for row in table.rows:
        records += row.records
        has_spread |= "±" in "".join(texts[row].get(AVERAGE, ()))
        name = label = view.labels.get(row.method, row.method)
        for run in row.records:
            if run.counts.get("noise"):
                injected[str(row.settings["noise"])] = None
                label = Marked(name + _INJECTED)
        labels = [label, *map(frame.shown, varying, map(row.settings.get, varying))]
        sheet.add(labels, texts[row], has_groups and bool(last) and last != label)
        last = label
        lacks = row.average(table.columns, metrics[0].name).lacks if AVERAGE in columns else ""
        if lacks:
            sheet.notes.append(f"{', '.join(labels)} has no average: it has {lacks}.")
        if row.advantage:
            notes[f"{name} {row.advantage}, so it is shown for reference and never marked."] = None
    if injected:
        what = f"{_INJECTED} marks a method whose streams have injected noise images"
        notes[f"{what} ({', '.join(injected)}); no metric counts these."] = None
    sheet.notes += [*notes, *run_notes(records, metrics), *_swept(table, texts)]
    if has_spread:
        sheet.notes.append(_SPREADS[view.spread])
    return sheet


def _texts(
    table: ResultTable, columns: Sequence[str], view: View
) -> dict[ResultRow, dict[str, list[str]]]:
    """The texts of all rows by column, marked among rows that saw the same samples."""
    texts = defaultdict[ResultRow, dict[str, list[str]]](dict)
    for rows in table.contests():
        for column in columns:
            for metric in view.shown.values():
                for row, _, text in compared(table, rows, column, metric, view.spread):
                    if column == AVERAGE or row.on(column):
                        texts[row].setdefault(column or _NO_SET, []).append(text)
    return texts


def compared(
    table: ResultTable, rows: Sequence[ResultRow], column: str, metric: Metric, spread: str = SEEDS
) -> list[tuple[ResultRow, Value, str]]:
    """The values of a column, an OOD set or the average, as texts with marks among these rows."""
    values, rivals, compared_rows = list[Value](), list[Value](), []
    for row in rows:
        if column == AVERAGE:
            values.append(row.average(table.columns, metric.name, spread))
        else:
            values.append(row.value(column, metric.name))
        rivals.append(frame.NOTHING if row.advantage else values[-1])
    for row, value, mark in zip(rows, values, frame.marks(rivals, metric), strict=True):
        kind = {frame.BEST: Best, frame.CLOSE: Close}.get(mark, str)
        compared_rows.append((row, value, kind(metric.text(value.mean, value.std))))
    return compared_rows


# What all rows have in common, and what a reader must know of them.


def _title(table: ResultTable, varying: Sequence[str]) -> str:
    """The settings that all rows share, and over how few sets an average is."""
    settings, parts = table.rows[0].settings, [f"ID: {table.id_set}"]
    if "ratio" not in varying:
        parts.append(f"noise {frame.shown('ratio', settings['ratio'])}")
    if "order" not in varying and settings["order"] != StreamSettings.order:
        parts.append(f"order {settings['order']}")
    if "limit" not in varying and settings["limit"]:
        parts.append(f"first {settings['limit']:,} samples")
    parts.append(table.encoder)
    if PRESET not in varying:
        parts.append(f"preset {settings[PRESET]}")
    partners = datasets.partners(table.id_set)
    present = set(partners).intersection(table.columns)
    if len(table.columns) > 1 and len(present) < len(partners):
        parts.append(f"average over {len(present)} of its {len(partners)} OOD sets")
    return ", ".join(parts)


def run_notes(records: Iterable[Record], shown: Iterable[Metric]) -> list[str]:
    """What a reader of some metrics of these runs must know.

    This covers few noise samples, stopped runs, and the notes of the runs.
    """
    few, stopped, notes = set[str](), list[str](), list[RunNote]()
    for record in records:
        run, samples = record.settings, record.counts["ood"]
        notes += record.notes
        if 0 < samples < _FEW:
            few.add(f"{samples} against {run.ood_set} at {ratio_text(run.stream.ratio)}")
        if record.unfinished:
            items = sum(record.counts.values())
            stopped.append(
                f"PARTIAL: {run.method} against {run.ood_set or 'no OOD set'} was stopped after "
                f"{items:,} of {items + record.unfinished:,} items; it enters no average."
            )
    of_few = [f"FEW noise samples: {'; '.join(sorted(few))}."] if few else []
    of_decisions = {*map(attrgetter("group"), shown)} - {DETECTION}
    without = (OFFLINE,) if of_decisions else (OFFLINE, UNDECIDED)
    return [*of_few, *stopped, *strongest(notes, without)]


def _swept(
    table: ResultTable, texts: Mapping[ResultRow, Mapping[str, Sequence[str]]]
) -> Iterator[str]:
    """Which methods are the best of several settings that were run on the reported streams."""
    swept: dict[str, dict[str, None]] = {}
    for contest in table.contests():
        for method, rows in frame.grouped(contest, attrgetter("method")).items():
            for row in rows:
                is_best = Best in map(type, chain(*texts[row].values()))
                for name in frame.varying(rows)[method] if is_best else ():
                    if name not in _OF_NO_METHOD and not name.startswith(frame.FEATURES_OF):
                        swept.setdefault(method, {})[frame.setting_name(name)] = None
    for method, names in swept.items():
        yield (
            f"Several settings of {method} ({', '.join(names)}) were run on the streams that this "
            f"table reports, so the best of them is optimistic: choose settings on other sets, as "
            f"docs/experiments.md shows."
        )


def usual(table: ResultTable) -> ResultTable:
    """A table with only the settings of each method that most of its runs share, at all ratios.

    A preset's own settings come before others, starting with the preset that most runs have.
    """

    def at_all_ratios(row: ResultRow) -> Any:
        return row.method, row.stream, tuple({**row.settings, "ratio": None}.items())

    presets = Counter(row.settings[PRESET] for row in table.rows for _ in row.records)
    most_used: dict[str, tuple[Any, list[ResultRow]]] = {}
    for group in frame.grouped(table.rows, at_all_ratios).values():
        run, preset = group[0].records[0].settings, group[0].settings[PRESET]
        is_own = {*differing_settings(run, preset)} <= {"ratio", "seed"}
        is_own &= run.prompt == datasets.default_prompt(run.id_set)
        use = is_own, presets[preset], sum(len(row.records) for row in group)
        if run.method not in most_used or use > most_used[run.method][0]:
            most_used[run.method] = use, group
    rows = [row for row in table.rows if row in most_used[row.method][1]]
    return replace(table, rows=rows)


# Recorded runs beside the same runs made here.

_FACTS = ("method", "settings", "encoder", "id_set", "ood_set", "ratio", "seed")


def render_repeated(
    repeated: Sequence["Repeated"], notes: Sequence[str], form: str, view: View, to_file: bool
) -> str:
    """Old and new results as text in one of FORMS; csv and json have a row per metric."""
    from zsntta_cli.results import tidy

    sheet = Sheet(
        "Recorded and new results", ("Method", "ID set", "OOD set", "Noise", "Seed"),
        dict.fromkeys(view.shown, ("Old", "New", "Difference")), command=view.command,
    )  # fmt: skip
    rows: list[Row] = []
    new_runs = [new for _, new in repeated]
    for (old, new), tidy_row in zip(repeated, tidy.run_rows(new_runs), strict=True):
        facts, texts = {name: tidy_row[name] for name in _FACTS}, {}
        for name, metric in METRICS.items():
            first, second = old.metric(metric), new.metric(metric)
            both = {"old": first, "new": second, "difference": second - first}
            numbers = {key: None if math.isnan(value) else value for key, value in both.items()}
            if {*numbers.values()} != {None}:
                rows.append({**facts, "metric": name, **numbers})
            both["difference"] = round(second - first, 4) + 0.0  # no -0.00
            texts[metric] = [*map(metric.text, both.values())]
        method = f"{facts['method']} {facts['settings']}".replace(";", " ").strip()
        noise, seed = frame.shown("ratio", facts["ratio"]), str(facts["seed"])
        labels = method, facts["id_set"], facts["ood_set"] or _NO_SET, noise, seed
        sheet.add(labels, {head: texts[metric] for head, metric in view.shown.items()})
    sheet.notes = [*run_notes(new_runs, view.shown.values()), *notes]
    return in_form(form, [sheet], rows, to_file)


# By class: how many images of each are classified right, called noise, taken for another.

OOD = "(OOD)"  # the row of images of no class
_CLASS_HEADS = ("Images", "ID acc", "Called noise", "Most confused with", "Confused")


def class_rows(names: Sequence[str], samples: Judged) -> list[Row]:
    """A row for each of C classes that has samples, and one for the OOD samples.

    `accuracy` is the share that is classified correctly, called noise or not; `called_noise` is
    None for a method without decisions. `confused_with` is the class that most other samples were
    taken for, and `confused` their share of the row's samples; both are None if there are none.
    """
    counts, rows = class_counts(samples, len(names)), []
    for i, images in enumerate(counts.images.tolist()):
        if images:
            confused = int(counts.confused[i])
            rows.append({
                "class": names[i] if i < len(names) else OOD,
                "images": images,
                "accuracy": int(counts.right[i]) / images if i < len(names) else None,
                "called_noise": None if counts.noise is None else int(counts.noise[i]) / images,
                "confused_with": names[counts.confused_with[i]] if confused else None,
                "confused": confused / images if confused else None,
            })  # fmt: skip
    return rows


def render_classes(replay: "Replay", form: str, to_file: bool) -> str:
    """The classes of a run in one of FORMS: a table in percent, or rows of fractions."""
    run = replay.sources.run
    rows = class_rows(replay.sources.id_set.class_names, replay.judged)
    against = f" against {run.ood_set}" if run.ood_set else ""
    title = f"{run.method} on {run.id_set}{against}, by class"
    sheet = Sheet(title, ["Class"], {"": _CLASS_HEADS})
    for row in rows:
        other, confused = row["confused_with"] or "-", _percent(row["confused"])
        shares = _percent(row["accuracy"]), _percent(row["called_noise"])
        sheet.add([row["class"]], {"": [f"{row['images']:,}", *shares, other, confused]})
    return in_form(form, [sheet], rows, to_file)


def classes_sheet(table: ResultTable) -> Sheet:
    """What each row's finished runs, summed, make of each class; empty where none counted them."""
    lines: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in table.rows:
        finished = [run.curves for run in row.records if not run.unfinished]
        runs = [curves["classes"] for curves in finished if "classes" in curves]
        names = runs[0]["names"] if runs else []
        runs = [of for of in runs if of["names"] == names]
        for i, name in enumerate(names):
            images, right = (sum(of[key][i] for of in runs) for key in ("images", "right"))
            noise = sum(of["noise"][i] if "noise" in of else math.nan for of in runs)
            confused_with = Counter(sorted(of["confused_with"][i] for of in runs))
            del confused_with[-1]
            if images:
                confused = "".join(names[other] for other, _ in confused_with.most_common(1)) or "-"
                line = lines.setdefault((name, frame.shown("ratio", row.ratio)), {})
                line[row.method] = [_percent(right / images), _percent(noise / images), confused]
    sheet = Sheet(
        f"By class: ID: {table.id_set}, {table.encoder}", ("Class", "Noise"),
        {row.method: _CLASS_HEADS[1:4] for row in table.rows},
    )  # fmt: skip
    summed = "Counts are summed over all OOD sets and seeds"
    sheet.notes.append(f"{summed}. 'Most confused with' is the most frequent one of these runs.")
    for labels, values in lines.items():
        sheet.add(labels, values)
    return sheet


def _percent(share: float | None) -> str:
    return "-" if share is None or math.isnan(share) else f"{100 * share:.2f}"
