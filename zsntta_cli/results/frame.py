"""The frame of results: runs grouped by settings, averaged over seeds and sets, and ranked.

All views take their numbers from here, so that they agree. The rules:

- A cell is the runs of one row on one OOD set. Its value is their mean over seeds with the sample
  standard deviation, which a single run does not have. A clean stream counts for every OOD set.
- An average over sets uses the seeds that all of its sets have. A row that lacks a set of its
  table, or whose sets have no seed in common, has no average, and shows which sets and seeds it
  has.
- A stopped run is shown but enters no mean, and its value is marked as incomplete.
- The best is chosen among complete values of rows that neither see the stream before they decide
  nor are given the truth (results/compare.py).
- Of two records of one run the later one counts. The order of the runs does not matter.

Light: no NumPy.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from zsntta_cli import datasets
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.errors import counted
from zsntta_cli.methods import METHODS, method_place
from zsntta_cli.settings import StreamSettings
from zsntta_cli.settings.prompts import prompt_label
from zsntta_cli.settings.ratios import NATURAL, Ratio, ood_share, ratio_place
from zsntta_cli.simulation.revision import revision, source_digests
from zsntta_cli.simulation.runs import PRESETS, preset_of

if TYPE_CHECKING:
    from zsntta_cli.simulation.metrics import Metric
    from zsntta_cli.simulation.record import Record

PRESET = "preset"  # what is told by its name, in place of the settings that it has
FEATURES = "features"  # which of several features of the same names
OF_STREAM = (
    "encoder", "ratio", "order", "ood_fill", "rounded_odds", "swapped_names", "limit", FEATURES,
)  # fmt: skip
SEEDS, SETS = "seeds", "sets"  # whose standard deviation the ± of an average is
CLEAN = ""  # in place of an OOD set


class Run(Protocol):
    """An object with a record, of which a frame is made."""

    @property
    def record(self) -> Record:
        """The settings and results of the run."""


R = TypeVar("R", bound=Run)
K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True)
class Value:
    """A metric of a cell or an average, as fractions."""

    mean: float  # nan where there is nothing
    std: float = math.nan  # sample standard deviation over seeds; nan of one seed
    seeds: tuple[int, ...] = ()
    is_whole: bool = True  # of finished runs, and of an average: of all sets of the table
    lacks: str = ""  # why an average is none, in words


NOTHING = Value(math.nan, is_whole=False)


def fold(by_seed: Mapping[int, float]) -> Value:
    """The mean over seeds and its sample standard deviation; NOTHING where there is no seed."""
    if not by_seed:
        return NOTHING
    mean, count = _mean(by_seed.values()), len(by_seed)
    squares = math.fsum((value - mean) ** 2 for value in by_seed.values())
    std = math.sqrt(squares / (count - 1)) if count > 1 else math.nan
    return Value(mean, std, tuple(sorted(by_seed)))


def average(by_set: Mapping[T, Mapping[int, float]], spread: str = SEEDS) -> Value:
    """The mean over sets of a metric by seed, folded over the seeds that all sets have.

    `spread`: the ± is the deviation of the averages over SEEDS, or, as in the paper, the mean of
    the deviations of the SETS.
    """
    missing = [name for name, by_seed in by_set.items() if not by_seed]
    if missing or not by_set:
        present = [str(name) for name, by_seed in by_set.items() if by_seed]
        which = f" ({', '.join(present)})" * bool(present)
        return Value(math.nan, is_whole=False, lacks=f"{len(present)} of {len(by_set)} sets{which}")
    means = average_by_seed(by_set)
    if not means:
        return Value(math.nan, is_whole=False, lacks="no seed that all of its sets have")
    value = fold(means)
    if spread == SEEDS:
        return value
    columns = [{seed: by_seed[seed] for seed in means} for by_seed in by_set.values()]
    return Value(value.mean, _mean([fold(column).std for column in columns]), value.seeds)


def average_by_seed(by_set: Mapping[T, Mapping[int, float]]) -> dict[int, float]:
    """The mean over sets for each seed that all sets have."""
    seeds = set.intersection(*(set(by_seed) for by_seed in by_set.values())) if by_set else set()
    return {s: _mean([by_seed[s] for by_seed in by_set.values()]) for s in sorted(seeds)}


def worst_tenth(by_set: Mapping[T, Mapping[int, float]], metric: Metric) -> float:
    """The mean of the worst tenth, at least one, of the runs behind an average over sets.

    It is nan where there is no average.
    """
    whole = average(by_set)
    if math.isnan(whole.mean):
        return math.nan
    values = [by_seed[seed] for by_seed in by_set.values() for seed in whole.seeds]
    worst_first = sorted(values, reverse=metric.lower_is_better)
    return _mean(worst_first[: math.ceil(len(values) / 10)])


def _mean(values: Collection[float]) -> float:
    return math.fsum(values) / len(values)


def mean_ranks(
    by_row: Mapping[K, Mapping[T, float]], metric: Metric | None = None
) -> dict[K, dict[T, float]]:
    """The mean rank of each row over the places where all rows have a value; 1 is the best.

    Equal values share their mean rank. Without a metric higher values are better.
    """
    sign = -1 if metric and metric.lower_is_better else 1
    ranks: dict[K, dict[T, float]] = {row: {} for row in by_row}
    for place in dict.fromkeys(place for values in by_row.values() for place in values):
        values = [sign * of_row.get(place, math.nan) for of_row in by_row.values()]
        if any(map(math.isnan, values)):
            continue
        for row, value in zip(by_row, values, strict=True):
            better, equal = sum(other > value for other in values), values.count(value)
            ranks[row][place] = better + (equal + 1) / 2
    return ranks


def may_win(values: Sequence[Value], competes: Sequence[bool]) -> list[bool]:
    """Which values may be the best: complete values of rows that compete."""
    return [
        one.is_whole and is_rival and not math.isnan(one.mean)
        for one, is_rival in zip(values, competes, strict=True)
    ]


class ResultStream(NamedTuple):
    """The parts of a stream that fix its samples, without ratio, OOD set and seed."""

    encoder: str
    id_set: str
    features: tuple[int, int, int]  # which of several digests: of the ID set, its text, the OOD set
    kind: tuple[tuple[str, Any], ...]  # settings of the stream that are not the defaults


@dataclass(frozen=True, eq=False)
class ResultRow(Generic[R]):
    """Runs of one method with the same settings on one kind of stream at one ratio."""

    stream: ResultStream
    method: str
    settings: Mapping[str, Any]  # all but the seed, by name; see `all_settings`
    runs: dict[str, dict[int, R]]  # by OOD set, CLEAN of a clean stream, and by seed

    @property
    def ratio(self) -> Ratio:
        """The share of OOD samples in its streams."""
        ratio: Ratio = self.settings["ratio"]
        return ratio

    @property
    def advantage(self) -> str:
        """What it knows that no online method can know, in words; mostly empty."""
        if METHODS[self.method].offline:
            return "sees the whole stream before it decides"
        is_shown_truth = self.settings.get("pipeline") == "gt"
        return "is shown by its pipeline gt which samples are noise" * is_shown_truth

    @property
    def competes(self) -> bool:
        """Whether it may be the best: a row with an advantage is a reference."""
        return not self.advantage

    @property
    def decides(self) -> bool:
        """Whether its method decides what is noise, or gives only a score."""
        return any(run.record.decides for run in self.every_run)

    @property
    def every_run(self) -> list[R]:
        """All of its runs, set by set, by seed."""
        return [run for by_seed in self.runs.values() for run in by_seed.values()]

    def on(self, ood_set: str) -> Mapping[int, R]:
        """The runs that count for an OOD set, by seed."""
        return self.runs.get(CLEAN) or self.runs.get(ood_set, {})

    def by_seed(self, ood_set: str, metric: str) -> dict[int, float]:
        """A metric on an OOD set for each finished run, by seed."""
        runs = self.on(ood_set).items()
        return {s: run.record.metric(metric) for s, run in runs if not run.record.unfinished}

    def value(self, ood_set: str, metric: str) -> Value:
        """A metric on an OOD set; that of a stopped run if no run was finished."""
        by_seed = self.by_seed(ood_set, metric)
        if by_seed or not self.on(ood_set):
            return fold(by_seed)
        seed, run = min(self.on(ood_set).items())
        return Value(run.record.metric(metric), seeds=(seed,), is_whole=False)

    def average(self, ood_sets: Sequence[str], metric: str, spread: str = SEEDS) -> Value:
        """A metric's average over the OOD sets of its table."""
        return average({name: self.by_seed(name, metric) for name in ood_sets}, spread)

    def worst_tenth(self, ood_sets: Sequence[str], metric: Metric) -> float:
        """The mean of the worst tenth of the runs behind its average over the OOD sets."""
        return worst_tenth({name: self.by_seed(name, metric.name) for name in ood_sets}, metric)

    def average_by_seed(self, ood_sets: Sequence[str], metric: str) -> dict[int, float]:
        """The values behind `average`: the mean over OOD sets for each common seed."""
        return average_by_seed({name: self.by_seed(name, metric) for name in ood_sets})


