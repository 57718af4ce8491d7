"""Newer methods from the equations of their papers and releases alone, in float64.

Whoever wrote this did not look at the product's files of these methods; known were what users read
about them, their tests and, for TANL, the other reference. Our own choices that the help texts name
(a batch of one, the online threshold as a gate, no pixels) are made here too. Arrays in, numbers
out, and one loop over items or batches: images are (N, D) of any length, texts and words unit rows,
`scale` the logit scale. An item's own score is in the queue that its threshold comes from.
"""

import numpy as np

CELLS = np.arange(100) / 100


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def entropy(p):
    return -(p * np.log(np.maximum(p, 1e-300))).sum(axis=-1)


def split(queue, held, cells=CELLS):
    """The cell of least variance within {u >= θ} and {u < θ}; `held` where one is always empty."""
    best, least = held, np.inf
    for cell in cells:
        high, low = queue[queue >= cell], queue[queue < cell]
        if len(high) and len(low):
            within = (len(high) * high.var() + len(low) * low.var()) / len(queue)
            if within < least - 1e-15:
                best, least = cell, within
    return best


class Queue:
    """The last scores, and their threshold after a batch has come in."""

    def __init__(self, size=512):
        self.size, self.scores, self.threshold = size, [], 0.5

    def push(self, scores, cells=CELLS):
        self.scores = [*self.scores, *scores][-self.size :]
        self.threshold = split(np.array(self.scores), self.threshold, cells)
        return self.threshold


def thresholds(u, batch=1, size=512):
    queue = Queue(size)
    starts = range(0, len(u), batch)
    found = [np.full(len(u[k : k + batch]), queue.push(u[k : k + batch])) for k in starts]
    return np.concatenate(found)


def surely(u, threshold, gap):
    """Whether a noise score is surely ID, and surely noise."""
    return u < threshold * (1 - gap), u > threshold + gap * (1 - threshold)


# --- a share of a softmax -----------------------------------------------------------------------


def cma(images, texts, neutral, scale, times=1):
    """The largest probability of a class beside neutral texts, repeated in turn to times · C."""
    repeated = neutral[np.arange(times * len(texts)) % len(neutral)]
    p = softmax(scale * unit(images) @ np.concatenate([texts, repeated]).T)
    return p[:, : len(texts)].max(axis=1)


def farthest(words, texts, share, too_near, quantile=0.95):
    """The share of a list that is far from the names by a quantile of cosines; synonyms last."""
    cosines = words @ texts.T
    near = np.quantile(cosines, quantile, axis=1) + 10 * (cosines.max(axis=1) > too_near)
    return np.argsort(near, kind="stable")[: int(share * len(words))]


def share_of_names(names, words):
    """Σ e^names / (Σ e^names + Σ e^words) of logits, by row."""
    return softmax(np.concatenate([names, words], axis=-1))[..., : names.shape[-1]].sum(axis=-1)


def neglabel(images, texts, groups, scale):
    """The mean share of the names beside each group of words."""
    x = unit(images)
    return np.mean(
        [share_of_names(scale * x @ texts.T, scale * x @ words.T) for words in groups], axis=0
    )


def logit_gap(images, texts, scale, others):
    """The largest logit minus the mean of the next ones."""
    z = -np.sort(-scale * unit(images) @ texts.T, axis=1)
    return z[:, 0] - z[:, 1 : 1 + others].mean(axis=1)


# --- classifiers that learn from every item -----------------------------------------------------


def bca(images, texts, scale, *, least=0.05, items=20_000.0, prior_least=0.65, prior_items=1.0):
    """Scores (N, C): a learned prior of the classes for clusters about moving means."""
    mean, prior, scores = texts.copy(), np.eye(len(texts)), []
    of_mean, of_prior = np.full(len(texts), items), np.full(len(texts), prior_items)
    for v in unit(images):
        f = softmax(scale * mean @ v) @ prior
        scores.append(f)
        k = f.argmax()
        if f[k] > least:
            mean[k] = unit((of_mean[k] * mean[k] + v) / (of_mean[k] + 1))
            of_mean[k] += 1
        if f[k] > prior_least:
            prior[k] = (of_prior[k] * prior[k] + f) / (of_prior[k] + 1)
            of_prior[k] += 1
    return np.array(scores)


