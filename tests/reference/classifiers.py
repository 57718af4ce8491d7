"""Classifiers item by item, straight from their papers' equations: plain, slow, in float64.

Each gives scores (T, C), whose largest is the class. No blocks, no shared products, no running
sums but those that the equations have.
"""

import numpy as np


def unit(vector):
    return vector / max(np.linalg.norm(vector), 1e-12)


def softmax(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def frozen(data):
    """Unit features and logits of all items, unit texts."""
    text = data.pool.text_features.astype(float)
    features = [unit(f) for f in data.features(slice(None)).astype(float)]
    return features, [data.pool.logit_scale * text @ v for v in features], text


def onzeta(data, o, offered):
    features, logits, text = frozen(data)
    classes, w, rho, seen, scores = len(text), text.copy(), np.zeros(len(text)), 0, []
    items = o.onzeta_mix_items or sum(~data.injected)  # n of the paper's β √(i / n)
    for v, logit, learn in zip(features, logits, offered, strict=True):
        i = seen + 1
        q = softmax(logit) * np.exp(rho)
        q /= q.sum()
        y = softmax(w @ v / o.onzeta_temperature)
        beta = o.onzeta_mix * np.sqrt(min(1, i / items))
        scores.append(beta * y + (1 - beta) * q)
        if learn:
            seen = i
            step = o.onzeta_prior_rate / np.sqrt(i) * (q - o.onzeta_balance / classes)
            rho = np.maximum(0, rho - step)
            w -= o.onzeta_proxy_rate / (np.sqrt(i) * o.onzeta_temperature) * np.outer(y - q, v)
            w = np.array([unit(row) for row in w])
    return np.array(scores)


def bca(data, o, offered):
    features, _, text = frozen(data)
    means, prior, scores = text.copy(), np.eye(len(text)), []
    c1, c2 = np.full(len(text), o.bca_mean_items), np.full(len(text), o.bca_prior_items)
    for v, learn in zip(features, offered, strict=True):
        f = softmax(data.pool.logit_scale * means @ v) @ prior
        scores.append(f)
        k = f.argmax()
        if learn and f[k] > o.bca_mean_least:
            means[k] = unit((c1[k] * means[k] + v) / (c1[k] + 1))
            c1[k] += 1
        if learn and f[k] > o.bca_prior_least:
            prior[k] = (c2[k] * prior[k] + f) / (c2[k] + 1)
            c2[k] += 1
    return np.array(scores)


def dla(data, o, offered):
    _, logits, text = frozen(data)
    n, m, scores = np.ones(len(text)), np.zeros(len(text)), []
    for logit, learn in zip(logits, offered, strict=True):
        p, top = softmax(logit), logit.argmax()
        factor = np.exp(-o.dla_strength * (1 - (p[top] - m[top])) * n / n.sum())
        scores.append(np.where(logit > 0, logit * factor, logit))
        if learn:
            m[top] = (m[top] * (n[top] - 1) + p[top]) / n[top]
            n[top] += 1
    return np.array(scores)


def dmn(data, o, offered):
    features, logits, text = frozen(data)
    memory, scores = [[] for _ in text], []
    for v, logit, learn in zip(features, logits, offered, strict=True):
        p, top = softmax(logit), logit.argmax()
        entropy = -(p * np.log(np.maximum(p, 1e-30))).sum()
        if learn:
            kept = memory[top]
            if len(kept) < o.dmn_shots:
                kept.append((entropy, v))
            elif entropy < max(e for e, _ in kept):
                worst = max(range(len(kept)), key=lambda i: kept[i][0])
                kept[worst] = (entropy, v)
        vectors = []
        for c, t in enumerate(text):
            rows = np.array([t, *(row for _, row in memory[c])])
            weights = np.exp(-o.dmn_sharpness * (1 - rows @ v))
            vectors.append(unit(weights @ rows))
        scores.append(p + softmax(data.pool.logit_scale * np.array(vectors) @ v))
    return np.array(scores)


def oga(data, o, offered):
    features, logits, text = frozen(data)
    classes, dim = text.shape
    memory = {c: [] for c in range(classes)}
    precision, seen, scores = dim * np.eye(dim), 0, []
    for v, logit, label, learn in zip(features, logits, data.class_index, offered, strict=True):
        p = softmax(logit)
        entropy = -(p * np.log(np.maximum(p, 1e-300))).sum()
        if learn:
            seen += 1
            kept = memory[label]
            if len(kept) < o.oga_shots and entropy < np.log(classes):
                kept.append((entropy, v))
            elif len(kept) == o.oga_shots and entropy < max(e for e, _ in kept):
                worst = max(range(len(kept)), key=lambda k: kept[k][0])
                kept[worst] = (entropy, v)
        by = {c: o.oga_shots if o.oga_short_means else len(kept) for c, kept in memory.items()}
        means = [
            sum(x for _, x in memory[c]) / by[c] if len(memory[c]) >= 2 else text[c]
            for c in range(classes)
        ]
        if learn and seen % o.oga_every == 0 and max(map(len, memory.values())) > 2:
            apart = np.array([x - means[c] for c, kept in memory.items() for _, x in kept])
            n = len(apart)
            apart -= apart.mean(axis=0)
            covariance = apart.T @ apart / (n - 1)
            if n <= 4 * dim:
                cull = (n - 1) * covariance + np.trace(covariance) * np.eye(dim)
                precision = dim * np.linalg.pinv(cull, hermitian=True)
            else:
                precision = np.linalg.pinv(covariance, hermitian=True)
        density = np.array([-0.5 * (v - m) @ precision @ (v - m) for m in means])
        scores.append(np.log(softmax(logit) + 1e-300) + np.log(softmax(o.oga_scale * density)))
    return np.array(scores)


def dota(data, o, offered):
    features, logits, text = frozen(data)
    classes, dim = text.shape
    mean, count = np.full((classes, dim), 0.001), np.ones(classes)
    covariance = np.array([o.dota_variance * np.eye(dim)] * classes)

    def precision():
        e = o.dota_shrinkage
        return np.linalg.inv((1 - e) * covariance.mean(axis=0) + e * np.eye(dim))

    now, seen, scores = precision(), 0, []
    for v, logit, learn in zip(features, logits, offered, strict=True):
        density = np.array([v @ now @ m - 0.5 * m @ now @ m for m in mean])
        scores.append(logit + min(o.dota_rate * count.mean(), o.dota_weight) * density)
        if not learn:
            continue
        p = softmax(logit)
        apart = [p[c] * np.outer(v - mean[c], v - mean[c]) for c in range(classes)]
        for c in range(classes):
            covariance[c] = (count[c] * covariance[c] + apart[c]) / (count[c] + p[c])
        mean = (count[:, None] * mean + p[:, None] * v) / (count + p)[:, None]
        count = count + p
        seen += 1
        if seen % o.dota_every == 0:
            now = precision()
    return np.array(scores)
