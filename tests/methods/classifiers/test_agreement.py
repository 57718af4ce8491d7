"""Each classifier that adapts against its item-by-item reference, and what holds for all."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from learned import equal
from reference import classifiers as reference
from streams import of_features

from zsntta_cli.methods import CLASSIFIERS, METHODS
from zsntta_cli.methods.classifiers import bca, dla, dmn, dota, oga, onzeta
from zsntta_cli.methods.classifiers.bca import BCASettings
from zsntta_cli.methods.classifiers.dla import DLASettings
from zsntta_cli.methods.classifiers.dmn import DMNSettings
from zsntta_cli.methods.classifiers.dota import DOTASettings
from zsntta_cli.methods.classifiers.oga import OGASettings
from zsntta_cli.methods.classifiers.onzeta import OnZetaSettings
from zsntta_cli.settings import ThresholdSettings


def official(settings):
    """What the released code of a method takes."""
    [kind] = [kind for kind in CLASSIFIERS.values() if kind.Settings is type(settings)]
    return replace(settings, **kind.official)


CASES = {
    "oga": (oga, OGASettings(), reference.oga),
    "oga official": (oga, official(OGASettings()), reference.oga),
    "oga rarely": (oga, OGASettings(oga_every=128, oga_shots=4), reference.oga),
    "oga short": (oga, OGASettings(oga_every=7, oga_short_means=True), reference.oga),
    "oga strong": (oga, OGASettings(oga_every=20, oga_scale=0.5), reference.oga),
    "onzeta": (onzeta, OnZetaSettings(), reference.onzeta),
    "onzeta official": (onzeta, official(OnZetaSettings()), reference.onzeta),
    "onzeta soon": (
        onzeta, OnZetaSettings(onzeta_mix_items=50, onzeta_balance=0.4), reference.onzeta,
    ),
    "onzeta proxies": (
        onzeta, OnZetaSettings(onzeta_mix=1.0, onzeta_mix_items=1, onzeta_balance=0.0),
        reference.onzeta,
    ),
    "bca": (bca, BCASettings(), reference.bca),
    "bca moving": (bca, BCASettings(bca_mean_items=2.0, bca_prior_least=0.3), reference.bca),
    "dla": (dla, DLASettings(), reference.dla),
    "dla strong": (dla, DLASettings(dla_strength=5.0), reference.dla),
    "dmn": (dmn, DMNSettings(dmn_sharpness=1.0), reference.dmn),
    "dmn few": (dmn, DMNSettings(dmn_shots=2, dmn_sharpness=20.0), reference.dmn),
    "dota": (dota, DOTASettings(dota_every=20), reference.dota),
    "dota each": (dota, DOTASettings(dota_weight=0.4), reference.dota),
    "dota rarely": (dota, DOTASettings(dota_every=128), reference.dota),
}  # fmt: skip
SIZES = [(1, 20, 8), (2, 100, 5), (10, 120, 16), (60, 60, 80)]  # classes, items, dims


def stream(classes, items, dim, seed=0, scale=30.0):
    """Images about their text and a shift that all of them share; the last is a zero feature."""
    rng = np.random.default_rng(seed)
    text = rng.normal(size=(classes, dim))
    text = (text / np.linalg.norm(text, axis=1, keepdims=True)).astype(np.float32)
    shift = rng.normal(size=dim) / np.sqrt(dim)
    features = text[rng.integers(classes, size=items)] + shift
    features = 10 * (features + rng.normal(size=(items, dim)) / np.sqrt(dim))
    return of_features(np.append(features[:-1], np.zeros((1, dim)), axis=0), text, scale)


def classes(module, data, options, offered):
    """The classes (T,) by a classifier of the package, which has its module's name."""
    return CLASSIFIERS[module.__name__.rpartition(".")[2]](data, options).classify(data, offered)


def some(items, seed, share=0.7):
    return np.random.default_rng(seed).random(items) < share


