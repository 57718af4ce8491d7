"""Methods with negative words item by item, straight from their equations: plain and slow.

Proxies, means of activations and thresholds are made anew at each item from all that was kept: no
running sums, no blocks, no products of several items, in float64.
"""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.threshold import OnlineThreshold


class Threshold:
    """The online threshold of one item after another, which has a reference of its own."""

    def __init__(self, settings):
        self.rule = OnlineThreshold(settings)

    def __call__(self, score):
        return self.rule(np.array([score]))[0]


def negatives(pool, o):
    """The mined words, the farthest of each list first."""
    names, words = pool.text_features.astype(float), pool.more_text.astype(float)
    cosines = words @ names.T
    distance = [-np.quantile(row, 1 - o.percentile) for row in cosines]
    if o.too_near is not None:
        distance = [
            d - 10 * any(c > o.too_near for c in row)
            for d, row in zip(distance, cosines, strict=True)
        ]
    if o.mined_share is None:
        return words[sorted(range(len(words)), key=lambda j: -distance[j])[: o.negatives]]
    kept, start = [], 0
    for size in pool.more_sizes:
        rows = sorted(range(start, start + size), key=lambda j: -distance[j])
        kept += rows[: max(1, int(o.mined_share * size + 1e-9))]
        start += size
    return words[kept]


def grouped(count, o):
    number = min(o.groups, count)
    if o.grouping == "ranked":
        return [list(g) for g in np.array_split(range(count), number)]
    order, size = list(np.random.default_rng(0).permutation(count)), count // number
    return [order[g * size : (g + 1) * size] for g in range(number)]


def id_share(names, words, groups, mean):
    """The ID names' share of the mass, by logits of names and of words, group by group."""
    own, shares = sum(np.exp(names)), []
    for group in groups:
        mass = sum(np.exp(words[j]) for j in group)
        shares.append(own / (own + (len(names) * mass / len(group) if mean else mass)))
    return np.mean(shares)


def softmax(logits):
    powers = np.exp(logits - max(logits))
    return powers / sum(powers)


def entropy(logits):
    return -sum(p * np.log(p) for p in softmax(logits) if p > 0)


def unit(vector):
    return vector / np.linalg.norm(vector)


def image(data: StreamData, t):
    return unit(data.pool.image_features[data.index[t]].astype(float))


def neglabel(data: StreamData, o, threshold):
    """Decisions (T,) and ID scores (T,)."""
    names, words = data.pool.text_features.astype(float), negatives(data.pool, o)
    rule, groups, answers = Threshold(threshold), grouped(len(words), o), []
    for t in range(len(data)):
        x, s = image(data, t), data.pool.logit_scale
        score = id_share(s * names @ x, s * words @ x, groups, o.group_mass == "mean")
        answers.append((1 - score > rule(1 - score), score))
    return columns(answers, 2)


def adaneg(data: StreamData, o, threshold):
    """Decisions (T,), ID scores (T,) and classes (T,)."""
    names, words = data.pool.text_features.astype(float), negatives(data.pool, o)
    text, c, s = np.concatenate([names, words]), len(names), data.pool.logit_scale
    groups, mean = grouped(len(words), o), o.group_mass == "mean"
    by_text, rule = Threshold(threshold), Threshold(threshold)
    memory, answers = {}, []
    for t in range(len(data)):
        x = image(data, t)
        z = s * text @ x
        s_text = id_share(z[:c], z[c:], groups, mean)
        # "ID iff S > τ + g (1 - τ), noise iff S < τ - g τ": τ = 1 - θ
        tau = 1 - by_text(1 - s_text) if o.adaneg_sure is None else o.adaneg_sure
        if data.injected[t] or s_text < tau - o.gap * tau:
            offer(memory, c + int(np.argmax(z[c:])), entropy(z[c:]), x, o.adaneg_shots)
        elif s_text > tau + o.gap * (1 - tau):
            offer(memory, int(np.argmax(z[:c])), entropy(z[:c]), x, o.adaneg_shots)
        w = np.array([
            unit(np.mean([row, *(f for _, f in memory.get(k, []))], axis=0))
            for k, row in enumerate(text)
        ])  # fmt: skip
        seen = s * w @ x
        score = id_share(seen[:c], seen[c:], groups, mean) + o.adaneg_text * s_text
        score /= 1 + o.adaneg_text
        class_index = np.argmax((softmax(z) + o.adaneg_text * softmax(seen))[:c])
        answers.append((1 - score > rule(1 - score), score, class_index))
    return columns(answers, 3)


def offer(memory, row, doubt, feature, shots):
    """Append, or take the place of the entry of largest entropy if that is above the new one's."""
    held = memory.setdefault(row, [])
    if len(held) < shots:
        held.append((doubt, feature))
        return
    worst = max(range(shots), key=lambda i: held[i][0])
    if doubt < held[worst][0]:
        held[worst] = (doubt, feature)


def tanl(data: StreamData, o, threshold):
    """Decisions (T,) and ID scores (T,)."""
    names, words = data.pool.text_features.astype(float), data.pool.more_text.astype(float)
    if o.tanl_candidates == "mined":
        words = negatives(data.pool, o)
    text, c, s = np.concatenate([names, words]), len(names), data.pool.logit_scale
    shuffled = np.random.default_rng(0).permutation(c)
    surely_id = [softmax(s * text @ names[k])[c:] for k in shuffled]
    surely_noise, rule, answers = [], Threshold(threshold), []
    for t in range(len(data)):
        z = s * text @ image(data, t)
        d = mean_of(surely_noise[-o.tanl_ring :], len(words))
        d = d - mean_of(surely_id[-o.tanl_ring :], len(words))
        chosen = sorted(range(len(words)), key=lambda j: -d[j])[: o.tanl_words]
        score = activated(z[:c], [z[c + j] for j in chosen], o.tanl_step)
        theta = rule(1 - score)
        tau = 1 - theta
        if data.injected[t] or score < tau - o.gap * tau:
            surely_noise.append(softmax(z)[c:])
        elif score > tau + o.gap * (1 - tau):
            surely_id.append(softmax(z)[c:])
        answers.append((1 - score > theta, score))
    return columns(answers, 2)


def activated(names, words, step):
    """S_aa: the mean over m = γ, 2 γ, …, and B where that is no multiple, of the share beside m."""
    own, count = sum(np.exp(names)), len(words)
    sizes = {*range(step, count, step), count} if step else {count}
    return np.mean([own / (own + sum(np.exp(words[:m]))) for m in sizes])


def mean_of(activations, words):
    return np.mean(activations, axis=0) if activations else np.zeros(words)


def columns(answers, count):
    return [np.array([answer[k] for answer in answers]) for k in range(count)]
