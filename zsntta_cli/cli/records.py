"""`zsntta records`: results that are kept: list, export, import, remove."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zsntta_cli.cli.command import command, group, say
from zsntta_cli.cli.options import StoreOptions, WantedRuns, argument, option, stored_runs
from zsntta_cli.cli.output import ListForm, ListOutput, form_of, put, put_list
from zsntta_cli.errors import SettingsError, counted, near, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
Keys = Annotated[
    list[str] | None,
    argument(metavar="KEY", help="First digits of the runs' keys. [all]"),
]


def _of(wanted: WantedRuns, runs: "Mapping[str, Record]") -> "dict[str, Record]":
    """Those of some runs, by key, that are wanted; a note says which names none of them has."""
    from zsntta_cli.results.frame import value_of

    found = dict(runs)
    for name, values in wanted.filters(runs.values()).items():
        there = {value_of(record, name) for record in runs.values()} - {None}
        for one in dict.fromkeys(values) if name not in ("ratio", "seed") else ():
            if one not in there:
                what = f"{name} '{short(one)}'{near(one, sorted(there))}"
                say(f"note: no kept run has {what}.", err=True)
        found = {key: run for key, run in found.items() if value_of(run, name) in values}
    return found


@command(app, "list")
def list_runs(
    *,
    wanted: WantedRuns,
    form: ListForm = None,
    output: ListOutput = None,
    store: StoreOptions,
) -> None:
    """List kept runs in the order in which they were kept; csv and json have all columns.

    [bold]zsntta records list --method adand[/bold]
    """
    from zsntta_cli.report.sheet import Sheet
    from zsntta_cli.results.tidy import columns, run_rows

    with store.open() as records:
        runs = stored_runs(records)
    chosen = _of(wanted, runs)
    rows = [{**row, "key": key} for key, row in zip(chosen, run_rows(chosen.values()), strict=True)]
    told = [{name: _told(row[name]) for cell in _CELLS.values() for name in cell} for row in rows]
    several = told[0].items() if len(rows) > 1 else ()
    same = {name: text for name, text in several if all(row[name] == text for row in told)}
    cells = {head: [n for n in cell if n not in same] for head, cell in _CELLS.items()}
    cells = {head: cell for head, cell in cells.items() if cell}
    title = ", ".join(f"{name} {value}" for name, value in same.items() if value)
    sheet = Sheet(title, ("key", *cells), {"": _METRICS})
    for row, texts in zip(rows, told, strict=True):
        labels = (" ".join(filter(None, map(texts.get, cell))) for cell in cells.values())
        values = {"": ["-" if row[n] is None else f"{row[n]:.4f}" for n in _METRICS]}
        sheet.add([row["key"][:_DIGITS], *labels], values)
    put_list([sheet], rows, form, output, (*columns(), "key"))


def _told(value: Any) -> str:
    """A value in a list for people; settings are divided by blanks, where lines may break."""
    return "" if value is None else str(value).replace(";", " ")


@command(app)
def export(
    *,
    keys: Keys = None,
    wanted: WantedRuns,
    output: Annotated[Path | None, option(help="File to write.")] = None,
    form: Annotated[
        Literal["jsonl", "json", "csv"] | None,
        option(
            "--format",
            help="jsonl: all that is kept; json, csv: what simulate gives. [by the output's "
            "ending, or jsonl]",
        ),
    ] = None,
    store: StoreOptions,
) -> None:
    """Write kept runs as JSON Lines, or one row per run.

    [bold]zsntta records export --method adand --output runs.jsonl[/bold]

    `records import` and `report` read JSON Lines elsewhere.
    """
    from zsntta_cli.report import table
    from zsntta_cli.results.exchange import to_line

    written = form_of(output, _FORMS, form, "jsonl")
    with store.open() as records:
        kept_runs = _found(records, _keys(records, keys, wanted))
    if written == "jsonl":
        put("".join(f"{to_line(record)}\n" for record in kept_runs), output)
    else:
        put(table(kept_runs, form=written), output)


@command(app, "import")
def import_(
    *,
    files: Annotated[list[Path], argument(help="Files that export or simulate wrote.")],
    store: StoreOptions,
) -> None:
    """Merge the runs of other people: all of a file or none.

    [bold]zsntta records import runs.jsonl[/bold]

    Runs that are equal are one.
    """
    from zsntta_cli.results.exchange import read_records

    runs_by_file = {path: read_records(path) for path in files}
    with store.open(create=True) as records:
        for path, runs in runs_by_file.items():
            there = {*records.keys()}
            new = {record.key: record for record in runs if record.key not in there}
            records.add(new.values())
            say(f"{path}: {counted(len(runs), 'run')}, {len(runs) - len(new):,} there before")


@command(app)
def remove(
    *,
    keys: Keys = None,
    wanted: WantedRuns,
    everything: Annotated[bool, option("--all", help="Remove all runs.")] = False,
    yes: Annotated[
        bool,
        option("--yes", help="Do not ask before live runs are removed, which took hours."),
    ] = False,
    store: StoreOptions,
) -> None:
    """Forget some runs.

    [bold]zsntta records remove 3f2a[/bold]

    It asks before live ones are forgotten, which are expensive.
    """
    if not (keys or wanted.any or everything):
        raise SettingsError("say which: KEY, --method, --id, --ood, --ratio …, or --all")
    with store.open() as records:
        unwanted = set(_keys(records, keys, wanted))
        if not yes:
            _ask(records.find(list(unwanted)).values())
        records.remove(list(unwanted))
    say(f"removed {counted(len(unwanted), 'run')}")


def _ask(runs: "Iterable[Record]") -> None:
    """Ask whether live runs are to be removed.

    Raises:
        SettingsError: nobody is there to answer.
        Exit: they are not.
    """
    from zsntta_cli.methods import METHODS

    seconds = [r.seconds for r in runs if METHODS[r.settings.method].live]
    if not seconds:
        return
    live = f"{counted(len(seconds), 'live run')} of {sum(seconds) / 3600:,.2g} hours of method time"
    if not _is_answered():
        raise SettingsError(f"{live} would be removed: --yes removes them")
    if not typer.confirm(f"Remove {live}?", err=True):
        raise typer.Exit(1)


def _is_answered() -> bool:
    """Whether somebody sits at a terminal."""
    return sys.stdin.isatty()


def _found(records: "RecordStore", keys: "Sequence[str]") -> "list[Record]":
    """The runs of some keys that can be read; a note says how many cannot."""
    runs = records.find(keys)
    if strange := len(keys) - len(runs):
        what = counted(strange, "run")
        say(f"note: left out: {what} that this version cannot read.", err=True)
    return [runs[key] for key in keys if key in runs]


def _keys(records: "RecordStore", digits: "Sequence[str] | None", wanted: WantedRuns) -> list[str]:
    """Keys of the runs that are wanted, of those that begin with some digits."""
    from zsntta_cli.results.store import keys_that_begin

    keys = list(_of(wanted, records.find(curves=False))) if wanted.any else records.keys()
    return keys_that_begin(keys, digits or ())