def dota(images, texts, scale, *, variance=1e-4, epsilon=1e-3, rate=0.02, most=0.1):
    """Logits (N, C) with the log densities of Gaussians that learned from the items before."""
    dim = texts.shape[1]
    mean, count = np.full(texts.shape, 0.001), np.ones(len(texts))
    cov, logits = np.array([variance * np.eye(dim) for _ in texts]), []
    for v in unit(images):
        z = scale * texts @ v
        precision = np.linalg.inv((1 - epsilon) * cov.mean(axis=0) + epsilon * np.eye(dim))
        density = np.array([v @ precision @ m - m @ precision @ m / 2 for m in mean])
        logits.append(z + min(rate * count.mean(), most) * density)
        for c, p in enumerate(softmax(z)):
            away, total = v - mean[c], count[c] + p
            cov[c] = (count[c] * cov[c] + p * np.outer(away, away)) / total
            mean[c] = (count[c] * mean[c] + p * v) / total
            count[c] = total
    return np.array(logits)


# --- OODD ---------------------------------------------------------------------------------------


def oodd(images, texts, scale, kept=2048, neighbour=5, batch=1):
    """The mean of 1 - MCM and of the K-th cosine to the items of least MCM; at first 1 - MCM."""
    x = unit(images)
    u, dictionary, scores = 1 - softmax(scale * x @ texts.T).max(axis=1), [], []
    for start in range(0, len(x), batch):
        items = range(start, min(start + batch, len(x)))
        for i in items:
            dictionary = sorted([*dictionary, i], key=lambda j: -u[j])[:kept]
        for i in items:
            cosines = np.sort(x[dictionary] @ x[i])[::-1]
            few = len(dictionary) <= neighbour
            scores.append(u[i] if few else (u[i] + max(cosines[neighbour - 1], 0)) / 2)
    return np.array(scores)


# --- ETLT ---------------------------------------------------------------------------------------


def etlt(images, u, dropped=0.0):
    """Least squares of u on directions and a constant; again without the worst fits. And Otsu."""
    x = np.concatenate([unit(images), np.ones((len(u), 1))], axis=1)
    fitted = x @ (np.linalg.pinv(x) @ u)
    if dropped:
        stay = np.argsort(abs(u - fitted))[: len(u) - round(dropped * len(u))]
        fitted = x @ (np.linalg.pinv(x[stay]) @ u[stay])
    middles = np.sort(fitted)
    return fitted, split(fitted, np.inf, (middles[1:] + middles[:-1]) / 2)


# --- AdaNeg -------------------------------------------------------------------------------------


class Row:
    """A text, and up to L images of least entropy beside it."""

    def __init__(self, text, size):
        self.text, self.size, self.images = text, size, []

    def offer(self, image, h):
        if len(self.images) == self.size:
            worst = max(range(self.size), key=lambda k: self.images[k][0])
            if h >= self.images[worst][0]:
                return
            self.images.pop(worst)
        self.images.append((h, image))

    @property
    def proxy(self):
        return unit(self.text + sum((image for _, image in self.images), np.zeros_like(self.text)))


def adaneg(images, texts, words, scale, *, shots=10, weight=0.1, gap=0.5, sure=None):
    """ID scores in [0, 1] and classes, with all words in one group. `sure` is a fixed τ."""
    rows = [Row(text, shots) for text in np.concatenate([texts, words])]
    c, queue, scores, classes = len(texts), Queue(), [], []
    for v in unit(images):
        names, others = scale * texts @ v, scale * words @ v
        by_text = share_of_names(names, others)
        threshold = queue.push([1 - by_text]) if sure is None else 1 - sure
        is_id, is_noise = surely(1 - by_text, threshold, gap)
        if is_id:
            rows[names.argmax()].offer(v, entropy(softmax(names)))
        if is_noise:
            rows[c + others.argmax()].offer(v, entropy(softmax(others)))
        seen = scale * np.array([row.proxy for row in rows]) @ v
        by_proxy = share_of_names(seen[:c], seen[c:])
        scores.append((by_proxy + weight * by_text) / (1 + weight))
        p = softmax(np.concatenate([names, others])) + weight * softmax(seen)
        classes.append(p[:c].argmax())
    return np.array(scores), np.array(classes)


