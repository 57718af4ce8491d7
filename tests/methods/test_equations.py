"""Newer methods, by their public entry, against their equations alone (reference/equations.py).

The numbers of `FIXED` were worked out from the equations in float64, beside the product: nine items
of three classes of which the last has none, five words of which two are the same, two items that
are mirror images, so that they tie, and batches that do not divide the stream.
"""

import itertools

import numpy as np
import pytest
from reference import equations

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.simulation.runs import build_run

SCALE = 10.0  # 3 for the fixed numbers
TEXTS = np.eye(3, 5)
WORDS = np.array([[0, 0, 0, 1, 0], [0, 0, 0, 0.6, 0.8], [0, 0, 0, 0.6, -0.8], [0, 0, 0, 0.6, 0.8],
                  [0, 0, 0.6, 0, -0.8]])  # fmt: skip
IMAGES = np.array([[5, 1, 0, 1, 2], [1, 4, 1, 0, 1], [3, 0, 0, 0, 2], [3, 0, 0, 0, -2],
                   [1, 1, 0, 3, 4], [4, 1, 1, 3, 0], [0, 1, 0, 3, -3], [2, 3, 1, 1, -1],
                   [0, 1, 1, 4, 1]])  # fmt: skip


def run(method, images, texts, words=None, *, sizes=(), injected=None, seed=0, scale=SCALE,
        preset="paper", fixed=None, **values):  # fmt: skip
    """The decisions on a stream of these images, with a method's settings."""
    images, texts = np.asarray(images, np.float32), np.asarray(texts, np.float32)
    more = () if words is None else (np.asarray(words, np.float32), sizes or (len(words),))
    pool = Pool(images, texts, scale, zero_shot(images, texts, scale), *more)
    known = np.zeros(len(images), bool) if injected is None else injected
    data = StreamData(pool, np.arange(len(images)), known, seed)
    options = build_run(method, "", "", None, "", preset, **values).options
    return METHODS[method].load()(data, options, ThresholdSettings(fixed=fixed))


def made(seed, items=61, classes=3, words=7, dim=12):
    """Images about all class names but the last, or about one of four words; texts; words."""
    rng = np.random.default_rng(seed)
    texts, others = (equations.unit(rng.normal(size=(n, dim))) for n in (classes, words))
    near = texts[rng.integers(max(classes - 1, 1), size=items)]
    far = others[rng.integers(min(words, 4), size=items)]
    centres = np.where(rng.random((items, 1)) < 0.5, near, far)
    images = 4 * centres + rng.uniform(0.2, 1.6, (items, 1)) * rng.normal(size=(items, dim))
    return tuple(rows.astype(np.float32).astype(float) for rows in (images, texts, others))


def twins(seed):
    """Two names that are the same, as two words are, and every image twice in a row."""
    images, texts, words = made(seed)
    return np.repeat(images[:30], 2, axis=0), texts[[0, 0, 1, 2]], words[[0, 1, 1, 2, 3, 4, 5]]


STREAMS = {
    "an empty class": made(0),
    "many classes": made(1, classes=23, words=9),
    "one class": made(2, classes=1),
    "one word": made(3, words=1),
    "twins": twins(4),
    "one item": made(5, items=1),
    "two classes of many": made(6, items=151, classes=2),
}


def assert_decisions(decisions, id_score, *, batch=1, texts=None, classes=None, tolerance=2e-6):
    np.testing.assert_allclose(decisions.id_score, id_score, atol=tolerance)
    noise = 1 - id_score
    is_noise = noise > equations.thresholds(noise, batch)
    np.testing.assert_array_equal(decisions.is_noise, is_noise)
    if classes is not None:  # of names that are the same, either is right
        np.testing.assert_array_equal(texts[decisions.class_index], texts[classes])


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
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "values", "words", "scores", "is_noise"), FIXED, ids=lambda given: str(given)[:40]
)
def test_nine_items(method, values, words, scores, is_noise):
    found = run(method, IMAGES, TEXTS, WORDS[:words] if words else None, scale=3.0, **values)
    np.testing.assert_allclose(found.id_score, scores, atol=2e-6)
    assert found.is_noise.tolist() == [bool(noise) for noise in is_noise]
    fifth = int("adaneg_sure" in values)  # as near to both names: by its proxy the second is nearer
    assert found.class_index.tolist() == [0, 1, 0, 0, fifth, 0, 1, 1, 1]


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize(("neutral", "times"), [(5, 1), (5, 3), (3, 2), (1, 1)])
def test_cma(kind, neutral, times):
    images, texts, words = STREAMS[kind]
    expected = equations.cma(images, texts, words[:neutral], SCALE, times)
    found = run("cma", images, texts, words[:neutral], cma_times=times)
    assert_decisions(found, expected)


