"""The frame of results: runs as plain rows, grouped by settings, averaged over seeds and sets.

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
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from zsntta_cli import datasets
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.errors import SettingsError, counted
from zsntta_cli.methods import METHODS, method_place
from zsntta_cli.settings import NATURAL, Ratio, StreamSettings, ood_share
from zsntta_cli.settings.prompts import prompt_label
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import PRESETS, preset_of, revision, source_digests
from zsntta_cli.simulation.sources import ITEMS

PRESET = "preset"  # what is told by its name, in place of the settings that it has
FEATURES = "features"  # which of several features of the same names
FEATURES_OF = "features of "  # before the name of features that belong to none of a run's sets
OF_STREAM = (
    "encoder", "ratio", "order", "ood_fill", "ood_items", "rounded_odds", "swapped_names", "limit",
    FEATURES,
)  # fmt: skip
SEEDS, SETS = "seeds", "sets"  # whose standard deviation the ± of an average is
CLEAN = ""  # in place of an OOD set
# With these a stream has other samples.
_KIND = ("order", "ood_fill", "ood_items", "rounded_odds", "swapped_names", "limit")
_SET_PLACES = {name: i for i, name in enumerate(CATALOGUE)}
_NAMES = {"ratio": "noise", "fixed": "threshold", "noise": "injected noise"}  # of settings, shown

T = TypeVar("T")
K = TypeVar("K")


# Means over seeds, averages over sets.


class Value(NamedTuple):
    """A metric of a cell or an average, as fractions."""

    mean: float  # nan where there is nothing
    std: float  # sample standard deviation over seeds; nan of one seed
    by_seed: Mapping[int, float]  # what it is the mean of
    is_whole: bool = True  # of finished runs, and of an average: of all sets of the table
    lacks: str = ""  # why an average is none, in words

    @property
    def seeds(self) -> list[int]:
        """The seeds that it is the mean of, in order."""
        return sorted(self.by_seed)


NOTHING = Value(math.nan, math.nan, {}, is_whole=False)


def fold(by_seed: Mapping[int, float]) -> Value:
    """The mean over seeds and its sample standard deviation; NOTHING where there is no seed."""
    if not by_seed:
        return NOTHING
    mean, std = fmean(by_seed.values()), math.nan
    if len(by_seed) > 1:
        squares = math.fsum([(value - mean) ** 2 for value in by_seed.values()])
        std = math.sqrt(squares / (len(by_seed) - 1))
    return Value(mean, std, by_seed)


def average(by_set: Mapping[T, Mapping[int, float]], spread: str = SEEDS) -> Value:
    """The mean over sets of a metric by seed, folded over the seeds that all sets have.

    `spread`: the ± is the deviation of the averages over SEEDS, or, as in the paper, the mean of
    the deviations of the SETS.
    """
    having = [str(name) for name, by_seed in by_set.items() if by_seed]
    if len(having) < len(by_set) or not by_set:
        which = f" ({', '.join(having)})" * bool(having)
        return NOTHING._replace(lacks=f"{len(having)} of {len(by_set)} sets{which}")
    seeds = set.intersection(*map(set, by_set.values()))
    if not seeds:
        return NOTHING._replace(lacks="no seed that all of its sets have")
    value = fold({seed: fmean([of[seed] for of in by_set.values()]) for seed in seeds})
    if spread == SETS:
        of_sets = [fold({seed: of[seed] for seed in seeds}).std for of in by_set.values()]
        value = value._replace(std=fmean(of_sets))
    return value


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
    settings: Mapping[str, Any]  # all but the seed, by name; see `all_settings`
    runs: dict[str, dict[int, Record]]  # by OOD set, CLEAN of a clean stream, and by seed

    @property
    def ratio(self) -> Ratio:
        """The share of OOD samples in its streams."""
        ratio: Ratio = self.settings["ratio"]
        return ratio

    @property
    def advantage(self) -> str:
        """What it knows that no online method can know, in words; mostly empty.

        A row with an advantage is a reference, and never the best.
        """
        if METHODS[self.method].offline:
            return "sees the whole stream before it decides"
        is_shown_truth = self.settings.get("pipeline") == "gt"
        return "is shown by its pipeline gt which samples are noise" * is_shown_truth

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
        return {seed: run.metric(metric) for seed, run in runs if not run.unfinished}

    def value(self, ood_set: str, metric: str) -> Value:
        """A metric on an OOD set; that of a stopped run if no run was finished."""
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
    ood_sets: tuple[str, ...]
    rows: tuple[ResultRow, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Its OOD sets; CLEAN where all streams are clean."""
        return self.ood_sets or (CLEAN,)

    @property
    def varying(self) -> list[str]:
        """The settings in which rows of a method differ, in order."""
        names = set().union(*varying(self.rows).values())
        known = [name for name in self.rows[0].settings if name in names]
        return known + sorted(names.difference(known))

    def contests(self) -> list[list[ResultRow]]:
        """The rows in groups that saw the same samples; rows are ranked within a group."""
        return list(grouped(self.rows, attrgetter("stream", "ratio")).values())


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Rows by a key, in the order in which these come."""
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def tables(records: Iterable[Record]) -> list[ResultTable]:
    """The frame of some runs: a table for each ID set and encoder, in an order of its own."""
    rows = sorted(_rows(latest_of_each(records)), key=_row_place)
    groups = grouped(rows, lambda row: (set_place(row.stream.id_set), row.stream.encoder))
    found = []
    for ((_, id_set), encoder), own in sorted(groups.items(), key=itemgetter(0)):
        names = {name for row in own for name in row.runs} - {CLEAN}
        ood_sets = sorted(names, key=functools.partial(_ood_place, id_set))
        found.append(ResultTable(encoder, id_set, tuple(ood_sets), tuple(own)))
    return found


def _rows(records: Sequence[Record]) -> Iterable[ResultRow]:
    """The rows of some runs; the runs of each row are ordered by set and seed.

    Features with the same name and another digest make another stream. They are numbered from 1,
    and unnamed where most runs have them.
    """
    read = zip(*map(_features_of, records), strict=True)
    numbers = zip(*map(_numbers, read), strict=True)
    rows: dict[Hashable, ResultRow] = {}
    for record, features in sorted(zip(records, numbers, strict=True), key=_run_place):
        run, settings = record.settings, all_settings(record)
        seed = settings.pop("seed")
        of_features = ".".join([str(number + 1) for number in features]) * any(features)
        stream = ResultStream(run.encoder, run.id_set, features, _kind(run.stream))
        key = stream, run.method, tuple(settings.items())
        if key not in rows:
            rows[key] = ResultRow(stream, run.method, settings | {FEATURES: of_features}, {})
        rows[key].runs.setdefault(run.ood_set or CLEAN, {})[seed] = record
    return rows.values()


def _features_of(record: Record) -> tuple[tuple[str, ...], ...]:
    """The names and the digest of the features of the ID set, its text and the OOD set."""
    run, digests, ood_set = record.settings, record.digests, record.settings.ood_set or CLEAN
    of_id = run.encoder, run.id_set, digests.get(run.id_set, "")
    of_text = *of_id, run.prompt, digests.get(f"text/{run.id_set}", "")
    of_ood: tuple[str, ...] = run.encoder, ood_set, digests.get(ood_set, "")
    if items := digests.get(f"{ITEMS}/{ood_set}"):  # each pair and ratio has its own list
        of_ood = run.encoder, ood_set, run.id_set, str(run.stream.ratio), of_ood[-1] + items
    return of_id, of_text, of_ood


def _numbers(keys: Sequence[tuple[str, ...]]) -> list[int]:
    """For each key the number of its digest among keys of the same names, 0 for the commonest."""
    counts, met = Counter(keys), Counter[tuple[str, ...]]()
    numbers = {}
    for key in sorted(sorted(counts), key=counts.__getitem__, reverse=True):
        numbers[key] = met[key[:-1]]
        met[key[:-1]] += 1
    return [numbers[key] for key in keys]


def _kind(stream: StreamSettings) -> tuple[tuple[str, Any], ...]:
    """The settings that make another stream; injection does not change the test samples."""
    odds = ood_share(stream.ratio) / (1 - ood_share(stream.ratio))
    changed = {n: v for n in _KIND if (v := getattr(stream, n)) != getattr(StreamSettings, n)}
    if stream.ratio == NATURAL or round(odds, 2) == odds:
        changed.pop("rounded_odds", None)  # nothing to round
    if not stream.ratio or stream.ratio == NATURAL:
        changed.pop("ood_fill", None)
    return tuple(changed.items())


# Orders: none depends on when a run was made.


def set_place(name: str) -> tuple[int, str]:
    """The place of a set in lists: in the order of the catalogue, then all others by name."""
    return _SET_PLACES.get(name.partition(":")[0], len(CATALOGUE)), name


@functools.cache
def _ood_place(id_set: str, name: str) -> tuple[Any, ...]:
    """The place of an OOD set beside an ID set: first its partners in the paper's order."""
    partners = datasets.partners(id_set)
    return partners.index(name) if name in partners else len(partners), set_place(name)


