"""The extractions for the paper's tables and figures: sets and noise images of each encoder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path, folder_name
from zsntta_cli.datasets.names import NOISE, SetName
from zsntta_cli.paper.figures import SHOWN_FIGURES, figure_runs
from zsntta_cli.paper.runs import Wishes, all_runs
from zsntta_cli.paper.tables import TABLES, PaperTable
from zsntta_cli.results.grid import files_of
from zsntta_cli.settings import NO_NOISE, PAPER_ENCODERS, EncoderChoice
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.stream import stream_sizes


@dataclass(frozen=True)
class PaperExtraction:
    """The sets and noise images that one encoder has to encode, and the sets that are missing."""

    choice: EncoderChoice
    sets: tuple[str, ...]
    pools: tuple[tuple[str, int], ...]  # types of noise, with the number of images
    absent: Sequence[str]


def runs_of_paper(
    wishes: Wishes,
    tables: Iterable[PaperTable] = tuple(TABLES.values()),
    figures: Iterable[int] = SHOWN_FIGURES,
) -> list[RunSettings]:
    """The runs of tables and figures, each once."""
    of_figures = (run for number in figures for run in figure_runs(number, wishes))
    return list(dict.fromkeys([*all_runs(wishes, tables), *of_figures]))


def paper_extractions(
    wishes: Wishes, runs: Sequence[RunSettings], data_root: Path, limit: int | None = None
) -> list[PaperExtraction]:
    """The extractions that some runs need, with sets in the order of the runs.

    There are as many noise images as the longest stream injects, so none is shown twice.
    """
    of_paper = [replace(encoder, precision=wishes.precision) for encoder in PAPER_ENCODERS]
    extractions = []
    for choice in [wishes.named] if wishes.named else of_paper:
        folder = folder_name(choice)
        of_encoder = [run for run in runs if run.encoder == folder]
        if not of_encoder:
            continue
        names = dict.fromkeys(name for run in of_encoder for name in files_of(run))
        sets = [name for name in names if SetName.parse(name).kind != NOISE]
        absent = [
            name
            for name in sets
            if not feature_path(wishes.root, folder, name).exists()
            and not datasets.known(name).downloads
            and not datasets.known(name).is_there(data_root)
        ]
        possible = [run for run in of_encoder if not {run.id_set, run.ood_set} & {*absent}]
        present = tuple(name for name in sets if name not in absent)
        extractions.append(PaperExtraction(choice, present, _pools(possible, limit), absent))
    return extractions


def _pools(runs: Sequence[RunSettings], limit: int | None) -> tuple[tuple[str, int], ...]:
    """The types of noise, with the number of images that the longest stream of each injects."""
    most: dict[str, int] = {}
    for run in runs:
        if run.stream.noise != NO_NOISE:
            sizes = (_images(name, limit) for name in (run.id_set, run.ood_set))
            injected = stream_sizes(run.stream, *sizes).injected
            most[run.stream.noise] = max(most.get(run.stream.noise, 0), injected)
    return tuple(most.items())


def _images(name: str | None, limit: int | None) -> int:
    images = datasets.known(name).images if name else 0
    return min(images, limit or images)