@pytest.mark.parametrize("others", [1, 4, 88])
def test_logitgap(others):
    images, texts, _ = STREAMS["many classes"]
    expected = equations.logit_gap(images, texts, SCALE, others)
    found = run("logitgap", images, texts, logitgap_others=others).id_score
    np.testing.assert_allclose(found, expected, atol=2e-5)


BCA = [{}, {"items": 5.0}, {"items": 3.0, "least": 0.5, "prior_least": 0.4, "prior_items": 4.0}]
DOTA = [{}, {"variance": 0.01, "epsilon": 0.01, "rate": 0.3, "most": 1.0}]
ITS_NAMES = {
    "items": "bca_mean_items", "least": "bca_mean_least", "prior_least": "bca_prior_least",
    "prior_items": "bca_prior_items", "variance": "dota_variance", "epsilon": "dota_shrinkage",
    "rate": "dota_rate", "most": "dota_weight",
}  # fmt: skip


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize(
    ("method", "values"), [*(("bca", v) for v in BCA), *(("dota", v) for v in DOTA)]
)
def test_classifiers_that_learn_from_every_item(method, values, kind):
    """On items that are hard to tell, of which they name some otherwise than CLIP does."""
    images, texts, _ = STREAMS[kind]
    images = images / 3 + np.random.default_rng(0).normal(size=images.shape)
    scores = getattr(equations, method)(images, texts, SCALE, **values)
    given = {ITS_NAMES[key]: value for key, value in values.items()}
    found = run(method, images, texts, fixed=0.0, **given)  # all are called clean
    np.testing.assert_array_equal(texts[found.class_index], texts[scores.argmax(axis=1)])
    if values and kind in ("many classes", "two classes of many"):
        assert (scores.argmax(axis=1) != (images @ texts.T).argmax(axis=1)).sum() >= 3


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize(
    ("kept", "neighbour", "batch"), [(2048, 5, 1), (11, 3, 1), (7, 2, 4), (3, 1, 1)]
)
def test_oodd(kind, kept, neighbour, batch):
    images, texts, _ = STREAMS[kind]
    for preset, scale in (("paper", SCALE), ("official", 1.0)):
        noise = equations.oodd(images, texts, scale, kept, neighbour, batch)
        found = run(
            "oodd", images, texts, preset=preset, oodd_items=kept, oodd_neighbour=neighbour,
            batch_size=batch,
        )  # fmt: skip
        assert_decisions(found, 1 - noise, batch=batch)


@pytest.mark.parametrize("kind", ["an empty class", "many classes", "twins"])
@pytest.mark.parametrize("dropped", [0.0, 0.2])
def test_etlt(kind, dropped):
    images, texts, _ = STREAMS[kind]
    u = 1 - equations.softmax(SCALE * equations.unit(images) @ texts.T).max(axis=1)
    fitted, threshold = equations.etlt(images, u, dropped)
    for penalty, tolerance in ((1e-10, 2e-6), (1e-5, 2e-4)):  # the default's worth
        found = run("etlt", images, texts, etlt_dropped=dropped, etlt_penalty=penalty)
        np.testing.assert_allclose(1 - found.id_score, fitted, atol=tolerance)
        np.testing.assert_array_equal(found.is_noise, fitted > threshold)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize(
    "values",
    [{}, {"shots": 2, "gap": 0.2, "weight": 0.7}, {"shots": 1, "sure": 0.5, "gap": 0.3}],
    ids=str,
)
def test_adaneg(kind, values):
    images, texts, words = STREAMS[kind]
    expected, classes = equations.adaneg(images, texts, words, SCALE, **values)
    names = {"shots": "adaneg_shots", "weight": "adaneg_text", "sure": "adaneg_sure"}
    given = {names.get(key, key): value for key, value in values.items()}
    found = run("adaneg", images, texts, words, groups=1, **given)
    assert_decisions(found, expected, texts=texts, classes=classes)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize(("chosen", "step"), [(1000, 2), (5, 2), (3, 0), (4, 3)])
