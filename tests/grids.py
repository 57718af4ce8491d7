"""Random partial grids of kept runs, and what their averages are: worked out here once more."""

import functools
import math
import statistics
from dataclasses import dataclass

from hypothesis import strategies as st
from kept import kept_run

METHODS = ("zs-clip", "adand", "cull", "tda")
OOD_SETS = ("glyphs", "textures", "other-shapes")
SEEDS = (0, 1, 2)
RATIO = 0.5


@dataclass(frozen=True)
class Cell:
    """A run of a partial grid."""

    method: str
    ood_set: str
    seed: int
    known: int  # ID samples of 100 that it has right, and OOD samples
    is_stopped: bool = False


@functools.cache
def run_of(cell):
    """A kept run of a cell."""
    record = {"unfinished": 50} if cell.is_stopped else {}
    return kept_run(
        cell.method, cell.ood_set, RATIO, cell.seed, known=cell.known, caught=cell.known,
        samples=100, record=record,
    )  # fmt: skip


@st.composite
def partial_grids(draw, stopped=True, seeds=SEEDS):
    """Some runs of methods x OOD sets x seeds, few of them stopped, in any order; never none."""
    places = [(m, o, s) for m in METHODS for o in OOD_SETS for s in seeds]
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=24, unique=True))
    cells = []
    for method, ood_set, seed in chosen:
        is_stopped = stopped and draw(st.integers(0, 9)) == 0
        cells.append(Cell(method, ood_set, seed, draw(st.integers(1, 99)), is_stopped))
    return cells


def folded(values):
    """Mean and sample standard deviation in percent with two digits, as all views show them."""
    mean = statistics.fmean(values)
    spread = f"±{statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{mean:.2f}{spread}"


def finished(cells, method, ood_set):
    """What a method has right on an OOD set in percent, by seed, of runs that were finished."""
    return {
        c.seed: c.known
        for c in cells
        if (c.method, c.ood_set) == (method, ood_set) and not c.is_stopped
    }


def sets_of(cells):
    """The OOD sets of the table: those of any run, stopped or not."""
    return [name for name in OOD_SETS if any(c.ood_set == name for c in cells)]


def average_of(cells, method):
    """The average Acc_H (here Acc_S, Acc_N and Acc_H are one) by the rules, by seed; {} if none."""
    by_set = [finished(cells, method, name) for name in sets_of(cells)]
    seeds = set.intersection(*map(set, by_set))
    return {seed: statistics.fmean([values[seed] for values in by_set]) for seed in seeds}


def expected_averages(cells):
    """By method the text of its average; a dash where it has none."""
    averages = {method: average_of(cells, method) for method in methods_of(cells)}
    return {m: folded([*values.values()]) if values else "-" for m, values in averages.items()}


def methods_of(cells):
    """The methods that have a run, in the order of the package."""
    return [name for name in METHODS if any(c.method == name for c in cells)]


def best_averages(cells):
    """The methods whose average is the best; none where there are not two to compare."""
    means = {m: statistics.fmean(a.values()) for m in METHODS if (a := average_of(cells, m))}
    if len(means) < 2:
        return set()
    top = max(means.values())
    return {method for method, mean in means.items() if math.isclose(mean, top, abs_tol=1e-12)}
