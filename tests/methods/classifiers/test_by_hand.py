"""Classifiers that adapt: numbers worked by hand, and the ranges of their settings."""

import numpy as np
import pytest
from streams import of_features

from zsntta_cli.methods import CLASSIFIERS, METHODS
from zsntta_cli.methods.classifiers import bca, blocks, dla, dmn, dota, oga, onzeta
from zsntta_cli.methods.classifiers.bca import BCASettings
from zsntta_cli.methods.classifiers.dla import DLASettings
from zsntta_cli.methods.classifiers.dmn import DMNSettings
from zsntta_cli.methods.classifiers.dota import DOTASettings
from zsntta_cli.methods.classifiers.oga import OGASettings
from zsntta_cli.methods.classifiers.onzeta import OnZetaSettings


def classes(module, features, options, scale):
    data = of_features(features, np.eye(2), scale)
    return of_stream(module, data, options, np.ones(len(features), bool)).tolist()


def of_stream(module, data, options, offered):
    """The classes (T,) by a classifier of the package, which has its module's name."""
    return CLASSIFIERS[module.__name__.rpartition(".")[2]].load()(data, options, offered)


def test_onzetas_weights_even_the_classes_out():
    # q = (3/4, 1/4): ρ = 4 ln 9 · (0, 1/4), and then q is in proportion (3, 9).
    options = {"onzeta_prior_rate": 4 * np.log(9), "onzeta_mix": 0.0}
    twice = [[1, 0], [1, 0]]
    assert classes(onzeta, twice, OnZetaSettings(**options), np.log(3)) == [0, 1]
    # Half of equal shares is 1/4, which class 1 has.
    half = OnZetaSettings(onzeta_balance=0.5, **options)
    assert classes(onzeta, twice, half, np.log(3)) == [0, 0]


def test_onzetas_proxies_follow_the_images():
    # q = (0, 1), y = (0.45, 0.55): w_1 = (0, 1) + 4.5 v, at cosine 0.92 with the second; w_0 is
    # (1, 0) - 4.5 v, at a negative one.
    items = [[0.6, 0.8], [0.8, 0.6]]
    for rate, expected in ((10.0, [1, 1]), (0.0, [1, 0])):
        options = OnZetaSettings(
            onzeta_proxy_rate=rate, onzeta_temperature=1.0, onzeta_mix=1.0, onzeta_mix_items=1
        )
        assert classes(onzeta, items, options, 1000.0) == expected


def test_onzetas_mix_grows_with_the_offered_items():
    # The third item's weight is √(3/4) of the proxies', the first's 1/2; both are of two images.
    items = [[0.6, 0.8], [0.6, 0.8], [0.8, 0.6]]
    options = {"onzeta_proxy_rate": 10.0, "onzeta_prior_rate": 0.0, "onzeta_temperature": 1.0}
    mixed = [OnZetaSettings(onzeta_mix=1.0, onzeta_mix_items=n, **options) for n in (4, 400)]
    assert [classes(onzeta, items, o, 10.0)[2] for o in mixed] == [1, 0]


def test_dla_lowers_the_class_that_was_answered():
    # After the first item n = (2, 1), m_0 = 3/4. The second has p_0 = 0.525, so d = -0.225 and
    # class 0 has exp(-1.225 α / 3) of what class 1 keeps: 0.960 for α = 0.1, 0.721 for α = 0.8.
    items = [[1, 0], [0.75, 0.66]]
    for strength, expected in ((0.0, [0, 0]), (0.1, [0, 0]), (0.8, [0, 1])):
        assert classes(dla, items, DLASettings(dla_strength=strength), np.log(3)) == expected


