"""`zsntta plot`: a figure of kept results."""

from pathlib import Path

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import StoreOptions, WantedRuns, argument, option
from zsntta_cli.cli.output import form_of, put_figure
from zsntta_cli.errors import SettingsError

KINDS = {  # those of report.figures, which --help is not to import
    "ratio": "Acc_H, or any metric, against the noise ratio",
    "means": "mean Acc_S, Acc_N and Acc_H over ID-OOD pairs",
    "ranks": "on what share of ID-OOD pairs each method has a rank or a better one",
    "fixed": "accuracies at fixed thresholds and at the adaptive one",
    "scores": "histograms of the scores of ID and OOD samples, with the threshold",
    "difference": "each sample's score after minus before adaptation (live methods)",
    "gradients": "gradient norms of clean and noisy samples (live methods)",
}
_WIDTHS = {"column": 3.3, "page": 6.9}  # inches


def plot(
    *,
    kind: str | None = argument(None, f"One of {', '.join(KINDS)}. [none: what they show]"),
    files: list[Path] | None = argument(
        None, "Exported results. [those in --records]", metavar="RECORDS.jsonl"
    ),
    store: StoreOptions,
    wanted: WantedRuns,
    metric: str | None = option(
        None, "Metric of ratio, ranks and means, such as auroc. [acc_h; means: the three]"
    ),
    width: str = option("column", "column (3.3 inches), page (6.9 inches), or inches, 2 to 20."),
    output: Path = option(
        Path("figure.pdf"), "File to write: .pdf, .svg, .png, or .csv of its numbers."
    ),
) -> None:
    """Draw a figure of kept results: PDF, SVG, PNG or CSV.

    [bold]zsntta plot ratio --method adand,cull --output ratio.pdf[/bold]

    The CSV has the numbers that are in the figure. What is to be known of a figure is said, and
    written beside it (figure.caption.txt).

    Without --ratio, figures of one ratio are of 0.5; without --setting fixed=…, of adaptive
    thresholds. Seeds are folded into a mean ± their standard deviation; histograms and gradients
    show one seed.
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