def test_tanl(kind, chosen, step):
    images, texts, words = STREAMS[kind]
    scores = equations.tanl(images, texts, words, SCALE, chosen=chosen, step=step, gap=0.3)
    found = run("tanl", images, texts, words, tanl_words=chosen, tanl_step=step, gap=0.3)
    assert_decisions(found, scores)


def test_words_that_are_activated_by_less_than_half_a_cell_are_equal_for_tanl():
    images, texts, words = made(7, words=40)
    found = run("tanl", images, texts, words, tanl_words=9, scale=100.0).id_score
    exact, rounded = (
        equations.tanl(images, texts, words, 100.0, chosen=9, step=2, cell=cell)
        for cell in (0.0, 2.0**-40)
    )
    np.testing.assert_allclose(found, rounded, atol=1e-5)
    assert abs(found - exact).max() > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_csp(seed):
    images, texts, words = made(seed, classes=4, words=22)
    nouns, adjectives = words[:14], words[14:]
    mined = np.concatenate([
        part[equations.farthest(part, texts, 0.5, too_near=0.4)] for part in (nouns, adjectives)
    ])  # fmt: skip
    values = {"sizes": (14, 8), "mined_share": 0.5, "too_near": 0.4}
    found = run("csp", images, texts, words, groups=1, **values)
    assert_decisions(found, equations.neglabel(images, texts, [mined], SCALE))

    # Eleven words in two groups, shuffled in a way of the product's own: five each, one in none.
    found = run("csp", images, texts, words, groups=2, **values)
    errors = [
        abs(equations.neglabel(images[:5], texts, pair, SCALE) - found.id_score[:5]).max()
        for pair in halves(mined)
    ]
    [pair] = [pair for pair, error in zip(halves(mined), errors, strict=True) if error < 2e-6]
    assert_decisions(found, equations.neglabel(images, texts, pair, SCALE))


def halves(rows):
    """All pairs of groups of one size, with at most one row left over."""
    size, index = len(rows) // 2, range(len(rows))
    for first in itertools.combinations(index, size):
        rest = [row for row in index if row not in first]
        for second in itertools.combinations(rest, size):
            if first < second:
                yield rows[list(first)], rows[list(second)]


DDE = [
    {"batch": 16, "chosen": 3, "gap": 0.5, "beta": 0.5},
    {"batch": 7, "chosen": 3, "gap": 0.1, "beta": 0.0, "doubled": True, "grid": True},
    {"batch": 1, "chosen": 2, "gap": 0.3, "beta": 3.0},
]


def dde(images, texts, words, *, batch, chosen, gap, beta, doubled=False, grid=False, **kept):
    return run(
        "dde", images, texts, words, batch_size=batch, dde_words=chosen, dde_gate=gap,
        dde_exclusion=beta, dde_doubled=doubled, dde_cells="grid" if grid else "exact", **kept,
    )  # fmt: skip


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("values", DDE, ids=str)
def test_dde(kind, values):
    images, texts, words = STREAMS[kind]
    scores, is_noise, logits = equations.dde(images, texts, words, words, SCALE, **values)
    found = dde(images, texts, words, **values)
    np.testing.assert_allclose(found.id_score, scores, atol=2e-6)
    np.testing.assert_array_equal(found.is_noise, is_noise)
    np.testing.assert_array_equal(texts[found.class_index], texts[logits.argmax(axis=1)])


@pytest.mark.parametrize("seed", range(3))
def test_the_caches_of_dde_forget_their_first_entries(seed):
    # Which of the words leave first is the product's own choice.
    images, texts, words = made(seed, words=4)
    values = {"batch": 3, "chosen": 2, "gap": 0.3, "beta": 0.5}
    found = dde(images, texts, words, dde_cache=4, **values).id_score
    assert abs(found - dde(images, texts, words, **values).id_score).max() > 0.01
    orders = itertools.permutations(words)
    errors = [
        abs(equations.dde(images, texts, words, o, SCALE, cache=4, **values)[0] - found).max()
        for o in map(np.array, orders)
    ]
    assert min(errors) < 2e-6


