"""Methods beside each other over ID-OOD pairs: their ranks, their means.

Both are over all pairs of the runs and among the methods that have an average over these by the
rules of results/frame.py; a note says of each of the others what it has.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.figure import LEVEL, MEAN_RANK, MEANS, RANKS, Axis, Figure, Panel, Series
from zsntta_cli.report.plots.distributions import BASELINE
from zsntta_cli.report.plots.groups import (
    Groups,
    Pair,
    PairMeans,
    Row,
    average_over,
    axis_name,
    by_label,
    by_seed,
    check_lines,
    pairs_of,
    scale,
    stds,
)
from zsntta_cli.results.frame import Value, fold, mean_ranks, tables
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.tidy import OVER_PAIRS, PUBLISHED, TidyRow, tidy_row
from zsntta_cli.simulation.metrics import METRICS

ACCURACIES = ("acc_s", "acc_n", "acc_h")

# Accuracies in percent by method (as a legend has it) and pair; the paper's numbers come like this.
Cells = Mapping[str, Mapping[Pair, Mapping[str, float]]]
ByPair = Mapping[Pair, Mapping[int, float]]  # a metric of a method by pair and seed, as fractions


@dataclass(frozen=True)
class _Source:
    """Results over some pairs: the measured ones, or those that are published."""

    pairs: Sequence[Pair]
    groups: Groups
    published: Cells

    @property
    def is_published(self) -> bool:
        return not self.groups

    def by_method(self, metric: str) -> dict[str, ByPair]:
        """A metric of each method."""
        if self.is_published:
            return printed(self.published, self.pairs, metric)
        return {
            name: {pair: by_seed(rows, pair, metric) for pair in self.pairs}
            for name, rows in self.groups.items()
        }

    def tidy(self, name: str, averages: Mapping[str, Value]) -> TidyRow:
        """What a point of a method is of."""
        if not self.is_published:
            return PairMeans(self.groups[name], self.pairs).tidy()
        values = {metric: value.mean for metric, value in averages.items()}
        return tidy_row(method=name, aggregate=OVER_PAIRS, source=PUBLISHED, **values)


def printed(published: Cells, pairs: Sequence[Pair], metric: str) -> dict[str, ByPair]:
    """A metric of published numbers, as if each were of one seed."""
    return {
        name: {p: {0: of[p][metric] / 100} if metric in of.get(p, {}) else {} for p in pairs}
        for name, of in published.items()
    }


def means(runs: Sequence[Kept], published: Cells | None = None, metric: str = "") -> Figure:
    """Mean accuracies of each method over pairs, or a metric's; dashed, ZS-CLIP's.

    Raises:
        SettingsError: fewer than two methods have all pairs.
    """
    shown = [METRICS[name] for name in ([metric] if metric else ACCURACIES)]
    heads = tuple(one.head for one in shown)
    series: list[Series] = []
    notes: list[str] = []
    sources = _sources(runs, published, metric or "acc_h")
    for source in sources:
        names = _compared(source, metric or "acc_h", notes)
        for name in names:
            averages = {m.name: average_over(source.by_method(m.name)[name]) for m in shown}
            heights = tuple(scale(m) * averages[m.name].mean for m in shown)
            deviations = stds([scale(m) * averages[m.name].std for m in shown])
            one = Series(
                name, heads, heights, MEANS, deviations, is_published=source.is_published,
                rows=(source.tidy(name, averages),) * len(shown),
            )  # fmt: skip
            series.append(one)
            if name == BASELINE and not any(s.mark == LEVEL for s in series):
                level = replace(one, name=f"level of {name}", mark=LEVEL, std=(), look=name)
                series.append(level)
    what = "mean ± deviation" if any(one.std for one in series) else "mean"
    up = Axis(f"{what}, {axis_name(shown[0])}" if metric else f"{what} (%)")
    return Figure((Panel(_over(sources), Axis("metric"), up, tuple(series)),), tuple(notes))


def ranks(runs: Sequence[Kept], published: Cells | None = None, metric: str = "acc_h") -> Figure:
    """How often each method has which rank on a pair; 1 is the best. Equal values share a rank.

    Raises:
        SettingsError: fewer than two methods have all pairs.
    """
    series: list[Series] = []
    notes: list[str] = []
    sources = _sources(runs, published, metric)
    for source in sources:
        names = _compared(source, metric, notes)
        by_method = source.by_method(metric)
        on_pairs = {n: {p: fold(by_method[n][p]).mean for p in source.pairs} for n in names}
        for name, by_pair in mean_ranks(on_pairs, METRICS[metric]).items():
            row = source.tidy(name, {metric: average_over(by_method[name])})
            series += _rank_series(name, list(by_pair.values()), len(names), source, row)
    ticks = tuple(range(1, 1 + max(int(max(one.x)) for one in series)))
    axes = Axis(f"rank by {METRICS[metric].head}", ticks=ticks), Axis("box width: share of pairs")
    return Figure((Panel(_over(sources), *axes, tuple(series)),), tuple(notes))


def _rank_series(
    name: str, found: Sequence[float], methods: int, source: _Source, row: TidyRow
) -> list[Series]:
    """How many of a method's ranks are each, whole ranks and those that ties share; their mean."""
    places = tuple(sorted({*range(1, methods + 1), *found}))
    shares = tuple(100 * found.count(place) / len(found) for place in places)
    mean, printed_ones = (sum(found) / len(found),), source.is_published
    return [
        Series(name, places, shares, RANKS, (), "", printed_ones, (row,) * len(places)),
        Series(name, mean, (None,), MEAN_RANK, (), "", printed_ones, (row,)),
    ]


