"""`zsntta cite`: BibTeX for the methods, data sets and encoders of a table, and the program."""

from pathlib import Path

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import Names, StoreOptions, option
from zsntta_cli.cli.output import form_of, put
from zsntta_cli.cli.values import names


def cite(
    *,
    method: Names = option(None, "Methods to cite.", reader=names),
    id_set: Names = option(None, "ID sets to cite.", "--id", reader=names),
    ood_set: Names = option(None, "OOD sets to cite.", "--ood", reader=names),
    encoder: Names = option(
        None, "Encoder to cite: name of an open_clip model, or of a folder of features."
    ),
    recorded: Path | None = option(
        None, "File of exported runs whose methods, sets and encoders to cite.", "--from"
    ),
    output: Path | None = option(None, "File to write, ending in .bib."),
    store: StoreOptions,
) -> None:
    """Print BibTeX for methods, sets and encoders.

    [bold]zsntta cite --method adand,tda --output related.bib[/bold]

    If no option names any, those of all kept runs are cited.
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
        say(f"note: no reference is known for {', '.join(unknown)}.", err=True)
