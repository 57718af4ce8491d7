"""The page's figures: Acc_H against the noise ratio, and the course of some streams.

Their numbers come from the functions of `zsntta plot`; this module chooses what is shown.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from zsntta_cli.report.figure import HISTOGRAM, LINE, UPRIGHT, Panel, Series, tick_text
from zsntta_cli.report.forms.embedded import embedded
from zsntta_cli.report.forms.looks import Look, looks_of
from zsntta_cli.report.page.document import PageSheet, render
from zsntta_cli.report.page.headline import name_of
from zsntta_cli.report.plots.comparisons import ratio_panel
from zsntta_cli.report.plots.distributions import BASELINE, histogram
from zsntta_cli.report.plots.groups import DrawnRow, Groups, finished
from zsntta_cli.report.plots.streams import accuracy_panels, threshold_panels, window_panels
from zsntta_cli.report.sheet import SheetRow
from zsntta_cli.results.frame import ResultStream, ResultTable, labels, shown
from zsntta_cli.settings.ratios import Ratio
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.notes import strongest

_MOST_STREAMS, _MOST_DRAWN = 6, 24  # whose inside is shown, and rows in them: they take room
_MANY_ROWS = 300  # from which half as many are, so that a page is no larger than some hundred kB
_MOST_SWEEPS = 12  # drawings of a ratio for each pair, else of averages
_MOST_LINES = 10  # in a drawing
_POINTS, _BINS = 12, 25  # of a curve and a histogram: as many as one sees
_NOTHING = "-"  # where a curve has no value
_HALF = 0.5  # the ratio whose streams are shown

Tables = Sequence[ResultTable[Any]]  # of a page's runs


class Pen:
    """Draw the panels and legends of one page: a name looks the same in all of them."""

    def __init__(self) -> None:
        """Nothing has a look yet."""
        self._looks: dict[str, Look] = {}
        self._prefixes = map("p{}".format, itertools.count())  # of ids, which are the page's

    def panel(self, panel: Panel) -> Markup:
        """A panel as an element of the page."""
        from zsntta_cli.report.forms.matplotlib import panel_svg

        self._looks = looks_of((one.look or one.name for one in panel.series), self._looks)
        svg = panel_svg(panel, self._looks)
        return Markup(embedded(svg, next(self._prefixes), panel.title))

    def legend(self, panels: Iterable[Panel]) -> list[tuple[str, Markup]]:
        """The names in some panels that were drawn, each with a line that looks like it."""
        from zsntta_cli.report.forms.matplotlib import key_svg

        keys = []
        for name, one in {s.name: s for panel in panels for s in panel.series}.items():
            svg = key_svg(self._looks[one.look or name], one.mark not in (HISTOGRAM, UPRIGHT))
            keys.append((name, Markup(embedded(svg, next(self._prefixes)))))
        return keys


def _by_stream(table: ResultTable[Any]) -> dict[ResultStream, list[DrawnRow]]:
    """The rows under noise, by the kind of stream."""
    streams: dict[ResultStream, list[DrawnRow]] = {}
    for row in table.rows:
        if row.ratio:
            streams.setdefault(row.stream, []).append(row)
    return streams


def _named(rows: Sequence[DrawnRow]) -> dict[str, list[DrawnRow]]:
    """Rows by their name in a legend, which has the settings in which these rows differ."""
    groups: dict[str, list[DrawnRow]] = {}
    for row, name in labels(rows).items():
        groups.setdefault(name, []).append(row)
    return groups


def _sets(table: ResultTable[Any], groups: Groups) -> list[str]:
    """The OOD sets of some rows, in the table's order."""
    present = {ood_set for rows in groups.values() for row in rows for ood_set in row.runs}
    return [name for name in table.ood_sets if name in present]


# Acc_H against the noise ratio.


