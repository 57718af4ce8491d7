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
import operator
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from zsntta_cli import datasets
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.errors import SettingsError, counted
from zsntta_cli.methods import METHODS, method_place
from zsntta_cli.settings import NATURAL, Ratio, StreamSettings, ood_share, ratio_place
from zsntta_cli.settings.prompts import prompt_label
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
    having = [name for name, by_seed in by_set.items() if by_seed]
    if len(having) < len(by_set) or not by_set:
        which = f" ({', '.join(map(str, having))})" * bool(having)
        return Value(math.nan, is_whole=False, lacks=f"{len(having)} of {len(by_set)} sets{which}")
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
class ResultRow:
    """Runs of one method with the same settings on one kind of stream at one ratio."""

    stream: ResultStream
    method: str
    settings: Mapping[str, Any]  # all but the seed, by name; see `all_settings`
    runs: dict[str, dict[int, Record]]  # by OOD set, CLEAN of a clean stream, and by seed

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
        return any(record.decides for record in self.records)

    @property
    def records(self) -> list[Record]:
        """All of its runs, set by set, by seed."""
        return [record for by_seed in self.runs.values() for record in by_seed.values()]

    def on(self, ood_set: str) -> Mapping[int, Record]:
        """The runs that count for an OOD set, by seed."""
        return self.runs.get(CLEAN) or self.runs.get(ood_set, {})

    def by_seed(self, ood_set: str, metric: str) -> dict[int, float]:
        """A metric on an OOD set for each finished run, by seed."""
        runs = self.on(ood_set).items()
        return {s: record.metric(metric) for s, record in runs if not record.unfinished}

    def value(self, ood_set: str, metric: str) -> Value:
        """A metric on an OOD set; that of a stopped run if no run was finished."""
        by_seed = self.by_seed(ood_set, metric)
        if by_seed or not self.on(ood_set):
            return fold(by_seed)
        seed = min(self.on(ood_set))
        return Value(self.on(ood_set)[seed].metric(metric), seeds=(seed,), is_whole=False)

    def average(self, ood_sets: Sequence[str], metric: str, spread: str = SEEDS) -> Value:
        """A metric's average over the OOD sets of its table."""
        return average({name: self.by_seed(name, metric) for name in ood_sets}, spread)

    def average_by_seed(self, ood_sets: Sequence[str], metric: str) -> dict[int, float]:
        """The values behind `average`: the mean over OOD sets for each common seed."""
        return average_by_seed({name: self.by_seed(name, metric) for name in ood_sets})


@dataclass(frozen=True, eq=False)
class ResultTable:
    """All rows on one ID set by one encoder; averages are over the OOD sets of the table."""

    encoder: str
    id_set: str
    ood_sets: tuple[str, ...]
    rows: tuple[ResultRow, ...]

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

    def contests(self) -> list[list[ResultRow]]:
        """The rows in groups that saw the same samples; rows are ranked within a group."""
        groups: dict[tuple[ResultStream, Ratio], list[ResultRow]] = {}
        for row in self.rows:
            groups.setdefault((row.stream, row.ratio), []).append(row)
        return list(groups.values())


def tables(records: Iterable[Record]) -> list[ResultTable]:
    """The frame of some runs: a table for each ID set and encoder, in a fixed order."""
    groups: dict[tuple[str, str], list[ResultRow]] = {}
    for row in _rows(latest_of_each(records)):
        groups.setdefault((row.stream.id_set, row.stream.encoder), []).append(row)
    return [
        _table(*place, groups[place])
        for place in sorted(groups, key=lambda place: (set_place(place[0]), place[1]))
    ]


def _rows(records: Sequence[Record]) -> list[ResultRow]:
    """The rows of some runs; the runs of each row are ordered by set and seed."""
    rows: dict[Hashable, ResultRow] = {}
    places = [_run_place(record) for record in records]
    for _, stream, record in sorted(
        zip(places, _streams(records), records, strict=True), key=operator.itemgetter(0)
    ):
        run, digests = record.settings, _other_digests(record)
        others = dict(vars(run.stream))
        seed = others.pop("seed")
        key = (
            stream, run.method, run.prompt, tuple(others.values()), run.threshold, run.options,
            tuple(digests.items()),
        )  # fmt: skip
        if key not in rows:
            settings = {**all_settings(record), FEATURES: _features_text(stream)}
            del settings["seed"]
            rows[key] = ResultRow(stream, run.method, settings, {})
        rows[key].runs.setdefault(run.ood_set or CLEAN, {})[seed] = record
    return list(rows.values())