def _run_place(numbered: tuple[Record, Any]) -> tuple[Any, ...]:
    """The place of a run in its row, of a record and what is known of its features."""
    settings = numbered[0].settings
    return *_ood_place(settings.id_set, settings.ood_set or CLEAN), settings.stream.seed


def _row_place(row: ResultRow) -> tuple[Any, ...]:
    """The place of a row in its table: by method, preset, then by its settings."""
    values = []
    for value in row.settings.values():
        number = value if isinstance(value, int | float) else -1
        values.append((isinstance(value, str), number, str(value)))
    preset = list(PRESETS).index(row.settings[PRESET])
    return method_place(row.method), preset, values, row.stream


# Which records count, and which are wanted.


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
    counting, reasons = list[Record](), Counter[str]()
    for record in records:
        method = record.settings.method
        if record.revision == revision(method):
            counting.append(record)
            continue
        source = source_digests(method)
        changed = [n for n in {**source, **record.own} if source.get(n) != record.own.get(n)]
        have = "has" if len(changed) == 1 else "have"
        reason = f"of {method}: {', '.join(changed)} {have} changed since"
        reasons[reason if changed else "by another version: run it again"] += 1
    return counting, [f"{counted(count, 'run')} {reason}" for reason, count in reasons.items()]


def latest(records: Sequence[Record]) -> tuple[list[Record], list[str]]:
    """Of runs with the same settings the latest, without runs on features that are outdated.

    The current features of a set are those that its latest run read; a note says how many runs are
    left out.
    """
    of_each: dict[Hashable, Record] = {}
    newest: dict[tuple[str, str], str] = {}
    for record in sorted(latest_of_each(records), key=_in_time):
        of_each[record.settings] = record
        newest |= _images_of(record)
    kept = [r for r in of_each.values() if _images_of(r).items() <= newest.items()]
    lost = len(records) - len(kept)
    note = f"{lost:,} older runs are left out: their features or methods were made anew since"
    return kept, [note] * bool(lost)