# --- TANL ---------------------------------------------------------------------------------------


def tanl(images, texts, words, scale, *, chosen, step, gap=0.5, kept=300, cell=0.0):
    """ID scores at α = 1; no noise is known before the first surely noisy item.

    With a `cell`, activations are rounded to its multiples before they are averaged.
    """
    c, queue, scores = len(texts), Queue(), []

    def activations(rows):
        a = softmax(scale * rows @ np.concatenate([texts, words]).T)[..., c:]
        return np.round(a / cell) * cell if cell else a

    of_id, of_noise = list(activations(texts)), []
    for v in unit(images):
        difference = -np.mean(of_id[-kept:], axis=0)
        if of_noise:
            difference = difference + np.mean(of_noise[-kept:], axis=0)
        most = words[np.argsort(-difference, kind="stable")[:chosen]]
        sizes = {*range(step, len(most), step), len(most)} if step else {len(most)}
        names, others = scale * texts @ v, scale * most @ v
        scores.append(np.mean([share_of_names(names, others[:m]) for m in sizes]))
        u = 1 - scores[-1]
        is_id, is_noise = surely(u, queue.push([u]), gap)
        if is_id or is_noise:
            (of_id if is_id else of_noise).append(activations(v))
    return np.array(scores)


# --- DDE ----------------------------------------------------------------------------------------


class ClassGaussians:
    """Means and full covariances, learned from items with weights (N, C)."""

    def __init__(self, texts):
        self.mean, self.count = texts.copy(), np.ones(len(texts))
        self.cov = np.array([0.002 * np.eye(texts.shape[1]) for _ in texts])

    def learn(self, x, w):
        for c, n in enumerate(self.count.copy()):
            away, total = x - self.mean[c], n + w[:, c].sum()
            self.cov[c] = (n * self.cov[c] + (away * w[:, c, None]).T @ away) / total
            self.mean[c] = (n * self.mean[c] + w[:, c] @ x) / total
            self.count[c] = total

    def scores(self, x, epsilon=1e-4):
        pooled = (1 - epsilon) * self.cov.mean(axis=0) + epsilon * np.eye(x.shape[1])
        weights = self.mean @ np.linalg.inv(pooled)
        return x @ weights.T - (weights * self.mean).sum(axis=1) / 2


def ranked(p, rank):
    """The probabilities at one rank of each row, zero elsewhere; one class has no second rank."""
    if rank >= p.shape[1]:
        return np.zeros_like(p)
    at = np.argsort(-p, axis=1, kind="stable")[:, rank]
    return np.where(np.arange(p.shape[1]) == at[:, None], p, 0)


def dde(
    images, texts, words, first_noise, scale, *,
    batch, chosen, gap, beta, doubled=False, grid=False, cache=5000,
):  # fmt: skip
    """ID scores, decisions and the classes' logits; the noise cache starts with `first_noise`."""
    words = np.concatenate([words, words]) if doubled else words
    c, x = len(texts), unit(images)

    def activations(rows):
        return softmax(scale * rows @ np.concatenate([texts, words]).T)[:, c:]

    def share(part, difference):
        most = words[np.argsort(-difference, kind="stable")[:chosen]]
        return share_of_names(scale * part @ texts.T, scale * part @ most.T)

    id_cache, noise_cache = list(activations(texts)), list(activations(first_noise))
    likely, second = ClassGaussians(texts), ClassGaussians(texts)
    queue, scores, is_noise, logits = Queue(), [], [], []
    for start in range(0, len(x), batch):
        part = x[start : start + batch]
        a, m_id, m_noise = (
            activations(part),
            np.mean(id_cache, axis=0),
            np.mean(noise_cache, axis=0),
        )
        first = share(part, m_noise - m_id)
        sure, not_id = first > 0.5 + 0.5 * gap, first < 0.1
        m_id = 0.95 * m_id + 0.05 * a[sure].mean(axis=0) if sure.any() else m_id
        m_noise = 0.95 * m_noise + 0.05 * a[not_id].mean(axis=0) if not_id.any() else m_noise
        conf = share(part, m_noise - m_id)
        z = scale * part @ texts.T
        likely.learn(part, ranked(softmax(z), 0))
        second.learn(part, ranked(softmax(z), 1))
        alpha = min(0.005 * likely.count.mean(), 0.2)
        logits += list(z + alpha * likely.scores(part) - alpha * beta * second.scores(part))
        id_cache, noise_cache = (
            [*id_cache, *a[sure]][-cache:],
            [*noise_cache, *a[not_id]][-cache:],
        )
        cells = CELLS if grid else sorted({*queue.scores, *(1 - conf)})
        threshold = queue.push(1 - conf, cells)
        scores += list(conf)
        is_noise += list(1 - conf >= threshold)
    return np.array(scores), np.array(is_noise), np.array(logits)


