"""Plots of kept runs: KINDS computes their numbers, `write` puts them into a file."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from zsntta_cli.errors import SettingsError
from zsntta_cli.files import write_whole
from zsntta_cli.report import forms
from zsntta_cli.report.figure import Figure, point_rows
from zsntta_cli.report.plots import comparisons, distributions, over_pairs, streams
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.selection import Filters, chosen, current, latest, usual
from zsntta_cli.simulation.metrics import METRICS, ranked_metrics
from zsntta_cli.simulation.notes import strongest

__all__ = [
    "CSV", "FORMS", "KINDS", "Filters", "Kind", "check_drawable", "content", "plot", "write",
]  # fmt: skip

CSV = "csv"
FORMS = forms.FIGURE_ENDINGS
_MOST_PANELS = 12


@dataclass(frozen=True)
class Kind:
    """A kind of plot."""

    figure: Callable[..., Figure]
    several: Collection[str] = ()  # settings of which it shows several: "ratio", "fixed"
    metrics: Collection[str] = ()  # that it can show
    is_ranking: bool = False  # of these, those alone of which one value is better than another


KINDS = {
    "scores": Kind(distributions.scores),
    "difference": Kind(distributions.difference),
    "gradients": Kind(streams.gradients),
    "thresholds": Kind(streams.thresholds),
    "accuracy": Kind(streams.accuracy, metrics=over_pairs.ACCURACIES),
    "windows": Kind(streams.windows, metrics=over_pairs.ACCURACIES),
    "ratio": Kind(comparisons.ratio, ("ratio",), METRICS),
    "fixed": Kind(comparisons.fixed, ("fixed",)),
    "ranks": Kind(over_pairs.ranks, metrics=METRICS, is_ranking=True),
    "means": Kind(over_pairs.means, metrics=METRICS),
}


def plot(runs: Sequence[Kept], kind: str, filters: Filters, metric: str | None = None) -> Figure:
    """The numbers of a plot of one of KINDS.

    Raises:
        SettingsError: no run fits, the kind has no such metric, or one plot cannot show all.
    """
    what = KINDS[kind]
    can_show = ranked_metrics() if what.is_ranking else what.metrics
    if metric is not None and metric not in can_show:
        names = ", ".join(can_show) or "none"
        raise SettingsError(f"metric is '{metric}', which {kind} does not show: {names}.")
    current_runs, left_out = current(runs, by_rules=False)
    shown_runs, notes = latest(usual(chosen(current_runs, filters), filters, what.several))
    notes += [f"left out: {words}" for words in left_out]
    figure = what.figure(shown_runs, metric=metric) if metric else what.figure(shown_runs)
    if len(figure.panels) > _MOST_PANELS:
        raise SettingsError(
            f"these runs make {len(figure.panels)} panels, {_MOST_PANELS} at most",
            remedy="fewer-panels",
        )
    caption = strongest(note for kept in shown_runs for note in kept.record.notes)
    return Figure(figure.panels, (*notes, *figure.notes), (*figure.caption, *caption))


def check_drawable(form: str) -> None:
    """Raise SettingsError if the library that draws a form is not installed."""
    if form != CSV and find_spec("matplotlib") is None:
        raise SettingsError(
            f"a {form} is drawn by matplotlib, and it is not installed", remedy="install-report"
        )


def content(ending: str, figure: Figure, width: float) -> bytes:
    """The bytes of a figure's file: the drawing, or its numbers for .csv."""
    form = FORMS[ending.lower()]
    if form == CSV:
        rows, columns = point_rows(figure)
        return forms.write_rows(rows, CSV, columns).encode(errors="surrogateescape")
    from zsntta_cli.report.forms.matplotlib import drawn

    return drawn(figure, form, width)


def write(path: Path, figure: Figure, width: float) -> None:
    """Write a figure as a drawing or, for .csv, as numbers; the file is whole or absent."""
    write_whole(path, content(path.suffix, figure, width))
