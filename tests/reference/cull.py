"""Cull item by item, straight from the equations of docs/detector.md: plain and slow.

What was learned is computed anew from the whole history after each block, in float64: no running
sums, no shared code. An item keeps the views by which it was decided.
"""

from dataclasses import replace

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors.cull import Cull
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


def cull(data: StreamData, o: Cull.Settings, threshold: ThresholdSettings):
    """Classes, flags, scores, thresholds (at first nan), evidence and levels of all items."""
    text = data.text_features.astype(float)
    if o.cull_low is None and not data.is_level_known:
        data = replace(data, generic=None)
    low = o.cull_low if o.cull_low is not None else 2.0 if data.is_level_known else np.nan
    high = low + 1 if o.cull_high is None else o.cull_high
    if any_text(data) is None:
        low = high = np.nan
    zero_shot, past, pending, rule = OnlineThreshold(threshold), [], [], None
    answers, kept, weight = [], [], np.zeros(3)
    for t in range(len(data)):
        item = see(data, t, text)
        item["low"] = item["e"] < low
        is_known = data.injected[t]
        if not is_known:
            item["zs"] = item["u"] > zero_shot(np.array([item["u"]]))[0]
        if rule is None:
            score, tau, level = item["u"], zero_shot.latest, low
        else:
            score, tau, level = rule.score(item, rule.views(item)), rule.tau, rule.level(low, high)
        is_noise = is_known or score > tau or item["e"] < level
        if not np.isnan(level):
            score = max(score, tau + level - item["e"])
        named = name(item, rule, kept, weight)
        answers.append((named, is_noise, score, tau if rule else np.nan, item["e"], level))
        if is_known:
            continue
        item["noise"] = is_noise
        if not is_noise:
            kept.append(item)
        # Deviations of logits: of the first 1,024 items, then of one in eight of a block.
        item["is looked at"] = len(past) < 1024 or len(pending) % 8 == 0
        pending.append(item)
        if len(pending) == max(o.cull_first, min(len(past) // 8, 256)):
            new, past, pending = pending, past + pending, []
            decided_by, rule = rule, Rule(past, text, o)
            for one in new:
                one["views"] = (decided_by or rule).views(one)
            rule.find(past)
            weight = order(kept[-o.cull_ring :])
    return [np.array(column) for column in zip(*answers, strict=True)]


def any_text(pool):
    """The generic text, or the mean of classes that are far enough apart, or None."""
    if pool.generic is not None:
        return pool.generic.astype(float)
    text, count = pool.text_features.astype(float), len(pool.text_features)
    cosines = [text[i] @ text[j] for i in range(count) for j in range(i)]
    is_apart = count > 1 and pool.logit_scale * (1 - np.mean(cosines)) >= 30
    return text.mean(0) if is_apart else None


def see(data: StreamData, t: int, text):
    pool = data
    f = data.features()[t].astype(float)
    x = f / max(np.linalg.norm(f), 1e-12)
    logits = pool.logit_scale * text @ x
    other = any_text(pool)
    fit = (
        np.nan if other is None else np.log(np.mean(np.exp(logits - pool.logit_scale * other @ x)))
    )
    if pool.generic is not None:
        logits -= pool.logit_scale * pool.generic @ x
    p = np.exp(logits - logits.max())
    p /= p.sum()
    entropy = -sum(v * np.log(v) for v in p if v > 0) / np.log(max(len(p), 2))
    first = np.argsort(-logits, kind="stable")[:5]
    return {
        "x": x, "l": logits, "p": p, "u": data.noise_score[t], "h": entropy, "g": -logits.max(),
        "order": first, "e": fit,
    }  # fmt: skip


def name(item, rule, kept, weight):
    """The class, of which the last items called clean say something too."""
    classes, count = item["order"], len(item["l"])
    logits = item["l"][classes] - (rule.penalty[classes] if rule else 0)
    shares = kept[-1]["shares"] if kept else np.full((3, count), 1 / count)
    likely = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    item["gains"] = count * shares[:, classes] @ likely
    # Windows in which an item weighs a half, a tenth or a fiftieth, those before it the rest.
    keeps = np.array([[0.5], [0.9], [0.98]])
    item["shares"] = keeps * shares
    item["shares"][:, classes] += (1 - keeps) * likely
    prior = (1 - weight.sum()) / count + weight @ shares
    return classes[np.argmax(logits + np.log(count * prior[classes]))]


def order(kept):
    """The weights of the windows, none without evidence for order."""
    c, n = [i["order"][0] for i in kept], len(kept)
    joins = sum(c[i] == c[i + 1] for i in range(n - 1))
    expected = sum(c.count(k) * (c.count(k) - 1) for k in set(c)) / max(n, 1)
    errors = np.sqrt(joins) + np.sqrt(joins + 1) - np.sqrt(4 * expected + 1)
    weights = np.full(4, 0.25)
    for _ in range(20):
        by_window = np.array([weights * [1, *i["gains"]] for i in kept]).reshape(-1, 4)
        by_window /= by_window.sum(1, keepdims=True)
        total = by_window.sum(0) + np.array([20, 0, 0, 0])
        weights = total / total.sum()
    return np.clip((errors - 4) / 2, 0, 1) * weights[1:]


class Rule:
    """All that a block's decisions depend on."""

    def __init__(self, past, text, o):
        self.o, self.classes = o, len(text)
        x = np.array([i["x"] for i in past])
        # 1. mean and deviation of each class's logit
        self.mu = np.mean([i["l"] for i in past], 0)
        self.sigma = np.std([i["l"] for i in past if i["is looked at"]], 0)
        # 2. what doubtful images have in common
        w = np.zeros(text.shape[1])
        for one in ("u", "h", "g"):
            y = np.array([i[one] for i in past])
            if y.std() > 1e-6:
                w += ((y - y.mean()) / y.std()) @ (x - x.mean(0))
        self.w, self.x_mean = w / np.linalg.norm(w), x.mean(0)

    def views(self, i):
        c = i["order"][0]
        q = (self.mu[c] - i["l"][c]) / self.sigma[c]
        return np.array([self.w @ (i["x"] - self.x_mean), i["h"], i["g"], q])

    def find(self, past):
        o, ring = self.o, past[-self.o.cull_ring :]
        raw = np.array([i["views"] for i in ring])
        self.mean, self.sd = raw.mean(0), raw.std(0)
        self.sd[self.sd < 1e-6] = np.inf
        # 3. score
        z, h, g, q = ((raw - self.mean) / self.sd).T
        self.b_sd, self.z_weight = (h + g + q).std(), max((z * q).mean(), 0) ** 3
        b = (h + g + q) / self.b_sd
        s = np.array([self.score(i, i["views"]) for i in ring])
        # 4. share of noise, threshold
        split, between = otsu(b)
        own, zs = b > split, np.array([i["zs"] for i in ring])
        both = (own & zs).mean()
        t = groups(between, len({i["g"] for i in ring}))
        rho = both + t * (own.mean() - both)
        tau = np.quantile(s, 1 - rho)
        logit = (g + q - (g + q).mean()) / (g + q).std()
        skewness, kurtosis = (logit**3).mean(), (logit**4).mean()
        rare = np.clip(8 * ((skewness + kurtosis) / o.cull_tail - 1), 0, 1) * (skewness > 0)
        mad = 1.4826 * np.median(abs(s - np.median(s)))
        far = np.median(s) + o.cull_tail_deviations * mad
        self.tau = (1 - rare) * tau + rare * max(tau, far)
        # 5. class prior, from the softmax mass of the five largest logits
        mass = np.full(self.classes, o.cull_first / self.classes)
        for i in past:
            if not i["noise"]:
                mass[i["order"]] += i["p"][i["order"]]
        pi = mass / mass.sum()
        spread = (pi * np.log(self.classes * pi) ** 2).sum()
        self.penalty = min(1, o.cull_prior**2 / max(spread, 1e-9)) * np.log(self.classes * pi)

        # 6. whether many are below the lower level
        self.is_many = np.mean([i["low"] for i in ring]) > o.cull_many

    def level(self, low, high):
        return high if self.is_many else low

    def score(self, i, views):
        z, h, g, q = (views - self.mean) / self.sd
        return (h + g + q) / self.b_sd + self.z_weight * z


def groups(share, images):
    sure = share - 0.5 / np.sqrt(images)  # a repeated image is no new evidence
    return np.clip((sure - 2 / np.pi) / (0.75 - 2 / np.pi), 0, 1)


def otsu(scores):
    """Try every split of the sorted scores; the smallest variance within wins."""
    v = np.sort(scores)
    within = [k * v[:k].var() + (len(v) - k) * v[k:].var() for k in range(1, len(v))]
    k = int(np.argmin(within)) + 1
    return (v[k - 1] + v[k]) / 2, 1 - min(within) / (len(v) * v.var())
