"""Rows of a frame as figures need them: by their name in a legend, on pairs of sets."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from zsntta_cli.errors import SettingsError
from zsntta_cli.results.frame import (
    CLEAN,
    OF_STREAM,
    ResultRow,
    ResultTable,
    Value,
    average,
    differing,
    label,
    varying,
)
from zsntta_cli.results.tidy import (
    OVER_OOD_SETS,
    OVER_PAIRS,
    PUBLISHED,
    TidyRow,
    folded_row,
    tidy_row,
)
from zsntta_cli.simulation.metrics import METRICS, Metric
from zsntta_cli.simulation.record import Record

Pair = tuple[str, str]  # ID set, OOD set; CLEAN of a clean stream


DrawnRow = ResultRow
Groups = Mapping[str, Sequence[DrawnRow]]  # rows by what a legend calls them

MOST_LINES = 8  # of one panel: there are no more colours that everybody can tell apart


def by_label(tables: Sequence[ResultTable], without: Collection[str] = ()) -> Groups:
    """Rows by method and by the settings in which its rows differ, except those in `without`.

    Settings that make streams incomparable are named for all methods that have them.
    """
    rows = [row for table in tables for row in table.rows]
    of_streams, of_methods = [n for n in OF_STREAM if n in differing(rows)], varying(rows)
    groups: dict[str, list[DrawnRow]] = {}
    for row in rows:
        names = dict.fromkeys([*of_streams, *of_methods[row.method]])
        whole = [name for name in names if name != "limit" or row.settings[name] is not None]
        groups.setdefault(label(row, {row.method: whole}, [*without]), []).append(row)
    return groups


def pairs_of(tables: Sequence[ResultTable]) -> list[Pair]:
    """All ID-OOD pairs; clean streams only if there are no pairs."""
    every = [(table.id_set, name) for table in tables for name in table.columns]
    noisy = dict.fromkeys(pair for pair in every if pair[1] != CLEAN)
    return list(noisy or dict.fromkeys(every))


def on_pairs(
    tables: Sequence[ResultTable], without: Collection[str] = ()
) -> Iterator[tuple[Pair, Groups]]:
    """The groups with rows on each pair, with the same names on all pairs."""
    groups = by_label(tables, without)
    for pair in pairs_of(tables):
        on_pair = {name: rows_on(rows, pair) for name, rows in groups.items()}
        yield pair, {name: rows for name, rows in on_pair.items() if rows}


def rows_on(rows: Sequence[DrawnRow], pair: Pair) -> list[DrawnRow]:
    """The rows that have runs on a pair."""
    return [row for row in rows if row.stream.id_set == pair[0] and row.on(pair[1])]


def finished(rows: Sequence[DrawnRow], ood_set: str) -> list[Record]:
    """The finished runs of some rows on an OOD set, by seed."""
    runs = {seed: run for row in rows for seed, run in row.on(ood_set).items()}
    return [runs[seed] for seed in sorted(runs) if not runs[seed].unfinished]


def by_seed(rows: Sequence[DrawnRow], pair: Pair, metric: str) -> dict[int, float]:
    """A metric on a pair, by seed."""
    on_pair = (row.by_seed(pair[1], metric) for row in rows_on(rows, pair))
    return {seed: value for values in on_pair for seed, value in values.items()}


@dataclass(frozen=True)
class PairMeans:
    """Means over pairs, of some rows or of published numbers."""

    pairs: Sequence[Pair]
    rows: Sequence[DrawnRow] = ()
    published: Mapping[Pair, Mapping[str, float]] | None = None  # in percent, by metric
    name: str = ""  # of the method that they are published of

    def by_pair(self, metric: str) -> dict[Pair, dict[int, float]]:
        """A metric on each pair by seed, as fractions; published numbers count as one seed."""
        if self.published is None:
            return {pair: by_seed(self.rows, pair, metric) for pair in self.pairs}
        values = {pair: self.published.get(pair, {}).get(metric) for pair in self.pairs}
        return {pair: {} if v is None else {0: v / 100} for pair, v in values.items()}

    def value(self, metric: str) -> Value:
        """The average of a metric over the pairs, by the rules of the frame."""
        several = len({id_set for id_set, _ in self.pairs}) > 1
        by_pair = self.by_pair(metric).items()
        return average({pair_title(pair) if several else pair[1]: v for pair, v in by_pair})

    def shown(self, metric: Metric) -> tuple[float, float]:
        """The average and its standard deviation as they are shown: shares in percent."""
        value, times = self.value(metric.name), 100 if metric.is_percent else 1
        return times * value.mean, times * value.std

    def tidy(self) -> TidyRow:
        """The row of the means in the schema of results."""
        values = {name: self.value(name) for name in METRICS}
        id_set, *others = dict.fromkeys(id_set for id_set, _ in self.pairs)
        is_one = len(self.pairs) == 1
        place = {
            "id_set": None if others else id_set,
            "ood_set": (self.pairs[0][1] or None) if is_one else None,
            "aggregate": None if is_one else OVER_PAIRS if others else OVER_OOD_SETS,
        }
        if self.published is not None:
            means = {name: value.mean for name, value in values.items()}
            return tidy_row(method=self.name, source=PUBLISHED, **place, **means)
        on_pairs = [(rows_on(self.rows, pair), pair[1]) for pair in self.pairs]
        records = [run for rows, ood_set in on_pairs for run in finished(rows, ood_set)]
        return folded_row(records, values, **place)


def points(values: Iterable[tuple[float, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Values and standard deviations as a series needs them; empty if all are nan."""
    means, stds = zip(*values, strict=True)
    return means, () if all(map(math.isnan, stds)) else stds


def axis_name(metric: Metric) -> str:
    """A metric with its unit, as the name of an axis."""
    return f"{metric.head} (%)" if metric.is_percent else metric.head


def pair_title(pair: Pair) -> str:
    """A pair as a title."""
    return " / ".join(name for name in pair if name)


def pair_titles(pairs: Sequence[Pair]) -> dict[Pair, str]:
    """Titles for the pairs of one figure: the sets in which they differ, both of a single pair."""
    varies = [len({*names}) > 1 for names in zip(*pairs, strict=True)]
    if not any(varies):
        return {pair: pair_title(pair) for pair in pairs}
    return {
        pair: " / ".join(name for name, is_told in zip(pair, varies, strict=True) if is_told)
        for pair in pairs
    }


def check_lines(count: int, what: str = "lines") -> None:
    """Refuse too many lines for one plot.

    Raises:
        SettingsError: there are too many lines; the message says how many.
    """
    if count > MOST_LINES:
        raise SettingsError(
            f"{count} {what} in one panel are too many, {MOST_LINES} at most", remedy="fewer-lines"
        )
