"""The leaderboard: every row on every stream, which a script sorts and filters."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zsntta_cli.report.page.headline import Marks, features_of, kind_of
from zsntta_cli.report.page.rows import STOPPED, Contest, PageTable, mean_seconds
from zsntta_cli.report.pairs import p_text
from zsntta_cli.report.tables import marked_text, reference_notes, run_notes
from zsntta_cli.results import tidy
from zsntta_cli.results.compare import NO_MARK, RankMark, ranks
from zsntta_cli.results.frame import NOTHING, set_place, shown
from zsntta_cli.results.tidy import PUBLISHED, TidyRow
from zsntta_cli.settings.ratios import Ratio, ratio_place
from zsntta_cli.simulation.metrics import METRICS, Metric, metrics_of

_OWN_COLUMNS = ("rank", "gain", "p", "seconds", "features", "citation")  # behind the tidy
_DIGITS = 6  # of a fraction in the data: its files take room
_NONE = "-"


@dataclass(frozen=True)
class Reported:
    """A published row that was not run here; fractions, nan where no value is printed."""

    method: str
    id_set: str
    ood_set: str  # empty for a clean stream
    encoder: str  # the folder name that its features would have here
    ratio: Ratio
    acc_s: float
    acc_n: float
    acc_h: float
    source: str  # "arXiv 2502.14604, table 10"


@dataclass(frozen=True)
class LeaderboardColumn:
    """A column with what its script needs to know."""

    key: str
    head: str
    is_number: bool = True
    is_filter: bool = False
    is_low_first: bool = False  # what a click on its head shows first


@dataclass(frozen=True)
class Leaderboard:
    """The leaderboard as plain values."""

    columns: Sequence[LeaderboardColumn]
    bodies: Mapping[str, Sequence[Sequence[str]]]  # texts of the rows, by what heads them
    notes: Sequence[str]
    data: Mapping[str, Any]  # the same rows for downloads


@dataclass(frozen=True)
class _Line:
    """A row of the leaderboard."""

    values: TidyRow  # with what the board alone has
    label: str
    kind: str = ""  # what is not usual of its streams
    metric: str = ""  # by which it is ranked
    mark: RankMark = NO_MARK  # by that metric


def leaderboard(
    tables: Iterable[PageTable], marks: Marks, baseline: str, reported: Iterable[Reported]
) -> Leaderboard:
    """The leaderboard; rows on different features are in bodies of their own.

    Each body is sorted by itself, so rows on different features are never compared.
    """
    bodies: dict[str, list[_Line]] = {}
    contests = [(table, contest) for table in tables for contest in table.contests]
    for table, contest in sorted(contests, key=lambda pair: pair[1].rows[0].stream.features):
        stream = contest.rows[0].stream
        other_features = f"Other features of the same names ({features_of(stream)})"
        body = bodies.setdefault(other_features * any(stream.features), [])
        body += _lines(table, contest, marks, baseline)
    if published := _published(reported, [contest for _, contest in contests]):
        bodies["Published by others, not run here: without a rank"] = published
    lines = [line for body in bodies.values() for line in body]
    texts = {head: [_texts(line) for line in body] for head, body in bodies.items()}
    return Leaderboard(
        _columns(), texts, [*_notes(lines, baseline), *_run_notes(contests)], _data(lines)
    )


def _lines(table: PageTable, contest: Contest, marks: Marks, baseline: str) -> list[_Line]:
    """Rows that saw the same samples, the best first."""
    ood_set, rows = contest
    main = METRICS["acc_h" if rows[0].ratio else "acc_s"]
    values = [row.value(ood_set, main.name) for row in rows]
    bases = [value for row, value in zip(rows, values, strict=True) if row.method == baseline]
    base = bases[0] if len(bases) == 1 else NOTHING
    places = ranks(values, [row.competes for row in rows], main)
    lines = []
    for row, value, rank in zip(rows, values, places, strict=True):
        gain = value.mean - base.mean if value.is_whole and base.is_whole else math.nan
        mark = marks[row, ood_set, main.name]
        extra = {
            "rank": rank,
            "gain": None if math.isnan(gain) else gain,
            "p": mark.p,
            "seconds": mean_seconds(row.on(ood_set).values()),
            "features": features_of(row.stream),
        }
        cell = tidy.cell_row(row, ood_set) | extra
        lines.append(_Line(cell, table.labels[row], kind_of(row.stream), main.name, mark))
    return sorted(lines, key=lambda line: line.values["rank"] or math.inf)


def _published(reported: Iterable[Reported], contests: Sequence[Contest]) -> list[_Line]:
    """Published rows with a set, encoder and ratio that the page has."""
    present = {
        (row.stream.id_set, contest.ood_set, row.stream.encoder, row.ratio)
        for contest in contests
        for row in contest.rows
    }
    fitting = [r for r in reported if (r.id_set, r.ood_set, r.encoder, r.ratio) in present]
    lines = []
    for row in sorted(fitting, key=_place_of_published):
        values = vars(row) | {"ood_set": row.ood_set or None, "source": PUBLISHED}
        lines.append(_Line(tidy.tidy_row(**values) | {"citation": row.source}, row.method))
    return lines


def _place_of_published(row: Reported) -> tuple[Any, ...]:
    where = (set_place(row.id_set), row.encoder, ratio_place(row.ratio), set_place(row.ood_set))
    return (*where, row.method, row.source)


# What people see.


def _columns() -> list[LeaderboardColumn]:
    names = {"method": "Method", "id_set": "ID set", "ood_set": "OOD set", "encoder": "Encoder"}
    return [
        LeaderboardColumn("rank", "Rank", is_low_first=True),
        *(LeaderboardColumn(k, head, is_number=False, is_filter=True) for k, head in names.items()),
        LeaderboardColumn("noise", "Noise", is_filter=True),
        *map(_metric_column, metrics_of("accuracy")),
        LeaderboardColumn("gain", "Gain"),
        LeaderboardColumn("p", "p", is_low_first=True),
        *map(_metric_column, metrics_of("ood")),
        LeaderboardColumn("seeds", "Seeds"),
        LeaderboardColumn("seconds", "Seconds", is_low_first=True),
        LeaderboardColumn("source", "Source", is_number=False, is_filter=True),
    ]


def _metric_column(metric: Metric) -> LeaderboardColumn:
    return LeaderboardColumn(metric.name, metric.head, is_low_first=metric.lower_is_better)


def _notes(lines: Sequence[_Line], baseline: str) -> Iterator[str]:
    yield (
        f"Rows are ranked by Acc_H, on clean streams by Acc_S, among those that saw the same "
        f"samples. Gain is the difference to {baseline} in that metric, in points. p is that of "
        f"a paired t test over seeds against the best row of the stream, corrected for the number "
        f"of rivals (Holm); there is none without five seeds in common. Seconds are those of a "
        f"run, of the method alone."
    )
    if any(line.values["complete"] is False for line in lines):
        yield f"{STOPPED} marks a value of a run that was stopped: it has no rank."


def _run_notes(contests: Iterable[tuple[PageTable, Contest]]) -> list[str]:
    names = {row: table.labels[row] for table, contest in contests for row in contest.rows}
    records = [run.record for row in names for run in row.every_run]
    return [*reference_notes(names), *run_notes(records)]


def _texts(line: _Line) -> list[str]:
    """The texts of a row, one for each column."""
    values = line.values
    citation = f"{values['source']}: {values['citation']}" if "citation" in values else ""
    return [
        str(values.get("rank") or ""),
        line.label,
        values["id_set"],
        ", ".join(filter(None, [values["ood_set"] or "none", line.kind])),
        values["encoder"],
        shown("ratio", values["ratio"]),
        *(_metric_text(line, metric) for metric in metrics_of("accuracy")),
        _number_text("{:+.2f}", values.get("gain"), 100),
        p_text(values.get("p")),
        *(_metric_text(line, metric) for metric in metrics_of("ood")),
        str(len((values["seeds"] or "").split()) or ""),
        _number_text("{:.3g}", values.get("seconds")),
        citation or values["source"],
    ]


def _metric_text(line: _Line, metric: Metric) -> str:
    """A metric with its standard deviation and its mark."""
    mean, std = line.values[metric.name], line.values[f"{metric.name}_std"]
    if mean is None:
        return _NONE
    text = metric.text(mean, math.nan if std is None else std)
    text += STOPPED * (line.values["complete"] is False)
    return marked_text(text, line.mark) if line.metric == metric.name else text


def _number_text(form: str, value: float | None, scale: float = 1) -> str:
    return _NONE if value is None else form.format(scale * value)


# The same rows as data: the tidy schema, and behind it what the board alone has.


def _data(lines: Sequence[_Line]) -> dict[str, Any]:
    """The rows as data, column by column; texts are numbers in a list of the few different ones."""
    names = (*tidy.columns(), *_OWN_COLUMNS)
    columns = {name: [_rounded(line.values.get(name)) for line in lines] for name in names}
    texts = sorted({v for column in columns.values() for v in column if isinstance(v, str)})
    places = {text: place for place, text in enumerate(texts)}
    packed = {name: _packed(values, places) for name, values in columns.items()}
    return {"rows": len(lines), "texts": texts, "columns": packed}


def _rounded(value: Any) -> Any:
    return round(value, _DIGITS) if isinstance(value, float) else value


def _packed(values: Sequence[Any], places: Mapping[str, int]) -> dict[str, Any]:
    """A column; if most rows repeat the row above, each value once with its count."""
    has_texts = any(isinstance(value, str) for value in values)
    plain = [places.get(value) for value in values] if has_texts else values
    runs = [(value, len(list(equal))) for value, equal in itertools.groupby(plain)]
    kind = {"is_text": True} if has_texts else {}
    if 2 * len(runs) > len(plain):
        return {"values": plain, **kind}
    return {"values": [value for value, _ in runs], "counts": [n for _, n in runs], **kind}
