"""The figures of kept runs: KINDS has them all, `plot` makes one, `write` writes its files."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from zsntta_cli.errors import SettingsError, printable
from zsntta_cli.files import check_target, write_whole
from zsntta_cli.report.comparisons import fixed, means, ranks, ratio
from zsntta_cli.report.distributions import difference, gradients, scores
from zsntta_cli.report.figure import COLUMNS, Figure, point_rows
from zsntta_cli.report.forms import FIGURE_ENDINGS, csv_text
from zsntta_cli.results.selection import Filters, chosen, current
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.notes import strongest
from zsntta_cli.simulation.record import Record

_USUAL_RATIO = 0.5  # the paper's
CAPTION = ".caption.txt"  # the ending of the file of sentences beside a drawing


class Kind(NamedTuple):
    """A kind of figure."""

    figure: Callable[..., Figure]
    several: Collection[str] = ()  # settings of which it shows several: "ratio", "fixed"
    metrics: Collection[str] = ()  # that it can show


KINDS = {
    "ratio": Kind(ratio, ("ratio",), METRICS),
    "means": Kind(means, metrics=METRICS),
    "ranks": Kind(ranks, metrics=[name for name, metric in METRICS.items() if metric.is_ranked]),
    "fixed": Kind(fixed, ("fixed",)),
    "scores": Kind(scores),
    "difference": Kind(difference),
    "gradients": Kind(gradients),
}


def plot(runs: Sequence[Record], kind: str, filters: Filters, metric: str | None = None) -> Figure:
    """The numbers of a figure of one of KINDS.

    Raises:
        SettingsError: no run matches, or the kind does not show the metric.
    """
    what = KINDS[kind]
    if metric is not None and metric not in what.metrics:
        names = ", ".join(what.metrics) or "none"
        raise SettingsError(f"metric is '{metric}', which {kind} does not show: {names}.")
    of_now, left_out = current(runs)
    shown_runs = usual(chosen(of_now, filters), filters, what.several)
    notes = [f"left out: {words}" for words in left_out]
    figure = what.figure(shown_runs, metric=metric) if metric else what.figure(shown_runs)
    if not figure.panels:
        raise SettingsError(f"no matching kept run has anything that {kind} shows.")
    # A legend or a title names a method alone, or with its settings or a pair behind it.
    texts = [text for p in figure.panels for text in (p.title, *(s.name for s in p.series))]
    drawn = {text.partition(end)[0] for text in texts for end in (" (", ",", ":")}
    caption = strongest(note for r in shown_runs if r.settings.method in drawn for note in r.notes)
    return Figure(figure.panels, (*notes, *figure.notes), tuple(caption))


def usual(records: Sequence[Record], filters: Filters, keep: Collection[str] = ()) -> list[Record]:
    """Runs with one ratio, and with adaptive thresholds, unless the filters ask for others.

    `keep` names the settings that a figure shows with several values.
    """
    runs = list(records)
    if "ratio" not in keep and "ratio" not in filters:
        ratios = {run.settings.stream.ratio for run in runs}
        first = min(ratios, key=lambda r: (r != _USUAL_RATIO, not r, isinstance(r, str), r))
        runs = [run for run in runs if run.settings.stream.ratio == first]
    if "fixed" not in keep and "fixed" not in filters:
        runs = [run for run in runs if run.settings.threshold.fixed is None] or runs
    return runs


def contents(path: Path, figure: Figure, width: float) -> Iterator[tuple[Path, bytes]]:
    """The files of a figure: its numbers for .csv, else its drawing and the sentences about it."""
    form = FIGURE_ENDINGS[path.suffix.lower()]
    if form == "csv":
        text = csv_text(list(point_rows(figure)), COLUMNS)
        yield path, text.encode(errors="surrogateescape")
        return
    from zsntta_cli.report.drawing import drawn

    yield path, drawn(figure, form, width)
    if figure.sentences and not check_target(path):  # beside a file, and no pipe
        text = "".join(f"{printable(sentence)}\n" for sentence in figure.sentences)
        yield path.with_suffix(CAPTION), text.encode()


def write(path: Path, figure: Figure, width: float) -> list[Path]:
    """Write a figure as a drawing or, for .csv, as numbers; each file is complete or absent."""
    files = list(contents(path, figure, width))
    for name, content in files:
        write_whole(name, content)
    return [name for name, _ in files]
