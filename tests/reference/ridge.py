"""Ridge item by item, straight from the equations of docs/detector.md: plain and slow.

What was learned is computed anew from the whole history after each block, in float64 and by direct
solutions: no running sums, no conjugate gradients, no shared code.
"""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.settings import RidgeSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


def ridge(data: StreamData, o: RidgeSettings, threshold: ThresholdSettings):
    """Classes, decisions, scores, thresholds and evidence of all items.

    At first ZS-CLIP's u, nan, and no evidence.
    """
    text = data.pool.text_features.astype(float)
    zero_shot, past, pending, rule = OnlineThreshold(threshold), [], [], None
    answers, kept, weights = [], [], np.zeros(3)
    for t in range(len(data)):
        item = see(data, t, text)
        if data.injected[t]:
            score = rule.score(item) if rule else item["u"]
            named = name(item, rule, kept, weights)
            answers.append((named, True, score, np.nan, *evidence_of(rule)))
            continue
        item["zs"] = item["u"] > zero_shot(np.array([item["u"]]))[0]
        if rule is None:
            is_noise, score, tau = item["zs"], item["u"], np.nan
        else:
            score, tau = rule.score(item), rule.tau
            is_noise = score > tau
        named = name(item, rule, kept, weights)
        answers.append((named, is_noise, score, tau, *evidence_of(rule)))
        item["noise"] = is_noise
        if not is_noise:
            kept.append(item)
        # Second moments: all of the first 1,024 items, then the first of every eight of a block.
        item["weight"] = 1 if len(past) < 1024 else 8 * (len(pending) % 8 == 0)
        pending.append(item)
        if len(pending) == max(o.ridge_first, min(len(past) // 8, o.ridge_block)):
            past, pending = past + pending, []
            rule = Rule(past, text, o)
            weights = order(kept[-o.ridge_ring :]) if o.ridge_order else np.zeros(3)
    return [np.array(column) for column in zip(*answers, strict=True)]


def evidence_of(rule):
    """How much speaks for noise, and for which: 0 none, 1 another kind, 2 rare and far."""
    if rule is None or max(rule.common, rule.far) < 0.5:
        return (max(rule.common, rule.far) if rule else 0.0), 0
    return max(rule.common, rule.far), 1 if rule.common >= 0.5 > rule.omega else 2


def see(data: StreamData, t: int, text):
    f = data.pool.image_features[data.index[t]].astype(float)
    x = f / max(np.linalg.norm(f), 1e-12)
    logits = data.pool.logit_scale * text @ x
    p = np.exp(logits - logits.max())
    p /= p.sum()
    entropy = -sum(v * np.log(v) for v in p if v > 0) / np.log(len(p))
    order = np.argsort(-logits, kind="stable")[:5]
    item = {
        "x": x, "l": logits, "p": p, "u": data.noise_score[t], "h": entropy, "g": -logits.max(),
        "order": order,
    }  # fmt: skip
    if data.pool.more_text is not None:
        of_words = data.pool.logit_scale * data.pool.more_text.astype(float) @ x
        item["t"] = np.log(np.exp(of_words).sum()) - np.log(np.exp(logits).sum())
        item["is word"] = of_words.max() > logits.max()
    return item


def name(item, rule, kept, weights):
    """Step 8: the class, of which the last items called clean say something too."""
    classes, count = item["order"], len(item["l"])
    logits = item["l"][classes] - (rule.penalty[classes] if rule else 0)
    shares = kept[-1]["shares"] if kept else np.full((3, count), 1 / count)
    item["named"] = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    item["gains"] = count * shares[:, classes] @ item["named"]
    # Windows in which an item weighs a half, a tenth or a fiftieth, those before it the rest.
    keeps = np.array([[0.5], [0.9], [0.98]])
    item["shares"] = keeps * shares
    item["shares"][:, classes] += (1 - keeps) * item["named"]
    prior = (1 - weights.sum()) / count + weights @ shares
    return classes[np.argmax(logits + np.log(count * prior[classes]))]


def order(kept):
    """Step 8: the weights of the windows, none without evidence for order."""
    c, n = np.array([i["order"][0] for i in kept]), len(kept)
    if n < 8 or len(set(c)) == 1:
        return np.zeros(3)
    joins = sum(c[i] == c[i + 1] for i in range(n - 1))
    counts = [sum(c == k) for k in set(c)]
    # Of all orders: that two, three places share a class, that two and two others do.
    two = sum(k * (k - 1) for k in counts) / (n * (n - 1))
    three = sum(k * (k - 1) * (k - 2) for k in counts) / (n * (n - 1) * (n - 2))
    alike = sum(k * (k - 1) * (k - 2) * (k - 3) for k in counts)
    alike += sum(
        k * (k - 1) * m * (m - 1)
        for a, k in enumerate(counts)
        for b, m in enumerate(counts)
        if a != b
    )
    four = alike / (n * (n - 1) * (n - 2) * (n - 3))
    mean = (n - 1) * two
    variance = mean + 2 * (n - 2) * three + (n - 2) * (n - 3) * four - mean**2
    if variance < 1e-9 * n:
        return np.zeros(3)
    z = (np.sqrt(joins) + np.sqrt(joins + 1) - np.sqrt(4 * mean + 1)) * np.sqrt(mean / variance)
    weights = np.full(4, 0.25)
    for _ in range(20):
        by_window = np.array([weights * [1, *i["gains"]] for i in kept])
        by_window /= by_window.sum(1, keepdims=True)
        total = by_window.sum(0) + np.array([20, 0, 0, 0])
        weights = total / total.sum()
    return np.clip((z - 4) / 2, 0, 1) * weights[1:]


class Rule:
    """All that a block's decisions depend on."""

    def __init__(self, past, text, o):
        self.o = o
        n, dim, classes = len(past), text.shape[1], len(text)
        x = np.array([i["x"] for i in past])
        y = np.array([[i["u"], i["h"], i["g"]] for i in past])
        weight = np.array([i["weight"] for i in past], float)

        # 1. mean and deviation of each class's logit
        logits = np.array([i["l"] for i in past])
        self.mu = logits.mean(0)
        center = np.average(logits, axis=0, weights=weight)
        self.sigma = np.sqrt(np.average((logits - center) ** 2, axis=0, weights=weight))

        # 2. ridge regression
        centered = x - np.average(x, axis=0, weights=weight)
        cov = (centered * weight[:, None]).T @ centered / weight.sum()
        self.x_mean = x.mean(0)
        target = ((x - self.x_mean).T @ ((y - y.mean(0)) / y.std(0))).sum(1) / n
        penalty = o.ridge_penalty * np.trace(cov) / dim * (1 + dim / n)
        w = np.linalg.solve(cov + penalty * np.eye(dim), target)
        self.w = w / np.linalg.norm(w)

        # 3. standard views of the ring, base score
        ring = past[-o.ridge_ring :]
        m = len(ring)
        raw = np.array([self.raw(i) for i in ring])
        self.mean, self.sd = raw.mean(0), raw.std(0)
        v = (raw - self.mean) / self.sd
        b = v[:, 1] + v[:, 2] + v[:, 3]
        b = b / b.std()

        # 4. evidence
        r = np.corrcoef(v[:, 0], v[:, 3])[0, 1] - o.ridge_gate_errors / np.sqrt(m)
        shape = (b**3).mean() + (b**4).mean()
        self.gate = ramp(r, o.ridge_gate)
        base = b - o.ridge_doubt * np.log([max(1 - i["u"], 1e-3) for i in ring])
        unseen = ramp(shape, o.ridge_shape)
        apart = max(1 - unseen, ramp(between(base), o.ridge_apart))
        kappa = 1 - (1 - o.ridge_clean) * ramp(shape, o.ridge_shape)
        self.omega = omega = ramp(shape, o.ridge_tail)

        # Evidence: z in two groups, or far tails of the largest logit
        z, logit = v[:, 0], v[:, 2] + v[:, 3]
        two = ((z**3).mean() ** 2 + 1) / (z**4).mean()
        alike = np.corrcoef(z, v[:, 3])[0, 1] - 3 / np.sqrt(m)  # no image comes twice here
        flat = 1 - unseen if classes > 1 else 0
        self.common = max(min(self.gate, ramp(two, 0.6)), min(ramp(alike, 0.4), flat))
        t = (logit - np.median(logit)) / (1.4826 * np.median(abs(logit - np.median(logit))))
        self.far = ramp((np.maximum(t - 3, 0) ** 2).mean(), 0.02)

        # 5. score
        self.used, self.s_sd, self.word_sd = 0.0, 1.0, 1.0
        self.s_sd = np.std([self.mixed(i) for i in ring])
        if "t" in ring[0]:
            self.used = float(np.clip((np.mean([i["is word"] for i in ring]) - 0.02) / 0.04, 0, 1))
            self.t_mean, self.t_sd = np.mean([i["t"] for i in ring]), np.std([i["t"] for i in ring])
            self.word_sd = np.std([self.mixed(i) for i in ring])
            self.s_sd *= self.word_sd
        s = np.array([self.score(i) for i in ring])

        # 6. threshold
        rho0 = np.mean([i["zs"] for i in ring])
        rho = (base > otsu(base)).mean()
        rho = rho if rho < rho0 else rho0 + apart * (rho - rho0)
        tau = self.gate * np.quantile(s, 1 - rho)
        tau += (1 - self.gate) * np.quantile(s, 1 - kappa * rho0)
        if omega > 0:
            mad = np.median(abs(s - np.median(s)))
            tail = np.median(s) + o.ridge_tail_deviations * 1.4826 * mad
            tau = (1 - omega) * tau + omega * max(tau, tail)
        self.tau = tau

        # 7. class prior, from the softmax mass of the five largest logits
        mass = np.full(classes, o.ridge_prior_items / classes)
        for i in past:
            if not i["noise"]:
                mass[i["order"]] += i["p"][i["order"]]
        pi = mass / mass.sum()
        spread = (pi * np.log(classes * pi) ** 2).sum()
        self.penalty = min(1, o.ridge_prior**2 / spread) * np.log(classes * pi)

    def raw(self, i):
        c = i["order"][0]
        q = -(i["l"][c] - self.mu[c]) / self.sigma[c]
        return np.array([self.w @ (i["x"] - self.x_mean), i["h"], i["g"], q])

    def mixed(self, i):
        z, h, g, q = (self.raw(i) - self.mean) / self.sd
        return (self.o.ridge_view * self.gate * z + 0.5 * (h + g + q)) / self.s_sd + self.worded(i)

    def worded(self, i):
        """Twice t, beside a score of variance 1; nothing as long as words are not used."""
        if not self.used:
            return 0.0
        return 2 * self.used * (i["t"] - self.t_mean) / self.t_sd / self.word_sd

    def score(self, i):
        return self.mixed(i) - self.o.ridge_doubt * np.log(max(1 - i["u"], 1e-3))


def ramp(value, start):
    return float(np.clip((value / start - 1) / 0.125, 0, 1))


def between(scores):
    """Share of the variance between the sides of the best split: 1 - the least share within."""
    v = np.sort(scores)
    within = [k * v[:k].var() + (len(v) - k) * v[k:].var() for k in range(1, len(v))]
    return 1 - min(within) / (len(v) * v.var())


def otsu(scores):
    """Try every split of the sorted scores; the smallest variance within wins."""
    v = np.sort(scores)
    within = [k * v[:k].var() + (len(v) - k) * v[k:].var() for k in range(1, len(v))]
    k = int(np.argmin(within)) + 1
    return (v[k - 1] + v[k]) / 2
