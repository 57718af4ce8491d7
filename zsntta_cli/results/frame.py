"""The frame of results: runs in rows and tables, their means, and which is the best.

All views take their numbers from here, so that they agree. The rules:

- A value is the mean over seeds of the runs of one row on one OOD set, with the sample standard
  deviation, which a single run does not have. A clean stream counts for every OOD set.
- An average over sets uses the seeds that all of its sets have. A row that lacks a set of its
  table, or whose sets have no seed in common, has no average, and shows which sets it has.
- A stopped run is shown but enters no mean, and its value is marked as incomplete.
- If a run has two records, the later one counts. The order of the runs does not matter.
"""

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from zsntta_cli import datasets
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.methods import METHODS, method_place
from zsntta_cli.settings import Ratio, StreamSettings, ood_share
from zsntta_cli.settings.prompts import prompt_label
from zsntta_cli.simulation.metrics import Metric
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import PRESETS, preset_of
from zsntta_cli.simulation.sources import ITEMS

PRESET = "preset"  # what is told by its name, in place of the settings that it has
FEATURES = "features"  # which of several features of the same names
FEATURES_OF = "features of "  # before the name of features that belong to none of a run's sets
# With these a stream has other samples.
_KIND = ("order", "ood_fill", "ood_items", "rounded_odds", "swapped_names", "limit")
OF_STREAM = ("encoder", "ratio", *_KIND, FEATURES)
CLEAN = ""  # in place of an OOD set
_NAMES = {"ratio": "noise", "fixed": "threshold", "noise": "injected noise"}  # of settings, shown

SEEDS, SETS = "seeds", "sets"  # whose standard deviation the ± of an average is
BEST, CLOSE = "best", "close"  # marks of a row, which may have none
LEVEL = 0.05  # a p-value below is significant
SEEDS_NEEDED = 5  # that two rows have in common
_ROUNDING = 1e-12  # by which equal means and differences may differ

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class Value(NamedTuple):
    """A mean over seeds, or an average over sets, of a metric as a fraction."""

    mean: float  # nan where there is nothing
    std: float  # sample standard deviation over seeds; nan of one seed
    by_seed: Mapping[int, float]  # what it is the mean of
    is_whole: bool = True  # of finished runs, and of an average: of all sets of the table
    lacks: str = ""  # why an average is none, in words


NOTHING = Value(math.nan, math.nan, {}, is_whole=False)


def fold(by_seed: Mapping[int, float]) -> Value:
    """The mean over seeds and its sample standard deviation; NOTHING if there is no seed."""
    if not by_seed:
        return NOTHING
    mean, std = fmean(by_seed.values()), math.nan
    if len(by_seed) > 1:
        squares = math.fsum([(value - mean) ** 2 for value in by_seed.values()])
        std = math.sqrt(squares / (len(by_seed) - 1))
    return Value(mean, std, by_seed)


def average(by_set: Mapping[str, Mapping[int, float]], spread: str = SEEDS) -> Value:
    """The mean over sets of a metric by seed, averaged over the seeds that all sets share.

    `spread`: the ± is the deviation of the averages over SEEDS, or, as in the paper, the mean of
    the deviations of the SETS.
    """
    having = [name for name, by_seed in by_set.items() if by_seed]
    if not by_set or len(having) < len(by_set):
        which = f" ({', '.join(having)})" * bool(having)
        return NOTHING._replace(lacks=f"{len(having)} of {len(by_set)} sets{which}")
    seeds = sorted(set.intersection(*map(set, by_set.values())))
    if not seeds:
        return NOTHING._replace(lacks="no seed that all of its sets share")
    value = fold({seed: fmean([of[seed] for of in by_set.values()]) for seed in seeds})
    if spread == SETS:
        of_sets = [fold({seed: of[seed] for seed in seeds}).std for of in by_set.values()]
        value = value._replace(std=fmean(of_sets))
    return value


