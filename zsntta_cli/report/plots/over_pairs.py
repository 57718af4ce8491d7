"""Methods compared over ID-OOD pairs: their means and their ranks.

All plots are over all pairs of the runs, for the methods that have an average over these by the
rules of results/frame.py; a note says which pairs each of the other methods has.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.figure import (
    LEVEL,
    MEAN_RANK,
    MEANS,
    RANKS,
    Axis,
    Figure,
    Panel,
    Series,
)
from zsntta_cli.report.plots.distributions import BASELINE
from zsntta_cli.report.plots.groups import (
    Pair,
    PairMeans,
    axis_name,
    by_label,
    check_lines,
    pairs_of,
    points,
)
from zsntta_cli.results.frame import fold, mean_ranks, tables
from zsntta_cli.simulation.metrics import METRICS, Metric
from zsntta_cli.simulation.record import Record

ACCURACIES = ("acc_s", "acc_n", "acc_h")

# Accuracies in percent by method (as a legend has it) and pair; the paper's numbers come like this.
Cells = Mapping[str, Mapping[Pair, Mapping[str, float]]]
Compared = dict[str, PairMeans]  # methods beside each other, by what a legend calls them


def means(runs: Sequence[Record], published: Cells | None = None, metric: str = "") -> Figure:
    """Mean accuracies of each method over pairs, or one metric's means; ZS-CLIP's are dashed.

    Raises:
        SettingsError: fewer than two methods have all pairs.
    """
    metrics = [METRICS[name] for name in ([metric] if metric else ACCURACIES)]
    sources, notes = _compared(runs, published, metric or "acc_h")
    series = [_means(name, m, metrics) for methods in sources for name, m in methods.items()]
    for first in [one for one in series if one.name == BASELINE][:1]:
        level = replace(first, name=f"level of {BASELINE}", mark=LEVEL, std=(), look=BASELINE)
        series.insert(series.index(first) + 1, level)
    what = "mean ± deviation" if any(one.std for one in series) else "mean"
    up = Axis(f"{what}, {axis_name(metrics[0])}" if metric else f"{what} (%)")
    return Figure((Panel(_over(sources), Axis("metric"), up, tuple(series)),), tuple(notes))


def _means(name: str, means: PairMeans, metrics: Sequence[Metric]) -> Series:
    y, stds = points(map(means.shown, metrics))
    heads, is_published = tuple(metric.head for metric in metrics), means.published is not None
    return Series(name, heads, y, MEANS, stds, "", is_published, (means,) * len(metrics))


def ranks(runs: Sequence[Record], published: Cells | None = None, metric: str = "acc_h") -> Figure:
    """How often each method has each rank on a pair; 1 is the best, equal values share a rank.

    Raises:
        SettingsError: fewer than two methods have all pairs.
    """
    sources, notes = _compared(runs, published, metric)
    series: list[Series] = []
    for source in sources:
        values = {
            name: {pair: _rounded(by_seed) for pair, by_seed in one.by_pair(metric).items()}
            for name, one in source.items()
        }
        for name, by_pair in mean_ranks(values, METRICS[metric]).items():
            series += _rank_series(name, source[name], list(by_pair.values()), len(source))
    ticks = tuple(range(1, 1 + max(map(len, sources))))
    axes = Axis(f"rank by {METRICS[metric].head}", ticks=ticks), Axis("box width: share of pairs")
    return Figure((Panel(_over(sources), *axes, tuple(series)),), tuple(notes))


def _rounded(by_seed: Mapping[int, float]) -> float:
    """The mean over seeds without rounding errors, so that equal means are equal."""
    return round(fold(by_seed).mean, 12)


def _rank_series(
    name: str, means: PairMeans, ranks: Sequence[float], methods: int
) -> tuple[Series, Series]:
    """How often a method has each rank, also those that ties share, and its mean rank."""
    places = tuple(sorted({*range(1, methods + 1), *ranks}))
    shares = tuple(100 * ranks.count(place) / len(ranks) for place in places)
    mean = (sum(ranks) / len(ranks),)
    is_published = means.published is not None
    return (
        Series(name, places, shares, RANKS, (), "", is_published, (means,) * len(places)),
        Series(name, mean, (None,), MEAN_RANK, (), "", is_published, (means,)),
    )


def _compared(
    runs: Sequence[Record], published: Cells | None, metric: str
) -> tuple[list[Compared], list[str]]:
    """The methods that have all pairs, measured and published, and notes on the others.

    Published numbers are over the measured pairs if those are printed, else over all of their own.
    """
    frame = tables(runs)
    pairs = pairs_of(frame)
    measured = {name: PairMeans(pairs, rows) for name, rows in by_label(frame).items()}
    having = {name: means for name, means in measured.items() if _has(means, metric)}
    notes: list[str] = []
    sources = [_whole(having, metric, notes)] if having else []
    if published:
        first, *rest = published.values()
        common = [pair for pair in first if all(pair in of for of in rest)]
        of_pairs = [pair for pair in pairs if pair in common] or common
        printed = {n: PairMeans(of_pairs, published=of, name=n) for n, of in published.items()}
        sources.append(_whole(printed, metric, notes))
    if not sources:
        raise SettingsError(f"no kept run that fits has {METRICS[metric].head} of a noisy stream.")
    return sources, notes


def _has(means: PairMeans, metric: str) -> bool:
    """Whether a method has a metric: a score that does not decide has no accuracy."""
    values = [v for by_seed in means.by_pair(metric).values() for v in by_seed.values()]
    return not values or not all(map(math.isnan, values))


def _whole(methods: Compared, metric: str, notes: list[str]) -> Compared:
    """The methods with an average over all pairs; the notes get what the others have."""
    averages = {name: means.value(metric) for name, means in methods.items()}
    whole = {name: m for name, m in methods.items() if not math.isnan(averages[name].mean)}
    undefined = f"{METRICS[metric].head} is undefined on one of its sets"
    lacking = [
        f"{name} has no average: {f'it has {value.lacks}' if value.lacks else undefined}"
        for name, value in averages.items()
        if name not in whole
    ]
    if len(whole) < 2:
        only, over = next(iter(whole), "none"), _count(next(iter(methods.values())).pairs)
        what = f"methods are compared over {over}, and only {only} has an average"
        raise SettingsError("; ".join([what, *lacking]), remedy="compare")
    check_lines(len(whole), "methods")
    notes += lacking
    return whole


def _count(pairs: Sequence[Pair]) -> str:
    return f"{len(pairs)} ID-OOD pair{'s' * (len(pairs) > 1)}"


def _over(sources: Sequence[Compared]) -> str:
    """What is compared: how many pairs, and how many for published numbers if these differ."""
    first = [next(iter(methods.values())) for methods in sources]
    words = list(dict.fromkeys(_count(means.pairs) for means in first))
    if len(words) > 1:
        return f"{words[0]} (published: {words[1]})"
    return words[0] + ", published" * all(means.published is not None for means in first)
