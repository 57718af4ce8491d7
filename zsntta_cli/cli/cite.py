"""`zsntta cite`: BibTeX of what a table has: methods, data sets, encoders, the program."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import StoreOptions, option
from zsntta_cli.cli.output import form_of, put
from zsntta_cli.cli.values import names

if TYPE_CHECKING:
    pass

Names = list[str] | None


def cite(
    *,
    method: Annotated[Names, option(reader=names, help="Methods of the table.")] = None,
    id_set: Annotated[Names, option("--id", reader=names, help="ID sets of the table.")] = None,
    ood_set: Annotated[Names, option("--ood", reader=names, help="OOD sets of the table.")] = None,
    encoder: Annotated[
        Names, option(help="Encoder of the table: open_clip's name, or a folder of features.")
    ] = None,
    recorded: Annotated[
        Path | None,
        option("--from", help="File of exported runs, whose methods, sets and encoders are cited."),
    ] = None,
    output: Annotated[Path | None, option(help="File to write, ending in .bib.")] = None,
    store: StoreOptions,
) -> None:
    """Print BibTeX of methods, sets and encoders.

    [bold]zsntta cite --method adand,tda --output related.bib[/bold]

    These are the ones that options name, those of a file, or those of all kept runs.
    """
    form_of(output, {".bib": "bibtex"})
    from zsntta_cli.methods import check_method
    from zsntta_cli.report.citations import bibtex

    for name in method or ():
        check_method(name)
    sets = [*(id_set or ()), *(ood_set or ())]
    methods, encoders = method or [], encoder or []
    if not (methods or sets or encoders):
        runs = [run.settings for run in store.runs([recorded] if recorded else None)]
        methods, encoders = [run.method for run in runs], [run.encoder for run in runs]
        sets = [*(run.id_set for run in runs), *(run.ood_set for run in runs if run.ood_set)]
    methods, sets = list(dict.fromkeys(methods)), list(dict.fromkeys(sets))
    text, unknown = bibtex(methods, sets, encoders)
    put(text, output)
    if unknown:
        say(f"note: no reference is known of {', '.join(unknown)}.", err=True)
