"""A verdict passes who does the same again with other OOD images in another order.

Scores are made up, the metrics, the streams of the paper's tables and the verdicts are the real
ones. "The paper" and "we" are two of DRAWS runs that differ in nothing but chance.
"""

import functools
import itertools
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_cells import cell_of

from zsntta_cli import datasets
from zsntta_cli.paper import measuring, sampling
from zsntta_cli.paper.comparing import OUTSIDE, WITHIN
from zsntta_cli.paper.printed.published import PaperNumber
from zsntta_cli.paper.runs import Wishes, streams
from zsntta_cli.paper.sampling import Variance
from zsntta_cli.simulation.metrics import Judged, Measures, measure
from zsntta_cli.simulation.record import Record

WISHES = Wishes(Path("features"))
DRAWS, PAIRS = 150, 200
MOST_FLAGGED = 0.07


class Pool:
    """An ID set and an OOD set with made-up scores: of both a run takes what the paper's would."""

    def __init__(self, seed, run):
        self.generator = np.random.default_rng(seed)
        self.run = run
        n_id, n_ood = (datasets.known(name).images for name in (run.id_set, run.ood_set))
        self.id_scores = self.generator.beta(8, 2, n_id)
        self.ood_scores = self.generator.beta(3, 4, n_ood)
        self.is_named = self.generator.random(n_id) < 0.85

    def record(self):
        """A run on a choice of OOD samples, its threshold moved by order and by choice."""
        n_id, pool = len(self.id_scores), self.ood_scores
        repeats, rest = divmod(n_id, len(pool))
        chosen = [pool] * repeats + [self.generator.permutation(pool)[:rest]]
        scores = np.concatenate([self.id_scores, *chosen])
        labels = np.repeat([0, -1], [n_id, len(scores) - n_id])
        classes = np.where(np.append(self.is_named, np.zeros(len(scores) - n_id, bool)), 0, 1)
        threshold = 0.6 + 0.0004 * self.generator.normal() * (math.sqrt(2) if rest else 1)
        judged = Judged(labels, classes, scores < threshold, scores)
        measures = measure(judged)
        return Record(
            self.run, measures["accuracies"], measures["detection"], measures["flags"],
            {"id": n_id, "ood": len(scores) - n_id, "noise": 0}, {}, {}, 1.0, "", {},
        )  # fmt: skip


@functools.cache
def draws(seed, run):
    pool = Pool(seed, run)
    return [pool.record() for _ in range(DRAWS)]


def verdicts(cell, off=0.0):
    """How often each verdict is given, by metric, of PAIRS reproductions of a cell."""
    runs = [run for [run] in streams(cell, WISHES)]
    drawn = [draws(place, run) for place, run in enumerate(runs)]
    generator = np.random.default_rng(5)
    counts = {metric: Counter() for metric in cell.metrics}
    for _ in range(PAIRS):
        ours, paper = {}, []
        for run, of_set in zip(runs, drawn, strict=True):
            one, other = generator.choice(DRAWS, 2, replace=False)
            ours[run] = of_set[one]
            paper.append(of_set[other])
        published = tuple(
            PaperNumber(round(off + 100 * np.mean([r.metric(metric) for r in paper]), 2))
            for metric in cell.metrics
        )
        for comparison in measuring.compare([replace(cell, published=published)], WISHES, ours):
            counts[comparison.metric][comparison.verdict] += 1
    return counts


CELLS = {
    "more are there than take part": {"id_set": "pets37", "ood_set": "sun"},
    "fewer: some are shown twice": {"id_set": "pets37", "ood_set": "texture"},
    "all take part once": {"id_set": "cifar10", "ood_set": "places"},
    "an average": {"id_set": "pets37", "ood_set": "average"},
}


@pytest.mark.parametrize("which", CELLS)
def test_a_perfect_reproduction_is_rarely_outside_and_another_result_nearly_always(which):
    values = CELLS[which]
    tables = (10, 29) if values["id_set"] == "cifar10" else (2, 30)
    for table in tables:
        cell = cell_of(table, method="zs-clip", **values)
        for metric, counts in verdicts(cell).items():
            assert set(counts) <= {WITHIN, OUTSIDE}, metric
            assert counts[OUTSIDE] <= MOST_FLAGGED * PAIRS, metric
        for metric, counts in verdicts(cell, off=3.0).items():
            assert counts[OUTSIDE] > 0.9 * PAIRS, metric


def test_auroc_of_a_record_without_placements_is_judged_more_mildly():
    run = streams(cell_of(30, method="zs-clip", **CELLS["an average"]), WISHES)[0][0]
    record = Pool(3, run).record()
    older = Measures({"auroc": record.detection.auroc})
    mild = sampling.choice_variance(replace(record, detection=older), "auroc")
    assert 1 < mild / sampling.choice_variance(record, "auroc") < 3


def test_the_factor_of_a_choice_is_that_of_all_choices():
    """By enumeration: the variance of a mean over every choice of the rest, whole repeats first."""
    pool = np.array([0.0, 1, 1, 0, 1])
    for drawn in range(1, 13):
        repeats, rest = divmod(drawn, 5)
        means = [
            (repeats * pool.sum() + pool[list(rows)].sum()) / drawn
            for rows in itertools.combinations(range(5), rest)
        ]
        assert sampling.chosen_share(drawn, 5) * pool.var() == pytest.approx(np.var(means))


@given(st.lists(st.tuples(st.floats(1e-6, 10), st.integers(1, 50)), min_size=1, max_size=5))
def test_a_sum_is_as_sure_as_its_parts(parts):
    whole = sampling.total(Variance(value, freedom) for value, freedom in parts)
    assert whole.value == pytest.approx(sum(value for value, _ in parts))
    least, most = min(f for _, f in parts), sum(f for _, f in parts)
    assert least - 1e-6 <= whole.freedom <= most + 1e-6
    assert sampling.total([whole, Variance(0.0)]) == whole
    assert math.isnan(sampling.total([whole, Variance(math.nan)]).value)


def test_so_many_deviations_hold_95_percent():
    assert Variance(1.0).deviations == 2
    assert Variance(1.0, 1).deviations == pytest.approx(13.97, abs=0.01)
    assert Variance(1.0, 4).deviations == pytest.approx(2.87, abs=0.01)
