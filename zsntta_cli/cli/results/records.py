"""`zsntta records`: results that are kept: list, show, export, import, remove."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from zsntta_cli.cli.command import Command, group, misused, say
from zsntta_cli.cli.options import StoreOptions, with_groups
from zsntta_cli.cli.output import command_line, form_of, put
from zsntta_cli.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zsntta_cli.results.store import RecordStore

app = group("Results that are kept: list, show, export, import, remove.", lists=True)

_FORMS = {".jsonl": "jsonl", ".json": "json", ".csv": "csv"}
Keys = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY]...", help="First digits of keys. [all]")
]


@dataclass(frozen=True)
class Columns:
    """What runs are chosen by: the values wanted in a list's columns."""

    method: Annotated[str | None, typer.Option(help="Those of a method.")] = None
    id_set: Annotated[str | None, typer.Option("--id", help="Those on an ID set.")] = None
    ood_set: Annotated[str | None, typer.Option("--ood", help="Those against an OOD set.")] = None
    encoder: Annotated[
        str | None, typer.Option(help="Those of an encoder's features, its folder.")
    ] = None

    def values(self) -> dict[str, str]:
        """The values that are named."""
        return {name: value for name, value in vars(self).items() if value is not None}


@app.command("list", cls=Command)
@with_groups
def list_runs(
    *,
    wanted: Columns,
    store: StoreOptions,
) -> None:
    """A line a kept run, in the order in which they were made."""
    from zsntta_cli.report.runs import run_lines

    with store.open() as records:
        runs = records.summaries(**wanted.values())
    typer.echo("\n".join(run_lines(runs)))


@app.command(cls=Command)
@with_groups
def show(
    *,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="First digits of a key.")],
    store: StoreOptions,
) -> None:
    """Everything about some runs: settings, digests, counts, time, versions."""
    from zsntta_cli.progress import console
    from zsntta_cli.report.runs import DIGITS, run_card

    with store.open() as records:
        whole_keys = _keys(records, keys, Columns())
        runs = records.find(whole_keys)
    for key in whole_keys:
        if key in runs:
            console().print(run_card(runs[key]))
        else:
            say(f"{key[:DIGITS]} is no run that this version can read.", err=True)


@app.command(cls=Command)
@with_groups
def export(
    *,
    keys: Keys = None,
    wanted: Columns,
    output: Annotated[Path | None, typer.Option(help="Write to this file, whole or not.")] = None,
    form: Annotated[
        Literal["jsonl", "json", "csv"] | None,
        typer.Option(
            "--format",
            help="jsonl: all that is kept; json, csv: what simulate gives. "
            "[by the output's ending, or jsonl]",
        ),
    ] = None,
    store: StoreOptions,
) -> None:
    """Kept runs as JSON Lines, for `records import` and `report` elsewhere; or a row a run."""
    from zsntta_cli.report import table
    from zsntta_cli.results.exchange import export_text

    written = form_of(output, _FORMS, form, "jsonl")
    with store.open() as records:
        whole_keys = _keys(records, keys, wanted)
        runs = records.find(whole_keys)
    if strange := len(whole_keys) - len(runs):
        say(f"note: {strange:,} runs of methods that are not known here are left out.", err=True)
    kept_runs = [runs[key] for key in whole_keys if key in runs]
    if written == "csv":
        put(table([kept.record for kept in kept_runs], form="csv"), output)
    else:
        put(export_text(kept_runs, written), output)


@app.command(cls=Command)
@with_groups
def bundle(
    *,
    keys: Keys = None,
    wanted: Columns,
    output: Annotated[Path, typer.Option(help="Write to this .zip, whole or not.")],
    store: StoreOptions,
) -> None:
    """Write kept runs and what it takes to repeat them into one file, for `zsntta replay`.

    It holds the records, which features they saw and how to make these, the sources of methods of
    your own, versions, commands, and tables for people.
    """
    from zsntta_cli.cli.hints import making_again
    from zsntta_cli.report.bundled import bundle_of, origins_of, without_source
    from zsntta_cli.results.bundle import write_bundle

    form_of(output, {".zip": "zip"})
    with store.open() as records:
        whole_keys = _keys(records, keys, wanted)
        found = records.find(whole_keys)
    runs = [found[key] for key in whole_keys if key in found]
    if not runs:
        raise SettingsError(f"no run in {store.path} is wanted, so there is nothing to bundle.")
    makings = [making_again(folder, sets, {}) for folder, sets in origins_of(runs).items()]
    contents = bundle_of(runs, [line for lines in makings for line in lines], command_line())
    if lacking := without_source(runs, contents.plugins):
        names = ", ".join(lacking)
        say(f"note: the source of {names} is not in it: add --plugin FILE.py in front.", err=True)
    write_bundle(output, contents)
    say(", ".join([f"{output}: {len(runs):,} records", *contents.plugins]))


@app.command("import", cls=Command)
@with_groups
def import_(
    *,
    files: Annotated[list[Path], typer.Argument(help="That export, or simulate, wrote.")],
    store: StoreOptions,
) -> None:
    """Merge the runs of other people: all of a file or none; equal ones are one."""
    from zsntta_cli.results.exchange import read_lines

    runs_by_file = {path: read_lines(path) for path in files}
    with store.open(create=True) as records:
        for path, runs in runs_by_file.items():
            there = records.add_new(runs)
            say(f"{path}: {len(runs):,} runs, {there:,} of them were there")


@app.command(cls=Command)
@with_groups
def remove(
    *,
    keys: Keys = None,
    wanted: Columns,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    store: StoreOptions,
) -> None:
    """Forget some runs."""
    if not (keys or wanted.values() or everything):
        raise misused("say which: KEY, --method, --id, --ood, --encoder, or --all")
    with store.open() as records:
        unwanted = _keys(records, keys, wanted)
        records.remove(unwanted)
    say(f"removed {len(unwanted):,} runs")


def _keys(records: "RecordStore", digits: "Sequence[str] | None", wanted: Columns) -> list[str]:
    """Keys of the runs with some values, of those that begin with some digits."""
    from zsntta_cli.results.store import keys_that_begin

    values = wanted.values()
    keys = [run.key for run in records.summaries(**values)] if values else records.keys()
    return keys_that_begin(keys, digits or ())
