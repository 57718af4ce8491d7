"""The leaderboard: every row on every stream, for a script to sort and filter; whole without it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zsntta_cli.report.page.entries import Spot, set_place
from zsntta_cli.report.page.markup import (
    NOTHING,
    cell,
    data,
    number,
    percent,
    row,
    spread,
    table,
    text,
)
from zsntta_cli.report.page.ranking import Mark, marks, ranks
from zsntta_cli.report.page.rows import Row
from zsntta_cli.report.tables import Value
from zsntta_cli.report.titles import shown

MEASURED, REPORTED = "measured", "reported, not run"
_HEADS = {
    "rank": "Rank", "method": "Method", "id_set": "ID set", "ood_set": "OOD set",
    "encoder": "Encoder", "noise": "Noise", "acc_s": "Acc_S", "acc_n": "Acc_N", "acc_h": "Acc_H",
    "gain": "Gain", "p": "p", "auroc": "AUROC", "fpr95": "FPR95", "seeds": "Seeds",
    "seconds": "Seconds", "source": "Source",
}  # fmt: skip
_NUMBERS = set(_HEADS) - {"method", "id_set", "ood_set", "encoder", "source"}
_FILTERED = ("method", "id_set", "ood_set", "encoder", "noise", "source")
COLUMNS = (
    "rank", "method", "id_set", "ood_set", "encoder", "stream", "features", "noise", "acc_s",
    "acc_s_std", "acc_n", "acc_n_std", "acc_h", "acc_h_std", "gain", "p", "test", "auroc", "fpr95",
    "seeds", "seconds", "source",
)  # fmt: skip


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
class _Placed:
    """A row of the board."""

    row: Row
    rank: int | None
    gain: float  # Acc_H minus that of the baseline, nan without one
    mark: Mark


def leaderboard(rows: Sequence[Row], baseline: str, reported: Sequence[Reported]) -> str:
    """The board as a table, and its data; rows of other features stand in bodies of their own.

    A body is sorted within itself, so rows of different features never stand in one order.
    """
    bodies: dict[tuple[Any, ...], list[_Placed]] = {}
    for placed in _placed(rows, baseline):
        spot = placed.row.spot
        where = (*spot.stream.features, spot.ood_features)
        bodies.setdefault(where, []).append(placed)
    shown_ones = sorted(_asked(reported, rows), key=_order_of_reported)
    html, values = [], []
    for where, some in sorted(bodies.items()):
        head = _body_head(f"Other features of the same names ({_numbers(where)})") * any(where)
        html.append(head + "".join(_row(one) for one in some))
        values += [_values(one) for one in some]
    if shown_ones:
        head = _body_head("Reported by others, not run here: not ranked")
        html.append(head + "".join(_reported_row(one) for one in shown_ones))
        values += [_reported_values(one) for one in shown_ones]
    caption = (
        f"All rows, in %<small>Rank: by Acc_H (clean: Acc_S) on one stream. Gain: on "
        f"{text(baseline)}. p: that the best of the stream is no better. Seconds: a run, the method "
        f"alone. No rank goes across features that differ.</small>"
    )
    filled = {"columns": COLUMNS, "rows": values}
    return table(caption, _heads(), html, kind="board") + data("board-data", filled)


def _numbers(where: tuple[Any, ...]) -> str:
    return ".".join(str(number_ + 1) for number_ in where)


def _body_head(words: str) -> str:
    return f'<tr class="head"><th scope="rowgroup" colspan="{len(_HEADS)}">{text(words)}\n'


def _heads() -> str:
    heads = "".join(
        f'<th scope="col" data-key="{key}"{_kind(key)}>{text(name)}' for key, name in _HEADS.items()
    )
    return row("", heads)


def _kind(key: str) -> str:
    """What the script and the style need to know of a column: a number, or what one filters by."""
    filtered = " data-filter" * (key in _FILTERED)
    return filtered + ' class="n"' * (key in _NUMBERS)


def _placed(rows: Sequence[Row], baseline: str) -> list[_Placed]:
    """The rows with their places: stream by stream, the best first."""
    by_spot: dict[Spot, list[Row]] = {}
    for one in rows:
        by_spot.setdefault(one.spot, []).append(one)
    placed: list[_Placed] = []
    for some in by_spot.values():
        base = [one.values[one.main].mean for one in some if one.method == baseline]
        zero = base[0] if len(base) == 1 else math.nan
        main = some[0].main
        group = [
            _Placed(one, rank, one.values[main].mean - zero, mark)
            for one, rank, mark in zip(some, ranks(some), marks(some, main), strict=True)
        ]
        placed += sorted(group, key=lambda one: one.rank or math.inf)
    return placed


def _asked(reported: Iterable[Reported], rows: Sequence[Row]) -> list[Reported]:
    """Published rows of what the page has: same sets, encoder and ratio."""
    there = {
        (o.spot.stream.id_set, o.spot.ood_set, o.spot.stream.encoder, o.spot.ratio) for o in rows
    }
    return [one for one in reported if (one.id_set, one.ood_set, one.encoder, one.ratio) in there]


def _order_of_reported(one: Reported) -> tuple[Any, ...]:
    where = (set_place(one.id_set), one.encoder, one.ratio, set_place(one.ood_set))
    return (*where, one.method, one.source)


def _row(one: _Placed) -> str:
    made, values = one.row, one.row.values
    best = "<b>{}*</b>" if one.mark.is_marked else "{}"
    cells = [
        *_who(
            one.rank, made.label, made.spot.stream.id_set, _ood(made.spot), made.spot.stream.encoder
        ),
        number(shown("ratio", made.spot.ratio)),
        *(
            number((best if name == made.main else "{}").format(spread(values[name])))
            for name in ("acc_s", "acc_n", "acc_h")
        ),
        number(NOTHING if math.isnan(one.gain) else f"{100 * one.gain:+.2f}"),
        number(_p(one.mark)),
        *(number(percent(values[name].mean)) for name in ("auroc", "fpr95")),
        number(str(len(made.entries))),
        number(f"{_seconds(made):.3g}"),
        cell(MEASURED),
    ]
    return row("", *cells)


def _who(rank: int | None, method: str, id_set: str, ood: str, encoder: str) -> list[str]:
    names = "".join(cell(name) for name in (id_set, ood, encoder))
    return [number(str(rank or NOTHING)), f'<th scope="row">{text(method)}', names]


def _ood(spot: Spot) -> str:
    kind = "".join(f", {name.replace('_', ' ')} {shown(name, v)}" for name, v in spot.stream.kind)
    return (spot.ood_set or "none") + kind


def _p(mark: Mark) -> str:
    if mark.p is None:
        return NOTHING
    return "&lt;0.001" if mark.p < 0.001 else f"{mark.p:.3f}"


def _seconds(made: Row) -> float:
    return math.fsum(entry.record.seconds for entry in made.entries) / len(made.entries)


def _reported_row(one: Reported) -> str:
    cells = [
        *_who(None, one.method, one.id_set, one.ood_set or "none", one.encoder),
        number(shown("ratio", one.ratio)),
        *(number(percent(value)) for value in (one.acc_s, one.acc_n, one.acc_h)),
        *[number(NOTHING)] * 6,
        cell(f"{REPORTED}: {one.source}"),
    ]
    return row("", *cells)


def _values(one: _Placed) -> list[Any]:
    """The same row for the script and for downloads, in the order of COLUMNS."""
    made, spot = one.row, one.row.spot
    means: Mapping[str, Value] = made.values
    accuracies = [
        _plain(x) for m in ("acc_s", "acc_n", "acc_h") for x in (means[m].mean, means[m].std)
    ]
    return [
        one.rank, made.label, spot.stream.id_set, spot.ood_set or None, spot.stream.encoder,
        dict(spot.stream.kind) or None, [*spot.stream.features, spot.ood_features], spot.ratio,
        *accuracies, _plain(one.gain), _plain(one.mark.p), one.mark.test or None,
        _plain(means["auroc"].mean), _plain(means["fpr95"].mean), len(made.entries),
        _plain(_seconds(made), 4), MEASURED,
    ]  # fmt: skip


def _reported_values(one: Reported) -> list[Any]:
    accuracies = [x for v in (one.acc_s, one.acc_n, one.acc_h) for x in (_plain(v), None)]
    return [
        None, one.method, one.id_set, one.ood_set or None, one.encoder, None, None, one.ratio,
        *accuracies, None, None, None, None, None, None, None, f"{REPORTED}: {one.source}",
    ]  # fmt: skip


def _plain(value: float | None, digits: int = 6) -> float | None:
    return None if value is None or math.isnan(value) else round(value, digits)
