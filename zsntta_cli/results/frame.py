"""The frame of results: runs in rows and tables, by their settings.

All views take their numbers from here, so that they agree. The rules:

- A value is the mean over seeds of the runs of one row on one OOD set. A clean stream counts for
  every OOD set. An average over sets needs all sets of its table (results/compare.py).
- A stopped run is shown but enters no mean, and its value is marked as incomplete.
- Rows are ranked only beside rows that saw the same samples. One that sees the stream before it
  decides, or is given the truth, is never the best.
- If a run has two records, the later one counts. The order of the runs does not matter.
"""

import functools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from zsntta_cli import datasets
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.errors import SettingsError, counted
from zsntta_cli.methods import METHODS, method_place
from zsntta_cli.results.compare import SEEDS, Value, average, fold
from zsntta_cli.settings import Ratio, StreamSettings, ood_share
from zsntta_cli.settings.prompts import prompt_label
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import PRESETS, RunSettings, preset_of, revision
from zsntta_cli.simulation.sources import ITEMS

PRESET = "preset"  # what is told by its name, in place of the settings that it has
FEATURES = "features"  # which of several features of the same names
FEATURES_OF = "features of "  # before the name of features that belong to none of a run's sets
# With these a stream has other samples.
_KIND = ("order", "ood_fill", "ood_items", "rounded_odds", "swapped_names", "limit")
OF_STREAM = ("encoder", "ratio", *_KIND, FEATURES)
CLEAN = ""  # in place of an OOD set
_NAMES = {"ratio": "noise", "fixed": "threshold", "noise": "injected noise"}  # of settings, shown

Filters = Mapping[str, Collection[Any]]  # the wanted values by name, as `value_of` takes it
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


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

    @property
    def records(self) -> list[Record]:
        """All of its runs, set by set, by seed."""
        return [run for by_seed in self.runs.values() for run in by_seed.values()]

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
        """The average of a metric over OOD sets; `spread` is as `compare.average` takes it."""
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
        return [*filter(names.__contains__, dict.fromkeys(chain(*(r.settings for r in self.rows))))]

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
    ordered = sorted(counting.values(), key=lambda record: _run_place(record.settings))
    for record, features in zip(ordered, _numbered(ordered), strict=True):
        settings, run = all_settings(record), record.settings
        seed = settings.pop("seed")
        stream = ResultStream(run.encoder, run.id_set, features, _kind(run.stream))
        key = stream, run.method, tuple(settings.items())
        if key not in rows:
            settings[FEATURES] = ".".join(str(n + 1) for n in features) if any(features) else ""
            rows[key] = ResultRow(stream, run.method, run.stream.ratio, settings)
        rows[key].runs.setdefault(run.ood_set or CLEAN, {})[seed] = record
    found = []
    of_tables = grouped(sorted(rows.values(), key=_row_place), lambda row: row.stream[:2])
    for (encoder, id_set), of_table in of_tables.items():
        ood_sets = {*chain(*(row.runs for row in of_table))}
        columns = sorted(ood_sets - {CLEAN}, key=functools.partial(_ood_place, id_set))
        found.append(ResultTable(encoder, id_set, columns or [CLEAN], of_table))
    return found


def _numbered(records: Iterable[Record]) -> list[tuple[int, ...]]:
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
        numbers |= {(name, digest): number for number, (digest, _) in enumerate(by_use)}
    return [tuple(map(numbers.__getitem__, of_run.items())) for of_run in read]


def _kind(stream: StreamSettings) -> tuple[tuple[str, Any], ...]:
    """The settings that make another stream; injection does not change the test samples."""
    share = ood_share(stream.ratio)  # nan of a natural ratio
    odds = share / (1 - share)
    changed = {n: v for n in _KIND if (v := getattr(stream, n)) != getattr(StreamSettings, n)}
    if odds != odds or round(odds, 2) == odds:
        changed.pop("rounded_odds", None)
    if not share > 0:
        changed.pop("ood_fill", None)
    return tuple(changed.items())


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


def _run_place(run: RunSettings) -> tuple[Any, ...]:
    return *_ood_place(run.id_set, run.ood_set or CLEAN), run.stream.seed


def _row_place(row: ResultRow) -> tuple[Any, ...]:
    """The place of a row: by ID set and encoder, by method, preset, then by its settings."""
    values = [
        (isinstance(value, str), value if isinstance(value, int | float) else -1, str(value))
        for value in row.settings.values()
    ]
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
        if present.isdisjoint(wanted):
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
