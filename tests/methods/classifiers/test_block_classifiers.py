"""StatA, TransCLIP and LAME: a block at a time, against loops over their equations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from reference import block_classifiers as reference
from reference.classifiers import frozen
from streams import of_features

from zsntta_cli.methods import CLASSIFIERS, METHODS
from zsntta_cli.methods.classifiers.lame import LAME, LAMESettings
from zsntta_cli.methods.classifiers.stata import StatA, StatASettings
from zsntta_cli.methods.classifiers.transclip import TransCLIP, TransCLIPSettings
from zsntta_cli.methods.classifiers.transduction import ACCEPTED
from zsntta_cli.settings import ThresholdSettings


def plain_stata(x, logits, texts, o):
    shared = (x, logits, texts, o.block_neighbours, o.block_smoothing, o.block_steps)
    return reference.gaussians(*shared, is_anchored=True)


def plain_transclip(x, logits, texts, o):
    shared = (x, logits, texts, o.block_neighbours, o.block_smoothing, o.block_steps)
    return reference.gaussians(*shared, is_anchored=False)


def plain_lame(x, logits, _texts, o):
    return reference.lame(x, logits, o.lame_neighbours, o.lame_strength, o.lame_steps)


CASES = {
    "stata": (StatA, StatASettings(block=20), plain_stata),
    "stata few": (
        StatA, StatASettings(block=20, block_neighbours=1, block_smoothing=3.0, block_steps=2),
        plain_stata,
    ),
    "transclip": (TransCLIP, TransCLIPSettings(block=20), plain_transclip),
    "lame": (LAME, LAMESettings(block=20), plain_lame),
    "lame strong": (LAME, LAMESettings(block=20, lame_neighbours=2, lame_strength=4.0), plain_lame),
}  # fmt: skip
NAMES = ("stata", "transclip", "lame")
SIZES = [(1, 7, 8), (2, 45, 5), (6, 41, 16)]  # classes, items, dims


def stream(classes, items, dim, seed=0, scale=20.0):
    rng = np.random.default_rng(seed)
    text = rng.normal(size=(classes, dim))
    text = (text / np.linalg.norm(text, axis=1, keepdims=True)).astype(np.float32)
    names = np.sort(rng.integers(classes, size=items))  # runs of a class
    features = text[names] + rng.normal(size=(items, dim)) / np.sqrt(dim)
    return of_features(10 * features, text, scale)


def by_reference(plain, data, options, taken):
    """Classes by one block after another."""
    features, logits, texts = frozen(data)
    features, logits = np.array(features), np.array(logits)
    classes = data.class_index.copy()
    for first in range(0, len(data), options.block):
        rows = [i for i in range(first, min(first + options.block, len(data))) if taken[i]]
        if rows:
            classes[rows] = plain(features[rows], logits[rows], texts, options).argmax(1)
    return classes


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_loops_over_its_equations(case, size):
    kind, options, plain = CASES[case]
    data, everything = stream(*size), np.ones(size[1], bool)
    named = kind(data, options).classify(data, np.zeros(size[1], bool))
    assert np.array_equal(named, by_reference(plain, data, options, everything))


@pytest.mark.parametrize("case", CASES)
def test_only_accepted_items_are_solved_for_where_that_is_asked(case):
    kind, options, plain = CASES[case]
    options = replace(options, block_takes=ACCEPTED)
    data, offered = stream(6, 90, 16), np.random.default_rng(1).random(90) < 0.6
    offered[20:40] = False  # a block without any
    named = kind(data, options).classify(data, offered)
    assert np.array_equal(named, by_reference(plain, data, options, offered))
    assert np.array_equal(named[~offered], data.class_index[~offered])


@pytest.mark.parametrize("case", CASES)
def test_injected_noise_is_never_solved_for(case):
    kind, options, _ = CASES[case]
    data = stream(4, 60, 12)
    injected = np.arange(60) % 9 == 8
    with_noise = replace(data, injected=injected)
    features = data.features(slice(None)).copy()
    features[injected] = np.random.default_rng(5).normal(size=(injected.sum(), 12))
    other = replace(of_features(features, data.pool.text_features, 20.0), injected=injected)
    offered = ~injected
    first, second = (kind(d, options).classify(d, offered)[offered] for d in (with_noise, other))
    assert np.array_equal(first, second)


def test_it_is_another_answer_than_the_frozen_models():
    data = stream(6, 200, 16, scale=8.0)
    for kind, options, _ in CASES.values():
        assert (kind(data, options).classify(data, np.ones(200, bool)) != data.class_index).any()


@given(st.sampled_from(NAMES), st.integers(1, 30), st.integers(1, 70), st.integers(0, 50))
@hypothesis_settings(max_examples=40, deadline=None)
def test_no_class_depends_on_a_later_block(name, block, items, seed):
    data = stream(4, items, 12, seed)
    method = METHODS[f"zs-clip+{name}"]
    options = method.settings(block=block)
    assert options.at_once - 1 == block - 1
    whole = method(data, options, ThresholdSettings()).push(data)
    cut = items // block * block
    before = method(data.part(slice(cut)), options, ThresholdSettings()).push(data.part(slice(cut)))
    assert np.array_equal(whole.class_index[:cut], before.class_index)


def test_an_items_class_may_depend_on_the_last_item_of_its_block():
    options = LAMESettings(block=30, lame_strength=3.0)
    changed = 0
    for seed in range(20):
        data = stream(3, 30, 8, seed, scale=4.0)
        first = data.part(slice(29))
        without = LAME(first, options).classify(first, np.ones(29, bool))
        changed += (LAME(data, options).classify(data, np.ones(30, bool))[:29] != without).any()
    assert changed


@pytest.mark.parametrize("name", NAMES)
def test_a_block_of_two_methods_is_whole_in_both(name):
    method = METHODS[f"adand+{name}"]
    assert method.settings().at_once - 1 == 63
    assert method.settings(block=6, batch_size=4).at_once - 1 == 11
    assert METHODS["adand"].settings().at_once - 1 == 0
    assert name in CLASSIFIERS


def test_equal_items_share_a_class():
    text = np.eye(3, dtype=np.float32)
    features = np.tile([[0.6, 0.59, 0.1]], (12, 1))
    data = of_features(features, text, 10.0)
    for kind, options, _ in CASES.values():
        assert len(set(kind(data, options).classify(data, np.ones(12, bool)).tolist())) == 1


def test_a_few_neighbours_of_a_class_win_over_a_slip():
    """Nine images of class 0 and one that the frozen model takes for class 1."""
    text = np.eye(2, dtype=np.float32)
    clear, slip = [1.0, 0.8], [0.86, 0.88]
    data = of_features(np.array([clear] * 9 + [slip]), text, 5.0)
    assert data.class_index[-1] == 1
    for kind, options, _ in CASES.values():
        assert not kind(data, options).classify(data, np.ones(10, bool)).any()
