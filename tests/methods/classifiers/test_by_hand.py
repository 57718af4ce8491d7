"""Classifiers that adapt: numbers worked by hand, and the ranges of their settings."""

import numpy as np
from streams import of_features

from zsntta_cli.methods import CLASSIFIERS
from zsntta_cli.methods.classifiers import bca, dla, oga, onzeta
from zsntta_cli.methods.classifiers.bca import BCA
from zsntta_cli.methods.classifiers.dla import DLA
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
