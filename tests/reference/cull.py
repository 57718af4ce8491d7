"""Cull item by item, straight from the equations of docs/detector.md: plain and slow.

What was learned is computed anew from the whole history after each block, in float64: no running
sums, no shared code. An item keeps the views by which it was decided. The order of classes is left
out: tests/methods/test_recorded.py has it.
"""

import numpy as np

from zsntta_cli.methods.threshold import OnlineThreshold


def cull(data, o, threshold):
    """Classes, flags, scores, thresholds (at first nan), evidence and levels of all items.

    `data` has no injected noise, and a generic text if it has a level.
    """
    low = np.nan if o.cull_low is None else o.cull_low
    high = low + 1 if o.cull_high is None else o.cull_high
    zero_shot, past, pending, rule, answers = OnlineThreshold(threshold), [], [], None, []
    for t in range(len(data)):
        item = see(data, t)
        item["low"] = item["e"] < low
        item["zs"] = item["u"] > zero_shot(np.array([item["u"]]))[0]
        score, tau, level = item["u"], zero_shot.latest, low
        if rule:
            score, tau = rule.score(rule.views(item)), rule.tau
            level = high if rule.is_many else low
        item["noise"] = score > tau or item["e"] < level
        if not np.isnan(level):
            score = max(score, tau + level - item["e"])
        logits = item["l"] - (rule.penalty if rule else 0)
        named = item["order"][np.argmax(logits[item["order"]])]
        own = tau if rule else np.nan
        answers.append((named, item["noise"], score, own, item["e"], level))
        # Deviations of logits: of the first 1,024 items, then of one in eight of a block.
        item["is looked at"] = len(past) < 1024 or len(pending) % 8 == 0
        pending.append(item)
        if len(pending) == max(o.cull_first, min(len(past) // 8, 256)):
            new, past, pending = pending, past + pending, []
            decided_by, rule = rule, Rule(past, o)
            for one in new:
                one["views"] = (decided_by or rule).views(one)
            rule.find(past)
    return [np.array(column) for column in zip(*answers, strict=True)]


def see(data, t):
    f, text = data.features()[t].astype(float), data.text_features.astype(float)
    x, e = f / max(np.linalg.norm(f), 1e-12), np.nan
    logits = data.logit_scale * text @ x
    if data.generic is not None:
        logits -= data.logit_scale * data.generic.astype(float) @ x
        e = np.log(np.mean(np.exp(logits)))
    p = np.exp(logits - logits.max())
    p /= p.sum()
    entropy = -sum(v * np.log(v) for v in p if v > 0) / np.log(max(len(p), 2))
    first = np.argsort(-logits, kind="stable")[:5]
    return {
        "x": x, "l": logits, "p": p, "u": data.noise_score[t], "h": entropy, "g": -logits.max(),
        "order": first, "e": e,
    }  # fmt: skip


class Rule:
    """All that a block's decisions depend on."""

    def __init__(self, past, o):
        self.o = o
        x = np.array([i["x"] for i in past])
        # 1. mean and deviation of each class's logit
        self.mu = np.mean([i["l"] for i in past], 0)
        self.sigma = np.std([i["l"] for i in past if i["is looked at"]], 0)
        # 2. what doubtful images have in common
        w = np.zeros(x.shape[1])
        for one in ("u", "h", "g"):
            y = np.array([i[one] for i in past])
            if y.std() > 1e-6:
                w += ((y - y.mean()) / y.std()) @ (x - x.mean(0))
        self.w, self.x_mean = w / np.linalg.norm(w), x.mean(0)

    def views(self, i):
        c = i["order"][0]
        q = (self.mu[c] - i["l"][c]) / self.sigma[c]
        return np.array([self.w @ (i["x"] - self.x_mean), i["h"], i["g"], q])

    def score(self, views):
        z, h, g, q = (views - self.mean) / self.sd
        return (h + g + q) / self.b_sd + self.z_weight * z

    def find(self, past):
        o, ring = self.o, past[-self.o.cull_ring :]
        raw = np.array([i["views"] for i in ring])
        self.mean, self.sd = raw.mean(0), raw.std(0)
        self.sd[self.sd < 1e-6] = np.inf
        # 3. score
        z, h, g, q = ((raw - self.mean) / self.sd).T
        self.b_sd, self.z_weight = (h + g + q).std(), max((z * q).mean(), 0) ** 3
        b = (h + g + q) / self.b_sd
        s = np.array([self.score(views) for views in raw])
        # 4. share of noise, threshold
        split, between = otsu(b)
        own, zs = b > split, np.array([i["zs"] for i in ring])
        both = (own & zs).mean()
        sure = between - 0.5 / np.sqrt(len(set(raw[:, 2])))  # a repeated image is no new evidence
        t = np.clip((sure - 2 / np.pi) / (0.75 - 2 / np.pi), 0, 1)
        tau = np.quantile(s, 1 - (both + t * (own.mean() - both)))
        logit = (g + q - (g + q).mean()) / (g + q).std()
        skewness, kurtosis = (logit**3).mean(), (logit**4).mean()
        rare = np.clip(8 * ((skewness + kurtosis) / o.cull_tail - 1), 0, 1) * (skewness > 0)
        mad = 1.4826 * np.median(abs(s - np.median(s)))
        far = np.median(s) + o.cull_tail_deviations * mad
        self.tau = (1 - rare) * tau + rare * max(tau, far)
        # 5. class prior, from the softmax mass of the five largest logits
        classes = len(self.mu)
        mass = np.full(classes, o.cull_first / classes)
        for i in past:
            if not i["noise"]:
                mass[i["order"]] += i["p"][i["order"]]
        pi = mass / mass.sum()
        spread = (pi * np.log(classes * pi) ** 2).sum()
        self.penalty = min(1, o.cull_prior**2 / max(spread, 1e-9)) * np.log(classes * pi)
        # 6. whether many are below the lower level
        self.is_many = np.mean([i["low"] for i in ring]) > o.cull_many


def otsu(scores):
    """Try every split of the sorted scores; the smallest variance within wins."""
    v = np.sort(scores)
    within = [k * v[:k].var() + (len(v) - k) * v[k:].var() for k in range(1, len(v))]
    k = int(np.argmin(within)) + 1
    return (v[k - 1] + v[k]) / 2, 1 - min(within) / (len(v) * v.var())