def test_dmn_keeps_the_surest_images_of_a_class():
    # The mean of class 1's text and memory: with both images (0.48, 1.14) in direction, with the
    # surer one alone (0.28, 1.96); the last item, of class 0 by a hair, is nearer to the first.
    items = [[0.28, 0.96], [0.68, 0.733], [0.7072, 0.707]]
    sharpness = {"dmn_sharpness": 0.0}
    for shots in (1, 2):
        options = DMNSettings(dmn_shots=shots, **sharpness)
        likeness = dmn_likeness(items, shots)
        assert classes(dmn, items, options, 100.0)[2] == int(likeness[1] > likeness[0])


def dmn_likeness(items, shots):
    """Cosines of the last item with both classes' means, of the rows that they keep."""
    memory = {0: [[1, 0], items[2]], 1: [[0, 1], *items[: min(shots, 2)]]}
    means = [np.sum(rows, axis=0) for rows in memory.values()]
    return [np.dot(mean, items[2]) / np.linalg.norm(mean) for mean in means]


def test_bcas_prior_is_moved_by_sure_items():
    # r = (0.8, 0.2): P_0 = ((1, 0) + (0.8, 0.2)) / 2 = (0.9, 0.1). Then r = (0.54, 0.46) gives
    # f = (0.486, 0.514).
    items = [[1, 0], [0.7625, 0.6470]]
    assert classes(bca, items, BCASettings(), np.log(4)) == [0, 1]
    assert classes(bca, items, BCASettings(bca_prior_least=0.8001), np.log(4)) == [0, 0]


def test_bcas_means_are_moved_by_their_items():
    # μ_1 = (0, 1) + (0.6, 0.8), at cosine 0.822 with the second item; μ_0 at 0.8.
    items = [[0.6, 0.8], [0.8, 0.6]]
    options = {"bca_prior_least": 1.0}
    assert classes(bca, items, BCASettings(bca_mean_items=1.0, **options), 5.0) == [1, 1]
    assert classes(bca, items, BCASettings(**options), 5.0) == [1, 0]
    unsure = BCASettings(bca_mean_items=1.0, bca_mean_least=0.99, **options)
    assert classes(bca, items, unsure, 5.0) == [1, 0]


def test_ogas_means_are_of_two_samples_or_the_text():
    # Λ = 2 I: ℓ = -|v - μ|². The third is at 0.08 of the first two's mean, at 0.4 of text 0, by
    # which the frozen model has it 0.2 nearer. Short means are (0.15, 0.2): at 0.5825.
    items = [[0.6, 0.8], [0.6, 0.8], [0.8, 0.6]]
    cases = [({"oga_scale": 1.0}, 1), ({"oga_scale": 0.5}, 0)]
    cases.append(({"oga_scale": 1.0, "oga_short_means": True}, 0))
    for options, third in cases:
        assert classes(oga, items, OGASettings(**options), 1.0) == [1, 1, third]
    assert classes(oga, items[1:], OGASettings(oga_scale=1.0), 1.0) == [1, 0]  # text 1: at 0.8


def test_ogas_memory_keeps_the_lowest_entropies():
    memory = oga.OGAMemory(2, 1, 2)
    offers = [(0.7, 9.0), (0.5, 1.0), (0.6, 2.0), (0.6, 3.0), (0.1, 4.0)]  # ln 2 is 0.693
    entered = [memory.offer(0, entropy, np.array([x])) for entropy, x in offers]
    assert entered == [False, True, True, False, True]
    assert memory.count.tolist() == [2, 0]
    assert memory.sums[:, 0].tolist() == [5.0, 0.0]
    assert memory.scatter().item() == 17.0
    assert not memory.changed


@pytest.mark.parametrize(
    ("scatter", "count", "expected"),
    [
        ([2.0, 0.0], 3, [2 / 3, 2.0]),  # Σ = (1, 0), of trace 1: 2 / (2 Σ + 1)
        ([16.0, 0.0], 9, [0.5, 0.0]),  # more than 4 D: the pseudo-inverse of (2, 0)
        ([0.0, 0.0], 3, [0.0, 0.0]),
    ],
)
def test_ogas_precision(scatter, count, expected):
    gaussians = oga.OGAGaussians(np.eye(2), OGASettings())
    gaussians._whiten_by(np.diag(scatter), count)
    rows = gaussians.whiten(np.eye(2))
    np.testing.assert_allclose(rows @ rows.T, np.diag(expected), atol=1e-12)


