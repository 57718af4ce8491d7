"""The runs that a cell of the paper is measured by."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.cache.folder import folder_name
from zsntta_cli.datasets.names import SetName
from zsntta_cli.datasets.readers.corruptions import CORRUPTIONS
from zsntta_cli.methods import METHODS
from zsntta_cli.paper.cells import Cell, Encoder
from zsntta_cli.paper.printed.published import AVERAGE, Printed
from zsntta_cli.settings.options import value_type
from zsntta_cli.simulation.runs import RunSettings, build_run, declared

Streams = tuple[tuple[RunSettings, ...], ...]  # what a cell averages over; each of all seeds
_USUAL_RATIO = 0.5  # of tables that name none
_SEVERITY = 1  # Table 15


@dataclass(frozen=True)
class Wishes:
    """How the tables are to be measured."""

    root: Path  # of feature files
    encoder: Encoder = Encoder()  # noqa: RUF009 -- it is frozen
    preset: str = "paper"
    seeds: tuple[int, ...] = ()  # none: the table's own


def streams(cell: Cell, wishes: Wishes) -> Streams:
    """The streams of a cell, of all OOD sets or corruptions that it is the mean of.

    A clean stream is the same for all OOD sets, so it is one. None where a cell is not to be run:
    scores that the paper quotes and that need more than features.
    """
    of, seeds = cell.of, wishes.seeds or cell.table.seeds
    if METHODS[of.method].needs:
        return ()
    folder = folder_name(wishes.root, wishes.encoder.choice(of))
    values = {"ratio": _USUAL_RATIO if of.ratio is None else of.ratio, **cell.table.common}
    values |= _values(of)
    made = [
        tuple(
            build_run(
                of.method, folder, id_set, ood_set, datasets.default_prompt(id_set), wishes.preset,
                **values, seed=seed,
            )
            for seed in seeds
        )
        for id_set in _id_sets(of.id_set)
        for ood_set in _ood_sets(of)
    ]  # fmt: skip
    return tuple(dict.fromkeys(made))


def is_timed(run: RunSettings) -> bool:
    """Whether a run is one of table 4, which wants time and memory with the encoder, no cache."""
    return run.stream.limit is not None


def _id_sets(id_set: str) -> Sequence[str]:
    """An ID set, or the 15 corrupted ones that its cells are means of."""
    entry = datasets.known(id_set)
    if entry.role != "shift":
        return [id_set]
    return [f"{id_set}:{corruption}:{_SEVERITY}" for corruption in CORRUPTIONS]


def _ood_sets(cell: Printed) -> Sequence[str]:
    partners = datasets.partners(SetName.parse(cell.id_set).base)
    if cell.ood_set == AVERAGE:
        return partners
    return [cell.ood_set] if cell.ood_set else partners[:1]  # table 4 names none


def _values(cell: Printed) -> dict[str, Any]:
    """The settings of a cell, of their types."""
    settings = cell.settings
    if settings.get("source") == "quoted":  # MCM's own paper: cosines at temperature 1
        return {"temperature": 1.0}
    known = declared(cell.method)
    return {
        name: value_type(known[name])[0](text) for name, text in settings.items() if name in known
    }
