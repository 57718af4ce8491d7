"""DDE, "Dual Distribution Estimation", ECCV 2026, arXiv 2606.25758: noise by words, and classes.

Noise: an image's activation of a word is the word's part of the softmax over names and words. Two
caches keep the activations by the last images that are surely ID and surely noise. The words with
the largest difference of means, noise minus ID, join the names; their share of the softmax is the
noise score. A batch chooses words, the shares tell which of its items are sure, these move
both means a little, and the batch chooses words again and is scored.

Classes: the logits are the frozen model's, plus the log densities of Gaussians learned from each
item's most probable class, minus those of Gaussians learned from the second. As in
the released code, all items of a batch, noise too, are learned before they are classified.

The ID cache starts with the class names, and the noise cache with 15 random words in place of the
paper's 15 noise images, which only an encoder can make. Injected noise enters it whatever its
score, and is learned for no class.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.classifiers.adapting import frozen
from zsntta_cli.methods.detectors.cull import otsu
from zsntta_cli.methods.method import AT_ONCE, WORDS, Method
from zsntta_cli.methods.scores import Features, Floats, blocks, cosine_logits, softmax
from zsntta_cli.methods.words import vocabulary
from zsntta_cli.settings.options import amount, choice, count, option, share

_FIRST_NOISE = 15  # words in place of the paper's noise images
_SURELY_NOISE = 0.10  # share of the names below which an item is surely noise, as released
_MOMENTUM = 0.95  # weight of the mean activations beside those of a batch
_FIRST_VARIANCE = 0.002
_SHRINKAGE = 1e-4  # ε
_RATE, _MOST_WEIGHT = 0.005, 0.2  # growth and limit of the Gaussians' weight


class ClassGaussians:
    """Gaussians of the classes, learned from weighted items: n (C,), μ (C, D), S (C, D, D).

    Means start at the texts, covariances at 0.002 I, counts at 1. All classes share one precision
    Λ = ((1 - ε) mean_c Σ_c + ε I)⁻¹, n_c Σ_c = 0.002 I + S_c, where S_c is kept in single
    precision. The system allocates memory when it is written: classes without items take none.
    """

    def __init__(self, texts: Floats) -> None:
        classes, dim = texts.shape
        self.means, self.counts = texts.copy(), np.ones(classes)
        self.scatters = np.zeros((classes, dim, dim), np.float32)

    def learn(self, features: Floats, classes: NDArray[np.intp], weights: Floats) -> None:
        """Learn items (B, D), each for its class (B,) and with its weight (B,)."""
        for c in np.unique(classes):
            x, w = features[classes == c], weights[classes == c]
            away = (np.sqrt(w)[:, None] * (x - self.means[c])).astype(np.float32)
            self.scatters[c] += away.T @ away
            after = self.counts[c] + w.sum()
            self.means[c] = (self.counts[c] * self.means[c] + w @ x) / after
            self.counts[c] = after

    def log_densities(self, features: Floats) -> Floats:
        """xᵀ Λ μ_c - ½ μ_cᵀ Λ μ_c (B, C) of items (B, D)."""
        share = 1 / (len(self.counts) * self.counts)
        spread = np.tensordot(share.astype(np.float32), self.scatters, axes=1).astype(np.float64)
        variance = _FIRST_VARIANCE * share.sum()
        covariance = (1 - _SHRINKAGE) * spread
        covariance[np.diag_indices(len(covariance))] += (1 - _SHRINKAGE) * variance + _SHRINKAGE
        root = cholesky(covariance, lower=True)
        items, means = (
            solve_triangular(root, rows.T, lower=True) for rows in (features, self.means)
        )
        return np.asarray(items.T @ means - 0.5 * (means**2).sum(axis=0))


class DDE(Method):
    """DDE, arXiv 2606.25758: words that noise activates, and Gaussians of the classes."""

    class Settings(vocabulary.WordSettings):
        # The paper chooses the number of words and the gate for each set. These are ImageNet's, but
        # with 100 words for other sets.
        batch_size: int = count(256, AT_ONCE)
        dde_words: int = count(100, "M̂: number of most activated words that count.")
        dde_gate: float = share(
            0.5, "g: an item is surely ID if the share of the names is above (1 + g) / 2."
        )
        dde_exclusion: float = amount(
            0.5, "β: weight of the Gaussians of second choices, which lower the logits."
        )
        dde_doubled: bool = option(False, "Use each word twice, as the released code does.")
        dde_cells: str = choice(
            "Possible thresholds: between any two scores, or at 0, 0.01 … 0.99.", "exact", "grid"
        )
        dde_cache: int = count(5_000, "Number of last images of either kind in the cache.")

    needs = WORDS
    imagenet = {"dde_words": 500}
    cites = ("zhu2026dual",)
    cost = (
        "keeps the activations of all words by dde-cache images of each kind (400 MB for 10,000 "
        "words) and D²/2 numbers for each class with items, or D² if dde-exclusion is above 0; "
        "also multiplies each item by M words"
    )
    official = {
        "word_prompts": "speech", "mined_share": 0.15, "dde_exclusion": 0.0, "dde_doubled": True,
        "dde_cells": "grid",
    }  # fmt: skip
    is_probability = True

    def start(self, data: StreamData) -> None:
        o, (names, words) = self.options, vocabulary.mined_words(data, self.options)
        self.fixed = self.threshold.settings.fixed is not None
        self.queue, self.latest = np.empty(0), 0.5  # the last N_q noise scores, their exact split
        self.text, self.classes = np.concatenate([names, words]), len(names)
        self.copies = 1 + o.dde_doubled
        self.id, self.noise = (vocabulary.Recent(o.dde_cache, len(words)) for _ in "+-")
        first = np.random.default_rng(0).permutation(len(words))[:_FIRST_NOISE]  # for all seeds
        for cache, rows in ((self.id, names), (self.noise, words[first])):
            for _, logits in vocabulary.logit_blocks(rows, self.text, data.logit_scale):
                cache.add(vocabulary.activations(logits, self.classes, self.copies))
        # The Gaussians of the most probable classes, and of the second ones if they count.
        texts = data.text_features.astype(np.float64)
        has_second = o.dde_exclusion > 0 and len(texts) > 1
        self.gaussians = [ClassGaussians(texts) for _ in range(1 + has_second)]

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise if the words' share reaches its online, or is above a fixed, one."""
        class_index, u = np.empty(len(items), np.int32), np.empty(len(items))
        thresholds = np.empty(len(items))
        for batch in blocks(len(items), self.options.batch_size):
            part = items.part(batch)
            u[batch] = self._noise_scores(part, learn)
            class_index[batch] = self._classes(part, learn)
            thresholds[batch] = self._thresholds(u[batch], learn)
        is_noise = u > thresholds if self.fixed else u >= thresholds
        return Decisions(class_index, is_noise, 1 - u, None, thresholds)

    def _thresholds(self, u: Floats, learn: bool) -> Floats:
        """The thresholds (B,) of a batch of noise scores (B,), which enter the queue.

        An exact one is the lowest score of the upper group of Otsu's split.
        """
        if self.options.dde_cells == "grid" or self.fixed:
            return self.threshold(u, learn)
        if learn and len(u):
            self.queue = np.concatenate([self.queue, u])[-self.threshold.settings.queue :]
            if self.queue.min() < self.queue.max():
                upper = self.queue[self.queue > otsu(self.queue)[0]]
                # A split of two neighbouring numbers is rounded to one of them.
                self.latest = float(upper.min(initial=self.queue.max()))
        return np.full(len(u), self.latest)

    def _noise_scores(self, items: StreamData, learn: bool) -> Floats:
        """The noise scores (B,) of a batch, whose sure items enter the caches."""
        logits = cosine_logits(items.features(), self.text, items.logit_scale)
        id_mean, noise_mean = self.id.mean, self.noise.mean
        u = self._words_share(logits, noise_mean - id_mean)
        if not learn:
            return u
        activated = vocabulary.activations(logits, self.classes, self.copies)
        is_id = (1 - u > (1 + self.options.dde_gate) / 2) & ~items.injected
        is_noise = (1 - u < _SURELY_NOISE) | items.injected
        difference = _moved(noise_mean, activated[is_noise]) - _moved(id_mean, activated[is_id])
        self.id.add(activated[is_id])
        self.noise.add(activated[is_noise])
        return self._words_share(logits, difference)

    def _words_share(self, logits: Features, difference: Floats) -> Floats:
        """The share (B,) of the M̂ most activated words in the softmax over these and the names."""
        classes, copies = self.classes, self.copies
        count = min(self.options.dde_words, copies * len(difference))
        words = np.repeat(vocabulary.largest(difference, -(-count // copies)), copies)[:count]
        negatives = logits[:, classes + words]
        both = np.concatenate([logits[:, :classes], negatives], axis=1).astype(np.float64)
        return np.asarray(softmax(both)[:, classes:].sum(axis=1))

    def _classes(self, items: StreamData, learn: bool) -> NDArray[np.intp]:
        """The classes (B,) of a batch, by Gaussians that learn from it."""
        x, logits = frozen(items, slice(None))
        p, learned = softmax(logits), ~items.injected & learn
        ranked = np.argsort(-p, axis=1, kind="stable")[learned].T  # the first choices (B,), …
        for gaussians, chosen in zip(self.gaussians, ranked, strict=False):
            gaussians.learn(x[learned], chosen, p[learned, chosen])
        weight = min(_RATE * float(self.gaussians[0].counts.mean()), _MOST_WEIGHT)
        for sign, gaussians in zip((1, -self.options.dde_exclusion), self.gaussians, strict=False):
            logits = logits + weight * sign * gaussians.log_densities(x)
        return np.asarray(logits.argmax(axis=1))


def _moved(mean: Floats, activated: Features) -> Floats:
    """Move a mean activation (M,) a little towards that of some items (B, M)."""
    if not len(activated):
        return mean
    return _MOMENTUM * mean + (1 - _MOMENTUM) * activated.mean(axis=0, dtype=np.float64)
