"""`zsntta records`: results that are kept: list, show, export, import, remove."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zsntta_cli.cli.command import Command, group, misused, say
from zsntta_cli.cli.options import FeaturesDir, Records
from zsntta_cli.cli.output import form_of, put
from zsntta_cli.results import store_path
from zsntta_cli.settings import FEATURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zsntta_cli.results.store import RecordStore

app = group("Results that are kept: list, show, export, import, remove.", lists=True)

Method = Annotated[str | None, typer.Option(help="Those of a method.")]
IdSet = Annotated[str | None, typer.Option("--id", help="Those on an ID set.")]
OodSet = Annotated[str | None, typer.Option("--ood", help="Those against an OOD set.")]
Encoder = Annotated[str | None, typer.Option(help="Those of an encoder's features, its folder.")]
Keys = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY]...", help="First digits of keys. [all]")
]


@app.command("list", cls=Command)
def list_runs(
    method: Method = None,
    id_set: IdSet = None,
    ood_set: OodSet = None,
    encoder: Encoder = None,
    records: Records = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """A line a kept run, in the order in which they were made."""
    from zsntta_cli.report.runs import run_lines

    with _open(records, features_dir) as store:
        runs = store.summaries(**_equal(method, id_set, ood_set, encoder))
    typer.echo("\n".join(run_lines(runs)))


@app.command(cls=Command)
def show(
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="First digits of a key.")],
    records: Records = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Everything about some runs: settings, digests, counts, time, versions."""
    from zsntta_cli.progress import console
    from zsntta_cli.report.runs import DIGITS, run_card

    with _open(records, features_dir) as store:
        wanted = _keys(store, keys)
        runs = store.find(wanted)
    for key in wanted:
        if key in runs:
            console().print(run_card(runs[key]))
        else:
            say(f"{key[:DIGITS]} is of a method or a setting that is not known here.", err=True)


@app.command(cls=Command)
def export(
    keys: Keys = None,
    method: Method = None,
    id_set: IdSet = None,
    ood_set: OodSet = None,
    encoder: Encoder = None,
    output: Annotated[Path | None, typer.Option(help="Write to this file, whole or not.")] = None,
    form: Annotated[
        Literal["jsonl", "json"] | None,
        typer.Option(
            "--format",
            help="jsonl: all that is kept; json: what simulate gives. "
            "[by the output's ending, or jsonl]",
        ),
    ] = None,
    records: Records = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Kept runs as JSON Lines, for `records import` and `report` elsewhere."""
    from zsntta_cli.results.exchange import export_text

    written = form_of(output, {".jsonl": "jsonl", ".json": "json"}, form, "jsonl")
    with _open(records, features_dir) as store:
        wanted = _keys(store, keys, **_equal(method, id_set, ood_set, encoder))
        runs = store.find(wanted)
    if strange := len(wanted) - len(runs):
        say(f"note: {strange:,} runs of methods that are not known here are left out.", err=True)
    put(export_text([runs[key] for key in wanted if key in runs], written), output)


@app.command("import", cls=Command)
def import_(
    files: Annotated[list[Path], typer.Argument(help="That export, or simulate, wrote.")],
    records: Records = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Merge the runs of other people: all of a file or none; equal ones are one."""
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.results.exchange import read_lines
    from zsntta_cli.results.store import RecordStore

    note = ConsoleReporter().note
    runs_by_file = {path: read_lines(path, note) for path in files}
    with RecordStore(store_path(features_dir, records), create=True) as store:
        for path, runs in runs_by_file.items():
            there = store.add_new(runs)
            say(f"{path}: {len(runs):,} runs, {there:,} of them were there")


@app.command(cls=Command)
def remove(
    keys: Keys = None,
    method: Method = None,
    id_set: IdSet = None,
    ood_set: OodSet = None,
    encoder: Encoder = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    records: Records = None,
    features_dir: FeaturesDir = FEATURES,
) -> None:
    """Forget some runs."""
    equal = _equal(method, id_set, ood_set, encoder)
    if not (keys or equal or everything):
        raise misused("say which: KEY, --method, --id, --ood, --encoder, or --all")
    with _open(records, features_dir) as store:
        unwanted = _keys(store, keys, **equal)
        store.remove(unwanted)
    say(f"removed {len(unwanted):,} runs")


def _equal(*values: str | None) -> dict[str, Any]:
    """The values wanted of a list's columns."""
    names = ("method", "id_set", "ood_set", "encoder")
    return {k: v for k, v in zip(names, values, strict=True) if v is not None}


def _keys(store: "RecordStore", digits: "Sequence[str] | None", **equal: Any) -> list[str]:
    """Keys of the runs with some values, of those that begin with some digits."""
    from zsntta_cli.results.store import keys_that_begin

    keys = [run.key for run in store.summaries(**equal)] if equal else store.keys()
    return keys_that_begin(keys, digits or ())


def _open(records: Path | None, features_dir: Path) -> "RecordStore":
    from zsntta_cli.results.store import RecordStore

    return RecordStore(store_path(features_dir, records))