def sweeps(tables: Tables, pen: Pen) -> str:
    """Acc_H against the noise ratio, a drawing for each pair; for many pairs, their averages."""
    streams = [
        (table, stream, _named(swept))
        for table in tables
        for stream, rows in _by_stream(table).items()
        if (swept := _swept([row for row in rows if row.decides]))
    ]
    count = sum(len(_sets(table, groups)) for table, _, groups in streams)
    panels = [
        panel
        for table, stream, groups in streams
        for panel in _sweeps(stream, groups, _sets(table, groups), count > _MOST_SWEEPS)
    ]
    if not panels:
        return ""
    about = " ".join(_notes_of([row for _, _, groups in streams for row in _rows(groups)]))
    return render("figures.html", about=about, parts={"": [_drawings(panels, pen)]})


def _swept(rows: Sequence[DrawnRow]) -> list[DrawnRow]:
    """The rows whose settings were run at two ratios or more."""
    return [
        row
        for same in _named(rows).values()
        if len({row.ratio for row in same}) > 1
        for row in same
    ]


def _rows(groups: Groups) -> list[DrawnRow]:
    return [row for rows in groups.values() for row in rows]


def _notes_of(rows: Sequence[DrawnRow]) -> list[str]:
    """What a reader has to know about the runs that are drawn."""
    return strongest(note for row in rows for run in row.every_run for note in run.record.notes)


def _sweeps(
    stream: ResultStream, groups: Groups, sets: Sequence[str], averaged: bool
) -> Iterator[Panel]:
    """The drawings for one kind of stream, of lines that have at least two ratios."""
    parts = {name: [name] for name in sets}
    if averaged and len(sets) > 1:
        parts = {f"mean over {len(sets)} OOD sets": [*sets]}
    for name, of_part in parts.items():
        pairs = [(stream.id_set, ood) for ood in of_part]
        panel = ratio_panel(f"{name_of(stream)}, OOD: {name}", groups, pairs, "acc_h")
        lines = tuple(line for line in panel.series if len(line.x) > 1)
        if lines:
            yield replace(panel, series=lines)


# Within the streams.


def insides(tables: Tables, pen: Pen) -> str:
    """Scores, running accuracies and thresholds on some streams."""
    streams, total = _chosen(tables)
    if not streams:
        return ""
    part = f" {len(streams)} of {total} pairs: where a method gains or loses most on {BASELINE}."
    about = "Curves are means over seeds, scores are those of the first."
    parts = {}
    for stream, ratio, ood_set, groups in streams:
        title = f"{name_of(stream)}, OOD: {ood_set}, noise {shown('ratio', ratio)}"
        first = dict(itertools.islice(groups.items(), _MOST_LINES))
        parts[title] = _inside(first, ood_set, pen)
    notes = _notes_of([row for *_, groups in streams for row in _rows(groups)])
    about = " ".join([about + part * (len(streams) < total), *notes])
    return render("figures.html", about=about, parts=parts)


_Inside = tuple[ResultStream, Ratio, str, Groups]


def _chosen(tables: Tables) -> tuple[list[_Inside], int]:
    """One stream for each pair, at the ratio next to 50 %; of many those with the largest gains."""
    streams = [inside for table in tables for inside in _with_curves(table)]
    by_gain = sorted(range(len(streams)), key=lambda i: (-_gain(streams[i]), i))
    drawn = itertools.accumulate(min(len(streams[i][3]), _MOST_LINES) for i in by_gain)
    rows = sum(len(row.runs) for table in tables for row in table.rows)
    most = _MOST_DRAWN // (2 if rows > _MANY_ROWS else 1)
    fitting = sum(total <= most for total in drawn)
    places = sorted(by_gain[: min(max(fitting, 1), _MOST_STREAMS)])
    return [streams[i] for i in places], len(streams)


def _with_curves(table: ResultTable[Any]) -> Iterator[_Inside]:
    for stream, rows in _by_stream(table).items():
        for ood_set in _sets(table, {"": rows}):
            by_ratio: dict[Ratio, list[DrawnRow]] = {}
            for row in rows:
                if finished([row], ood_set):
                    by_ratio.setdefault(row.ratio, []).append(row)
            for ratio in sorted(by_ratio, key=_by_half):
                runs = [run for row in by_ratio[ratio] for run in finished([row], ood_set)]
                if any(run.drawable for run in runs):
                    yield stream, ratio, ood_set, _named(by_ratio[ratio])
                    break


