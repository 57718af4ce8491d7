"""Distributions over one stream, of the lowest seed: scores, their differences, gradients."""

import statistics
from collections.abc import Iterator, Sequence

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.figure import LINE, POINTS, STAIRS, Figure, Panel, Series
from zsntta_cli.report.lines import by_label, figure_of, pairs_of, rows_on, titles_of
from zsntta_cli.results import frame
from zsntta_cli.simulation.record import Record

BASELINE = "zs-clip"  # scores before adaptation are its scores


def scores(runs: Sequence[Record]) -> Figure:
    """Histograms of the ID score, a panel for each run: before adaptation, then each method.

    ID and OOD samples are each in percent of their own kind. The vertical line is the median over
    the stream of the threshold that decided.

    Raises:
        SettingsError: no run has kept scores.
    """
    panels: list[Panel] = []
    for on_pair, first_runs in _first_runs(runs, "scores"):
        is_first = any(map(_is_baseline, first_runs.values()))
        live = [run for run in first_runs.values() if "before" in run.curves and not is_first]
        panels += [_histogram(f"before adaptation{on_pair}", run, "before") for run in live[:1]]
        panels += [
            _histogram(name + on_pair, run, "scores")
            for name, run in sorted(first_runs.items(), key=lambda item: not _is_baseline(item[1]))
        ]
    if not panels:
        raise SettingsError(
            "no kept run that fits has its scores kept: zsntta simulate --fresh keeps them"
        )
    return figure_of(panels)


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
            "after adaptation: "
            "zsntta simulate --method tent"
        )
    return figure_of(panels)


def gradients(runs: Sequence[Record], most: float | None = None) -> Figure:
    """Norms of the gradients that a step's clean and noisy samples give, a panel for each run.

    A step without noisy samples, which the method filtered out, has no point for them. Up to `most`
    they are drawn on a linear axis, clean and noisy ones each in a panel.

    Raises:
        SettingsError: no run has its gradients kept.
    """
    panels, notes = [], []
    for on_pair, first_runs in _first_runs(runs, "gradients"):
        for name, run in first_runs.items():
            title, values = name + on_pair, run.curves["gradients"]
            norms = {
                kind: {step: v for step, v in enumerate(values[kind], 1) if v is not None}
                for kind in ("clean", "noisy")
                if kind in values
            }
            shown = {
                kind: {step: v for step, v in of.items() if most is None or v <= most}
                for kind, of in norms.items()
            }
            series = {
                kind: Series(f"{kind} samples", (*of,), (*of.values(),), POINTS, (), _KINDS[kind])
                for kind, of in shown.items()
            }
            if most is None:
                drawn = tuple(series.values())
                panels.append(Panel(title, "step", "gradient norm", drawn, is_log=True))
                continue
            axes = "step", "gradient norm"
            panels += [Panel(f"{title}: {kind}", *axes, (one,)) for kind, one in series.items()]
            notes += [
                f"{title}: {above:,} of {len(norms[kind]):,} norms of {kind} samples are above "
                f"{most:g} and not shown"
                for kind, of in shown.items()
                if (above := len(norms[kind]) - len(of))
            ]
    if not panels:
        raise SettingsError(
            "no kept run that fits has its gradients kept: "
            "zsntta simulate --method tent --scores FILE.csv keeps them"
        )
    return figure_of(panels, notes)


_KINDS = {"clean": "ID", "noisy": "OOD"}  # whose looks they have


def _first_runs(runs: Sequence[Record], curve: str) -> Iterator[tuple[str, dict[str, Record]]]:
    """The finished runs of the lowest seed that have a curve, by pair, as a title names it."""
    tables = frame.tables([run for run in runs if curve in run.curves])
    titles = titles_of(pairs_of(tables))
    groups = by_label(tables)
    for pair, title in titles.items():
        first = {}
        for name, rows in groups.items():
            by_seed = {s: run for row in rows_on(rows, pair) for s, run in row.on(pair[1]).items()}
            whole = {s: run for s, run in by_seed.items() if not run.unfinished}
            if whole:
                first[name] = whole[min(whole)]
        yield f", {title}" * (len(titles) > 1), first


def _is_baseline(run: Record) -> bool:
    return run.settings.method == BASELINE


def _histogram(title: str, run: Record, name: str) -> Panel:
    """A histogram from a run's curves; that of the scores that decided has their threshold."""
    curve = run.curves[name]
    low, high, count = curve["low"], curve["high"], len(curve["id"])
    middles = tuple(low + (cell + 0.5) * (high - low) / count for cell in range(count))
    series = [
        Series(kind, middles, tuple(100 * n / (sum(counts) or 1) for n in counts), STAIRS)
        for kind, counts in (("ID", curve["id"]), ("OOD", curve["ood"]))
    ]
    if name == "scores" and (cut := _threshold(run)) is not None:
        top = max(y for one in series for y in one.y)
        series.append(Series("threshold (median)", (cut, cut), (0, top), LINE, (), "threshold"))
    across = "ID score" + ", after − before" * (name == "difference")
    return Panel(title, across, "share of samples (%)", tuple(series))


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
