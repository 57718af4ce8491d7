"""The leaderboard: every row on every stream, for a script to sort and filter; whole without it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zsntta_cli.report.page.entries import Spot, set_place
from zsntta_cli.report.page.markup import (
    NOTHING,
    data,
    number,
    percent,
    row,
    spread,
    table,
    text,
)
from zsntta_cli.report.page.ranking import Mark, Standings, ranks
from zsntta_cli.report.page.rows import Row, Value
from zsntta_cli.results.frame import shown

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


_TEXTS = [COLUMNS.index(name) for name in (  # their values are places in the list of names
    "method", "id_set", "ood_set", "encoder", "stream", "features", "test", "source",
)]  # fmt: skip


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


def leaderboard(
    rows: Sequence[Row], known: Standings, baseline: str, reported: Sequence[Reported]
) -> str:
    """The board as a table, and its data; rows of other features stand in bodies of their own.

    A body is sorted within itself, so rows of different features never stand in one order.
    """
    bodies: dict[tuple[Any, ...], list[_Placed]] = {}
    for placed in _placed(rows, known, baseline):
        spot = placed.row.spot
        bodies.setdefault(spot.stream.features, []).append(placed)
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
        f"All rows, in %<small>Rank: by Acc_H (clean: Acc_S) on one stream, among the same "
        f"features. Gain: on {text(baseline)}, in that. p: that the stream’s best is no better, "
        f"by a paired test (Holm). Seconds: a run, the method alone.</small>"
    )
    names = sorted({value for line in values for value in line if isinstance(value, str)})
    places = {name: i for i, name in enumerate(names)}
    lines = [[places[v] if isinstance(v, str) else v for v in line] for line in values]
    filled = {"columns": COLUMNS, "texts": _TEXTS, "names": names, "rows": lines}
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


def _placed(rows: Sequence[Row], known: Standings, baseline: str) -> list[_Placed]:
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
            _Placed(one, rank, one.values[main].mean - zero, known[one, main])
            for one, rank in zip(some, ranks(some), strict=True)
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
    cells = [
        *_who(
            one.rank, made.label, made.spot.stream.id_set, _ood(made.spot), made.spot.stream.encoder
        ),
        number(shown("ratio", made.spot.ratio)),
        *(_accuracy(one, name) for name in ("acc_s", "acc_n", "acc_h")),
        number(NOTHING if math.isnan(one.gain) else f"{100 * one.gain:+.2f}"),
        number(_p(one.mark)),
        *(number(percent(values[name].mean)) for name in ("auroc", "fpr95")),
        number(str(len(made.entries))),
        number(f"{_seconds(made):.3g}"),
        number(MEASURED),
    ]
    return row("", *cells)


def _accuracy(one: _Placed, name: str) -> str:
    value = spread(one.row.values[name])
    is_best = one.mark.is_marked and name == one.row.main
    return f'<td class="b">{value}*' if is_best else number(value)


def _who(rank: int | None, method: str, id_set: str, ood: str, encoder: str) -> list[str]:
    names = "".join(number(text(name)) for name in (id_set, ood, encoder))
    return [number(str(rank or "")), f'<th scope="row">{text(method)}', names]


def _ood(spot: Spot) -> str:
    kind = _kind_of(spot)
    return (spot.ood_set or "none") + f", {kind}" * bool(kind)


def _kind_of(spot: Spot) -> str:
    """What is not usual of a stream."""
    return ", ".join(f"{name.replace('_', ' ')} {shown(name, v)}" for name, v in spot.stream.kind)


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
        *[number("")] * 6,
        number(text(f"{REPORTED}: {one.source}")),
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
        _kind_of(spot) or None, _numbers(spot.stream.features), spot.ratio,
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


def _plain(value: float | None, digits: int = 4) -> float | None:
    return None if value is None or math.isnan(value) else round(value, digits)