def marks(values: Sequence[Value], metric: Metric) -> list[str]:
    """The marks of values on the same samples, BEST, CLOSE or none.

    A row that does not compete has NOTHING here. The best is the best mean of at least two; equal
    means share it. Close is a row that is not distinguishable from the best over seeds: Student's
    paired t test over the seeds that both have, five at least, two-sided, corrected for the number
    of rivals that were tested (Holm), does not find a difference at 5 %. From the best on, rows are
    marked down to the first that differs or cannot be tested, so a row that varies much is never
    lifted above a better one.
    """
    means = {i: v.mean for i, v in enumerate(values) if v.is_whole and v.mean == v.mean}
    if metric.lower_is_better:
        means = {i: -mean for i, mean in means.items()}
    row_marks = [""] * len(values)
    if len(means) < 2 or not metric.is_ranked:
        return row_marks
    level = max(means.values()) - _ROUNDING
    best = next(i for i, mean in means.items() if mean >= level)
    tests = {i: paired_t_test(values[i].by_seed, values[best].by_seed) for i in means if i != best}
    differing = [i for i, p in holm(tests).items() if p is None or p < LEVEL]
    apart = max((means[i] for i in differing if means[i] < level), default=-math.inf)
    for i, mean in means.items():
        row_marks[i] = BEST if mean >= level else CLOSE if mean > apart + _ROUNDING else ""
    return row_marks