# --- Syde ---------------------------------------------------------------------------------------


def syde(
    images, texts, injected, scale, layer, prototypes_of, *,
    every, warmup, rate=1e-3, shots=10, gap=0.5, most_entropy=4.0, visual=0.2,
):  # fmt: skip
    """ID scores, decisions and classes, without pixels.

    `layer` (D + 1,) gives the log odds of noise of a raw image and 1. `prototypes_of(items)` stands
    for the map of noise: prototypes from all noise items so far. Both rows of the detector start
    apart and move by opposite steps of Adam, so that their difference moves by twice one step.
    """
    x, rows, seen_noise = unit(images), [Row(text, shots) for text in texts], []
    by_text, by_sight, by_layer = Queue(), Queue(), Queue()
    layer, m1, m2, steps, ring = layer.astype(float), 0, 0, 0, []
    scores, is_noise, classes = [], [], []
    for i, v in enumerate(x):
        p = softmax(scale * texts @ v)
        u = 1 - p.max()
        called_noise = u > by_text.push([u]) or injected[i]
        decided = u, called_noise
        if steps >= warmup:
            u = 1 / (1 + np.exp(-layer @ [*images[i], 1]))
            decided = u, u > by_layer.push([u]) or injected[i]
        w = np.array([row.proxy for row in rows])
        mixed = (1 - visual) * p + visual * softmax(scale * w @ v)
        scores.append(1 - decided[0])
        is_noise.append(decided[1])
        classes.append((mixed if steps >= warmup else p).argmax())
        ring.append((i, called_noise, p))
        if len(ring) < every:
            continue
        for k, noisy, q in ring:
            if noisy:
                seen_noise.append(x[k])
            else:
                rows[q.argmax()].offer(x[k], entropy(q))
        index = [k for k, _, _ in ring]
        w, o = np.array([row.proxy for row in rows]), np.array(prototypes_of(seen_noise))
        o = unit(o) if len(o) else np.empty((0, x.shape[1]))
        seen = 1 - share_of_names(scale * x[index] @ w.T, scale * x[index] @ o.T)
        is_id, noisy = surely(seen, by_sight.push(seen), gap)
        known = injected[index]
        doubtful = np.array([entropy(q) > most_entropy for _, _, q in ring])
        takes = known | ((is_id | noisy) & ~doubtful)
        steps += 1
        if takes.any():
            rows_in = np.concatenate([images[index], np.ones((len(index), 1))], axis=1)[takes]
            p_noise = 1 / (1 + np.exp(-rows_in @ layer))
            g = ((p_noise - (known | noisy)[takes])[:, None] * rows_in).mean(axis=0)
            m1, m2 = 0.9 * m1 + 0.1 * g, 0.999 * m2 + 0.001 * g**2
            t = steps
            step = rate * (m1 / (1 - 0.9**t)) / (np.sqrt(m2 / (1 - 0.999**t)) + 1e-8)
            layer = layer - 2 * step
        ring = []
    return np.array(scores), np.array(is_noise), np.array(classes)