@pytest.mark.parametrize("memory", [512, 0])
def test_dota_by_hand(memory):
    options = DOTASettings(
        dota_variance=0.1, dota_shrinkage=0.5, dota_rate=0.3, dota_weight=0.5, dota_memory=memory
    )
    gaussians = dota.DOTAGaussians(1, 2, options)
    logits = gaussians.learn(np.eye(2), np.ones((2, 1)))
    # Λ = 1 / (0.5 · 0.1 + 0.5); means (0.001, 0.001), then (1.001, 0.001) / 2; weights 0.3, 0.5.
    first = 0.3 * (0.001 - 0.5 * 2e-6) / 0.55
    second = 0.5 * (0.0005 - 0.5 * (0.5005**2 + 0.0005**2)) / 0.55
    np.testing.assert_allclose(logits[:, 0], [first, second], rtol=1e-9)
    one, two = np.array([0.999, -0.001]), np.array([-0.5005, 0.9995])
    expected = (0.1 * np.eye(2) + np.outer(one, one) + np.outer(two, two)) / 3
    np.testing.assert_allclose(gaussians.covariance.mean(gaussians.count), expected, rtol=1e-6)


def test_ogas_deviations_are_from_means_texts_and_each_other():
    # A text at 0.5 and one sample at 1; samples at 2 and 4: deviations 0.5, -1, 1, of mean 1/6.
    gaussians = oga.OGAGaussians(np.array([[0.5], [0.7]]), OGASettings())
    for label, x in ((0, 1.0), (1, 2.0), (1, 4.0)):
        assert gaussians.memory.offer(label, 0.1, np.array([x]))
        gaussians.changed[label] = True
        gaussians._update_sums()
    scatter = gaussians._centred()
    np.testing.assert_allclose(scatter, [[2.25 - 3 / 36]])


@pytest.mark.parametrize(("module", "first"), [(oga, [2, 5]), (dota, [3, 6])])
def test_a_covariance_is_made_with_the_item_that_completes_it(monkeypatch, module, first):
    """OGA's is there for that item, DOTA's for the next one."""
    offered, found = np.array([0, 1, 1, 0, 1, 1, 0], bool), []
    cut = module.cut

    def watched(*given):
        for part, renews in cut(*given):
            found.extend([part.start] * renews)
            yield part, renews

    monkeypatch.setattr(module, "cut", watched)
    options = {oga: OGASettings(oga_every=2), dota: DOTASettings(dota_every=2)}[module]
    of_stream(module, of_features(np.ones((7, 2)), np.eye(2), 5.0), options, offered)
    assert found == first


def test_whitened_rows_multiply_as_by_the_precision():
    rng = np.random.default_rng(0)
    covariance, rows = np.cov(rng.normal(size=(5, 40))), rng.normal(size=(3, 5))
    whiten = blocks.Whitening(5, 1.0)
    for change in (whiten.by_inverse, whiten.by_pseudo_inverse):
        change(covariance)
        expected = rows @ np.linalg.inv(covariance) @ rows.T
        np.testing.assert_allclose(whiten(rows) @ whiten(rows).T, expected, rtol=1e-9)


@pytest.mark.parametrize(("method", "said"), [("adand+dota", True), ("dota", True), ("tda", False)])
def test_a_note_says_that_covariances_are_pooled(method, said):
    options = METHODS[method].settings_class()
    assert not METHODS[method].note(options, 10, 512)
    note = METHODS[method].note(options, 1000, 512)
    assert bool(note) == said
    if said:
        assert note.startswith("has one covariance of all classes")
        assert note.endswith("1,000 classes of 512 dims take more than 512 MB (dota-memory)")