# --- Syde ---------------------------------------------------------------------------------------


def starting_layer(texts, seed):
    """The log odds of noise of a detector that has learned nothing yet: weights and offset."""
    dim = texts.shape[1]
    probes = np.concatenate([np.zeros((1, dim)), np.eye(dim)])
    none = {"warmup": 0, "syde_entropy": 0.0, "update_every": len(probes) + 1}
    p = run("syde", probes, texts, seed=seed, **none).id_score
    odds = np.log((1 - p) / p)
    return np.append(odds[1:] - odds[0], odds[0])


def one_mean(items):
    return [np.mean(items, axis=0)] if items else []


SYDE = [
    {"every": 16, "warmup": 3},
    {"every": 17, "warmup": 0, "shots": 2, "gap": 0.2, "visual": 0.7, "rate": 0.02},
    {"every": 16, "warmup": 2, "most_entropy": 0.5, "rate": 0.02},
]


def syde(images, texts, injected, seed, *, every, warmup, rate=1e-3, shots=10, gap=0.5,
         most_entropy=4.0, visual=0.2, **of_map):  # fmt: skip
    return run(
        "syde", images, texts, injected=injected, seed=seed, update_every=every, warmup=warmup,
        learning_rate=rate, syde_shots=shots, syde_gap=gap, syde_entropy=most_entropy,
        syde_visual=visual, **of_map,
    )  # fmt: skip


@pytest.mark.parametrize("known", [0, 9])
@pytest.mark.parametrize("values", SYDE, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_syde_with_a_map_of_one_cell(seed, values, known):
    images, texts, _ = made(seed, items=203)
    injected = np.arange(203) % 9 == 0 if known else np.zeros(203, bool)
    layer = starting_layer(texts, seed)
    scores, is_noise, classes = equations.syde(
        images, texts, injected, SCALE, layer, one_mean, **values
    )
    found = syde(images, texts, injected, seed, syde_map=1, **values)
    np.testing.assert_allclose(found.id_score, scores, atol=5e-6)
    np.testing.assert_array_equal(found.is_noise, is_noise)
    np.testing.assert_array_equal(found.class_index, classes)


def test_syde_with_two_opposite_kinds_of_noise():
    """Each has a cell of its own, wherever a narrow map of nine cells starts."""
    rng = np.random.default_rng(0)
    texts = np.eye(2, 4)
    kinds = np.array([[1, 0, 0.1, 0], [0, 1, 0, 0.2], [0, 0, 0.6, 0.8], [0, 0, -0.6, -0.8]])
    kind = rng.integers(4, size=100)
    images = kinds[kind] * rng.uniform(2, 5, (100, 1))
    values = {"every": 15, "warmup": 1, "rate": 0.02}
    scores, is_noise, classes = equations.syde(
        images, texts, np.zeros(100, bool), SCALE, starting_layer(texts, 3),
        lambda items: np.unique(np.round(items, 6), axis=0) if items else [], **values,
    )  # fmt: skip
    found = syde(images, texts, None, 3, syde_map=3, syde_map_width=0.01, **values)
    np.testing.assert_allclose(found.id_score, scores, atol=5e-6)
    np.testing.assert_array_equal(found.is_noise, is_noise)
    np.testing.assert_array_equal(found.class_index, classes)
    assert is_noise[kind > 1][15:].mean() > 0.5


def test_the_first_step_of_syde_by_hand():
    """The first step of Adam is the rate in the direction of the gradient's sign.

    A ring of an ID image along axis 0 and of known noise along axis 2, both sure: the first
    weight of the odds of noise falls by twice the rate, the third one rises as much.
    """
    images, texts = np.array([[3, 0, 0, 0], [0, 0, 2, 0], [1, 0, 0, 0], [0, 0, 1, 0]]), np.eye(2, 4)
    injected = np.array([False, True, False, False])
    start = starting_layer(texts, 0)
    found = syde(images, texts, injected, 0, every=2, warmup=0, rate=0.05, syde_map=1)
    third, fourth = np.log((1 - found.id_score) / found.id_score)[2:]
    assert third - fourth == pytest.approx(start[0] - start[2] - 4 * 0.05, abs=1e-5)
