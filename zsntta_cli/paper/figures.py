"""The paper's figures: the runs that each needs, and how it is drawn.

Figures 3, 4, 8 and 9 show live methods, and 4 and 9 show their gradients: make such runs by
`Simulator.replay(run, analyse=True)`. The paper prints no number in a figure; the published numbers
of 2, 6 and 7 follow from the entries of tables 2, 3 and 10.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.errors import SettingsError
from zsntta_cli.paper.printed.published import AVERAGE, printed
from zsntta_cli.paper.printed.tables import FIGURES as FIGURE_NAMES
from zsntta_cli.report.comparisons import ACCURACIES, Cells, fixed, means, ranks
from zsntta_cli.report.distributions import difference, gradients, scores
from zsntta_cli.report.figure import Figure
from zsntta_cli.report.lines import Pair
from zsntta_cli.results.frame import latest
from zsntta_cli.simulation.notes import strongest
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, build_run

METHODS = ("zs-clip", "tent", "sotta", "tpt", "adand")  # of figures 2, 6 and 7
_THRESHOLDS = (None, *(i / 10 for i in range(1, 10)))  # the adaptive threshold first
_COLUMN, _PAGE = 3.3, 6.9  # inches
SCHEMATICS = {1: "four settings compared", 5: "AdaND's framework"}
SHOWN_FIGURES = tuple(number for number, _, _ in FIGURE_NAMES if number not in SCHEMATICS)

Pairs = tuple[Pair, ...]


@dataclass(frozen=True)
class Bench:
    """The pairs and settings with which the figures are drawn."""

    pairs: Pairs  # of figures 2 and 7
    fixed: Pairs  # of figure 6
    case: Pair  # the pair of figures 3, 4, 8 and 9
    most: float  # the largest gradient norm that figure 9 shows
    values: Mapping[str, Any]  # settings of all runs that differ from the paper's


def _pairs(*id_sets: str) -> Pairs:
    return tuple((name, other) for name in id_sets for other in datasets.partners(name))


_SMALL = ("cifar10", "cifar100", "cub200", "cars196", "food101", "pets37")
_LARGE = ("imagenet", "imagenet-sketch", "imagenet-a", "imagenet-v2", "imagenet-r")

PAPER = Bench(_pairs(*_SMALL, *_LARGE), _pairs(*_SMALL), ("cifar10", "svhn"), 0.0010, {})
# The embedded encoder on the built-in sets, in minutes: its gradients are a thousand times larger.
TINY = Bench(
    _pairs("shapes"), _pairs("shapes"), ("shapes", "glyphs"), 1.0, {"limit": 500, "views": 8}
)


@dataclass(frozen=True)
class PaperFigure:
    """One of the paper's figures."""

    runs: Callable[[str, Bench], list[RunSettings]]  # of an encoder's folder
    draw: Callable[[Sequence[Record], Cells | None, Bench], Figure]
    width: float  # inches
    analysed: bool = False  # its runs need the gradients of their samples
    tables: tuple[int, ...] = ()  # the tables from which published numbers follow


def draw(
    number: int, runs: Sequence[Record], published: Cells | None = None, bench: Bench = PAPER
) -> Figure:
    """Draw a figure from its runs, as far as there are any, and from published numbers.

    Raises:
        SettingsError: there is no such figure, or there are no runs for it.
    """
    latest_runs, notes = latest(runs)
    figure = found(number).draw(latest_runs, published, bench)
    caption = strongest(note for kept in latest_runs for note in kept.notes)
    return Figure(figure.panels, (*notes, *figure.notes), tuple(caption))


def found(number: int) -> PaperFigure:
    """Find a figure by its number.

    Raises:
        SettingsError: there is no such figure, or it shows no results.
    """
    if number in SCHEMATICS:
        raise SettingsError(f"figure {number} is a schematic ({SCHEMATICS[number]}): no results.")
    if number not in FIGURES:
        numbers = ", ".join(map(str, FIGURES))
        raise SettingsError(f"figure is {number}, must be one of: {numbers}.")
    return FIGURES[number]


def published(number: int) -> Cells:
    """The printed entries from which a figure's numbers follow; none for other figures."""
    cells: dict[str, dict[Pair, dict[str, float]]] = {}
    for cell in (cell for table in found(number).tables for cell in printed(table)):
        if cell.ood_set != AVERAGE:
            means = (number.mean for number in cell.numbers)
            values = dict(zip(ACCURACIES, means, strict=True))
            cells.setdefault(cell.method, {})[cell.id_set, cell.ood_set] = values
    return cells


def _build(
    methods: Sequence[str], pairs: Pairs, encoder: str, bench: Bench, **values: Any
) -> list[RunSettings]:
    return [
        build_run(
            method, encoder, id_set, ood_set, datasets.default_prompt(id_set),
            **{**bench.values, **values},
        )
        for id_set, ood_set in pairs
        for method in methods
    ]  # fmt: skip


def _fixed(encoder: str, bench: Bench) -> list[RunSettings]:
    return [
        run
        for value in _THRESHOLDS
        for run in _build(METHODS, bench.fixed, encoder, bench, fixed=value)
    ]


def _case(*methods: str) -> Callable[[str, Bench], list[RunSettings]]:
    """Give a function that makes the failure study's runs; methods use the normal pipeline."""
    return lambda encoder, bench: _build(methods, (bench.case,), encoder, bench)


def _failure(runs: Sequence[Record], *_: object) -> Figure:
    """Draw the scores before, the scores after, and their paired differences."""
    before_and_after, paired = scores(runs), difference(runs)
    return Figure((*before_and_after.panels, *paired.panels))


def _reliable(runs: Sequence[Record], published: Cells | None, bench: Bench) -> Figure:
    of_bench = {
        name: {pair: values for pair, values in by_pair.items() if pair in bench.fixed}
        for name, by_pair in (published or {}).items()
    }
    return fixed(runs, {name: by_pair for name, by_pair in of_bench.items() if by_pair})


def _gradients(runs: Sequence[Record], *_: object) -> Figure:
    return gradients(runs)


def _enlarged(runs: Sequence[Record], _published: Cells | None, bench: Bench) -> Figure:
    return gradients(runs, bench.most)


def _over_pairs(draw: Callable[..., Figure]) -> PaperFigure:
    """Make a figure of all pairs, with measured and published numbers."""
    return PaperFigure(
        lambda encoder, bench: _build(METHODS, bench.pairs, encoder, bench),
        lambda runs, published, _: draw(runs, published=published),
        _COLUMN, tables=(2, 3, 10),
    )  # fmt: skip


FIGURES = {
    2: _over_pairs(ranks),
    3: PaperFigure(_case("zs-clip", "tent"), _failure, _PAGE),
    4: PaperFigure(_case("tent"), _gradients, _COLUMN, analysed=True),
    6: PaperFigure(_fixed, _reliable, _PAGE, tables=(2, 10)),
    7: _over_pairs(means),
    8: PaperFigure(_case("zs-clip", "tpt"), _failure, _PAGE),
    9: PaperFigure(_case("tent"), _enlarged, _PAGE, analysed=True),
}  # FIGURES of printed/tables.py says what each shows