def _sources(runs: Sequence[Kept], published: Cells | None, metric: str) -> list[_Source]:
    """What was measured, and what is published: of the measured pairs, where it is of them."""
    frame = tables(runs)
    pairs = pairs_of(frame)
    groups = {n: rows for n, rows in by_label(frame).items() if _has(rows, pairs, metric)}
    sources = [_Source(pairs, groups, {})] if groups else []
    if published:
        first, *others = published.values()
        common = [pair for pair in first if all(pair in of for of in others)]
        same = [pair for pair in pairs if pair in common]
        sources.append(_Source(same or common, {}, published))
    if not sources:
        raise SettingsError(f"no kept run that fits has {METRICS[metric].head} of a noisy stream.")
    return sources


def _has(rows: Sequence[Row], pairs: Sequence[Pair], metric: str) -> bool:
    """Whether a method has a metric: a score that does not decide has no accuracy."""
    values = [value for pair in pairs for value in by_seed(rows, pair, metric).values()]
    return not values or not all(map(math.isnan, values))


def _compared(source: _Source, metric: str, notes: list[str]) -> list[str]:
    """The methods that have an average over all pairs; what the others have goes into the notes."""
    averages = {name: average_over(of) for name, of in source.by_method(metric).items()}
    whole = [name for name, value in averages.items() if not math.isnan(value.mean)]
    lacking = [
        f"{name} has no average: {f'it has {value.lacks}' if value.lacks else _undefined(metric)}"
        for name, value in averages.items()
        if name not in whole
    ]
    if len(whole) < 2:
        only = whole[0] if whole else "none"
        what = f"methods are compared over {_count(source.pairs)}, and only {only} has an average"
        raise SettingsError("; ".join([what, *lacking]), remedy="compare")
    check_lines(len(whole), "methods")
    notes += lacking
    return whole


def _undefined(metric: str) -> str:
    return f"{METRICS[metric].head} is undefined on one of its sets"


def _count(pairs: Sequence[Pair]) -> str:
    return f"{len(pairs)} ID-OOD pair{'s' * (len(pairs) > 1)}"


def _over(sources: Sequence[_Source]) -> str:
    """What is compared: how many pairs, of published numbers too where these are others."""
    words = list(dict.fromkeys(_count(source.pairs) for source in sources))
    if len(words) > 1:
        return f"{words[0]} (published: {words[1]})"
    return words[0] + ", published" * all(source.is_published for source in sources)
