"""DDE batch by batch, straight from its equations: every mean is recomputed, covariances are whole.

In float64. The noise cache starts as ours does; injected items are noise that is known.
"""

import numpy as np

from reference.classifiers import softmax, unit
from reference.words import negatives
from zsntta_cli.methods.threshold import OnlineThreshold


def activations(features, text, classes, scale):
    """Of each negative in `text` behind the names, by unit features."""
    return np.array([softmax(scale * text @ v)[classes:] for v in features])


def share_of_names(v, names, negatives, scale):
    logits = np.concatenate([names @ v, negatives @ v]) * scale
    return softmax(logits)[: len(names)].sum()


def exact_split(scores, latest):
    best, at = np.inf, latest
    for edge in sorted(set(scores))[1:]:
        parts = [np.array([s for s in scores if (s >= edge) == above]) for above in (0, 1)]
        within = sum(((part - part.mean()) ** 2).sum() for part in parts)
        if within < best * (1 - 1e-9):
            best, at = within, edge
    return at


class Gaussians:
    def __init__(self, texts):
        self.mean, self.n = texts.copy(), np.ones(len(texts))
        self.cov = np.array([0.002 * np.eye(texts.shape[1]) for _ in texts])

    def learn(self, items, classes, weights):
        for c in set(classes):
            own = [i for i in range(len(items)) if classes[i] == c]
            total = sum(weights[i] for i in own)
            scatter = sum(
                weights[i] * np.outer(items[i] - self.mean[c], items[i] - self.mean[c]) for i in own
            )
            self.cov[c] = (self.n[c] * self.cov[c] + scatter) / (self.n[c] + total)
            drawn = sum(weights[i] * items[i] for i in own)
            self.mean[c] = (drawn + self.n[c] * self.mean[c]) / (self.n[c] + total)
            self.n[c] += total

    def logits(self, items):
        dim = self.mean.shape[1]
        precision = np.linalg.inv((1 - 1e-4) * self.cov.mean(0) + 1e-4 * np.eye(dim))
        of_means = [precision @ m for m in self.mean]
        return np.array([
            [v @ w - 0.5 * m @ w for m, w in zip(self.mean, of_means, strict=True)] for v in items
        ])  # fmt: skip


def dde(data, o, threshold):
    names = data.pool.text_features.astype(float)
    words = np.array(negatives(data.pool, o))
    copies = 2 if o.dde_doubled else 1
    bank = np.repeat(words, copies, axis=0)
    text, scale, count = np.concatenate([names, bank]), data.pool.logit_scale, len(names)
    first = np.random.default_rng(0).permutation(len(words))[:15]
    caches = [list(names)[-o.dde_cache :], list(words[first])[-o.dde_cache :]]
    gaussians = [Gaussians(names), Gaussians(names)]
    features = [unit(f) for f in data.features(slice(None)).astype(float)]
    size, ring, latest = min(o.dde_words, len(bank)), [], 0.5
    u, noise, classes = [], [], []
    for start in range(0, len(data), o.batch_size):
        batch = features[start : start + o.batch_size]
        known = data.injected[start : start + o.batch_size]
        means = [activations(cache, text, count, scale).mean(0) for cache in caches]
        own = activations(batch, text, count, scale)

        def shares(means, batch=batch):
            order = np.argsort(-np.round(means[1] - means[0], 11), kind="stable")[:size]
            return np.array([share_of_names(v, names, bank[order], scale) for v in batch])

        conf = shares(means)
        sure = ((conf > (1 + o.dde_gate) / 2) & ~known, (conf < 0.10) | known)
        means = [
            0.95 * mean + 0.05 * own[are].mean(0) if are.any() else mean
            for mean, are in zip(means, sure, strict=True)
        ]
        batch_u = 1 - shares(means)
        for cache, are in zip(caches, sure, strict=True):
            cache.extend(v for v, is_one in zip(batch, are, strict=True) if is_one)
            del cache[: max(0, len(cache) - o.dde_cache)]
        p = np.array([softmax(scale * names @ v) for v in batch])
        ranked = np.argsort(-p, axis=1, kind="stable")
        learned = [i for i in range(len(batch)) if not known[i]]
        for rank in range(min(2, count)):
            chosen = [ranked[i, rank] for i in learned]
            weights = [p[i, c] for i, c in zip(learned, chosen, strict=True)]
            gaussians[rank].learn([batch[i] for i in learned], chosen, weights)
        alpha = min(0.005 * gaussians[0].n.mean(), 0.2)
        logits = scale * np.array(batch) @ names.T + alpha * gaussians[0].logits(batch)
        if count > 1:
            logits -= alpha * o.dde_exclusion * gaussians[1].logits(batch)
        classes.extend(logits)
        u.extend(batch_u)
        ring = (ring + list(batch_u))[-threshold.queue :]
        latest = exact_split(ring, latest)
        noise.extend(batch_u >= latest)
    u = np.array(u)
    if o.dde_cells == "grid":
        noise = u >= OnlineThreshold(threshold, o.batch_size)(u)
    return np.array(noise), 1 - u, np.array(classes)
