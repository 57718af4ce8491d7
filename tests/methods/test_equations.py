"""Newer methods, by their public entry, against numbers of a second rendering of their equations.

Whoever wrote it had not looked at the product's files of these methods, and worked in float64: nine
items of three classes of which the last has none, five words of which two are the same, two items
that are mirror images, so that they tie, and batches that do not divide the stream.
"""

import numpy as np
import pytest
from streams import of_features

from zsntta_cli.methods import METHODS
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.simulation.runs import build_run

TEXTS = np.eye(3, 5)
WORDS = np.array([[0, 0, 0, 1, 0], [0, 0, 0, 0.6, 0.8], [0, 0, 0, 0.6, -0.8], [0, 0, 0, 0.6, 0.8],
                  [0, 0, 0.6, 0, -0.8]])  # fmt: skip
IMAGES = np.array([[5, 1, 0, 1, 2], [1, 4, 1, 0, 1], [3, 0, 0, 0, 2], [3, 0, 0, 0, -2],
                   [1, 1, 0, 3, 4], [4, 1, 1, 3, 0], [0, 1, 0, 3, -3], [2, 3, 1, 1, -1],
                   [0, 1, 1, 4, 1]])  # fmt: skip


def run(method, words=0, *, fixed=None, **values):
    """The decisions on the nine items, with a method's settings and so many words."""
    more = (WORDS[:words], (words,)) if words else ()
    data = of_features(IMAGES, TEXTS, 3.0, None, *more)
    options = build_run(method, "", "", None, "", **values).options
    return METHODS[method](data, options, ThresholdSettings(fixed=fixed)).push(data)


# A method, its settings and number of words; the ID scores and noise decisions of nine items.
FIXED = [
    ("cma", {"cma_times": 3}, 2,
     [0.377694, 0.496391, 0.354024, 0.601008, 0.017036, 0.189254, 0.043216, 0.315058, 0.016639],
     [1, 0, 1, 0, 1, 1, 1, 0, 1]),
    ("oodd", {"oodd_items": 5, "oodd_neighbour": 2}, 0,
     [0.844968, 0.797638, 0.456028, 0.655283, 0.401404, 0.454539, 0.528632, 0.393421, 0.32452],
     [0, 1, 1, 0, 1, 1, 1, 1, 1]),
    ("oodd", {"oodd_items": 5, "oodd_neighbour": 2, "batch_size": 4}, 0,
     [0.449255, 0.672195, 0.456028, 0.655283, 0.435948, 0.508475, 0.491295, 0.393421, 0.32452],
     [1, 0, 1, 0, 1, 1, 1, 1, 1]),
    ("etlt", {"etlt_penalty": 1e-10}, 0,
     [0.789318, 0.711713, 0.854949, 0.901083, 0.475556, 0.682878, 0.450709, 0.717345, 0.393316],
     [0, 0, 0, 0, 1, 0, 1, 0, 1]),
    ("adaneg", {"groups": 1, "adaneg_shots": 1, "gap": 0.2}, 5,
     [0.693019, 0.775679, 0.652964, 0.53954, 0.120292, 0.480862, 0.102853, 0.681077, 0.128875],
     [0, 0, 1, 1, 1, 0, 1, 0, 1]),
    ("adaneg", {"groups": 1, "adaneg_shots": 2, "gap": 0.2, "adaneg_sure": 0.5}, 5,
     [0.693019, 0.797499, 0.685057, 0.609922, 0.106354, 0.465851, 0.095667, 0.664697, 0.119461],
     [0, 0, 1, 1, 1, 0, 1, 0, 1]),
    ("csp", {"groups": 1, "mined_share": 0.7, "too_near": 0.55}, 5,
     [0.758642, 0.855928, 0.736782, 0.736782, 0.159558, 0.546611, 0.130656, 0.73381, 0.152194],
     [0, 0, 1, 1, 1, 0, 1, 0, 1]),
    ("dde", {"batch_size": 4, "dde_words": 3, "dde_gate": 0.1}, 5,
     [0.679475, 0.814877, 0.622513, 0.902434, 0.159558, 0.546611, 0.130656, 0.73381, 0.128484],
     [1, 0, 1, 0, 1, 0, 1, 0, 1]),
    ("dde", {"batch_size": 4, "dde_words": 3, "dde_gate": 0.1, "dde_exclusion": 0.0,
             "dde_doubled": True, "dde_cells": "grid"}, 5,
     [0.640729, 0.790821, 0.554485, 0.946918, 0.279697, 0.490986, 0.105669, 0.694036, 0.126513],
     [1, 0, 1, 0, 1, 0, 1, 0, 1]),
    ("tanl", {"tanl_words": 3, "tanl_step": 2, "gap": 0.3}, 5,
     [0.768482, 0.890861, 0.827347, 0.741925, 0.293776, 0.626713, 0.526652, 0.855345, 0.172167],
     [0, 0, 1, 1, 1, 0, 1, 0, 1]),
    ("tanl", {"tanl_words": 4, "tanl_step": 0, "gap": 0.3}, 5,
     [0.664429, 0.795866, 0.615355, 0.726776, 0.098057, 0.490954, 0.127885, 0.706087, 0.119232],
     [0, 0, 1, 0, 1, 0, 1, 0, 1]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "values", "words", "scores", "is_noise"), FIXED, ids=lambda given: str(given)[:40]
)
def test_nine_items(method, values, words, scores, is_noise):
    found = run(method, words, **values)
    np.testing.assert_allclose(found.id_score, scores, atol=2e-6)
    assert found.is_noise.tolist() == [bool(noise) for noise in is_noise]
    fifth = int("adaneg_sure" in values)  # as near to both names: by its proxy the second is nearer
    assert found.class_index.tolist() == [0, 1, 0, 0, fifth, 0, 1, 1, 1]


# Items of a few classes, of which they name some otherwise than CLIP does.
NAMED = [
    ("bca", {}, [0, 1, 0, 0, 1, 0, 1, 1, 2]),
    ("bca", {"bca_mean_items": 5.0}, [0, 1, 0, 0, 1, 0, 1, 1, 1]),
    ("bca", {"bca_mean_items": 3.0, "bca_mean_least": 0.5, "bca_prior_least": 0.4,
             "bca_prior_items": 4.0}, [0, 1, 0, 0, 1, 0, 1, 1, 2]),
    ("dota", {}, [0, 1, 0, 0, 1, 0, 1, 1, 2]),
    ("dota", {"dota_variance": 0.01, "dota_shrinkage": 0.01, "dota_rate": 0.3, "dota_weight": 1.0},
     [0, 1, 0, 0, 1, 0, 1, 1, 2]),
]  # fmt: skip


@pytest.mark.parametrize(("method", "values", "classes"), NAMED, ids=range(len(NAMED)))
def test_classifiers_that_learn_from_every_item(method, values, classes):
    found = run(method, fixed=0.0, **values)  # all are called clean
    assert found.class_index.tolist() == classes
