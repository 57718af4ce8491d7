"""The variant of LSUN that the paper used: ZS-CLIP's numbers on each beside the printed ones.

The paper does not name the variant. All images of CIFAR-10 and LSUN are in the stream, and neither
AUROC nor FPR95 of a frozen model depends on their order: table 21 prints a ± of 0.00. So one run of
each variant shows which one fits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zsntta_cli import datasets
from zsntta_cli.cache.origin import origins_in
from zsntta_cli.datasets.names import SIZES
from zsntta_cli.paper.cells import PaperCell, cells
from zsntta_cli.paper.printed.tables import METRIC_HEADS, find_table
from zsntta_cli.paper.runs import Wishes, runnable, streams
from zsntta_cli.simulation.runs import RunSettings

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record

_LSUN = "lsun"
_VARIANTS = (_LSUN, *datasets.known(_LSUN).variants)
_TABLE, _ROW = "21", ("cifar10", _LSUN, "zs-clip")


def variant_runs(wishes: Wishes, runs: Sequence[RunSettings]) -> list[RunSettings]:
    """The runs of ZS-CLIP on CIFAR-10 with each variant that has features, beside `runs`.

    There are none if no run is on LSUN, or if only one variant has features.
    """
    if not any(run.ood_set == _LSUN for run in runs):
        return []
    of_variants = runnable(wishes.root, list(_runs(wishes).values()))
    if not any(run.ood_set != _LSUN for run in of_variants) or not runnable(wishes.root, runs):
        return []
    return [run for run in of_variants if run not in runs]


def lsun_note(
    wishes: Wishes, runs: Sequence[RunSettings], records: "Mapping[RunSettings, Record]"
) -> str:
    """Say which variant fits the printed row, as far as there are results; else empty."""
    of_variants = {name: run for name, run in _runs(wishes).items() if run in records}
    if not of_variants or not any(run.ood_set == _LSUN for run in runs):
        return ""
    cell = _cell(wishes)
    assert cell is not None
    measured = {name: _values(records[run], cell) for name, run in of_variants.items()}
    paper = [number.mean for number in cell.published]
    shown = [
        f"{_numbers(cell, measured[n])} with {_told(n, records[of_variants[n]])}" for n in measured
    ]
    line = (
        f"note: LSUN: the paper has {_numbers(cell, paper)} (± 0.00) for ZS-CLIP on CIFAR-10; here "
        f"it is {', '.join(shown)}"
    )
    if len(measured) == 1:
        not_measured = " and ".join(f"'{name}'" for name in _VARIANTS if name not in measured)
        return f"{line}; the paper does not say which variant it took: there are {not_measured} too"
    return f"{line}; {_nearest(cell, measured, paper)}"


def _runs(wishes: Wishes) -> dict[str, RunSettings]:
    """One run for each variant; none if the row is not printed for this encoder."""
    cell = _cell(wishes)
    if cell is None:
        return {}
    once = replace(wishes, seeds=wishes.seeds[:1] or (0,))
    cells_by_name = {n: replace(cell, of=replace(cell.of, ood_set=n)) for n in _VARIANTS}
    return {name: streams(of, once)[0][0] for name, of in cells_by_name.items()}


def _cell(wishes: Wishes) -> PaperCell | None:
    """The cell of table 21 with the printed row, if its numbers are of this encoder."""
    every = cells(find_table(_TABLE), wishes.encoder)
    matching = (c for c in every if (c.of.id_set, c.of.ood_set, c.of.method) == _ROW)
    return next((cell for cell in matching if cell.published), None)


def _values(record: "Record", cell: PaperCell) -> list[float]:
    return [100 * record.metric(metric) for metric in cell.metrics]


def _numbers(cell: PaperCell, values: Sequence[float]) -> str:
    pairs = zip(cell.metrics, values, strict=True)
    return " and ".join(f"{METRIC_HEADS[metric]} {value:.2f}" for metric, value in pairs)


def _told(name: str, record: "Record") -> str:
    """A variant, with the true sizes of its images if they are known."""
    sizes = origins_in(record.features).get(name, {}).get(SIZES)
    return f"'{name}'" + (f" (images of {sizes})" if sizes else "")


def _nearest(
    cell: PaperCell, measured: Mapping[str, Sequence[float]], paper: Sequence[float]
) -> str:
    """Say which variants are nearest by each metric, in one phrase if the metrics agree."""
    by_metric = {}
    for place, (metric, number) in enumerate(zip(cell.metrics, paper, strict=True)):
        away = {name: abs(values[place] - number) for name, values in measured.items()}
        nearest = [f"'{name}'" for name in away if away[name] == min(away.values())]
        by_metric[METRIC_HEADS[metric]] = " and ".join(nearest)
    if len(set(by_metric.values())) == 1:
        return f"nearest is {next(iter(by_metric.values()))}"
    return "nearest by " + ", by ".join(f"{head} is {names}" for head, names in by_metric.items())
