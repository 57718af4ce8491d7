"""Distributions over one stream, of the lowest seed: scores, their differences, gradients."""

import statistics
from collections.abc import Sequence

from zsntta_cli.report.comparisons import figure_of, lines_of, pairs_of, runs_on, titles_of
from zsntta_cli.report.figure import LINE, POINTS, STAIRS, Figure, Panel, Series
from zsntta_cli.results import frame
from zsntta_cli.simulation.record import Record

BASELINE = "zs-clip"  # scores before adaptation are its scores
_LOOK_OF = {"clean": "ID", "noisy": "OOD"}


def scores(runs: Sequence[Record]) -> Figure:
    """Histograms of the ID score, a panel for each run: before adaptation, then each method.

    ID and OOD samples are each in percent of their own kind. The vertical line is the median over
    the stream of the threshold that decided.

    Raises:
        SettingsError: no run has its scores.
    """
    panels: list[Panel] = []
    of_pairs, notes = _first_runs(runs, "scores")
    for on_pair, first_runs in of_pairs:
        frozen = {n: r for n, r in first_runs.items() if r.settings.method == BASELINE}
        live = [run for run in first_runs.values() if "before" in run.curves and not frozen]
        panels += [_histogram(f"before adaptation{on_pair}", run, "before") for run in live[:1]]
        for title, run in {**frozen, **first_runs}.items():
            panels.append(_histogram(title, run, "scores"))
    nothing = "no matching kept run has scores: zsntta simulate --fresh keeps them"
    return figure_of(panels, notes, nothing)


def difference(runs: Sequence[Record]) -> Figure:
    """Histograms of each sample's ID score after minus before adaptation, for live runs.

    Raises:
        SettingsError: no run is of a live method.
    """
    of_pairs, notes = _first_runs(runs, "difference")
    every = [item for _, first_runs in of_pairs for item in first_runs.items()]
    return figure_of(
        [_histogram(title, run, "difference") for title, run in every], notes,
        "no matching kept run is of a live method, and only these have scores before and after "
        "adaptation: zsntta simulate --method tent",
    )  # fmt: skip


def gradients(runs: Sequence[Record], most: float | None = None) -> Figure:
    """Norms of the gradients that a step's clean and noisy samples give, a panel for each run.

    A step without noisy samples, which the method filtered out, has no point for them. With `most`,
    norms up to it are drawn on a linear axis, with a panel each for clean and noisy samples.

    Raises:
        SettingsError: no run has its gradients.
    """
    of_pairs, notes = _first_runs(runs, "gradients")
    panels, axes = list[Panel](), ("step", "gradient norm")
    for title, run in [item for _, first_runs in of_pairs for item in first_runs.items()]:
        every = dict[str, Series]()
        for kind in [kind for kind in _LOOK_OF if kind in run.curves["gradients"]]:
            norms = enumerate(run.curves["gradients"][kind], 1)
            of_steps = {step: norm for step, norm in norms if norm is not None}
            drawn = {s: norm for s, norm in of_steps.items() if most is None or norm <= most}
            x, y = tuple(drawn), tuple(drawn.values())
            every[kind] = Series(f"{kind} samples", x, y, POINTS, (), _LOOK_OF[kind])
            if above := len(of_steps) - len(drawn):
                notes.append(
                    f"{title}: {above:,} of {len(of_steps):,} norms of {kind} samples are above "
                    f"{most:g} and not shown"
                )
        if most is None:
            panels.append(Panel(title, *axes, tuple(every.values()), is_log=True))
        else:
            panels += [Panel(f"{title}: {kind}", *axes, (every[kind],)) for kind in every]
    return figure_of(
        panels, notes,
        "no matching kept run has gradients: zsntta simulate --method tent --scores FILE.csv keeps "
        "them",
    )  # fmt: skip


def _first_runs(
    runs: Sequence[Record], curve: str
) -> tuple[list[tuple[str, dict[str, Record]]], list[str]]:
    """The finished runs of the lowest seed that have a curve, by title, for each pair.

    If there are many settings, they are of those that most runs share, and a note says so.
    """
    tables = frame.tables(run for run in runs if curve in run.curves)
    titles, (groups, notes) = titles_of(pairs_of(tables)), lines_of(tables)
    of_pairs = []
    for pair, title in titles.items():
        first, on_pair = {}, f", {title}" * (len(titles) > 1)
        for name, rows in groups.items():
            whole = {s: run for s, run in runs_on(rows, pair).items() if not run.unfinished}
            if whole:
                first[name + on_pair] = whole[min(whole)]
        of_pairs.append((on_pair, first))
    return of_pairs, notes


def _histogram(title: str, run: Record, name: str) -> Panel:
    """A histogram from a run's curves; that of the scores that decided has their threshold."""
    curve = run.curves[name]
    low, high, count = curve["low"], curve["high"], len(curve["id"])
    middles = tuple(low + (cell + 0.5) * (high - low) / count for cell in range(count))
    series = []
    for kind, counts in (("ID", curve["id"]), ("OOD", curve["ood"])):
        shares = tuple(100 * n / (sum(counts) or 1) for n in counts)
        series.append(Series(kind, middles, shares, STAIRS))
    if name == "scores":
        # The detector's if that decided, else that on the zero-shot score: the scale always fits.
        thresholds = map(run.curves.get("thresholds", {}).get, ("detector", "zero_shot"))
        known = ([value for value in values or () if value is not None] for values in thresholds)
        if values := next(filter(None, known), None):
            x, top = (float(statistics.median(values)),) * 2, max(max(s.y) for s in series)
            series.append(Series("threshold (median)", x, (0, top), LINE, (), "threshold"))
    across = "ID score" + ", after − before" * (name == "difference")
    return Panel(title, across, "share of samples (%)", tuple(series))
