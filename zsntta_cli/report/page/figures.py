"""What is drawn: Acc_H against the noise ratio, and of some streams what happened within."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zsntta_cli.methods import METHODS, method_place
from zsntta_cli.report.page.headline import name_of
from zsntta_cli.report.page.markup import details, text
from zsntta_cli.report.page.rows import PageRun
from zsntta_cli.report.page.svg import Axis, Line, histogram, legend, lines_chart
from zsntta_cli.results.frame import (
    ResultRow,
    ResultTable,
    Stream,
    Value,
    label,
    shown,
    varying,
)

_MOST_STREAMS, _MOST_DRAWN = 6, 24  # whose inside is shown, and rows in them: they take room
_MANY_ROWS = 300  # from which half as many are, so that a page is no larger than some hundred kB
_MOST_SWEEPS = 12  # drawings of a ratio for each pair, else of averages
_MOST_LINES = 10  # in a drawing
_POINTS, _BINS = 12, 25  # of a curve and a histogram: as many as one sees
_HALF = 0.5  # the ratio whose streams are shown

Looks = Mapping[str, int]
Tables = Sequence[ResultTable[PageRun]]


@dataclass(frozen=True, eq=False)
class _Row:
    """A row of results on one OOD set."""

    row: ResultRow[PageRun]
    ood_set: str
    label: str

    @property
    def method(self) -> str:
        return self.row.method

    @property
    def stream(self) -> Stream:
        return self.row.stream

    @property
    def ratio(self) -> float:
        return self.row.ratio

    @property
    def first(self) -> PageRun:
        return next(iter(self.row.on(self.ood_set).values()))

    def value(self, metric: str) -> Value:
        return self.row.value(self.ood_set, metric)


def _rows(tables: Tables) -> list[_Row]:
    rows = []
    for table in tables:
        names = varying(table.rows)
        rows += [
            _Row(row, ood_set, label(row, names))
            for ood_set in table.ood_sets
            for row in table.rows
            if ood_set in row.runs
        ]
    return rows


def looks(tables: Tables) -> Looks:
    """The look of each label, the same in all drawings: in the order of METHODS."""
    labels: dict[str, Any] = {}
    for table in tables:
        names = varying(table.rows)
        labels |= {label(row, names): method_place(row.method) for row in table.rows}
    ordered = sorted(labels, key=lambda label: (labels[label], label))
    return {label: i for i, label in enumerate(ordered)}


def sweeps(tables: Tables, known: Looks) -> str:
    """Acc_H against the noise ratio, a drawing for each pair; of many pairs, their averages."""
    noisy = [one for one in _rows(tables) if one.ratio and _decides(one)]
    streams = _by_stream(noisy)
    pairs = sum(len(_ood_sets(some)) for some in streams.values())
    drawn = []
    for stream, some in streams.items():
        groups = {c: [r for r in some if r.ood_set == c] for c in _ood_sets(some)}
        if pairs > _MOST_SWEEPS and len(groups) > 1:
            groups = {f"mean over {len(groups)} OOD sets": some}
        for name, group in groups.items():
            drawn.append(_sweep(f"{name_of(stream)}, OOD: {name}", group, known))
    return _with_legend(noisy, known, "".join(drawn)) if any(drawn) else ""


def _decides(one: _Row) -> bool:
    return METHODS[one.method].decides


def _by_stream(rows: Sequence[_Row]) -> dict[Stream, list[_Row]]:
    groups: dict[Stream, list[_Row]] = {}
    for one in rows:
        groups.setdefault(one.stream, []).append(one)
    return groups


def _ood_sets(rows: Sequence[_Row]) -> list[str]:
    return list(dict.fromkeys(one.ood_set for one in rows))


def _sweep(title: str, rows: Sequence[_Row], known: Looks) -> str:
    """One drawing, of the labels that have all of its sets at two ratios or more."""
    ood_sets = _ood_sets(rows)
    values: dict[str, dict[float, float]] = {}
    for one in rows:
        mean = one.row.average(ood_sets, "acc_h").mean
        if not math.isnan(mean):
            values.setdefault(one.label, {})[one.ratio] = round(100 * mean, 2)
    lines = [
        Line(label, known[label], [100 * ratio for ratio in by_ratio], [*by_ratio.values()])
        for label, by_ratio in values.items()
        if len(by_ratio) > 1
    ]
    if not lines:
        return ""
    return lines_chart(title, Axis("noise, %", 0, 100), _fitted("Acc_H, %", lines), lines)


def _fitted(name: str, lines: Sequence[Line]) -> Axis:
    """An axis that all values are on, not much longer than they need."""
    values = [value for one in lines for value in one.ys if value is not None]
    low, high = min(values), max(values)
    margin = max(0.05 * (high - low), 0.01 * max(abs(high), 1e-9))
    return Axis(name, low - margin, high + margin)


def _with_legend(rows: Sequence[_Row], known: Looks, content: str) -> str:
    labels = sorted({one.label for one in rows}, key=known.__getitem__)
    names = [(label, known[label], False) for label in labels]
    return f'{legend(names)}<div class="figures">{content}</div>\n'


def insides(tables: Tables, known: Looks, baseline: str) -> str:
    """Scores, running accuracies and thresholds on some streams, of the first seed of each row."""
    chosen, total = _chosen(_rows(tables), baseline)
    if not chosen:
        return ""
    some = (
        f" {len(chosen)} of {total} pairs: where a method gains or loses most on {text(baseline)}."
    )
    parts = [f"<p>Of the first seed of each row.{some if len(chosen) < total else ''}</p>"]
    for i, group in enumerate(chosen):
        title = f"{name_of(group[0].stream)}, OOD: {group[0].ood_set}"
        title += f", noise {shown('ratio', group[0].ratio)}"
        content = _inside(group[:_MOST_LINES], known)
        parts.append(f"<h3>{text(title)}</h3>{content}" if not i else details(text(title), content))
    return "".join(parts)


def _chosen(rows: Sequence[_Row], baseline: str) -> tuple[list[list[_Row]], int]:
    """Streams at the ratio next to one half, one a pair: those where most happens."""
    pairs: dict[Any, dict[float, list[_Row]]] = {}
    for one in rows:
        if one.ratio and one.first.kept_curves:
            pair = (one.stream, one.ood_set)
            pairs.setdefault(pair, {}).setdefault(one.ratio, []).append(one)
    middle = [s[min(s, key=lambda ratio: abs(ratio - _HALF))] for s in pairs.values()]
    by_gain = sorted(range(len(middle)), key=lambda i: (-_gain(middle[i], baseline), i))
    drawn = itertools.accumulate(min(len(middle[i]), _MOST_LINES) for i in by_gain)
    most = _MOST_DRAWN // (2 if len(rows) > _MANY_ROWS else 1)
    fitting = sum(total <= most for total in drawn)
    kept = sorted(by_gain[: min(max(fitting, 1), _MOST_STREAMS)])
    return [middle[i] for i in kept], len(middle)


def _gain(rows: Sequence[_Row], baseline: str) -> float:
    """The largest difference in Acc_H to the baseline's first row; 0 without one."""
    values = [(one.method, one.value("acc_h").mean) for one in rows if _decides(one)]
    base = [value for method, value in values if method == baseline]
    return max((abs(value - base[0]) for _, value in values), default=0.0) if base else 0.0


