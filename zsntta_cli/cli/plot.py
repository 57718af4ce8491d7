"""`zsntta plot`: a figure of kept results."""

from pathlib import Path

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import StoreOptions, WantedRuns, argument, option
from zsntta_cli.cli.output import form_of, put_figure
from zsntta_cli.errors import SettingsError

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
