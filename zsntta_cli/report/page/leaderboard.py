"""The leaderboard: every row on every stream, for a script to sort and filter; whole without it."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zsntta_cli.report.page.headline import Marks
from zsntta_cli.report.page.rows import (
    STOPPED,
    PageRow,
    PageTable,
    features_of,
    kind_of,
    value_text,
)
from zsntta_cli.report.sheet import Best
from zsntta_cli.results import tidy
from zsntta_cli.results.frame import set_place, shown
from zsntta_cli.results.ranking import Mark, ranks
from zsntta_cli.results.tidy import PUBLISHED, TidyRow
from zsntta_cli.simulation.metrics import METRICS, Metric, metrics_of

_OWN_COLUMNS = ("rank", "gain", "p", "test", "seconds", "features", "citation")  # behind the tidy
_DIGITS = 6  # of a fraction in the data: its files take room
_NONE = "-"


@dataclass(frozen=True)
class Reported:
    """A row that somebody published and nobody ran here; fractions, nan where none is printed."""

    method: str
    id_set: str
    ood_set: str  # empty for a clean stream
    encoder: str  # the folder name that its features would have here
    ratio: float
    acc_s: float
    acc_n: float
    acc_h: float
    source: str  # "arXiv 2502.14604, table 10"


@dataclass(frozen=True)
class LeaderboardColumn:
    """A column as people see it, and what the script needs to know of it."""

    key: str
    head: str
    is_number: bool = True
    is_filter: bool = False
    is_low_first: bool = False  # what a click on its head shows first


@dataclass(frozen=True)
class Leaderboard:
    """The board as plain values."""

    columns: Sequence[LeaderboardColumn]
    bodies: Mapping[str, Sequence[Sequence[str]]]  # texts of the rows, by what heads them
    notes: Sequence[str]
    data: Mapping[str, Any]  # the same rows for downloads


@dataclass(frozen=True)
class _Placed:
    """A row of the board."""

    row: PageRow
    rank: int | None
    gain: float  # the main metric less that of the baseline, nan without one
    mark: Mark


def leaderboard(
    tables: Iterable[PageTable], marks: Marks, baseline: str, reported: Iterable[Reported]
) -> Leaderboard:
    """The board; rows of other features stand in bodies of their own.

    A body is sorted within itself, so rows of different features never stand in one order.
    """
    bodies: dict[str, list[list[str]]] = {}
    lines: list[TidyRow] = []
    contest_rows = [rows for table in tables for rows in table.contests]
    placed = [each for rows in contest_rows for each in _place(rows, marks, baseline)]
    for each in sorted(placed, key=lambda each: each.row.stream.features):
        bodies.setdefault(_features_head(each.row), []).append(_texts(each))
        lines.append(_line(each))
    published = _published(reported, [row for rows in contest_rows for row in rows])
    if published:
        head = "Published by others, not run here: without a rank"
        bodies[head] = [_published_texts(each) for each in published]
        lines += [_published_line(each) for each in published]
    return Leaderboard(_columns(), bodies, list(_notes(placed, baseline)), _data(lines))


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


def _notes(placed: Sequence[_Placed], baseline: str) -> Iterator[str]:
    yield (
        f"Rows are ranked by Acc_H, on clean streams by Acc_S, among those that saw the same "
        f"samples. Gain is the difference to {baseline} in that metric, in points. p is of the "
        f"paired test against the best row of the stream, corrected for the number of rivals "
        f"(Holm). Seconds are those of a run, of the method alone."
    )
    if any(not each.row.value("acc_s").is_whole for each in placed):
        yield f"{STOPPED} marks a value of a run that was stopped: it has no rank."


def _features_head(row: PageRow) -> str:
    """What heads rows of other features; nothing of those that most runs have."""
    others = any(row.stream.features)
    return f"Other features of the same names ({features_of(row.stream)})" * others


def _place(rows: Sequence[PageRow], marks: Marks, baseline: str) -> list[_Placed]:
    """Rows that saw the same samples with their ranks, the best first."""
    main = rows[0].main
    values = [each.value(main.name) for each in rows]
    means = [value.mean if value.is_whole else math.nan for value in values]
    of_baseline = [mean for each, mean in zip(rows, means, strict=True) if each.method == baseline]
    zero = of_baseline[0] if len(of_baseline) == 1 else math.nan
    places = ranks(values, [each.row.competes for each in rows], main)
    placed = [
        _Placed(each, rank, mean - zero, marks[each.row, each.ood_set, main.name])
        for each, rank, mean in zip(rows, places, means, strict=True)
    ]
    return sorted(placed, key=lambda each: each.rank or math.inf)


def _published(reported: Iterable[Reported], rows: Sequence[PageRow]) -> list[Reported]:
    """Published rows of what the page has: of the same sets, encoder and ratio."""
    present = {(r.stream.id_set, r.ood_set, r.stream.encoder, r.ratio) for r in rows}
    fitting = [r for r in reported if (r.id_set, r.ood_set, r.encoder, r.ratio) in present]
    return sorted(
        fitting,
        key=lambda r: (
            set_place(r.id_set), r.encoder, r.ratio, set_place(r.ood_set), r.method, r.source,
        ),
    )  # fmt: skip


# Rows as texts.


def _texts(placed: _Placed) -> list[str]:
    row, stream = placed.row, placed.row.stream
    kind = kind_of(stream)
    ood_set = (row.ood_set or "none") + f", {kind}" * bool(kind)
    gain = _NONE if math.isnan(placed.gain) else f"{100 * placed.gain:+.2f}"
    texts = {metric.name: value_text(metric, row.value(metric.name)) for metric in METRICS.values()}
    if placed.mark.is_marked:
        texts[row.main.name] = Best(texts[row.main.name])
    return [
        str(placed.rank or ""), row.label, stream.id_set, ood_set, stream.encoder,
        shown("ratio", row.ratio),
        *(texts[metric.name] for metric in metrics_of("accuracy")),
        gain,
        _p_text(placed.mark),
        *(texts[metric.name] for metric in metrics_of("ood")),
        str(len(row.value(row.main.name).seeds)), f"{_seconds(row):.3g}", tidy.MEASURED,
    ]  # fmt: skip


def _p_text(mark: Mark) -> str:
    if mark.p is None:
        return _NONE
    return "<0.001" if mark.p < 0.001 else f"{mark.p:.3f}"


def _seconds(row: PageRow) -> float:
    """Seconds of a run, the method alone."""
    seconds = [run.record.seconds for run in row.row.on(row.ood_set).values()]
    return math.fsum(seconds) / len(seconds)


def _published_texts(row: Reported) -> list[str]:
    return [
        "", row.method, row.id_set, row.ood_set or "none", row.encoder, shown("ratio", row.ratio),
        *(m.text(getattr(row, m.name, math.nan)) for m in metrics_of("accuracy")),
        "", "", *[""] * len(metrics_of("ood")), "", "", f"{PUBLISHED}: {row.source}",
    ]  # fmt: skip


# Rows as data: the tidy schema, and behind it what the board alone has.


def _line(placed: _Placed) -> TidyRow:
    row = placed.row
    own = {
        "rank": placed.rank,
        "gain": placed.gain,
        "p": placed.mark.p,
        "test": placed.mark.test or None,
        "seconds": _seconds(row),
        "features": features_of(row.stream),
    }
    return tidy.cell_row(row.row, row.ood_set) | own


def _published_line(row: Reported) -> TidyRow:
    names = ("method", "id_set", "encoder", "ratio", "acc_s", "acc_n", "acc_h")
    values = {name: getattr(row, name) for name in names}
    line = tidy.tidy_row(**values, ood_set=row.ood_set or None, source=PUBLISHED)
    return line | {"citation": row.source}


def _data(lines: Sequence[TidyRow]) -> dict[str, Any]:
    """Column by column; a text is told by its place among all texts, of which there are few."""
    names = (*tidy.columns(), *_OWN_COLUMNS)
    columns = {name: [_plain(line.get(name)) for line in lines] for name in names}
    texts = sorted({v for column in columns.values() for v in column if isinstance(v, str)})
    places = {text: place for place, text in enumerate(texts)}
    packed = {name: _packed(values, places) for name, values in columns.items()}
    return {"rows": len(lines), "texts": texts, "columns": packed}


def _plain(value: Any) -> Any:
    """A value as JSON has it; None for nan."""
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, _DIGITS)
    return value


def _packed(values: Sequence[Any], places: Mapping[str, int]) -> dict[str, Any]:
    """A column; where most rows have what the row above has, each value once with its count."""
    has_texts = any(isinstance(value, str) for value in values)
    plain = [places.get(value) for value in values] if has_texts else values
    runs = [(value, len(list(equal))) for value, equal in itertools.groupby(plain)]
    kind = {"is_text": True} if has_texts else {}
    if 2 * len(runs) > len(plain):
        return {"values": plain, **kind}
    return {"values": [value for value, _ in runs], "counts": [n for _, n in runs], **kind}
