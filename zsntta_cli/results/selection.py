"""Which records count, and which are wanted."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from zsntta_cli.errors import SettingsError, counted
from zsntta_cli.results.frame import all_settings, shown
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import revision

Filters = Mapping[str, Collection[Any]]  # the wanted values by name, as `value_of` takes it


def current(records: Sequence[Record]) -> tuple[list[Record], list[str]]:
    """The runs made by this version and this code of their methods, and why others are left out.

    Runs of a user's own method with an earlier version of its script are left out, too.
    """
    counting = [r for r in records if r.revision == revision(r.settings.method)]
    runs = counted(len(records) - len(counting), "run")
    reason = f"{runs} by another version or with other code of the method: run it again"
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
            choices, asked = ", ".join(map(str, in_order)) or "none", ", ".join(map(str, wanted))
            raise SettingsError(f"no matching kept run has {name} {asked}: found {choices}.")
        fits = {*wanted, None} if name == "ood" else {*wanted}
        fitting = [run for run, value in zip(fitting, values, strict=True) if value in fits]
    return fitting
