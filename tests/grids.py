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
        cell.method, cell.ood_set, 0.5, cell.seed, known=cell.known, caught=cell.known,
        samples=100, record=record,
    )  # fmt: skip


@st.composite
def partial_grids(draw):
    """Some runs of methods x OOD sets x seeds, few of them stopped, in any order; never none."""
    places = [(m, o, s) for m in METHODS for o in OOD_SETS for s in SEEDS]
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=24, unique=True))
    results = st.tuples(st.integers(1, 99), st.sampled_from([False] * 9 + [True]))
    return [Cell(*place, *draw(results)) for place in chosen]


def sets_of(cells):
    """The OOD sets of the table: those of any run, stopped or not."""
    return [name for name in OOD_SETS if any(c.ood_set == name for c in cells)]


def average_of(cells, method):
    """The average Acc_H (here Acc_S, Acc_N and Acc_H are one) by the rules, by seed; {} if none."""
    by_set = {name: {} for name in sets_of(cells)}
    for cell in cells:
        if cell.method == method and not cell.is_stopped:
            by_set[cell.ood_set][cell.seed] = cell.known
    seeds = set.intersection(*map(set, by_set.values()))
    return {s: statistics.fmean([of_set[s] for of_set in by_set.values()]) for s in seeds}


def expected_averages(cells):
    """By method, as the package lists them, the text of its average in percent; a dash if none."""
    texts = {}
    for method in (name for name in METHODS if any(c.method == name for c in cells)):
        values = [*average_of(cells, method).values()]
        spread = f"±{statistics.stdev(values):.2f}" if len(values) > 1 else ""
        texts[method] = f"{statistics.fmean(values):.2f}{spread}" if values else "-"
    return texts


def best_averages(cells):
    """The methods whose average is the best; none where there are not two to compare."""
    means = {m: statistics.fmean(a.values()) for m in METHODS if (a := average_of(cells, m))}
    top = max(means.values(), default=0)
    best = {method for method, mean in means.items() if math.isclose(mean, top, abs_tol=1e-12)}
    return best if len(means) > 1 else set()
