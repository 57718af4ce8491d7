"""The page's figure: Acc_H against the noise ratio, as `zsntta plot ratio` computes it."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace

from markupsafe import Markup

from zsntta_cli.report.figure import Figure, Panel
from zsntta_cli.report.page.headline import name_of
from zsntta_cli.report.plots.comparisons import ratio_panel
from zsntta_cli.results.frame import ResultRow, ResultStream, ResultTable, labels
from zsntta_cli.simulation.notes import strongest

_MOST_PANELS = 12  # of single pairs, else of averages
_IMAGE = Markup('<figure><img alt="{}" src="data:image/svg+xml;base64,{}"></figure>\n')

Groups = dict[str, list[ResultRow]]  # rows by what the legend calls them


def sweeps(tables: Sequence[ResultTable]) -> Markup:
    """Acc_H against the noise ratio, a panel for each pair; for many pairs, their averages."""
    streams = [
        (stream, groups, table.sets_of(row for rows in groups.values() for row in rows))
        for table in tables
        for stream, rows in table.by_stream().items()
        if (groups := _swept(rows))
    ]
    is_averaged = sum(len(sets) for _, _, sets in streams) > _MOST_PANELS
    panels = [panel for stream in streams for panel in _panels(*stream, is_averaged)]
    if not panels:
        return Markup("")
    notes = strongest(
        note
        for _, groups, _ in streams
        for rows in groups.values()
        for row in rows
        for run in row.records
        for note in run.notes
    )
    return Markup("<p>{}</p>\n").format(" ".join(notes)) * bool(notes) + _images(panels)


def _swept(rows: Sequence[ResultRow]) -> Groups:
    """The rows under noise by their name, where these settings were run at two ratios or more."""
    groups: Groups = {}
    for row, name in labels([row for row in rows if row.ratio and row.decides]).items():
        groups.setdefault(name, []).append(row)
    return {name: same for name, same in groups.items() if len({row.ratio for row in same}) > 1}


def _panels(
    stream: ResultStream, groups: Groups, sets: Sequence[str], is_averaged: bool
) -> Iterator[Panel]:
    """The panels for one kind of stream, of lines that have at least two ratios."""
    parts = {name: [name] for name in sets}
    if is_averaged and len(sets) > 1:
        parts = {f"mean over {len(sets)} OOD sets": [*sets]}
    for name, of_part in parts.items():
        pairs = [(stream.id_set, ood) for ood in of_part]
        panel = ratio_panel(f"{name_of(stream)}, OOD: {name}", groups, pairs, "acc_h")
        lines = tuple(line for line in panel.series if len(line.x) > 1)
        if lines:
            yield replace(panel, series=lines)


def _images(panels: Sequence[Panel]) -> Markup:
    """The panels as images within the page; many are split over several, with the same looks."""
    from zsntta_cli.report.drawing import PAGE, drawn, series_looks, split

    figure = Figure(tuple(panels))
    looks = series_looks(figure)
    return Markup("").join(
        _IMAGE.format(
            "Acc_H against the noise ratio: " + "; ".join(panel.title for panel in part.panels),
            base64.b64encode(drawn(part, "svg", PAGE, looks)).decode(),
        )
        for part in split(figure, PAGE)
    )
