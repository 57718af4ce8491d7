"""Lists of kept runs: which settings vary, which runs are wanted, in which order.

Only the values under JSON paths are read from the records, without NumPy: ten thousand runs take
0.2 s.
"""

import functools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS, method_place
from zsntta_cli.results.frame import PRESET, ResultRow, ResultStream, set_place, shown, varying
from zsntta_cli.results.selection import Filters
from zsntta_cli.results.store import RecordStore, RunSummary
from zsntta_cli.settings.options import check_choice
from zsntta_cli.simulation.recorded import run_from_record
from zsntta_cli.simulation.runs import preset_of, setting_names

COLUMNS = {  # by the name that is typed: the field of a line
    "key": "key", "method": "method", "id": "id_set", "ood": "ood_set", "encoder": "encoder",
    "ratio": "ratio", "seed": "seed", "seconds": "seconds", "made": "created",
}  # fmt: skip
_OWN_COLUMNS = ("ratio", "seed")  # settings that every list shows


def settings_of(run: RunSummary) -> Mapping[str, Any]:
    """All settings of a listed run, flat, with its preset and its prompt."""
    return _settings(run.method, run.prompt, run.stream, run.threshold, run.options)


# Of ten thousand runs a few hundred differ in more than the sets.
@functools.lru_cache(maxsize=10_000)
def _settings(
    method: str, prompt: str, stream: str, threshold: str | None, options: str | None
) -> Mapping[str, Any]:
    groups = {"stream": stream, "threshold": threshold, "options": options}
    plain = {name: json.loads(text or "{}") for name, text in groups.items()}
    names = {"method": method, "encoder": "x", "id_set": "x", "ood_set": None, "prompt": "{}"}
    try:
        run = run_from_record({**names, **plain})
    except SettingsError:  # what only a stranger can have written
        flat = {name: value for group in plain.values() for name, value in group.items()}
        plain_values = {name: _hashable(value) for name, value in flat.items()}
        return {PRESET: "-", **plain_values, "prompt": prompt}
    return {PRESET: preset_of(run), **run.flat(), "prompt": prompt}


def _hashable(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value)


def varying_settings(runs: Iterable[RunSummary]) -> list[str]:
    """The settings in which runs of a method on an ID set differ, without ratio and seed."""
    unlike = {(r.method, r.id_set, r.prompt, r.stream, r.threshold, r.options): r for r in runs}
    rows = {}
    for run in unlike.values():
        settings = {k: v for k, v in settings_of(run).items() if k not in _OWN_COLUMNS}
        stream = ResultStream("", run.id_set, (0, 0, 0), ())
        row = ResultRow[Any](stream, run.method, settings, {})
        rows[run.id_set, run.method, tuple(settings.items())] = row
    by_method = varying(rows.values()).values()
    return list(dict.fromkeys(name for names in by_method for name in names))


def setting_text(run: RunSummary, name: str) -> str:
    """A setting's value as lists show it; a dash if its method has no such setting."""
    settings = settings_of(run)
    return shown(name, settings[name]) if name in settings else "-"


def chosen_runs(runs: Iterable[RunSummary], filters: Filters) -> list[RunSummary]:
    """The runs that the filters choose."""
    wanted = {
        "method": filters.methods, "id_set": filters.id_sets, "ood_set": filters.ood_sets,
        "ratio": filters.ratios, "seed": filters.seeds, "encoder": filters.encoders,
    }  # fmt: skip
    allowed = {name: set(values) for name, values in wanted.items() if values}
    return [
        run
        for run in runs
        if all(getattr(run, name) in values for name, values in allowed.items())
        and all(setting_text(run, name) in texts for name, texts in filters.settings.items())
    ]


def sort_values(store: RecordStore, runs: Iterable[RunSummary], by: str) -> dict[str, Any]:
    """The values to sort runs by, by key: a column, a metric or a setting.

    Raises:
        UnknownName: no column, metric or setting has that name.
    """
    from zsntta_cli.simulation.metrics import METRICS

    if by not in {PRESET, "prompt", *setting_names()}:
        check_choice("sort", by, (*COLUMNS, *METRICS))
    if by in COLUMNS:
        return {run.key: getattr(run, COLUMNS[by]) for run in runs}
    if by in METRICS:
        values = store.values(f"$.{METRICS[by].group}.{by}")
        return {key: v for key, v in values.items() if isinstance(v, int | float)}
    return {run.key: settings_of(run).get(by) for run in runs}


def sorted_runs(
    runs: Sequence[RunSummary], by: str, values: Mapping[str, Any], reverse: bool = False
) -> list[RunSummary]:
    """Runs in the order of their values, the best first for a metric; those without one last."""
    from zsntta_cli.simulation.metrics import METRICS

    descending = by in METRICS and not METRICS[by].lower_is_better
    present = [run for run in runs if values.get(run.key) is not None]
    last = [run for run in runs if values.get(run.key) is None]
    present.sort(key=lambda run: _place(by, values[run.key]), reverse=descending != reverse)
    return present + last


def _place(by: str, value: Any) -> tuple[Any, ...]:
    """A value's sort key: sets and methods as in all tables, numbers before texts."""
    if by == "method":
        return method_place(value)
    return set_place(value) if by in ("id", "ood") else (isinstance(value, str), value)


def hours_of_live_runs(runs: Iterable[RunSummary]) -> tuple[int, float]:
    """How many of the runs are live, and how many hours their methods took."""
    live = [run for run in runs if run.method in METHODS and METHODS[run.method].live]
    return len(live), math.fsum(run.seconds for run in live) / 3600
