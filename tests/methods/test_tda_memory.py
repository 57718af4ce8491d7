"""TDA's caches: what a key speaks for is sparse, so that memory grows with the classes only."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.classifiers import tda
from zsntta_cli.methods.classifiers.tda import TDASettings
from zsntta_cli.methods.scores import zero_shot

OPTIONS = TDASettings()
STRONG = TDASettings(negative_alpha=3.0, positive_alpha=4.0, mask_low=0.005)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def stream(classes, items, dim, scale, seed=0):
    """Noisy mixtures of two class texts each, so that all degrees of doubt occur."""
    generator = np.random.default_rng(seed)
    text = unit(generator.standard_normal((classes, dim))).astype(np.float32)
    first, second = generator.integers(0, classes, (2, items))
    mixed = text[first] + text[second] * generator.uniform(0, 1, (items, 1))
    images = (mixed + 1.5 * unit(generator.standard_normal((items, dim)))).astype(np.float32)
    pool = Pool(images, text, scale, zero_shot(images, text, scale))
    return StreamData(pool, np.arange(items), np.zeros(items, np.bool_))


class DenseCache:
    """A cache that keeps every key with a row of all classes, and goes item by item."""

    def __init__(self, classes, dim, shots, alpha, beta):
        self.shots, self.alpha, self.beta, self.samples = shots, alpha, beta, {}

    def adapt(self, features, label, entropy, values, offered):
        logits = np.zeros(values.shape, np.float32)
        for i, feature in enumerate(features):
            if offered[i]:
                self.offer(int(label[i]), (entropy[i], feature, values[i].astype(np.float32)))
            for _, key, value in (s for c in sorted(self.samples) for s in self.samples[c]):
                logits[i] += value * self.alpha * np.exp(-self.beta * (1 - key @ feature))
        return logits

    def offer(self, label, sample):
        kept = self.samples.setdefault(label, [])
        if len(kept) >= self.shots and kept and sample[0] < kept[-1][0]:
            kept.pop()
        if len(kept) < self.shots:
            kept.append(sample)
            kept.sort(key=lambda s: s[0])


@pytest.mark.parametrize("options", [OPTIONS, STRONG, replace(STRONG, positive_shots=0)])
@pytest.mark.parametrize(("classes", "scale"), [(3, 4.0), (20, 8.0), (60, 12.0)])
def test_sparse_caches_decide_as_dense_ones(monkeypatch, options, classes, scale):
    data = stream(classes, 700, 24, scale, seed=classes)
    offered = np.random.default_rng(1).random(len(data)) < 0.8
    sparse = tda.TDA(data, options).classify(data, offered)
    monkeypatch.setattr(tda, "Cache", DenseCache)
    assert np.array_equal(sparse, tda.TDA(data, options).classify(data, offered))
    assert options is not STRONG or (sparse != data.class_index).any(), "no cache is at work"


def test_products_of_few_keys_give_the_same(monkeypatch):
    data = stream(30, 900, 24, 10.0)
    offered = np.ones(len(data), np.bool_)
    together = tda.TDA(data, STRONG).classify(data, offered)
    monkeypatch.setattr(tda, "_KEYS", 7)
    assert np.array_equal(tda.TDA(data, STRONG).classify(data, offered), together)


def test_an_entry_that_is_replaced_within_its_block_counts_until_then():
    cache = tda.Cache(classes=2, dim=2, shots=1, alpha=2.0, beta=5.0)
    features = np.array([[1, 0], [0.6, 0.8], [0.6, 0.8]], np.float32)
    values = np.array([[True, False], [False, False], [True, True]])
    entropy, label = np.array([0.5, 0.4, 0.3], np.float32), np.zeros(3, np.int32)
    logits = cache.adapt(features, label, entropy, values, np.ones(3, np.bool_))
    # The second speaks for nothing, and the first is gone by then.
    np.testing.assert_allclose(logits, [[2, 0], [0, 0], [2, 2]], rtol=1e-6)
    nobody = np.zeros(1, np.bool_)
    later = cache.adapt(features[:1], label[:1], entropy[:1], values[:1], nobody)
    np.testing.assert_allclose(later, [[2 * np.exp(-2), 2 * np.exp(-2)]], rtol=1e-6)


def peak(classes):
    """Bytes that a block takes at most beside its stream."""
    data = stream(classes, 64, 16, 10.0)
    tracemalloc.start()
    try:
        tda.TDA(data, OPTIONS).classify(data, np.ones(len(data), np.bool_))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_linear_in_the_classes():
    peak(10)  # the compiled part is loaded
    small, large = peak(2_000), peak(8_000)
    assert large < 5 * small  # with dense values 16 times
    assert large < 64 * 2**20  # 3 x 8,000 x 8,000 values are 183 MiB