def paired_t_test(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """The two-sided p-value of Student's paired t test; None with too few seeds in common.

    Differences that do not vary over seeds have a p of 0, or of 1 if they are zero.
    """
    differences = [value - second[seed] for seed, value in first.items() if seed in second]
    if len(differences) < SEEDS_NEEDED:
        return None
    mean, std, *_ = fold(dict(enumerate(differences)))
    error = std / math.sqrt(len(differences))
    if error <= _ROUNDING:
        return 1.0 if abs(mean) <= _ROUNDING else 0.0
    from scipy.special import stdtr  # a fifth of a second, and needed with five seeds alone

    return 2 * float(stdtr(len(differences) - 1, -abs(mean) / error))


def holm(p_values: Mapping[K, float | None]) -> dict[K, float | None]:
    """The p-values of a family of tests, corrected for their number (Holm 1979)."""
    adjusted: dict[K, float | None] = dict.fromkeys(p_values)
    tested = sorted((p, i, key) for i, (key, p) in enumerate(p_values.items()) if p is not None)
    largest = 0.0
    for place, (p, _, key) in enumerate(tested):
        largest = adjusted[key] = max(largest, min(1.0, p * (len(tested) - place)))
    return adjusted


# Rows and tables.


class ResultStream(NamedTuple):
    """The parts of a stream that fix its samples, without ratio, OOD set and seed."""

    encoder: str
    id_set: str
    features: tuple[int, ...]  # which of several digests: of the ID set, its text, the OOD set
    kind: tuple[tuple[str, Any], ...]  # settings of the stream that are not the defaults


@dataclass(frozen=True, eq=False)
class ResultRow:
    """Runs of one method with the same settings on one kind of stream at one ratio."""

    stream: ResultStream
    method: str
    ratio: Ratio  # the share of OOD samples in its streams
    settings: Mapping[str, Any]  # all but the seed, by name; see `all_settings`
    runs: dict[str, dict[int, Record]] = field(default_factory=dict)  # by OOD set, and by seed
    records: list[Record] = field(default_factory=list)  # the same, set by set, by seed

    @property
    def advantage(self) -> str:
        """What it knows that no online method can know, in words; usually empty.

        A row with an advantage is a reference and never the best.
        """
        if METHODS[self.method].offline:
            return "sees the whole stream before it decides"
        is_shown_truth = self.settings.get("pipeline") == "gt"
        return "knows from its pipeline gt which samples are noise" * is_shown_truth

    @property
    def decides(self) -> bool:
        """Whether its method decides what is noise, or gives only a score."""
        return any(record.decides for record in self.records)

    def on(self, ood_set: str) -> Mapping[int, Record]:
        """The runs that count for an OOD set, by seed."""
        return self.runs.get(CLEAN) or self.runs.get(ood_set, {})

    def by_seed(self, ood_set: str, metric: str) -> dict[int, float]:
        """A metric on an OOD set for each finished run, by seed."""
        runs = self.on(ood_set).items()
        return {seed: run.metric(metric) for seed, run in runs if not run.unfinished}

    def value(self, ood_set: str, metric: str) -> Value:
        """A metric on an OOD set, taken from a stopped run if no run was finished."""
        by_seed, runs = self.by_seed(ood_set, metric), self.on(ood_set)
        if by_seed or not runs:
            return fold(by_seed)
        seed = min(runs)
        return fold({seed: runs[seed].metric(metric)})._replace(is_whole=False)

    def average(self, ood_sets: Sequence[str], metric: str, spread: str = SEEDS) -> Value:
        """The average of a metric over OOD sets; `spread` is as `average` takes it."""
        return average({name: self.by_seed(name, metric) for name in ood_sets}, spread)


@dataclass(frozen=True, eq=False)
class ResultTable:
    """All rows on one ID set by one encoder; averages are over the OOD sets of the table."""

    encoder: str
    id_set: str
    columns: list[str]  # its OOD sets, in order; CLEAN where all streams are clean
    rows: list[ResultRow]

    @property
    def varying(self) -> list[str]:
        """The settings that differ between rows of a method, in order."""
        names = {*chain(*varying(self.rows).values())}
        every = dict.fromkeys(chain(*map(attrgetter("settings"), self.rows)))
        return [*filter(names.__contains__, every)]

    def contests(self) -> list[list[ResultRow]]:
        """The rows in groups that saw the same samples; rows are ranked within a group."""
        return list(grouped(self.rows, attrgetter("stream", "ratio")).values())


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Rows by a key, in the order of their first appearance."""
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def tables(records: Iterable[Record]) -> list[ResultTable]:
    """The frame of some runs: a table for each ID set and encoder, in a fixed order.

    Features with the same name but another digest make another stream. No order depends on when a
    run was made.
    """
    counting: dict[Any, Record] = {}  # a finished run counts more than a stopped one
    for record in sorted(records, key=lambda r: (not r.unfinished, r.created, r.seconds)):
        counting[record.settings, tuple(sorted(record.digests.items()))] = record
    rows: dict[Any, ResultRow] = {}
    ordered = sorted(counting.values(), key=_run_place)
    for record, features in zip(ordered, _numbered(ordered), strict=True):
        settings, run = all_settings(record), record.settings
        seed = settings.pop("seed")
        stream = ResultStream(run.encoder, run.id_set, features, _kind(run.stream))
        key = stream, run.method, tuple(settings.items())
        if key not in rows:
            settings[FEATURES] = ".".join(str(n + 1) for n in features) if any(features) else ""
            rows[key] = ResultRow(stream, run.method, run.stream.ratio, settings)
        rows[key].runs.setdefault(run.ood_set or CLEAN, {})[seed] = record
        rows[key].records.append(record)
    of_tables = grouped(
        sorted(rows.values(), key=_row_place), attrgetter("stream.encoder", "stream.id_set")
    )
    result_tables = []
    for (encoder, id_set), of_table in of_tables.items():
        ood_sets = {*chain(*map(attrgetter("runs"), of_table))} - {CLEAN}
        columns = sorted(ood_sets, key=functools.partial(_ood_place, id_set))
        result_tables.append(ResultTable(encoder, id_set, columns or [CLEAN], of_table))
    return result_tables


def _numbered(records: Iterable[Record]) -> Iterator[tuple[int, ...]]:
    """For each run a number each of the features of the ID set, its text and the OOD set.

    It is the place of their digest among those of the same names, 0 for the commonest.
    """
    read: list[dict[Any, str]] = []  # by run: its digests by what they are of
    by_name = defaultdict[Any, list[str]](list)
    for record in records:
        run, ood_set = record.settings, record.settings.ood_set or CLEAN
        names = run.id_set, f"text/{run.id_set}", ood_set, f"{ITEMS}/{ood_set}"
        images, text, ood_images, items = map(record.digests.get, names)
        pair = (run.id_set, run.stream.ratio) if items else ()  # each has its own list
        read.append({
            (run.encoder, run.id_set): f"{images}",
            (run.encoder, run.id_set, images, run.prompt): f"{text}",
            (run.encoder, None, ood_set, *pair): f"{ood_images} {items}",
        })  # fmt: skip
        for name, digest in read[-1].items():
            by_name[name].append(digest)
    numbers = dict[tuple[Any, str], int]()
    for name, digests in by_name.items():
        for number, (digest, _) in enumerate(Counter(sorted(digests)).most_common()):
            numbers[name, digest] = number
    for of_run in read:
        yield tuple(map(numbers.__getitem__, of_run.items()))


def _kind(stream: StreamSettings) -> tuple[tuple[str, Any], ...]:
    """The settings that make another stream; injection does not change the test samples."""
    share = ood_share(stream.ratio)  # nan of a natural ratio
    odds = share / (1 - share)
    idle = {"ood_fill": not share > 0, "rounded_odds": odds != odds or round(odds, 2) == odds}
    changed = []
    for name in _KIND:
        value = getattr(stream, name)
        if value != getattr(StreamSettings, name) and not idle.get(name):
            changed.append((name, value))
    return tuple(changed)


@functools.cache
def set_place(name: str) -> tuple[int, str]:
    """The place of a set in lists: in the order of the catalogue, then all others by name."""
    base, names = name.partition(":")[0], [*CATALOGUE]
    return names.index(base) if base in names else len(names), name


@functools.cache
def _ood_place(id_set: str, name: str) -> tuple[Any, ...]:
    """The place of an OOD set beside an ID set: first its partners in the paper's order."""
    partners = datasets.partners(id_set)
    return partners.index(name) if name in partners else len(partners), set_place(name)


def _run_place(record: Record) -> tuple[Any, ...]:
    run = record.settings
    return *_ood_place(run.id_set, run.ood_set or CLEAN), run.stream.seed


def _row_place(row: ResultRow) -> tuple[Any, ...]:
    values = []
    for value in row.settings.values():
        number = value if isinstance(value, int | float) else -math.inf
        values.append((isinstance(value, str), number, str(value)))
    preset = list(PRESETS).index(row.settings[PRESET])
    of_table = set_place(row.stream.id_set), row.stream.encoder
    return of_table, method_place(row.method), preset, values, row.stream


def all_settings(record: Record) -> dict[str, Any]:
    """All settings of a run, flat: preset, encoder, prompt, stream, threshold, the method's own.

    Features that belong to none of its sets (words, noise images) appear as their digests.
    """
    run = record.settings
    settings = {PRESET: preset_of(run), "encoder": run.encoder, "prompt": run.prompt, **run.flat()}
    sets = {run.id_set, run.ood_set, f"text/{run.id_set}"}
    for name, digest in sorted(record.digests.items()):
        if name not in sets and not name.startswith(("norm/", f"{ITEMS}/")):
            settings[FEATURES_OF + name] = digest[:8]
    return settings


def varying(
    rows: Iterable[ResultRow], of: Callable[[ResultRow], str] = attrgetter("method")
) -> dict[str, list[str]]:
    """By method, the settings that differ between its rows on one ID set, in order.

    Settings that differ only as the presets do are represented by the preset's name. `of` groups
    rows by something other than the method.
    """
    first: dict[Any, Any] = {}
    names: dict[str, dict[str, bool]] = {}  # by method and setting, whether it differs
    for row in rows:
        differs = names.setdefault(of(row), {})
        for name, value in row.settings.items():
            preset = None if name == PRESET else row.settings[PRESET]
            usual = first.setdefault((of(row), row.stream.id_set, preset, name), value)
            differs[name] = differs.get(name, False) or value != usual
    return {key: [*filter(differs.get, differs)] for key, differs in names.items()}


def label(row: ResultRow, names: Iterable[str], without: Collection[str] = OF_STREAM) -> str:
    """A row's method and the settings, of these names, that distinguish it from others.

    `without` are the settings shown elsewhere: in a table's title or a column.
    """
    parts = []
    for name in names:
        if name not in without:
            text = shown(name, row.settings.get(name))
            parts.append(text if name == PRESET else f"{setting_name(name)} {text}")
    return f"{row.method} ({', '.join(parts)})" if parts else row.method


def setting_name(name: str) -> str:
    """A setting's name as a column head or a label shows it."""
    return _NAMES.get(name, name.replace("_", " "))


def shown(name: str, value: Any) -> str:
    """A setting's value as tables show it."""
    if name == "ratio" and not isinstance(value, str):
        return f"{value:.0%}" if round(value, 2) == value else f"{value:.4g}"
    if name == "prompt":
        return prompt_label(str(value))
    if name == "fixed" and value is None:
        return "adaptive"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)
