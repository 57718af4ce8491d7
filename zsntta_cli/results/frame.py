"""The frame of results: runs as plain rows, grouped by settings, averaged over seeds and sets.

All views take their numbers from here, so that they agree. The rules:

- A cell is the runs of one row on one OOD set. Its value is their mean over seeds with the sample
  standard deviation, which a single run does not have. A clean stream counts for every OOD set.
- An average over sets uses the seeds that all of its sets have. A row that lacks a set of its
  table, or whose sets have no seed in common, has no average, and shows which sets and seeds it
  has.
- A stopped run is shown but enters no mean, and its value is marked as incomplete.
- The best is chosen among complete values of rows that neither see the stream before they decide
  nor are given the truth; see `marks`.
- If a run has two records, the later one counts. The order of the runs does not matter.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from zsntta_cli import datasets
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.errors import SettingsError, counted
from zsntta_cli.methods import METHODS, method_place
from zsntta_cli.settings import Ratio, StreamSettings, ood_share
from zsntta_cli.settings.prompts import prompt_label
from zsntta_cli.simulation.metrics import Metric
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import PRESETS, preset_of, revision
from zsntta_cli.simulation.sources import ITEMS

PRESET = "preset"  # what is told by its name, in place of the settings that it has
FEATURES = "features"  # which of several features of the same names
FEATURES_OF = "features of "  # before the name of features that belong to none of a run's sets
# With these a stream has other samples.
_KIND = ("order", "ood_fill", "ood_items", "rounded_odds", "swapped_names", "limit")
OF_STREAM = ("encoder", "ratio", *_KIND, FEATURES)
SEEDS, SETS = "seeds", "sets"  # whose standard deviation the ± of an average is
CLEAN = ""  # in place of an OOD set
_NAMES = {"ratio": "noise", "fixed": "threshold", "noise": "injected noise"}  # of settings, shown

Filters = Mapping[str, Collection[Any]]  # the wanted values by name, as `value_of` takes it
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


# Means over seeds, averages over sets.


class Value(NamedTuple):
    """A metric of a cell or an average, as fractions."""

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


def average(by_set: Mapping[T, Mapping[int, float]], spread: str = SEEDS) -> Value:
    """The mean over sets of a metric by seed, averaged over the seeds that all sets share.

    `spread`: the ± is the deviation of the averages over SEEDS, or, as in the paper, the mean of
    the deviations of the SETS.
    """
    if not by_set or not all(by_set.values()):
        having = [str(name) for name, by_seed in by_set.items() if by_seed]
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


# Marks, for rows that saw the same samples:
#
# - *Best* is the best mean; equal means share it. It is chosen among complete values of rows that
#   compete, if there are at least two.
# - *Close* is a row that is not distinguishable from the best over seeds: Student's paired t test
#   over the seeds that both have, five at least, two-sided, corrected for the number of rivals that
#   were tested (Holm), does not find a difference at 5 %. From the best on, rows are marked down to
#   the first that differs or cannot be tested; no row below it has a mark, so a row that varies
#   much is never lifted above a better one.

BEST, CLOSE = "best", "close"  # marks of a row, which may have none
LEVEL = 0.05  # a p-value below is significant
SEEDS_NEEDED = 5  # that two rows have in common
_ROUNDING = 1e-12  # by which equal means and differences may differ


def marks(values: Sequence[Value], metric: Metric) -> list[str]:
    """The marks of values on the same samples, BEST, CLOSE or none.

    A row that does not compete has NOTHING here.
    """
    sign = -1 if metric.lower_is_better else 1
    means = {i: sign * v.mean for i, v in enumerate(values) if v.is_whole and v.mean == v.mean}
    found = [""] * len(values)
    if len(means) < 2 or not metric.is_ranked:
        return found
    level = max(means.values()) - _ROUNDING
    best = next(i for i, mean in means.items() if mean >= level)
    tests = {i: paired_t_test(values[i].by_seed, values[best].by_seed) for i in means if i != best}
    apart = -math.inf  # the highest mean that differs from the best, or cannot be tested
    for i, p in holm(tests).items():
        if means[i] < level and (p is None or p < LEVEL):
            apart = max(apart, means[i])
    for i, mean in means.items():
        if mean >= level:
            found[i] = BEST
        elif mean > apart + _ROUNDING:
            found[i] = CLOSE
    return found


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
    tested = [(p, key) for key, p in p_values.items() if p is not None]
    largest = 0.0
    for place, (p, key) in enumerate(sorted(tested, key=itemgetter(0))):
        largest = max(largest, min(1.0, p * (len(tested) - place)))
        adjusted[key] = largest
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
        names = set().union(*varying(self.rows).values())
        known = [*filter(names.__contains__, self.rows[0].settings)]
        return known + sorted(names.difference(known))

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

    Features with the same name but another digest make another stream.
    """
    counting: dict[Any, Record] = {}
    for record in records:
        run = record.settings, tuple(sorted(record.digests.items()))
        if run not in counting or _age(record) > _age(counting[run]):
            counting[run] = record
    rows: dict[Any, ResultRow] = {}
    ordered = sorted(counting.values(), key=_run_place)
    for record, features in zip(ordered, _numbered(ordered), strict=True):
        settings, of_run = all_settings(record), record.settings
        seed = settings.pop("seed")
        stream = ResultStream(of_run.encoder, of_run.id_set, features, _kind(of_run.stream))
        key = stream, of_run.method, tuple(settings.items())
        if key not in rows:
            numbers = f"{features[0] + 1}.{features[1] + 1}.{features[2] + 1}"
            settings[FEATURES] = numbers if any(features) else ""
            rows[key] = ResultRow(stream, of_run.method, of_run.stream.ratio, settings)
        rows[key].runs.setdefault(of_run.ood_set or CLEAN, {})[seed] = record
        rows[key].records.append(record)
    found: dict[tuple[str, str], ResultTable] = {}
    for row in sorted(rows.values(), key=_row_place):
        encoder, id_set, *_ = row.stream
        table = found.setdefault((encoder, id_set), ResultTable(encoder, id_set, [], []))
        table.rows.append(row)
        table.columns.extend({*row.runs}.difference(table.columns))
    for table in found.values():
        table.columns.sort(key=functools.partial(_ood_place, table.id_set))
        if table.columns[1:] and CLEAN in table.columns:
            table.columns.remove(CLEAN)
    return list(found.values())


