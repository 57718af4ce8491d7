"""Classifiers of blocks, class by class, straight from their papers' equations, in float64.

Each gives the assignments (N, C) of one block of unit features, logits and unit texts.
"""

import numpy as np

from reference.classifiers import softmax, unit


def neighbours(features, count, weighted):
    """W: the weights of each item's nearest others, the earlier one of equals."""
    n = len(features)
    weights = np.zeros((n, n))
    for i in range(n):
        cosines = [(-float(features[i] @ features[j]), j) for j in range(n) if j != i]
        for negative, j in sorted(cosines)[:count]:
            weights[i, j] = -negative if weighted else 1.0
    return weights


def gaussians(features, logits, texts, neighbour_count, smoothing, steps, is_anchored):
    """StatA; without anchors, with one variance that starts at 1 / D, and without determinant,
    TransCLIP.
    """
    n, classes = logits.shape
    y = np.array([softmax(row) for row in logits])
    z, w = y.copy(), neighbours(features, neighbour_count, weighted=True)
    start = sum(z[i, c] * (features[i] - texts[c]) ** 2 for i in range(n) for c in range(classes))
    start = start / n if is_anchored else np.full(texts.shape[1], 1 / texts.shape[1])
    means, variances = texts.copy(), np.array([start + 1e-10] * classes)
    for step in range(steps + 1):
        density = -0.5 * np.array([((x - means) ** 2 / variances).sum(1) for x in features])
        if is_anchored:
            density -= 0.5 * np.log(variances).sum(1)
        for _ in range(5):
            pulled = smoothing / (2 * neighbour_count) * (w + w.T) @ z
            z = np.array([softmax(row) for row in np.log(y) + density / 50 + pulled])
        if step == steps:
            break
        counts = np.bincount(z.argmax(1), minlength=classes)
        new_means, own = [], []
        for c in range(classes):
            trust = counts[c] / (1 + counts[c]) if is_anchored else 1.0
            drawn = unit(z[:, c] @ features)
            new_means.append(unit(trust * drawn + (1 - trust) * texts[c]))
            own.append(z[:, c] @ (features - new_means[c]) ** 2)
        means = np.array(new_means)
        if is_anchored:
            variances = np.array([
                counts[c] / (1 + counts[c]) * own[c] / (z[:, c].sum() + 1e-10)
                + (start + (texts[c] - means[c]) ** 2) / (1 + counts[c])
                + 1e-10
                for c in range(classes)
            ])  # fmt: skip
        else:
            variances = np.array([sum(own) / n + 1e-10] * classes)
    return z


def lame(features, logits, neighbour_count, strength, steps):
    """LAME's Eq. 5, y_i ∝ p_i exp(λ Σ_j k_ij y_j), until no assignment changes or for `steps`."""
    p = np.array([softmax(row) for row in logits])
    k, y = neighbours(features, neighbour_count, weighted=False), p
    for _ in range(steps):
        before, y = y, np.array([
            softmax(np.log(own + 1e-10) + strength * sum(map(np.multiply, row, y)))
            for own, row in zip(p, k, strict=True)
        ])  # fmt: skip
        if np.abs(y - before).max() < 1e-12:
            break
    return y