def assert_best(class_index, scores):
    """The classes are those of the largest scores, up to what float32 logits leave open."""
    chosen = np.take_along_axis(scores, class_index[:, None].astype(int), axis=1)[:, 0]
    np.testing.assert_allclose(chosen, scores.max(axis=1), atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_its_reference(case, size):
    module, options, plain = CASES[case]
    for seed in range(2 if size[0] < 60 else 1):
        data, offered = stream(*size, seed), some(size[1], seed)
        scores = plain(data, options, offered)
        assert_best(classes(module, data, options, offered), scores)


@pytest.mark.parametrize("case", CASES)
def test_the_agreement_is_on_other_classes_than_the_frozen_models(case):
    module, options, _ = CASES[case]
    data = stream(10, 300, 24, scale=12.0)
    changed = classes(module, data, options, np.ones(300, bool)) != data.class_index
    assert changed.any()


@pytest.mark.parametrize("case", CASES)
def test_nothing_offered_is_the_frozen_model_and_what_is_not_offered_changes_nothing(case):
    module, options, _ = CASES[case]
    data, offered = stream(6, 200, 12, scale=12.0), some(200, 5)
    none = np.zeros(200, bool)
    assert np.array_equal(classes(module, data, options, none), data.class_index)
    features = data.features(slice(None)).copy()
    features[~offered] = np.random.default_rng(8).normal(size=(np.sum(~offered), 12))
    other = of_features(features, data.pool.text_features, 12.0)
    first, second = (classes(module, d, options, offered)[offered] for d in (data, other))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("oga")])
def test_an_item_is_learned_after_it_was_classified(case):
    module, options, _ = CASES[case]
    data, offered = stream(6, 150, 12, scale=12.0), some(150, 6)
    known = classes(module, data, options, offered)
    for item in (0, 40, 100, 148):
        other = offered.copy()
        other[item] = not offered[item]
        changed = classes(module, data, options, other)
        assert np.array_equal(changed[: item + 1], known[: item + 1])


@pytest.mark.parametrize("case", CASES)
def test_a_stream_in_pieces_is_classified_as_in_one_and_another_goes_on_from_a_pickle(case):
    module, options, _ = CASES[case]
    line = CLASSIFIERS[module.__name__.rpartition(".")[2]]
    data, offered = stream(10, 260, 24, 3, 12.0), some(260, 3)
    whole = classes(module, data, options, offered)
    for cuts in (range(1, 260), (7, 64, 65, 200), (128, 256)):
        online, parts = line(data, options), []
        for start, stop in itertools.pairwise((0, *cuts, 260)):
            part = slice(start, stop)
            parts.append(online.classify(data.part(part), offered[part]))
            other = pickle.loads(pickle.dumps(online))
            assert equal(online, other)
            online = other
        assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "tda"])
def test_alone_it_is_behind_zs_clip(name):
    data = replace(stream(5, 120, 10), injected=some(120, 1, 0.1))
    alone, settings = METHODS[name], METHODS[name].settings()
    threshold = ThresholdSettings(queue=64)
    one, other = (
        METHODS[n](data, settings, threshold).push(data) for n in (name, f"zs-clip+{name}")
    )
    assert np.array_equal(one.class_index, other.class_index)
    assert np.array_equal(
        one.is_noise, METHODS["zs-clip"](data, settings.detector, threshold).push(data).is_noise
    )
    assert alone.decides
    assert name in METHODS


def test_onzeta_of_the_whole_stream_counts_its_items_without_injected_ones():
    data = stream(10, 300, 24, scale=12.0)
    injected = some(300, 9, 0.2)
    own = replace(data, injected=injected)
    whole = classes(onzeta, own, OnZetaSettings(onzeta_mix_items=0), ~injected)
    given = OnZetaSettings(onzeta_mix_items=int((~injected).sum()))
    assert np.array_equal(whole, classes(onzeta, own, given, ~injected))
    assert (whole != classes(onzeta, own, OnZetaSettings(), ~injected)).any()
