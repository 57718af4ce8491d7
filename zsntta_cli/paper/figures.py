"""The paper's figures: the runs that each needs, and how it is drawn.

Figures 3, 4, 8 and 9 show live methods, 4 and 9 the gradients of their samples. The paper prints no
number in a figure; the published numbers of 2, 6 and 7 follow from tables 2, 3 and 10.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.errors import SettingsError
from zsntta_cli.paper.runs import BUILT_IN, Wishes
from zsntta_cli.paper.tables import FIGURES, TABLES
from zsntta_cli.report.comparisons import Cells, Pair, fixed, means, ranks
from zsntta_cli.report.distributions import difference, gradients, scores
from zsntta_cli.report.figure import Figure
from zsntta_cli.simulation.notes import strongest
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings

_RANKS, _FIXED, _MEANS, _ENLARGED = 2, 6, 7, 9
GRADIENTS = 4, _ENLARGED  # figures whose runs need the gradients of their samples
_CASE = {3: ("zs-clip", "tent"), 4: ("tent",), 8: ("zs-clip", "tpt"), 9: ("tent",)}  # Sec. 3
_METHODS = ("zs-clip", "tent", "sotta", "tpt", "adand")  # of the others
_SMALL = ("cifar10", "cifar100", *TABLES[2].id_sets)  # of figure 6; 2 and 7 have ImageNet's, too
SHOWN_FIGURES = tuple(sorted((_RANKS, _FIXED, _MEANS, *_CASE)))
_THRESHOLDS = (None, *(i / 10 for i in range(1, 10)))  # the adaptive threshold first
WIDTHS = {number: 6.9 if number in (3, 6, 8, 9) else 3.3 for number in SHOWN_FIGURES}  # inches
# Of the embedded encoder on the built-in sets, to take minutes.
_TINY: Mapping[str, Any] = {"limit": 500, "views": 8}
# The largest gradient norm that figure 9 shows; those of the embedded encoder are a thousand times
# larger.
_MOST, _MOST_OF_TINY = 0.0010, 1.0


def figure_runs(number: int, wishes: Wishes) -> list[RunSettings]:
    """The runs that a figure shows.

    Raises:
        SettingsError: the figure shows no results.
    """
    if number not in SHOWN_FIGURES:
        raise SettingsError(f"figure {number} shows no results: {FIGURES[number]}.")
    axes = [{"fixed": value} for value in _THRESHOLDS] if number == _FIXED else [{}]
    methods, pairs = _CASE.get(number, _METHODS), _pairs(number, wishes.is_built_in)
    folder, values = wishes.folder(), _TINY if wishes.is_built_in else {}
    return [
        wishes.run(method, folder, *pair, **{**values, **axis})
        for axis, pair, method in itertools.product(axes, pairs, methods)
    ]


def _pairs(number: int, is_built_in: bool = False) -> list[Pair]:
    """The ID-OOD pairs of a figure, or the built-in ones that stand in for them."""
    if number in _CASE:
        return [(BUILT_IN, "glyphs") if is_built_in else ("cifar10", "svhn")]
    id_sets = _SMALL if number == _FIXED else (*_SMALL, *TABLES[3].id_sets)
    every = (BUILT_IN,) if is_built_in else id_sets
    return [(name, other) for name in every for other in datasets.partners(name)]


def published(number: int) -> Cells:
    """The printed numbers that a figure follows from, by method and pair; none of other figures."""
    cells: dict[str, dict[Pair, dict[str, float]]] = {}
    pairs = _pairs(number) if number not in _CASE else ()
    for table in (TABLES[2], TABLES[3], TABLES[10]):
        for place, numbers in table.printed.items():
            if (pair := (place.id_set, place.ood_set)) in pairs:
                values = {metric: printed.value for metric, printed in numbers.items()}
                cells.setdefault(table.rows[place.row]["method"], {})[pair] = values
    return cells


def draw(
    number: int, runs: Sequence[Record], printed: Cells | None = None, is_built_in: bool = False
) -> Figure:
    """Draw a figure from its runs, if any, and from published numbers.

    Raises:
        SettingsError: there is nothing to draw.
    """
    if number in GRADIENTS:
        most = _MOST_OF_TINY if is_built_in else _MOST
        figure = gradients(runs, most if number == _ENLARGED else None)
    elif number in _CASE:  # the scores before, those after, and the paired differences
        figure = Figure((*scores(runs).panels, *difference(runs).panels))
    elif number == _FIXED:
        figure = fixed(runs, printed or {})
    else:
        figure = (ranks if number == _RANKS else means)(runs, published=printed)
    caption = strongest(note for record in runs for note in record.notes)
    return Figure(figure.panels, figure.notes, tuple(caption))