def _by_half(ratio: Ratio) -> tuple[Any, ...]:
    """A sort key of ratios by the distance from one half; ratios that are no number come last."""
    return (isinstance(ratio, str), 0.0 if isinstance(ratio, str) else abs(ratio - _HALF), ratio)


def _gain(inside: _Inside) -> float:
    """The largest difference in Acc_H to the first row of the baseline; 0 without one."""
    *_, ood_set, groups = inside
    rows = [r for same in groups.values() for r in same if r.decides]
    values = [(row.method, row.value(ood_set, "acc_h").mean) for row in rows]
    base = [value for method, value in values if method == BASELINE]
    return max((abs(value - base[0]) for _, value in values), default=0.0) if base else 0.0


def _inside(groups: Groups, ood_set: str, pen: Pen) -> list[dict[str, Any]]:
    panels = [
        replace(panel, title=f"Running {METRICS[metric].head}")
        for metric in ("acc_s", "acc_n")
        for panel in accuracy_panels("", groups, ood_set, metric)
    ]
    panels += [
        replace(panel, title=f"{METRICS['acc_h'].head} in windows of the stream")
        for panel in window_panels("", groups, ood_set, "acc_h")
    ]
    panels += [
        replace(panel, title=f"Over the stream: {panel.y.name}")
        for panel in threshold_panels("", groups, ood_set)
    ]
    first = {name: finished(rows, ood_set)[0] for name, rows in groups.items()}
    scores = [
        histogram(f"{name}: scores", run, "scores", _BINS)
        for name, run in first.items()
        if "scores" in run.drawable
    ]
    parts = [[_thinned(panel) for panel in panels], scores]
    return [_drawings(part, pen) for part in parts if part]


def _thinned(panel: Panel) -> Panel:
    """Curves at fewer points, including the last one."""
    return replace(panel, series=tuple(map(_thinned_line, panel.series)))


def _thinned_line(line: Series) -> Series:
    last = len(line.x) - 1
    places = sorted({last - round(i * last / (_POINTS - 1)) for i in range(_POINTS)})
    x, y, std = (tuple(v[i] for i in places if v) for v in (line.x, line.y, line.std))
    return replace(line, x=x, y=y, std=std)


# A drawing, and its numbers in a table below it.


def _drawings(panels: Sequence[Panel], pen: Pen) -> dict[str, Any]:
    """Drawings below one legend, as the template needs them."""
    drawings = [
        {"title": panel.title, "svg": pen.panel(panel), "numbers": _numbers(panel)}
        for panel in panels
    ]
    return {"legend": pen.legend(panels), "drawings": drawings}


def _numbers(panel: Panel) -> PageSheet:
    """A row for each x value, a column for each curve; upright lines become sentences."""
    columns = [one for one in panel.series if one.mark != UPRIGHT]
    places = sorted({place for one in columns for place in one.x})
    digits = 2 if panel.y.name.endswith("(%)") else 4
    values = [dict(zip(one.x, _shown(one, digits), strict=True)) for one in columns]
    rows = [
        SheetRow((tick_text(place),), {"": [v.get(place, _NOTHING) for v in values]})
        for place in places
        if any(v.get(place) for v in values)
    ]
    marks = [f"{one.name}: {one.x[0]:.4g}" for one in panel.series if one.mark == UPRIGHT]
    title = panel.title if panel.y.name in panel.title else f"{panel.title}: {panel.y.name}"
    names = tuple(one.name for one in columns)
    return PageSheet(title, (panel.x.name,), {"": names}, {"": rows}, marks)


def _shown(series: Series, digits: int) -> list[str]:
    """The values of a series with their deviations; empty cells of a histogram have no text."""
    if series.mark != LINE:
        return [f"{y:.3g}" if y else "" for y in series.y]
    stds = series.std or (float("nan"),) * len(series.y)
    return [
        _NOTHING if y is None else f"{y:.{digits}f}" + (f"±{std:.{digits}f}" if std == std else "")
        for y, std in zip(series.y, stds, strict=True)
    ]
