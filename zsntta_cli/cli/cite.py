"""`zsntta cite`: BibTeX of what a table has: methods, data sets, encoders, the program."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from zsntta_cli.cli.line.command import say
from zsntta_cli.cli.line.options import StoreOptions, with_groups
from zsntta_cli.cli.line.output import form_of, put

Names = list[str] | None


@with_groups
def cite(
    *,
    method: Annotated[Names, typer.Option(help="Method of the table.")] = None,
    id_set: Annotated[Names, typer.Option("--id", help="ID set of the table.")] = None,
    ood_set: Annotated[Names, typer.Option("--ood", help="OOD set of the table.")] = None,
    encoder: Annotated[
        Names, typer.Option(help="Encoder of the table: open_clip's name, or a folder of features.")
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--from", help="File of exported runs, whose methods, sets and encoders are cited."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="File to write, ending in .bib.")] = None,
    store: StoreOptions,
) -> None:
    """Print BibTeX of methods, sets and encoders.

    These are the ones that options name, those of a file, or those of all kept runs.
    """
    form_of(output, {".bib": "bibtex"})
    from zsntta_cli.encoders.weights import encoder_cites
    from zsntta_cli.methods import check_method
    from zsntta_cli.report.citations import bibtex, citations, uncited

    for name in method or ():
        check_method(name)
    sets = [*(id_set or ()), *(ood_set or ())]
    methods, encoders = method or [], encoder or []
    if not (methods or sets or encoders):
        methods, sets, encoders = _named(_of_file(recorded) if recorded else _of_store(store))
    cited = {name: encoder_cites(name) for name in encoders}
    put(bibtex(citations(methods, sets, cited)), output)
    if unknown := uncited(methods, sets):
        say(f"note: no reference is known of {', '.join(unknown)}.", err=True)


class CitedRun(NamedTuple):
    """What a run has that may be cited."""

    method: str
    encoder: str
    id_set: str
    ood_set: str | None


def _of_store(store: StoreOptions) -> list[CitedRun]:
    with store.open() as records:
        return [CitedRun(r.method, r.encoder, r.id_set, r.ood_set) for r in records.summaries()]


def _of_file(path: Path) -> list[CitedRun]:
    from zsntta_cli.results.exchange import read_recorded

    runs = [recorded.settings for recorded in read_recorded(path)]
    return [CitedRun(r.method, r.encoder, r.id_set, r.ood_set) for r in runs]


def _named(runs: Sequence[CitedRun]) -> tuple[list[str], list[str], list[str]]:
    """The methods, the sets and the encoders of runs, each once."""
    columns = zip(*runs, strict=True) if runs else [()] * len(CitedRun._fields)
    methods, encoders, id_sets, ood_sets = (list(dict.fromkeys(column)) for column in columns)
    return methods, list(dict.fromkeys(name for name in id_sets + ood_sets if name)), encoders