def _age(record: Record) -> tuple[bool, str, str]:
    """The later it is the more it counts, and a finished run more than a stopped one."""
    return not record.unfinished, record.created, str(record)


def _numbered(records: Iterable[Record]) -> Iterator[tuple[int, ...]]:
    """For each run a number each of the features of the ID set, its text and the OOD set.

    It is the place of their digest among those of the same names, 0 for the commonest.
    """
    read: list[dict[Any, str]] = []  # by run: its digests by what they are of
    counts: dict[Any, Counter[str]] = {}
    for record in records:
        run, digests = record.settings, record.digests
        ood_set, of_id = run.ood_set or CLEAN, (run.encoder, run.id_set)
        digest, items = digests.get(run.id_set, ""), digests.get(f"{ITEMS}/{ood_set}", "")
        pair = (run.id_set, run.stream.ratio) if items else ()  # each has its own list
        read.append({
            of_id: digest,
            (*of_id, digest, run.prompt): digests.get(f"text/{run.id_set}", ""),
            (run.encoder, "ood", ood_set, *pair): digests.get(ood_set, "") + items,
        })  # fmt: skip
        for name, digest in read[-1].items():
            counts.setdefault(name, Counter())[digest] += 1
    numbers: dict[tuple[Any, str], int] = {}
    for name, of_name in counts.items():
        by_use = sorted(sorted(of_name.items()), key=itemgetter(1), reverse=True)
        for number, (digest, _) in enumerate(by_use):
            numbers[name, digest] = number
    for of_run in read:
        yield tuple(map(numbers.__getitem__, of_run.items()))


def _kind(stream: StreamSettings) -> tuple[tuple[str, Any], ...]:
    """The settings that make another stream; injection does not change the test samples."""
    share, changed = ood_share(stream.ratio), []  # nan of a natural ratio
    odds = share / (1 - share)
    for name in _KIND:
        is_idle = name == "rounded_odds" and (odds != odds or round(odds, 2) == odds)
        is_idle |= name == "ood_fill" and not share > 0
        if getattr(stream, name) != getattr(StreamSettings, name) and not is_idle:
            changed.append((name, getattr(stream, name)))
    return tuple(changed)


# Orders: none depends on when a run was made.


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
    """The place of a run in its row."""
    run = record.settings
    return *_ood_place(run.id_set, run.ood_set or CLEAN), run.stream.seed


def _row_place(row: ResultRow) -> tuple[Any, ...]:
    """The place of a row: by ID set and encoder, by method, preset, then by its settings."""
    values = []
    for value in row.settings.values():
        number = value if isinstance(value, int | float) else -1
        values.append((isinstance(value, str), number, str(value)))
    preset = list(PRESETS).index(row.settings[PRESET])
    of_table = set_place(row.stream.id_set), row.stream.encoder
    return of_table, method_place(row.method), preset, values, row.stream


# Which records count, and which are wanted.


def current(records: Sequence[Record]) -> tuple[list[Record], list[str]]:
    """The runs made by this version and this code of their methods, and why others are left out.

    Runs of a user's own method with an earlier version of its script are left out, too.
    """
    counting = [one for one in records if one.revision == revision(one.settings.method)]
    left = counted(len(records) - len(counting), "run")
    reason = f"{left} by another version or with other code of the method: run it again"
    return counting, [reason] * (len(counting) < len(records))


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
    """The runs that the filters select; a clean stream counts for all OOD sets.

    Raises:
        SettingsError: no run matches; the message lists the available values.
    """
    if not records:
        raise SettingsError(
            "there are no kept runs to plot: "
            "run zsntta simulate, or name another file with --records"
        )
    fitting = list(records)
    for name, wanted in filters.items():
        values = [value_of(run, name) for run in fitting]
        present = {*values} - {None}
        if not present & {*wanted}:
            in_order = sorted(present, key=lambda value: (isinstance(value, str), value))
            there, asked = ", ".join(map(str, in_order)) or "none", ", ".join(map(str, wanted))
            raise SettingsError(f"no matching kept run has {name} {asked}: found {there}.")
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
            preset = "" if name == PRESET else row.settings[PRESET]
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
