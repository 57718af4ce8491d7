"""`zsntta records`: list, export, import and remove kept results."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from zsntta_cli.cli.command import command, group, say
from zsntta_cli.cli.options import (
    Names,
    StoreOptions,
    WantedRuns,
    argument,
    option,
    stored_runs,
)
from zsntta_cli.cli.output import TableOutput, form_of, put
from zsntta_cli.errors import SettingsError, StoreError, counted, near, short

if TYPE_CHECKING:
    from zsntta_cli.results.store import RecordStore
    from zsntta_cli.simulation.record import Record

app = group("List, export, import and remove kept results.", lists=True)

_FORMS = {".jsonl": "jsonl", ".json": "json", ".csv": "csv"}
# What a list for people has of the columns of every CSV: by column, a few in each.
_CELLS = {
    "run": ("method", "preset", "settings"),
    "sets": ("encoder", "id_set", "ood_set"),
    "ratio": ("ratio",),
    "seed": ("seed",),
}
_METRICS = ("acc_h", "auroc")  # with four a line has more than 80 columns
_DIGITS = 8  # of a key, as it is shown
KEYS = argument(None, "First digits of the runs' keys. [all]", metavar="KEY")


def _chosen(wanted: WantedRuns, runs: "Mapping[str, Record]") -> "dict[str, Record]":
    """The wanted ones of some runs, by key; a note says which names none of the runs has."""
    from zsntta_cli.results.selection import value_of

    chosen = dict(runs)
    for name, values in wanted.filters(runs.values()).items():
        present = {value_of(record, name) for record in runs.values()} - {None}
        for value in dict.fromkeys(values) if name not in ("ratio", "seed") else ():
            if value not in present:
                what = f"{name} '{short(value)}'{near(value, sorted(present))}"
                say(f"note: no kept run has {what}.", err=True)
        chosen = {key: run for key, run in chosen.items() if value_of(run, name) in values}
    return chosen


@command(app, "list")
def list_runs(*, wanted: WantedRuns, listed: TableOutput, store: StoreOptions) -> None:
    """List kept runs, oldest first. Only csv and json have all columns.

    [bold]zsntta records list --method adand[/bold]
    """
    from zsntta_cli.report.sheet import Sheet
    from zsntta_cli.results.tidy import columns, run_rows

    with store.open() as records:
        chosen = _chosen(wanted, stored_runs(records))
    rows = [{**row, "key": key} for key, row in zip(chosen, run_rows(chosen.values()), strict=True)]
    # Settings are divided by blanks, where lines may break.
    names = [name for cell in _CELLS.values() for name in cell]
    texts = [{n: str("" if row[n] is None else row[n]).replace(";", " ") for n in names}
             for row in rows]  # fmt: skip
    several = texts[0].items() if len(rows) > 1 else ()
    same = {name: text for name, text in several if all(row[name] == text for row in texts)}
    cells = {head: [n for n in cell if n not in same] for head, cell in _CELLS.items()}
    cells = {head: cell for head, cell in cells.items() if cell}
    title = ", ".join(f"{name} {value}" for name, value in same.items() if value)
    sheet = Sheet(title, ("key", *cells), {"": _METRICS})
    for row, of_row in zip(rows, texts, strict=True):
        labels = (" ".join(filter(None, map(of_row.get, cell))) for cell in cells.values())
        values = {"": ["-" if row[n] is None else f"{row[n]:.4f}" for n in _METRICS]}
        sheet.add([row["key"][:_DIGITS], *labels], values)
    listed.put([sheet], rows, (*columns(), "key"))


@command(app)
def export(
    *,
    keys: Names = KEYS,
    wanted: WantedRuns,
    output: Path | None = option(None, "File to write."),
    form: Literal["jsonl", "json", "csv"] | None = option(
        None, "jsonl has everything that is kept. json and csv are the same as from simulate. "
        "[from the ending of --output, or jsonl]", "--format",
    ),
    store: StoreOptions,
) -> None:  # fmt: skip
    """Write kept runs as JSON Lines, or with one row per run.

    [bold]zsntta records export --method adand --output runs.jsonl[/bold]

    On another machine, `records import` and `report` read JSON Lines.
    """
    from zsntta_cli.report import table
    from zsntta_cli.results.exchange import to_line

    written = form_of(output, _FORMS, form, "jsonl")
    with store.open() as records:
        chosen = _keys(records, keys, wanted)
        readable = records.find(chosen)
    if strange := len(chosen) - len(readable):
        what = counted(strange, "run")
        say(
            f"note: left out: {what} that cannot be read, as with a method that is not loaded: "
            "zsntta --plugin FILE.py records export loads its script.",
            err=True,
        )
    runs = [readable[key] for key in chosen if key in readable]
    if written == "jsonl":
        put("".join(f"{to_line(record)}\n" for record in runs), output)
    else:
        put(table(runs, form=written), output)


@command(app, "import")
def import_(
    *,
    files: list[Path] = argument(..., "Files written by export or simulate."),
    store: StoreOptions,
) -> None:
    """Import other people's runs: all runs of a file, or none.

    [bold]zsntta records import runs.jsonl[/bold]

    Identical runs are kept once.
    """
    from zsntta_cli.results.exchange import read_records

    runs_by_file = {path: read_records(path) for path in files}
    with store.open(create=True) as records:
        for path, runs in runs_by_file.items():
            kept = {*records.keys()}
            new = {record.key: record for record in runs if record.key not in kept}
            records.add(new.values())
            say(f"{path}: {counted(len(runs), 'run')}, {len(runs) - len(new):,} already kept")


@command(app)
def remove(
    *,
    keys: Names = KEYS,
    wanted: WantedRuns,
    everything: bool = option(False, "Remove all runs.", "--all"),
    yes: bool = option(False, "Do not ask before removing live runs.", "--yes"),
    store: StoreOptions,
) -> None:
    """Remove kept runs.

    [bold]zsntta records remove 3f2a[/bold]

    It asks before it removes live runs, which take hours to repeat.
    """
    from zsntta_cli.methods import METHODS

    if not (keys or wanted.any or everything):
        raise SettingsError("specify which: KEY, --method, --id, --ood, --ratio …, or --all")
    with store.open() as records:
        unwanted = _keys(records, keys, wanted)
        runs = records.find(unwanted).values() if not yes else ()
        if seconds := [run.seconds for run in runs if METHODS[run.settings.method].live]:
            hours = f"{sum(seconds) / 3600:,.2g} hours of method time"
            live = f"{counted(len(seconds), 'live run')} of {hours}"
            if not sys.stdin.isatty():
                raise SettingsError(f"{live} would be removed: add --yes to remove them")
            if not typer.confirm(f"Remove {live}?", err=True):
                raise typer.Exit(1)
        records.remove(unwanted)
    say(f"removed {counted(len(unwanted), 'run')}")


def _keys(records: "RecordStore", beginnings: Names, wanted: WantedRuns) -> list[str]:
    """Keys of the runs that are wanted: all, or those that begin with some digits.

    Raises:
        StoreError: no key begins with them, or several do.
    """
    keys = list(_chosen(wanted, records.find(curves=False))) if wanted.any else records.keys()
    chosen = [] if beginnings else keys
    for digits in beginnings or ():
        meant = [key for key in keys if digits and key.startswith(digits.lower())]
        if len(meant) != 1:
            how = f"{len(meant):,} keys begin" if meant else "no key begins"
            raise StoreError(f"{how} with '{short(digits)}': zsntta records list shows all")
        chosen += meant
    return list(dict.fromkeys(chosen))
