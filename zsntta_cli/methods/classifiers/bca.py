"""BCA, "Bayesian Test-Time Adaptation for Vision-Language Models", CVPR 2025, arXiv 2503.09248.

The means of C clusters start as the class texts, and their priors of the classes as the identity. A
sample's probabilities are the clusters' likelihoods times these priors. It is classified by what
was learned before; then it moves the mean and the prior of its class if its probability is large.

The values are those of another implementation (TTABC); the authors' code does not confirm them. A
text counts as 20,000 items, so means hardly move, and the prior has nearly all of the effect.
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.kernels.compiled import compiled
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks, largest, moved, to_softmax
from zsntta_cli.methods.settings import BCASettings

_LEAST = 1e-18  # likelihood of a cluster: less is lost in the rounding of double precision


def classes(
    data: StreamData, options: BCASettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classify T items by likelihood and prior; those that are `offered` (T,) are learned."""
    o, scale = options, float(data.pool.logit_scale)
    means = data.pool.text_features.astype(np.float64)
    prior = np.eye(len(means))
    counts = np.empty((3, len(means)))  # items of means, of priors; whether a prior moved
    counts[0], counts[1], counts[2] = o.bca_mean_items, o.bca_prior_items, 0
    least = np.array([o.bca_mean_least, o.bca_prior_least])
    class_index, room = np.empty(len(data), np.int32), np.empty((3, len(means)))
    for part in blocks(len(data)):
        frozen = Frozen.of(data, part)
        v = frozen.features
        steps = np.zeros_like(frozen.logits)
        _learn(
            class_index[part], v @ means.T, v @ v.T, offered[part], prior, counts, steps, least,
            scale, room,
        )  # fmt: skip
        means = moved(means, steps, v)
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
