"""Distributions of scores over one stream: before and after adaptation, and paired.

A histogram shows ID and OOD samples each in percent of their own kind, so that they can be compared
at any noise ratio.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.figure import HISTOGRAM, UPRIGHT, Axis, Figure, Panel, Series
from zsntta_cli.report.plots.groups import finished, on_pairs, pair_titles, pairs_of
from zsntta_cli.results.frame import tables
from zsntta_cli.simulation.record import Record

BASELINE = "zs-clip"  # scores before adaptation are its scores
ID_LOOK, OOD_LOOK = "ID", "OOD"  # whose colours they are, in all figures
_SHARE = Axis("share of samples (%)", low=0)


def scores(runs: Sequence[Record]) -> Figure:
    """Histograms of the ID score, a panel for each run: before adaptation, then each method.

    The vertical line is the median over the stream of the threshold that decided. The lowest of
    several seeds is shown.

    Raises:
        SettingsError: no run has kept scores.
    """
    panels: list[Panel] = []
    for on_pair, first_runs in _first_runs(runs, "scores"):
        before = _before(first_runs)
        panels += [_histogram(f"before adaptation{on_pair}", run, "before") for run in before]
        panels += [
            _histogram(name + on_pair, run, "scores")
            for name, run in sorted(first_runs.items(), key=lambda item: not _is_baseline(item[1]))
        ]
    if not panels:
        raise SettingsError("no kept run that fits has its scores kept", remedy="keep-curves")
    return Figure(tuple(panels))


def difference(runs: Sequence[Record]) -> Figure:
    """Histograms of each sample's ID score after minus before adaptation, for live runs.

    Raises:
        SettingsError: no run is of a live method.
    """
    panels = [
        _histogram(name + on_pair, run, "difference")
        for on_pair, first_runs in _first_runs(runs, "difference")
        for name, run in first_runs.items()
    ]
    if not panels:
        raise SettingsError(
            "no kept run that fits is of a live method, and only these have scores before and "
            "after adaptation",
            remedy="live",
        )
    return Figure(tuple(panels))


def _first_runs(runs: Sequence[Record], curve: str) -> Iterator[tuple[str, dict[str, Record]]]:
    """The runs of the lowest seed that have a curve, by pair, as a title names it."""
    frame = tables([run for run in runs if curve in run.curves])
    titles = pair_titles(pairs_of(frame))
    for pair, groups in on_pairs(frame):
        whole = {name: finished(rows, pair[1]) for name, rows in groups.items()}
        first = {name: by_seed[0] for name, by_seed in whole.items() if by_seed}
        yield f", {titles[pair]}" * (len(titles) > 1), first


def _is_baseline(run: Record) -> bool:
    return run.settings.method == BASELINE


def _before(runs: Mapping[str, Record]) -> list[Record]:
    """A live run whose scores before adaptation replace those of a missing ZS-CLIP run."""
    if any(map(_is_baseline, runs.values())):
        return []
    return [run for run in runs.values() if "before" in run.curves][:1]


def _histogram(title: str, run: Record, name: str) -> Panel:
    """A histogram from a run's curves; that of the scores that decided has their threshold."""
    curve = run.curves[name]
    low, high, count = curve["low"], curve["high"], len(curve["id"])
    middles = tuple(low + (cell + 0.5) * (high - low) / count for cell in range(count))
    series = [
        Series(kind, middles, _in_percent(curve[kind.lower()]), HISTOGRAM)
        for kind in (ID_LOOK, OOD_LOOK)
    ]
    if name == "scores" and (cut := _threshold(run)) is not None:
        series.append(Series("threshold (median)", (cut,), (None,), UPRIGHT, look="threshold"))
    across = Axis("ID score" + ", after − before" * (name == "difference"), low, high)
    return Panel(title, across, _SHARE, tuple(series))


def _in_percent(counts: Sequence[int]) -> tuple[float, ...]:
    """Counts in percent of the total; zeros without samples."""
    total = sum(counts) or 1
    return tuple(100 * one / total for one in counts)


def _threshold(run: Record) -> float | None:
    """The median over the stream of the threshold that decided, on the score it decided by.

    It is the detector's if that decided, else that on the zero-shot score, so the scale always
    fits.
    """
    curve = run.curves.get("thresholds", {})
    for name in ("detector", "zero_shot"):
        values = [value for value in curve.get(name) or () if value is not None]
        if values:
            return float(statistics.median(values))
    return None
