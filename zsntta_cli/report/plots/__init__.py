"""Plots of kept runs: KINDS computes their numbers, `write` puts them into files."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli.errors import SettingsError, printable
from zsntta_cli.files import check_target, write_whole
from zsntta_cli.report import forms
from zsntta_cli.report.figure import HISTOGRAM, UPRIGHT, Figure, Panel, Series, point_rows
from zsntta_cli.report.plots import comparisons, distributions, over_pairs, streams
from zsntta_cli.results.frame import Filters, chosen, current, latest, usual
from zsntta_cli.simulation.metrics import METRICS, ranked_metrics
from zsntta_cli.simulation.notes import strongest
from zsntta_cli.simulation.record import Record

__all__ = ["CAPTION", "CSV", "FORMS", "KINDS", "Filters", "Kind", "contents", "plot", "write"]

CSV = "csv"
FORMS = forms.FIGURE_ENDINGS
CAPTION = ".caption.txt"  # the ending of the file of sentences beside a drawing


@dataclass(frozen=True)
class Kind:
    """A kind of plot."""

    figure: Callable[..., Figure]
    several: Collection[str] = ()  # settings of which it shows several: "ratio", "fixed"
    metrics: Collection[str] = ()  # that it can show
    is_ranking: bool = False  # of these, those alone of which one value is better than another


KINDS = {
    "ratio": Kind(comparisons.ratio, ("ratio",), METRICS),
    "means": Kind(over_pairs.means, metrics=METRICS),
    "ranks": Kind(over_pairs.ranks, metrics=METRICS, is_ranking=True),
    "fixed": Kind(comparisons.fixed, ("fixed",)),
    "scores": Kind(distributions.scores),
    "windows": Kind(streams.windows, metrics=over_pairs.ACCURACIES),
    "accuracy": Kind(streams.accuracy, metrics=over_pairs.ACCURACIES),
    "thresholds": Kind(streams.thresholds),
    "difference": Kind(distributions.difference),
    "gradients": Kind(streams.gradients),
}


def plot(runs: Sequence[Record], kind: str, filters: Filters, metric: str | None = None) -> Figure:
    """The numbers of a plot of one of KINDS.

    Raises:
        SettingsError: no run fits, the kind has no such metric, or one plot cannot show all.
    """
    what = KINDS[kind]
    can_show = ranked_metrics() if what.is_ranking else what.metrics
    if metric is not None and metric not in can_show:
        names = ", ".join(can_show) or "none"
        raise SettingsError(f"metric is '{metric}', which {kind} does not show: {names}.")
    current_runs, left_out = current(runs)
    shown_runs, notes = latest(usual(chosen(current_runs, filters), filters, what.several))
    notes += [f"left out: {words}" for words in left_out]
    figure = what.figure(shown_runs, metric=metric) if metric else what.figure(shown_runs)
    panels = tuple(panel for panel in figure.panels if _has_points(panel))
    drawn_methods = _drawn_methods(shown_runs, panels)
    caption = strongest(
        note for kept in shown_runs if kept.settings.method in drawn_methods for note in kept.notes
    )
    if not panels:
        raise SettingsError(f"no kept run that fits has anything that {kind} shows.")
    return Figure(panels, (*notes, *figure.notes), (*figure.caption, *caption))


def _has_points(panel: Panel) -> bool:
    """Whether a panel shows anything, beside the mark of a threshold."""
    return any(_is_drawn(one) for one in panel.series if one.mark != UPRIGHT)


def _is_drawn(series: Series) -> bool:
    if series.mark == HISTOGRAM:
        return any(series.y)
    return any(value == value and value is not None for value in series.y)


def _drawn_methods(runs: Sequence[Record], panels: Sequence[Panel]) -> set[str]:
    """The methods that a legend or a title names, alone or with their settings behind them."""
    names = {name for panel in panels for name in (panel.title, *(s.name for s in panel.series))}
    names |= {name.partition(end)[0] for name in names for end in (" (", ",", ":")}
    return {kept.settings.method for kept in runs} & names


def contents(path: Path, figure: Figure, width: float) -> Iterator[tuple[Path, bytes]]:
    """The files of a figure: its numbers for .csv, else drawings and what is to be known of them.

    Many panels are split over several drawings, with a number behind the name of each.
    """
    form = FORMS[path.suffix.lower()]
    if form == CSV:
        rows, columns = point_rows(figure)
        yield path, forms.write_rows(rows, CSV, columns).encode(errors="surrogateescape")
        return
    from zsntta_cli.report.drawing import drawn, series_looks, split

    parts, looks = split(figure, width), series_looks(figure)
    for number, part in enumerate(parts, 1):
        name = path.with_stem(f"{path.stem}-{number}") if len(parts) > 1 else path
        yield name, drawn(part, form, width, looks)
    if figure.sentences and not check_target(path):  # beside a file, and no pipe
        text = "".join(f"{printable(sentence)}\n" for sentence in figure.sentences)
        yield path.with_suffix(CAPTION), text.encode()


def write(path: Path, figure: Figure, width: float) -> list[Path]:
    """Write a figure as drawings or, for .csv, as numbers; each file is whole or absent."""
    files = list(contents(path, figure, width))
    for name, content in files:
        write_whole(name, content)
    return [name for name, _ in files]
