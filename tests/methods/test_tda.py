"""TDA against a per-sample reference, the released code's decisions and AdaND's detector."""

from unittest import mock

import numpy as np
import pytest
import released
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import decide, of_features

from zsntta_cli.methods.classifiers import tda
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings

RULE = ThresholdSettings()


def random_stream(classes, items, dim=6, distinct=1000, scale=8.0, seed=0):
    """Items drawn from `distinct` images, so that few of those mean many exact duplicates."""
    generator = np.random.default_rng(seed)
    text = unit(generator.standard_normal((classes, dim)))
    images = 10 * generator.standard_normal((distinct, dim))
    return of_features(images[generator.integers(0, distinct, items)], text, scale)


def offer(cache, label, sample, shots):
    """Add (entropy, feature, value), or replace the sample of most entropy if that has more."""
    samples = cache.setdefault(label, [])
    if len(samples) < shots:
        samples.append(sample)
    elif shots and sample[0] < samples[-1][0]:
        samples[-1] = sample
    samples.sort(key=lambda s: s[0])


def cache_logits(cache, feature, alpha, beta):
    samples = [sample for of_a_class in cache.values() for sample in of_a_class]
    return sum(alpha * np.exp(-beta * (1 - feature @ key)) * value for _, key, value in samples)


def reference(data, o, offered):
    """Adapted logits (T, C)."""
    text = data.text_features.astype(np.float64)
    positive, negative, adapted = {}, {}, []
    for i, raw in enumerate(data.features(slice(None)).astype(np.float64)):
        feature = raw / np.linalg.norm(raw)
        logits = data.logit_scale * text @ feature
        p = np.exp(logits) / np.exp(logits).sum()
        entropy, label = -(p * np.log(p)).sum(), int(data.class_index[i])
        if offered[i]:
            offer(positive, label, (entropy, feature, np.eye(len(p))[label]), o.positive_shots)
            if o.entropy_low < entropy / np.log2(len(p)) < o.entropy_high:
                mask = (o.mask_low < p) & (p < o.mask_high)
                offer(negative, label, (entropy, feature, mask), o.negative_shots)
        logits += cache_logits(positive, feature, o.positive_alpha, o.positive_beta)
        logits -= cache_logits(negative, feature, o.negative_alpha, o.negative_beta)
        adapted.append(logits)
    return np.array(adapted)


def assert_best(class_index, logits):
    """The classes are those of the largest logits, up to float32."""
    chosen = np.take_along_axis(logits, class_index[:, None].astype(int), axis=1)[:, 0]
    np.testing.assert_allclose(chosen, logits.max(axis=1), atol=1e-4)


STRONG = {"negative_alpha": 3.0, "positive_alpha": 4.0, "mask_low": 0.3}


@settings(max_examples=60, deadline=None)
@given(
    classes=st.integers(2, 6) | st.just(60),
    items=st.integers(1, 60),
    distinct=st.integers(1, 60),
    scale=st.sampled_from([1.0, 4.0, 8.0, 20.0]),
    values=st.sampled_from([{}, STRONG, {**STRONG, "positive_shots": 0}]),
    block=st.sampled_from([1, 7, 512]),
    seed=st.integers(0, 1 << 30),
)
def test_blocks_equal_single_samples(classes, items, distinct, scale, values, block, seed):
    data = random_stream(classes, items, distinct=distinct, scale=scale, seed=seed)
    offered = np.random.default_rng(seed).random(items) < 0.7
    options = tda.TDA.Settings(**values)
    with mock.patch.object(tda, "_BLOCK", block):
        class_index = tda.TDA(data, options).classify(data, offered)
    assert_best(class_index, reference(data, options, offered))


def test_three_neighbours_outvote_the_frozen_model_by_hand():
    # Logits are the cosines. The fourth item is closer to text 0, by 0.8 to 0.6, and has itself in
    # class 0's cache, 2.8 in all; class 1 has 0.6 + 3 * 2 exp(-5 (1 - 0.96)) = 5.51.
    data = of_features([[0.6, 0.8]] * 3 + [[0.8, 0.6]], np.eye(2), 1.0)
    assert data.class_index.tolist() == [1, 1, 1, 0]
    for shots, fourth in ((3, 1), (1, 0)):  # of one shot 0.6 + 1.64 < 2.8
        found, _ = decide("tda", data, RULE, positive_shots=shots)
        assert found.class_index.tolist() == [1, 1, 1, fourth]


def test_uncertain_samples_speak_against_their_likely_classes_by_hand():
    # Logits 6 and 8: probabilities 0.119 and 0.881, entropy 0.365 nats, over log2(2) = 1: within
    # the window. With the mask from 0.2 each speaks against class 1: 8 - 1.5, then 8 - 3.
    values = {"positive_shots": 0, "negative_alpha": 1.5, "mask_low": 0.2}
    data = of_features([[0.6, 0.8]] * 2, np.eye(2), 10.0)
    for change, second in (({}, 0), ({"entropy_low": 0.37}, 1), ({"mask_high": 0.85}, 1)):
        found, _ = decide("tda", data, RULE, **values, **change)
        assert found.class_index.tolist() == [1, second]


@pytest.mark.parametrize("name", ["k10", "k100"])
def test_every_decision_is_the_released_codes(name):
    vectors = released.stream(name)
    features = vectors["features"][vectors["targets"] != -1000]
    data = of_features(features, vectors["text_features"], float(vectors["logit_scale"]))
    assert vectors["tda/params"].tolist() == [1, 128, 10, 512]  # batch size, L, N, N_q
    official = ThresholdSettings(queue=512, degenerate="zero")
    decisions, _ = decide("tda", data, official)
    predicted = np.where(decisions.is_noise, -1, decisions.class_index)
    assert np.array_equal(predicted, vectors["tda/prediction"])
    np.testing.assert_allclose(decisions.id_score, vectors["tda/id_score"], atol=1e-4)
    if name == "k100":  # no decision of k10 needs the caches
        assert (decisions.class_index != data.class_index)[~decisions.is_noise].mean() > 0.1