def _inside(rows: Sequence[_Row], known: Looks) -> str:
    charts = [_running(rows, known, name) for name in ("acc_s", "acc_n")]
    charts.append(_thresholds(rows, known))
    lines = _with_legend(rows, known, "".join(charts)) if any(charts) else ""
    scores = "".join(_scores(one) for one in rows)
    return lines + (_SCORES_KEY + f'<div class="figures">{scores}</div>' if scores else "")


_SCORES_KEY = (
    '<ul class="key"><li><i class="h0"></i>ID samples<li><i class="h1"></i>OOD samples'
    '<li><i class="t0"></i>zero-shot threshold<li><i class="t1"></i>the detector’s, '
    "both as at the end</ul>\n"
)


def _thinned(curve: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """A curve at fewer places, its last among them."""
    last = len(curve["item"]) - 1
    places = sorted({last - round(i * last / (_POINTS - 1)) for i in range(_POINTS)})
    return {name: [values[i] for i in places] for name, values in curve.items()}


def _running(rows: Sequence[_Row], known: Looks, name: str) -> str:
    lines = []
    for one in rows:
        if name in (curve := one.first.drawable.get("running", {})):
            thin = _thinned(curve)
            ys = [None if y is None else round(100 * y, 2) for y in thin[name]]
            lines.append(Line(one.label, known[one.label], thin["item"], ys))
    title = {"acc_s": "Running Acc_S", "acc_n": "Running Acc_N"}[name]
    return _over_stream(title, "%", lines)


def _thresholds(rows: Sequence[_Row], known: Looks) -> str:
    lines = []
    for one in rows:
        if curve := one.first.drawable.get("thresholds"):
            thin = _thinned(curve)
            has_own = "detector" in thin
            for name in ("detector", "zero_shot"):
                if name in thin:
                    words = f"{one.label}, {name.replace('_', '-')}" if has_own else one.label
                    dashed = has_own and name == "zero_shot"
                    lines.append(Line(words, known[one.label], thin["item"], thin[name], dashed))
    return _over_stream("Thresholds over the stream (dotted: zero-shot)", "ID score", lines)


def _over_stream(title: str, unit: str, lines: Sequence[Line]) -> str:
    there = [one for one in lines if any(value is not None for value in one.ys)]
    if not there:
        return ""
    x = Axis("samples", 0, max(max(one.xs) for one in there))
    return lines_chart(title, x, _fitted(unit, there), there)


def _scores(one: _Row) -> str:
    curves = one.first.drawable
    if not (scores := curves.get("scores")):
        return ""
    each = len(scores["id"]) // _BINS or 1
    counts = {
        name: [sum(scores[key][i : i + each]) for i in range(0, len(scores[key]), each)]
        for name, key in (("ID", "id"), ("OOD", "ood"))
    }
    ends = curves.get("thresholds", {})
    last = {name: _last(ends.get(name, ())) for name in ("zero_shot", "detector")}
    marks = {f"{k.replace('_', '-')} threshold": v for k, v in last.items() if v is not None}
    axis = Axis("ID score", scores["low"], scores["high"])
    return histogram(f"{one.label}: scores", axis, counts, marks)


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)
