"""What kept results become: `zsntta report`, a page; `plot`, a figure; `cite`, references."""

from pathlib import Path

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import Names, StoreOptions, WantedRuns, argument, option
from zsntta_cli.cli.output import PAGES, form_of, put, put_figure
from zsntta_cli.cli.values import names
from zsntta_cli.errors import SettingsError, counted
from zsntta_cli.report.page import TITLE

_STDOUT = Path("-")
KINDS = {  # those of report.figures, which --help is not to import
    "ratio": "Acc_H, or any metric, against the noise ratio",
    "means": "mean Acc_S, Acc_N and Acc_H over ID-OOD pairs",
    "ranks": "share of ID-OOD pairs on which each method has each rank or a better one",
    "fixed": "accuracies at fixed thresholds and at the adaptive one",
    "scores": "histograms of the scores of ID and OOD samples, with the threshold",
    "difference": "each sample's score after minus before adaptation (live methods)",
    "gradients": "gradient norms of clean and noisy samples (live methods)",
}
_WIDTHS = {"column": 3.3, "page": 6.9}  # inches


def report(
    *,
    records: list[Path] | None = argument(
        None, "Exported records (JSON Lines) or stores. [those in --records]"
    ),
    store: StoreOptions,
    wanted: WantedRuns,
    output: Path = option(Path("report.html"), "File to write, or '-' for stdout."),
    title: str = option(TITLE, "Title of the page."),
) -> None:
    """Write kept results to an HTML page.

    [bold]zsntta report --output report.html[/bold]

    The page has tables, paired tests and figures, and loads nothing from elsewhere. A table shows
    the settings that most runs share. Rows with other settings are collapsed below it.
    """
    from zsntta_cli.report.page.page import page

    file = output if output != _STDOUT else None
    form_of(file, PAGES, default="html")
    kept = store.runs(records, curves=True)
    drawn = page(kept, title, wanted.filters(kept) if wanted.any else None)
    for words in drawn.left_out:
        say(f"note: left out: {words}.", err=True)
    put(drawn.html, file)
    if file:
        runs, rows = counted(drawn.runs, "run"), counted(drawn.rows, "row")
        say(f"{file}: {runs} in {rows}, {len(drawn.html.encode()) / 1000:,.0f} kB")


def plot(
    *,
    kind: str | None = argument(None, f"Kind: {', '.join(KINDS)}. [a list of what they show]"),
    files: list[Path] | None = argument(
        None, "Files of exported results. [those in --records]", metavar="RECORDS.jsonl"
    ),
    store: StoreOptions,
    wanted: WantedRuns,
    metric: str | None = option(
        None, "Metric for ratio, ranks and means, such as auroc. [acc_h; for means, all three]"
    ),
    width: str = option(
        "column", "Width: column (3.3 inches), page (6.9 inches), or 2 to 20 inches, such as 5."
    ),
    output: Path = option(
        Path("figure.pdf"), "File to write: .pdf, .svg, .png, or .csv for the numbers."
    ),
) -> None:
    """Draw a figure of kept results as PDF, SVG, PNG or CSV.

    [bold]zsntta plot ratio --method adand,cull --output ratio.pdf[/bold]

    The CSV has the numbers in the figure. Notes on the figure are printed and also written beside
    it (figure.caption.txt).

    Figures of one ratio show 0.5 unless --ratio names another, and adaptive thresholds unless
    --setting fixed=… names a fixed one. Seeds are shown as mean ± standard deviation. Histograms
    and gradients show one seed.
    """
    from zsntta_cli.report import figures
    from zsntta_cli.report.forms import FIGURE_ENDINGS
    from zsntta_cli.settings.options import check_choice

    if kind is None:
        for name, what in KINDS.items():
            say(f"zsntta plot {name:10}  {what}")
        return
    check_choice("kind", kind, tuple(KINDS))
    form_of(output, FIGURE_ENDINGS)
    try:
        inches = _WIDTHS[width] if width in _WIDTHS else float(width)
    except ValueError:
        inches = 0.0
    if not 2 <= inches <= 20:
        raise SettingsError(f"--width is '{width}', must be column, page, or inches from 2 to 20.")
    runs = store.runs(files, curves=True)
    put_figure(figures.plot(runs, kind, wanted.filters(runs), metric), inches, output)


def cite(
    *,
    method: Names = option(None, "Methods to cite.", reader=names),
    id_set: Names = option(None, "ID sets to cite.", "--id", reader=names),
    ood_set: Names = option(None, "OOD sets to cite.", "--ood", reader=names),
    encoder: Names = option(
        None, "Encoder to cite: an open_clip model, or a folder of features.", metavar="NAME"
    ),
    recorded: Path | None = option(
        None, "File of exported runs, to cite their methods, sets and encoders.", "--from"
    ),
    output: Path | None = option(None, "File to write, ending in .bib."),
    store: StoreOptions,
) -> None:
    """Print BibTeX for methods, sets and encoders.

    [bold]zsntta cite --method adand,tda --output related.bib[/bold]

    Without a name, the methods, sets and encoders of all kept runs are cited.
    """
    from zsntta_cli.methods import check_method
    from zsntta_cli.report.citations import bibtex

    form_of(output, {".bib": "bibtex"})
    for name in method or ():
        check_method(name)
    methods, sets, encoders = method or [], [*(id_set or ()), *(ood_set or ())], encoder or []
    if not (methods or sets or encoders):
        runs = [run.settings for run in store.runs([recorded] if recorded else None)]
        methods, encoders = [run.method for run in runs], [run.encoder for run in runs]
        sets = [*(run.id_set for run in runs), *(run.ood_set for run in runs if run.ood_set)]
    text, unknown = bibtex(dict.fromkeys(methods), dict.fromkeys(sets), encoders)
    put(text, output)
    if unknown:
        say(f"note: no reference is known for {', '.join(unknown)}.", err=True)
