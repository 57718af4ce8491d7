"""Cull item by item, straight from the equations of docs/detector.md: plain and slow.

What was learned is computed anew from the whole history after each block, in float64: no running
sums, no shared code. An item keeps the views by which it was decided.
"""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors.cull import CullSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


def cull(data: StreamData, o: CullSettings, threshold: ThresholdSettings):
    """Classes, decisions, scores, thresholds and evidence of all items.

    At first ZS-CLIP's u, nan, and no evidence.
    """
    text = data.pool.text_features.astype(float)
    zero_shot, past, pending, rule = OnlineThreshold(threshold), [], [], None
    answers, kept, weight = [], [], np.zeros(3)
    for t in range(len(data)):
        item = see(data, t, text)
        is_known = data.injected[t]
        if not is_known:
            item["zs"] = item["u"] > zero_shot(np.array([item["u"]]))[0]
        if rule is None:
            is_noise, score, tau = is_known or item["zs"], item["u"], np.nan
        else:
            score, tau = rule.score(item, rule.views(item)), rule.tau
            is_noise = is_known or score > tau
        named = name(item, rule, kept, weight)
        evidence = rule.evidence if rule else (0.0, 0)
        answers.append((named, is_noise, score, np.nan if is_known else tau, *evidence))
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
            weight = order(kept[-o.cull_ring :]) if o.cull_order else np.zeros(3)
    return [np.array(column) for column in zip(*answers, strict=True)]


def see(data: StreamData, t: int, text):
    f = data.pool.image_features[data.index[t]].astype(float)
    x = f / max(np.linalg.norm(f), 1e-12)
    logits = data.pool.logit_scale * text @ x
    p = np.exp(logits - logits.max())
    p /= p.sum()
    entropy = -sum(v * np.log(v) for v in p if v > 0) / np.log(max(len(p), 2))
    first = np.argsort(-logits, kind="stable")[:5]
    return {
        "x": x, "l": logits, "p": p, "u": data.noise_score[t], "h": entropy, "g": -logits.max(),
        "order": first,
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
        # 4. share of noise, threshold, evidence
        split, between = otsu(b)
        own, zs = b > split, np.array([i["zs"] for i in ring])
        both = (own & zs).mean()
        single = both + max(2 * zs.mean() - 1, 0) * (zs.mean() - both)
        t = groups(between, len({i["g"] for i in ring}))
        rho = single + t * (own.mean() - single)
        tau = np.quantile(s, 1 - rho)
        logit = (g + q - (g + q).mean()) / (g + q).std()
        rare = np.clip(8 * (((logit**3).mean() + (logit**4).mean()) / o.cull_tail - 1), 0, 1)
        mad = 1.4826 * np.median(abs(s - np.median(s)))
        far = np.median(s) + o.cull_tail_deviations * mad
        self.tau = (1 - rare) * tau + rare * max(tau, far)
        two, back = t**2, 1 - own.mean() / max(zs.mean(), 1e-9)
        far = max(back, rare)
        value = max(two, far)
        self.evidence = value, 0 if value < 0.5 else 1 if two >= far else 2
        # 5. class prior, from the softmax mass of the five largest logits
        mass = np.full(self.classes, o.cull_first / self.classes)
        for i in past:
            if not i["noise"]:
                mass[i["order"]] += i["p"][i["order"]]
        pi = mass / mass.sum()
        spread = (pi * np.log(self.classes * pi) ** 2).sum()
        self.penalty = min(1, o.cull_prior**2 / max(spread, 1e-9)) * np.log(self.classes * pi)

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
