"""`zsntta cite`: BibTeX of what a table has: methods, data sets, encoders, the program."""

from pathlib import Path

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import Names, StoreOptions, option
from zsntta_cli.cli.output import form_of, put
from zsntta_cli.cli.values import names


def cite(
    *,
    method: Names = option(None, "Methods of the table.", reader=names),
    id_set: Names = option(None, "ID sets of the table.", "--id", reader=names),
    ood_set: Names = option(None, "OOD sets of the table.", "--ood", reader=names),
    encoder: Names = option(
        None, "Encoder of the table: open_clip's name, or a folder of features."
    ),
    recorded: Path | None = option(
        None, "File of exported runs, whose methods, sets and encoders are cited.", "--from"
    ),
    output: Path | None = option(None, "File to write, ending in .bib."),
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
    methods, sets, encoders = method or [], [*(id_set or ()), *(ood_set or ())], encoder or []
    if not (methods or sets or encoders):
        runs = [run.settings for run in store.runs([recorded] if recorded else None)]
        methods, encoders = [run.method for run in runs], [run.encoder for run in runs]
        sets = [*(run.id_set for run in runs), *(run.ood_set for run in runs if run.ood_set)]
    methods, sets = list(dict.fromkeys(methods)), list(dict.fromkeys(sets))
    text, unknown = bibtex(methods, sets, encoders)
    put(text, output)
    if unknown:
        say(f"note: no reference is known of {', '.join(unknown)}.", err=True)