@dataclass(frozen=True, eq=False)
class ResultTable(Generic[R]):
    """All rows on one ID set by one encoder; averages are over the OOD sets of the table."""

    encoder: str
    id_set: str
    ood_sets: tuple[str, ...]
    rows: tuple[ResultRow[R], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Its OOD sets; CLEAN where all streams are clean."""
        return self.ood_sets or (CLEAN,)

    @property
    def varying(self) -> list[str]:
        """The settings in which rows of a method differ, in order."""
        names = {name for of_method in varying(self.rows).values() for name in of_method}
        in_order = [name for name in self.rows[0].settings if name in names]
        return in_order + sorted(names - {*in_order})

    def by_stream(self) -> dict[ResultStream, list[ResultRow[R]]]:
        """The rows by their kind of stream, each group by ratio."""
        groups: dict[ResultStream, list[ResultRow[R]]] = {}
        for row in sorted(self.rows, key=lambda row: ratio_place(row.ratio)):
            groups.setdefault(row.stream, []).append(row)
        return groups

    def sets_of(self, rows: Iterable[ResultRow[R]]) -> list[str]:
        """The OOD sets of some rows, in order; CLEAN, last, for clean streams."""
        present = {name for row in rows for name in row.runs}
        return [name for name in (*self.ood_sets, CLEAN) if name in present]

    def contests(self) -> list[list[ResultRow[R]]]:
        """The rows in groups that saw the same samples; rows are ranked within a group."""
        groups: dict[tuple[ResultStream, Ratio], list[ResultRow[R]]] = {}
        for row in self.rows:
            groups.setdefault((row.stream, row.ratio), []).append(row)
        return list(groups.values())


def tables(runs: Iterable[R]) -> list[ResultTable[R]]:
    """The frame of some runs: a table for each ID set and encoder, in a fixed order."""
    groups: dict[tuple[str, str], list[ResultRow[R]]] = {}
    for row in _rows(latest_of_each(runs)):
        groups.setdefault((row.stream.id_set, row.stream.encoder), []).append(row)
    return [
        _table(*place, groups[place])
        for place in sorted(groups, key=lambda place: (set_place(place[0]), place[1]))
    ]


def _rows(runs: Sequence[R]) -> list[ResultRow[R]]:
    """The rows of some runs; the runs of each row are ordered by set and seed."""
    rows: dict[tuple[Any, ...], ResultRow[R]] = {}
    streams = _streams([run.record for run in runs])
    for stream, run in sorted(zip(streams, runs, strict=True), key=_run_place):
        settings = {**all_settings(run.record), FEATURES: _features_text(stream)}
        seed, method = settings.pop("seed"), run.record.settings.method
        key = (stream, method, tuple(settings.items()))
        row = rows.setdefault(key, ResultRow(stream, method, settings, {}))
        row.runs.setdefault(run.record.settings.ood_set or CLEAN, {})[seed] = run
    return list(rows.values())


def _table(id_set: str, encoder: str, rows: Sequence[ResultRow[R]]) -> ResultTable[R]:
    names = {name for row in rows for name in row.runs if name != CLEAN}
    in_order = sorted(names, key=functools.partial(_ood_place, id_set))
    return ResultTable(encoder, id_set, tuple(in_order), tuple(sorted(rows, key=_row_place)))


def _run_place(run: tuple[ResultStream, Run]) -> tuple[Any, ...]:
    """The place of a run in its row."""
    settings = run[1].record.settings
    return _ood_place(settings.id_set, settings.ood_set or CLEAN), settings.stream.seed


def _ood_place(id_set: str, name: str) -> tuple[Any, ...]:
    """The place of an OOD set beside an ID set: first its partners in the paper's order."""
    partners = datasets.partners(id_set)
    return partners.index(name) if name in partners else len(partners), set_place(name)


# Which records count.


def latest_of_each(runs: Iterable[R]) -> list[R]:
    """Each run once: of records with the same settings and features the latest one."""
    latest: dict[Any, R] = {}
    for run in runs:
        key = identity(run.record)
        if key not in latest or age(run.record) > age(latest[key].record):
            latest[key] = run
    return list(latest.values())


def identity(record: Record) -> Hashable:
    """What two records of one run have in common: the settings and the features that were read."""
    return record.settings, tuple(sorted(record.digests.items()))


def age(record: Record) -> tuple[bool, str, str]:
    """A sort key: a finished run counts more than a stopped one, then a later one more."""
    return not record.unfinished, record.created, str(record)


def current(runs: Sequence[R]) -> tuple[list[R], list[str]]:
    """The runs of this version and of their methods' code; how many others are left out, and why.

    What a user's own method gave by an earlier source of its script is left out, too.
    """
    reasons = [_reason_against(run.record) for run in runs]
    counts = Counter(filter(None, reasons))
    notes = [f"{counted(count, 'run')} {reason}" for reason, count in counts.items()]
    return [run for run, reason in zip(runs, reasons, strict=True) if not reason], notes


def _reason_against(record: Record) -> str:
    """Why a run does not count; empty if it counts."""
    method = record.settings.method
    if record.revision == revision(method):
        return ""
    source = source_digests(method)
    changed = [n for n in {**source, **record.own} if source.get(n) != record.own.get(n)]
    have = "has" if len(changed) == 1 else "have"
    if changed:
        return f"of {method}: {', '.join(changed)} {have} changed since"
    return "by another version: run it again"


def latest(runs: Sequence[R]) -> tuple[list[R], list[str]]:
    """Of runs with the same settings the latest, without runs on features that are outdated.

    The current features of a set are those that its latest run read; a note says how many runs are
    left out.
    """
    of_each: dict[Any, R] = {}
    newest: dict[tuple[str, str], str] = {}
    for run in sorted(latest_of_each(runs), key=_time):
        of_each[run.record.settings] = run
        newest |= _features(run.record)
    current = [r for r in of_each.values() if _features(r.record).items() <= newest.items()]
    lost = len(runs) - len(current)
    note = f"{lost:,} older runs are left out: their features or methods were made anew since"
    return current, [note] * bool(lost)


def _time(run: Run) -> tuple[str, Any]:
    return run.record.created, sorted(run.record.digests.items())


def _features(record: Record) -> dict[tuple[str, str], str]:
    """Digests of the image features that a run read, by encoder and set."""
    encoder, digests = record.settings.encoder, record.digests
    return {(encoder, n): d for n, d in digests.items() if not n.startswith("text/")}


# All that sets one row apart from another.

_FEATURES_OF = "features of "


def all_settings(record: Record) -> dict[str, Any]:
    """All settings of a run, flat: preset, encoder, prompt, stream, threshold, the method's own.

    Features that belong to none of its sets (words, noise images) appear as their digests.
    """
    run = record.settings
    sets = {run.id_set, run.ood_set, f"text/{run.id_set}"}
    digests = {
        f"{_FEATURES_OF}{name}": digest[:8]
        for name, digest in sorted(record.digests.items())
        if name not in sets and not name.startswith("norm/")
    }
    named = {PRESET: preset_of(run), "encoder": run.encoder, "prompt": run.prompt}
    return {**named, **run.flat(), **digests}


def is_digest(name: str) -> bool:
    """Whether a name in `all_settings` is that of a digest of features."""
    return name.startswith(_FEATURES_OF)


def differing(rows: Iterable[ResultRow[Any]]) -> list[str]:
    """The settings in which rows on one ID set differ, in order.

    Settings that differ only as the presets do are represented by the preset's name.
    """
    values: dict[str, dict[tuple[str, str], set[Any]]] = {}
    for row in rows:
        for name, value in row.settings.items():
            preset = "" if name == PRESET else row.settings[PRESET]
            of_name = values.setdefault(name, {})
            of_name.setdefault((row.stream.id_set, preset), set()).add(value)
    return [name for name, groups in values.items() if max(map(len, groups.values())) > 1]


def varying(rows: Iterable[ResultRow[Any]]) -> dict[str, list[str]]:
    """By method, the settings in which its rows differ."""
    by_method: dict[str, list[ResultRow[Any]]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    return {method: differing(of_method) for method, of_method in by_method.items()}


def labels(
    rows: Sequence[ResultRow[R]], without: Sequence[str] = OF_STREAM
) -> dict[ResultRow[R], str]:
    """What the rows of one table are called: the method, and what its rows in it differ in.

    `without` are the settings that stand elsewhere in the table: in its title, in a column.
    """
    names = varying(rows)
    return {row: label(row, names, without) for row in rows}


def label(
    row: ResultRow[Any],
    names: Mapping[str, Sequence[str]],
    without: Sequence[str] = OF_STREAM,
) -> str:
    """A row's method and the `varying` settings that distinguish it from the method's others."""
    parts = [
        str(row.settings[PRESET])
        if name == PRESET
        else f"{setting_name(name)} {label_text(name, row.settings.get(name))}"
        for name in names[row.method]
        if name not in without
    ]
    return f"{row.method} ({', '.join(parts)})" if parts else row.method


def setting_name(name: str) -> str:
    """A setting's name as a column head or a label shows it."""
    return {"ratio": "noise", "fixed": "threshold", "noise": "injected noise"}.get(
        name, name.replace("_", " ")
    )


def shown(name: str, value: Any) -> str:
    """A setting's value as tables show it."""
    if name == "ratio" and not isinstance(value, str):
        return f"{value:.0%}" if round(value, 2) == value else f"{value:.4g}"
    if name == "fixed":
        return "adaptive" if value is None else str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def label_text(name: str, value: Any) -> str:
    """A setting's value in a row's label: as tables show it, or shorter where it is long."""
    return prompt_label(str(value)) if name == "prompt" else shown(name, value)


# Orders: none depends on when a run was made.


def _row_place(row: ResultRow[Any]) -> tuple[Any, ...]:
    """The place of a row in its table: by method, preset, then by its settings."""
    presets = list(PRESETS)
    values = [
        (isinstance(value, str), value if isinstance(value, int | float) else -1, str(value))
        for value in row.settings.values()
    ]
    return (method_place(row.method), presets.index(row.settings[PRESET]), values, row.stream)


def set_place(name: str) -> tuple[int, str]:
    """The place of a set in lists: in the order of the catalogue, then all others by name."""
    return _SET_PLACES.get(name.partition(":")[0], len(CATALOGUE)), name


_SET_PLACES = {name: i for i, name in enumerate(CATALOGUE)}


# Which runs saw the same samples.

_Key = tuple[str, ...]  # names, and a digest last
# Ratio and seed apart, and injection.
_KIND = ("order", "ood_fill", "rounded_odds", "swapped_names", "limit")


def _streams(records: Sequence[Record]) -> list[ResultStream]:
    """The stream of each run; features with the same name and another digest are another stream."""
    ids = [_of_set(record, record.settings.id_set) for record in records]
    oods = [_of_set(record, record.settings.ood_set or CLEAN) for record in records]
    texts = [(*i, r.settings.prompt, _text(r)) for i, r in zip(ids, records, strict=True)]
    numbers = zip(_numbered(ids), _numbered(texts), _numbered(oods), strict=True)
    return [
        ResultStream(run.encoder, run.id_set, features, _kind(run.stream))
        for run, features in zip((record.settings for record in records), numbers, strict=True)
    ]


def _of_set(record: Record, name: str) -> _Key:
    return record.settings.encoder, name, record.digests.get(name, "")


def _text(record: Record) -> str:
    return record.digests.get(f"text/{record.settings.id_set}", "")


def _numbered(keys: Sequence[_Key]) -> list[int]:
    """For each key the number of its digest among keys of the same names, 0 for the commonest."""
    counts, met = Counter(keys), Counter[_Key]()
    numbers = {}
    for key in sorted(counts, key=lambda key: (-counts[key], key)):
        numbers[key] = met[key[:-1]]
        met[key[:-1]] += 1
    return [numbers[key] for key in keys]


def _features_text(stream: ResultStream) -> str:
    """Which features of the same name a stream has; empty for those that most runs have."""
    return ".".join(str(number + 1) for number in stream.features) * any(stream.features)


def _kind(stream: StreamSettings) -> tuple[tuple[str, Any], ...]:
    """The settings that make another stream; injection does not change the test samples."""
    values = {name: getattr(stream, name) for name in _KIND}
    share = ood_share(stream.ratio)
    odds = share / (1 - share)
    if stream.ratio == NATURAL or round(odds, 2) == odds:
        values["rounded_odds"] = False  # nothing to round
    if not stream.ratio or stream.ratio == NATURAL:
        values["ood_fill"] = StreamSettings.ood_fill
    changed = {k: v for k, v in values.items() if v != getattr(StreamSettings, k)}  # not defaults
    return tuple(changed.items())
