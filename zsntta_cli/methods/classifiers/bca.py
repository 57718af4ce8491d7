"""BCA, "Bayesian Test-Time Adaptation for Vision-Language Models", CVPR 2025, arXiv 2503.09248.

The means of C clusters start as the class texts, and their priors of the classes as the identity. A
sample's probabilities are the clusters' likelihoods times these priors. It is classified by what
was learned before; then it moves the mean and the prior of its class if its probability is large.

The values are those of another implementation (TTABC); the authors' code does not confirm them. A
text counts as 20,000 items, so means hardly move, and the prior has nearly all of the effect.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks, largest, moved, to_softmax
from zsntta_cli.methods.kernels.compiled import compiled
from zsntta_cli.methods.settings import ABOVE_ZERO, FROM_ZERO, SHARE, MethodSettings
from zsntta_cli.settings.options import option


@dataclass(frozen=True)
class BCASettings(MethodSettings):
    """BCA, arXiv 2503.09248: class means and a prior of the classes move with the samples.

    The values are those of another implementation; the authors' code does not confirm them.
    """

    bca_mean_least: float = option(
        0.05, "Probability above which an item updates the mean of its class.", within=SHARE
    )
    bca_mean_items: float = option(
        20_000.0, "Number of items for which the text of a class counts.", within=ABOVE_ZERO
    )
    bca_prior_least: float = option(
        0.65, "Probability above which an item updates the prior.", within=SHARE
    )
    bca_prior_items: float = option(
        1.0, "Number of items for which the initial prior counts.", within=FROM_ZERO
    )


_LEAST = 1e-18  # likelihood of a cluster: less is lost in the rounding of double precision


class BCA:
    """The classifier while the stream runs."""

    def __init__(self, data: StreamData, options: BCASettings) -> None:
        self.options = options
        self.means = data.pool.text_features.astype(np.float64)
        self.prior = np.eye(len(self.means))
        # Items of means, of priors; whether a prior moved.
        self.counts = np.empty((3, len(self.means)))
        self.counts[0], self.counts[1] = options.bca_mean_items, options.bca_prior_items
        self.counts[2] = 0

    def classify(self, items: StreamData, offered: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Classify T items by likelihood and prior; those that are `offered` (T,) are learned."""
        least = np.array([self.options.bca_mean_least, self.options.bca_prior_least])
        class_index, room = np.empty(len(items), np.int32), np.empty((3, len(self.means)))
        for part in blocks(len(items)):
            frozen = Frozen.of(items, part)
            v = frozen.features
            steps = np.zeros_like(frozen.logits)
            _learn(
                class_index[part], v @ self.means.T, v @ v.T, offered[part], self.prior,
                self.counts, steps, least, float(items.pool.logit_scale), room,
            )  # fmt: skip
            if offered[part].any():  # rows are made unit again, which may change their last bit
                self.means = moved(self.means, steps, v)
        return class_index


@compiled
def _learn(best, cosines, among, offered, prior, counts, steps, least, scale, room):  # type: ignore[no-untyped-def]
    """Write the classes (B,) of a block's items, and change steps (B, C), prior and counts.

    `cosines` (B, C) are those with the means at the block's start, `among` (B, B) those between
    its items. `cosines` and `room` (3, C) are overwritten.
    """
    count, total = cosines.shape
    likelihood, posterior, size = room[0], room[1], room[2]  # mean = size (mean⁰ + Σ a v)
    size[:] = 1
    for i in range(count):
        cosine = cosines[i]
        for j in range(i):
            cosine[best[j]] += among[i, j] * steps[j, best[j]]
        for c in range(total):
            cosine[c] *= size[c]
        highest = largest(cosine)
        for c in range(total):
            likelihood[c] = scale * (cosine[c] - highest)
        to_softmax(likelihood)
        posterior[:] = 0
        for k in range(total):
            if counts[2, k] == 0:
                posterior[k] += likelihood[k]
            elif likelihood[k] > _LEAST:
                for c in range(total):
                    posterior[c] += likelihood[k] * prior[k, c]
        top = 0
        for c in range(1, total):
            if posterior[c] > posterior[top]:
                top = c
        best[i] = top
        if offered[i] and posterior[top] > least[0]:
            steps[i, top] = 1 / (size[top] * counts[0, top])
            norm = counts[0, top] ** 2 + 2 * counts[0, top] * cosine[top] + among[i, i]
            size[top] *= counts[0, top] / np.sqrt(max(norm, 1e-24))
            counts[0, top] += 1
        if offered[i] and posterior[top] > least[1]:
            for c in range(total):
                prior[top, c] = counts[1, top] * prior[top, c] + posterior[c]
                prior[top, c] /= counts[1, top] + 1
            counts[1, top] += 1
            counts[2, top] = 1