def _table(id_set: str, encoder: str, rows: Sequence[ResultRow]) -> ResultTable:
    names = {name for row in rows for name in row.runs if name != CLEAN}
    in_order = sorted(names, key=functools.partial(_ood_place, id_set))
    return ResultTable(encoder, id_set, tuple(in_order), tuple(sorted(rows, key=_row_place)))


def _run_place(record: Record) -> tuple[Any, ...]:
    """The place of a run in its row."""
    settings = record.settings
    return *_ood_place(settings.id_set, settings.ood_set or CLEAN), settings.stream.seed


@functools.cache
def _ood_place(id_set: str, name: str) -> tuple[Any, ...]:
    """The place of an OOD set beside an ID set: first its partners in the paper's order."""
    partners = datasets.partners(id_set)
    return partners.index(name) if name in partners else len(partners), set_place(name)


# Which records count.


def latest_of_each(records: Iterable[Record]) -> list[Record]:
    """Each run once: of records with the same settings and features the latest one.

    A finished run counts more than a stopped one, then a later one more.
    """
    found: dict[Hashable, Record] = {}
    for record in records:
        key = record.settings, tuple(sorted(record.digests.items()))
        if key not in found or _age(record) > _age(found[key]):
            found[key] = record
    return list(found.values())


def _age(record: Record) -> tuple[bool, str, str]:
    return not record.unfinished, record.created, str(record)


def current(records: Sequence[Record]) -> tuple[list[Record], list[str]]:
    """The runs of this version and of their methods' code; how many others are left out, and why.

    What a user's own method gave by an earlier source of its script is left out, too.
    """
    reasons = [_reason_against(record) for record in records]
    counts = Counter(filter(None, reasons))
    notes = [f"{counted(count, 'run')} {reason}" for reason, count in counts.items()]
    return [r for r, reason in zip(records, reasons, strict=True) if not reason], notes


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


def latest(records: Sequence[Record]) -> tuple[list[Record], list[str]]:
    """Of runs with the same settings the latest, without runs on features that are outdated.

    The current features of a set are those that its latest run read; a note says how many runs are
    left out.
    """
    of_each: dict[Hashable, Record] = {}
    newest: dict[tuple[str, str], str] = {}
    for record in sorted(
        latest_of_each(records), key=lambda one: (one.created, sorted(one.digests.items()))
    ):
        of_each[record.settings] = record
        newest |= _features(record)
    current = [r for r in of_each.values() if _features(r).items() <= newest.items()]
    lost = len(records) - len(current)
    note = f"{lost:,} older runs are left out: their features or methods were made anew since"
    return current, [note] * bool(lost)


def _features(record: Record) -> dict[tuple[str, str], str]:
    """Digests of the image features that a run read, by encoder and set."""
    encoder, digests = record.settings.encoder, record.digests
    return {(encoder, n): d for n, d in digests.items() if not n.startswith("text/")}


@dataclass(frozen=True)
class Filters:
    """Which runs are wanted; without any filter, all."""

    methods: Collection[str] = ()
    id_sets: Collection[str] = ()
    ood_sets: Collection[str] = ()
    ratios: Collection[Ratio] = ()
    seeds: Collection[int] = ()
    encoders: Collection[str] = ()
    settings: Mapping[str, Collection[str]] = field(default_factory=dict)  # by name, as shown

    def wanted(self) -> dict[str, Collection[Any]]:
        """The wanted values by the name of what has them, as `value_of` takes it."""
        places = {
            "method": self.methods, "id": self.id_sets, "ood": self.ood_sets,
            "ratio": self.ratios, "seed": self.seeds, "encoder": self.encoders,
        }  # fmt: skip
        return {name: values for name, values in {**places, **self.settings}.items() if values}


