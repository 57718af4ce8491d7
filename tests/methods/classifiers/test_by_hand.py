"""Classifiers that adapt: numbers worked by hand, and the ranges of their settings."""

import numpy as np
import pytest
from streams import of_features

from zsntta_cli.methods import CLASSIFIERS
from zsntta_cli.methods.classifiers import bca, dla, dota, oga, onzeta
from zsntta_cli.methods.classifiers.adapting import Sample
from zsntta_cli.methods.classifiers.bca import BCA
from zsntta_cli.methods.classifiers.dla import DLA
from zsntta_cli.methods.classifiers.dota import DOTA
from zsntta_cli.methods.classifiers.oga import OGA
from zsntta_cli.methods.classifiers.onzeta import OnZeta


def classes(module, features, options, scale):
    data = of_features(features, np.eye(2), scale)
    return of_stream(module, data, options, np.ones(len(features), bool)).tolist()


def of_stream(module, data, options, offered):
    """The classes (T,) by a classifier of the package, which has its module's name."""
    return CLASSIFIERS[module.__name__.rpartition(".")[2]](data, options).classify(data, offered)


def test_onzetas_weights_even_the_classes_out():
    # q = (3/4, 1/4): ρ = 4 ln 9 · (0, 1/4), and then q is in proportion (3, 9).
    options = {"onzeta_prior_rate": 4 * np.log(9), "onzeta_mix": 0.0}
    twice = [[1, 0], [1, 0]]
    assert classes(onzeta, twice, OnZeta.Settings(**options), np.log(3)) == [0, 1]
    # Half of equal shares is 1/4, which class 1 has.
    half = OnZeta.Settings(onzeta_balance=0.5, **options)
    assert classes(onzeta, twice, half, np.log(3)) == [0, 0]


def test_onzetas_proxies_follow_the_images():
    # q = (0, 1), y = (0.45, 0.55): w_1 = (0, 1) + 4.5 v, at cosine 0.92 with the second; w_0 is
    # (1, 0) - 4.5 v, at a negative one.
    items = [[0.6, 0.8], [0.8, 0.6]]
    for rate, expected in ((10.0, [1, 1]), (0.0, [1, 0])):
        options = OnZeta.Settings(
            onzeta_proxy_rate=rate, onzeta_temperature=1.0, onzeta_mix=1.0, onzeta_mix_items=1
        )
        assert classes(onzeta, items, options, 1000.0) == expected


def test_dla_lowers_the_class_that_was_answered():
    # After the first item n = (2, 1), m_0 = 3/4. The second has p_0 = 0.525, so d = -0.225 and
    # class 0 has exp(-1.225 α / 3) of what class 1 keeps: 0.960 for α = 0.1, 0.721 for α = 0.8.
    items = [[1, 0], [0.75, 0.66]]
    for strength, expected in ((0.0, [0, 0]), (0.1, [0, 0]), (0.8, [0, 1])):
        assert classes(dla, items, DLA.Settings(dla_strength=strength), np.log(3)) == expected


def test_bcas_prior_is_moved_by_sure_items():
    # r = (0.8, 0.2): P_0 = ((1, 0) + (0.8, 0.2)) / 2 = (0.9, 0.1). Then r = (0.54, 0.46) gives
    # f = (0.486, 0.514).
    items = [[1, 0], [0.7625, 0.6470]]
    assert classes(bca, items, BCA.Settings(), np.log(4)) == [0, 1]
    assert classes(bca, items, BCA.Settings(bca_prior_least=0.8001), np.log(4)) == [0, 0]


def test_bcas_means_are_moved_by_their_items():
    # μ_1 = (0, 1) + (0.6, 0.8), at cosine 0.822 with the second item; μ_0 at 0.8.
    items = [[0.6, 0.8], [0.8, 0.6]]
    options = {"bca_prior_least": 1.0}
    assert classes(bca, items, BCA.Settings(bca_mean_items=1.0, **options), 5.0) == [1, 1]
    assert classes(bca, items, BCA.Settings(**options), 5.0) == [1, 0]
    unsure = BCA.Settings(bca_mean_items=1.0, bca_mean_least=0.99, **options)
    assert classes(bca, items, unsure, 5.0) == [1, 0]


def test_ogas_means_are_of_two_samples_or_the_text():
    # Λ = 2 I: ℓ = -|v - μ|². The third is at 0.08 of the first two's mean, at 0.4 of text 0, by
    # which the frozen model has it 0.2 nearer. Short means are (0.15, 0.2): at 0.5825.
    items = [[0.6, 0.8], [0.6, 0.8], [0.8, 0.6]]
    cases = [({"oga_scale": 1.0}, 1), ({"oga_scale": 0.5}, 0)]
    cases.append(({"oga_scale": 1.0, "oga_short_means": True}, 0))
    for options, third in cases:
        assert classes(oga, items, OGA.Settings(**options), 1.0) == [1, 1, third]
    assert classes(oga, items[1:], OGA.Settings(oga_scale=1.0), 1.0) == [1, 0]  # text 1: at 0.8


def of_class(c, x, entropy=0.1):
    """An item of a class, for OGA, which reads no more of it."""
    return Sample(np.array(x, float), np.zeros(2), np.full(2, 0.5), entropy, c)


def test_ogas_precision_is_of_deviations_from_means_texts_and_each_other():
    # A text at 0.5 and one sample at 1; samples at 2 and 4: deviations 0.5, -1, 1, of mean 1/6, so
    # that Σ has (n - 1) Σ = 2.25 - 1/12 = 13/6 and trace 13/12: Λ = 1 / (13/6 + 13/12) = 4/13.
    data = of_features(np.ones((1, 1)), np.array([[0.5], [0.7]]), 1.0)
    classifier = oga.OGA(data, OGA.Settings(oga_shots=3))
    for c, x in ((0, 1.0), (1, 2.0), (1, 4.0)):
        classifier.scores(of_class(c, [x]), learn=True)
    assert classifier.precision.item() == 1.0  # no class has more than two samples
    classifier.scores(of_class(1, [3.0]), learn=True)  # now -1, 1, 0, 0.5, of mean 1/8
    assert classifier.precision.item() == pytest.approx(1 / ((2.25 - 1 / 16) * (1 + 1 / 3)))


def test_dota_by_hand():
    options = DOTA.Settings(dota_variance=0.1, dota_shrinkage=0.5, dota_rate=0.3, dota_weight=0.5)
    classifier = dota.DOTA(of_features(np.eye(2), np.ones((1, 2)), 1.0), options)
    items = [Sample(x, np.zeros(1), np.ones(1), 0.0, 0) for x in np.eye(2)]
    scores = [classifier.scores(item, learn=True).item() for item in items]
    # Λ = 1 / (0.5 · 0.1 + 0.5) before the first item, whose mean is (0.001, 0.001); weight 0.3.
    assert scores[0] == pytest.approx(0.3 * (0.001 - 0.5 * 2e-6) / 0.55, rel=1e-9)
    one, two = np.array([0.999, -0.001]), np.array([-0.5005, 0.9995])
    first = (0.1 * np.eye(2) + np.outer(one, one)) / 2
    precision, mean = np.linalg.inv(0.5 * first + 0.5 * np.eye(2)), np.array([0.5005, 0.0005])
    second = 0.5 * (precision @ mean)[1] - 0.25 * mean @ precision @ mean  # of weight 0.5
    assert scores[1] == pytest.approx(second, rel=1e-6)
    expected = (0.1 * np.eye(2) + np.outer(one, one) + np.outer(two, two)) / 3
    np.testing.assert_allclose(classifier.mean_covariance, expected, rtol=1e-6)