def _in_time(record: Record) -> tuple[str, list[tuple[str, str]]]:
    return record.created, sorted(record.digests.items())


def _images_of(record: Record) -> dict[tuple[str, str], str]:
    """Digests of the image features that a run read, by encoder and set."""
    encoder, digests = record.settings.encoder, record.digests
    return {(encoder, n): d for n, d in digests.items() if not n.startswith(("text/", f"{ITEMS}/"))}


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
    if name in ("method", "encoder", "id", "ood"):
        return getattr(run, {"id": "id_set", "ood": "ood_set"}.get(name, name))
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
        values = [value_of(run, name) for run in fitting]
        present = {*values} - {None}
        if not present & {*wanted}:
            in_order = sorted(present, key=lambda value: (isinstance(value, str), value))
            there, asked = ", ".join(map(str, in_order)) or "none", ", ".join(map(str, wanted))
            raise SettingsError(f"no kept run that fits has {name} {asked}: there is {there}.")
        fits = {*wanted, None} if name == "ood" else {*wanted}
        fitting = [run for run, value in zip(fitting, values, strict=True) if value in fits]
    return fitting


# All that sets one row apart from another.


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


def differing(rows: Iterable[ResultRow]) -> list[str]:
    """The settings in which rows on one ID set differ, in order.

    Settings that differ only as the presets do are represented by the preset's name.
    """
    first: dict[tuple[str, str, str], Any] = {}
    names: dict[str, bool] = {}  # whether a setting differs
    for row in rows:
        for name, value in row.settings.items():
            place = name, row.stream.id_set, "" if name == PRESET else row.settings[PRESET]
            names[name] = first.setdefault(place, value) != value or names.get(name, False)
    return [name for name, is_differing in names.items() if is_differing]


def varying(rows: Iterable[ResultRow]) -> dict[str, list[str]]:
    """By method, the settings in which its rows differ."""
    by_method = grouped(rows, attrgetter("method"))
    return {method: differing(of_method) for method, of_method in by_method.items()}


def labels(rows: Sequence[ResultRow], without: Sequence[str] = OF_STREAM) -> dict[ResultRow, str]:
    """What the rows of one table are called: the method, and what its rows in it differ in.

    `without` are the settings that stand elsewhere in the table: in its title, in a column.
    """
    names = varying(rows)
    return {row: label(row, names[row.method], without) for row in rows}


def label(row: ResultRow, names: Sequence[str], without: Sequence[str] = OF_STREAM) -> str:
    """A row's method and the settings, of these names, that distinguish it from others."""
    parts = []
    for name in names:
        if name not in without:
            text = label_text(name, row.settings.get(name))
            parts.append(text if name == PRESET else f"{setting_name(name)} {text}")
    return f"{row.method} ({', '.join(parts)})" if parts else row.method


def setting_name(name: str) -> str:
    """A setting's name as a column head or a label shows it."""
    return _NAMES.get(name, name.replace("_", " "))


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