def value_of(record: Record, name: str) -> Any:
    """What filters compare: a part of a run's place, or a setting's value as it is shown.

    It is None of a clean stream's OOD set, and where the run has no such setting.
    """
    run = record.settings
    if name in ("id", "ood"):
        return run.id_set if name == "id" else run.ood_set
    if name in ("method", "encoder"):
        return getattr(run, name)
    if name in ("ratio", "seed"):
        return getattr(run.stream, name)
    settings = all_settings(record)
    return shown(name, settings[name]) if name in settings else None


def chosen(records: Sequence[Record], filters: Filters) -> list[Record]:
    """The runs that the filters choose; a clean stream is one for all OOD sets.

    Raises:
        SettingsError: no run fits; the message says which values there are.
    """
    if not records:
        raise SettingsError(
            "there are no kept runs to plot: "
            "zsntta simulate keeps what it runs, or name another file with --records"
        )
    fitting = list(records)
    for name, wanted in filters.wanted().items():
        values = [value_of(record, name) for record in fitting]
        present = {*values} - {None}
        clean = {None} if name == "ood" and present & {*wanted} else set()
        fitting = [
            r for r, value in zip(fitting, values, strict=True) if value in {*wanted, *clean}
        ]
        if not fitting:
            in_order = sorted(present, key=lambda v: (isinstance(v, str), v))
            there = ", ".join(map(str, in_order)) or "none"
            asked = ", ".join(map(str, wanted))
            raise SettingsError(f"no kept run that fits has {name} {asked}: there is {there}.")
    return fitting


_USUAL_RATIO = 0.5  # the paper's


def usual(records: Sequence[Record], filters: Filters, keep: Collection[str] = ()) -> list[Record]:
    """Runs with one ratio, and with adaptive thresholds, unless the filters ask for others.

    `keep` names the settings of which a figure shows several values.
    """
    found = list(records)
    if "ratio" not in keep and not filters.ratios:
        ratios = sorted({r.settings.stream.ratio for r in found}, key=ratio_place)
        noisy = [ratio for ratio in ratios if ratio] or ratios
        ratio = _USUAL_RATIO if _USUAL_RATIO in noisy else noisy[0]
        found = [r for r in found if r.settings.stream.ratio == ratio]
    if "fixed" not in keep and "fixed" not in filters.settings:
        found = [r for r in found if r.settings.threshold.fixed is None] or found
    return found


# All that sets one row apart from another.

_FEATURES_OF = "features of "


def all_settings(record: Record) -> dict[str, Any]:
    """All settings of a run, flat: preset, encoder, prompt, stream, threshold, the method's own.

    Features that belong to none of its sets (words, noise images) appear as their digests.
    """
    run = record.settings
    named = {PRESET: preset_of(run), "encoder": run.encoder, "prompt": run.prompt}
    return {**named, **run.flat(), **_other_digests(record)}


def _other_digests(record: Record) -> dict[str, str]:
    run = record.settings
    sets = {run.id_set, run.ood_set, f"text/{run.id_set}"}
    return {
        f"{_FEATURES_OF}{name}": digest[:8]
        for name, digest in sorted(record.digests.items())
        if name not in sets and not name.startswith("norm/")
    }


def is_digest(name: str) -> bool:
    """Whether a name in `all_settings` is that of a digest of features."""
    return name.startswith(_FEATURES_OF)


def differing(rows: Iterable[ResultRow]) -> list[str]:
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


def varying(rows: Iterable[ResultRow]) -> dict[str, list[str]]:
    """By method, the settings in which its rows differ."""
    by_method: dict[str, list[ResultRow]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    return {method: differing(of_method) for method, of_method in by_method.items()}


def labels(rows: Sequence[ResultRow], without: Sequence[str] = OF_STREAM) -> dict[ResultRow, str]:
    """What the rows of one table are called: the method, and what its rows in it differ in.

    `without` are the settings that stand elsewhere in the table: in its title, in a column.
    """
    names = varying(rows)
    return {row: label(row, names, without) for row in rows}


def label(
    row: ResultRow,
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


def _row_place(row: ResultRow) -> tuple[Any, ...]:
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
