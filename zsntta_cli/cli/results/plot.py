"""`zsntta plot`: a figure of kept results."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli import completion
from zsntta_cli.cli.options import StoreOptions, under, with_groups
from zsntta_cli.cli.output import form_of, put_figure
from zsntta_cli.errors import SettingsError

if TYPE_CHECKING:
    from zsntta_cli.results.kept import Kept

KINDS = (  # those of report.plots, which --help is not to import
    "scores", "difference", "gradients", "thresholds", "accuracy", "windows", "ratio", "fixed",
    "ranks", "critical", "means",
)  # fmt: skip
_COLUMN = 3.25  # inches
_filter = partial(under, "Runs")


@with_groups
def plot(
    *,
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(KINDS)}.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Exported results. [those in --records]", metavar="RECORDS.jsonl"),
    ] = None,
    store: StoreOptions,
    method: Annotated[
        list[str] | None, _filter("Method. [all]", autocompletion=completion.methods)
    ] = (None),
    id_set: Annotated[list[str] | None, _filter("ID set. [all]", "--id")] = None,
    ood_set: Annotated[list[str] | None, _filter("OOD set. [all]", "--ood")] = None,
    ratio: Annotated[list[float] | None, _filter("Noise ratio. [0.5; ratio: all]")] = None,
    seed: Annotated[list[int] | None, _filter("Seed. [all: folded, or the lowest]")] = None,
    encoder: Annotated[list[str] | None, _filter("Folder name of the features. [all]")] = None,
    setting: Annotated[
        list[str] | None, _filter("NAME=VALUE, such as warmup=10. [fixed=adaptive]")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="ratio, ranks, critical, means: any, such as auroc; accuracy, windows: acc_s, "
            "acc_n. [acc_h; means: the three]",
            autocompletion=completion.metrics,
        ),
    ] = None,
    width: Annotated[float, typer.Option(min=2, max=20, help="Inches; 6.75 is a page.")] = _COLUMN,
    output: Annotated[Path, typer.Option(help="A .pdf, .svg, .png; a .csv of its numbers.")] = Path(
        "figure.pdf"
    ),
) -> None:
    """Draw a figure of kept results: a PDF, SVG or PNG, or a CSV of the numbers in it.

    Seeds are folded into a mean ± their standard deviation; histograms and gradients show one seed.
    """
    from zsntta_cli.report import plots
    from zsntta_cli.settings.options import check_choice

    check_choice("kind", kind, KINDS)
    plots.check_drawable(form_of(output, plots.FORMS))
    filters = plots.Filters(
        method or (), id_set or (), ood_set or (), ratio or (), seed or (), encoder or (),
        _settings(setting or ()),
    )  # fmt: skip
    runs = _runs(files or (), store)
    _check_settings(filters.settings, runs)
    figure = plots.plot(runs, kind, filters, metric)
    put_figure(figure, width, output)


def _runs(files: Sequence[Path], store: StoreOptions) -> "list[Kept]":
    """Kept runs of exported files, or of the store."""
    from zsntta_cli.results.exchange import read_lines

    if files:
        return [kept for path in files for kept in read_lines(path)]
    with store.open() as records:
        return list(records.all())


def _settings(texts: Sequence[str]) -> dict[str, list[str]]:
    """Values of settings by name: "warmup=10"."""
    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f"setting is '{text}', must be NAME=VALUE.")
        values.setdefault(name.replace("-", "_"), []).append(value)
    return values


def _check_settings(wanted: Iterable[str], runs: "Sequence[Kept]") -> None:
    """Refuse a setting that neither a method here nor a run has."""
    from zsntta_cli.settings.options import check_choice
    from zsntta_cli.simulation.runs import setting_names

    names = dict.fromkeys((*setting_names(), "preset", "prompt"))
    for name in wanted:
        if name not in names:
            names |= dict.fromkeys(n for kept in runs for n in kept.record.settings.flat())
        check_choice("setting", name, tuple(names))
