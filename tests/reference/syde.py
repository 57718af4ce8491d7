"""Syde without pixels, item by item in float64: loops over cells, classes and both outputs."""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors.syde import SydeSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


def softmax(logits):
    powers = np.exp(logits - np.max(logits))
    return powers / powers.sum()


def direction(vector):
    return vector / np.linalg.norm(vector)


class Layer:
    """`Linear(D, 2)` and Adam; output 0 is noise."""

    def __init__(self, weight, bias, rate):
        self.w = np.column_stack([weight, bias]).astype(float)
        self.m, self.s, self.steps, self.rate = 0 * self.w, 0 * self.w, 0, rate

    def noise(self, feature):
        return softmax(self.w @ np.append(feature, 1))[0]

    def step(self, pairs):
        gradient = 0 * self.w
        for feature, is_noise in pairs:
            target = np.array([is_noise, not is_noise], float)
            p = softmax(self.w @ np.append(feature, 1))
            gradient += np.outer(p - target, np.append(feature, 1)) / len(pairs)
        self.steps += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.s = 0.999 * self.s + 0.001 * gradient**2
        m, s = self.m / (1 - 0.9**self.steps), self.s / (1 - 0.999**self.steps)
        self.w -= self.rate * m / (np.sqrt(s) + 1e-8)


class Map:
    """Cells on a square grid."""

    def __init__(self, cells, o):
        self.cells, self.o = cells.astype(float), o
        self.won = [[] for _ in cells]

    def nearest(self, x):
        return int(np.argmin([np.sum((cell - x) ** 2) for cell in self.cells]))

    def learn(self, samples):
        o = self.o
        for t in range(o.syde_map_steps if samples else 0):
            x, fall = samples[t % len(samples)], 1 + t / (o.syde_map_steps / 2)
            row, column = divmod(self.nearest(x), o.syde_map)
            for m in range(len(self.cells)):
                r, c = divmod(m, o.syde_map)
                apart = (r - row) ** 2 + (c - column) ** 2
                pull = np.exp(-apart / (2 * (o.syde_map_width / fall) ** 2))
                self.cells[m] += o.syde_map_rate / fall * pull * (x - self.cells[m])
        for x in samples:
            self.won[self.nearest(x)].append(x)

    def prototypes(self):
        return [direction(np.mean(won, axis=0)) for won in self.won if won]


def syde(data: StreamData, o: SydeSettings, threshold: ThresholdSettings, weight, bias, cells):
    """Classes, decisions and ID scores (T,), from a given layer and map."""
    text = data.pool.text_features.astype(float)
    memory = [[] for _ in text]  # (entropy, feature) of each class
    layer, cell_map = Layer(weight, bias, o.learning_rate), Map(cells, o)
    zero_shot, visual, own = (OnlineThreshold(threshold, size) for size in (1, o.update_every, 1))
    ring, rings, answers = [], 0, []
    for t, raw in enumerate(data.features(slice(None)).astype(float)):
        x, u, known = direction(raw), data.noise_score[t], data.injected[t]
        p = softmax(data.pool.logit_scale * text @ x)
        entropy = -sum(v * np.log(v) for v in p if v > 0)
        is_noise = u > zero_shot(np.array([u]))[0] or known
        ring.append((raw, x, int(data.class_index[t]), entropy, is_noise, known))
        if rings < o.warmup:
            answers.append((data.class_index[t], is_noise, 1 - u))
        else:
            v = layer.noise(raw)
            w = proxies(text, memory)
            mixed = (1 - o.syde_visual) * p
            mixed += o.syde_visual * softmax(data.pool.logit_scale * w @ x)
            called = v > own(np.array([v]))[0] or known
            answers.append((int(np.argmax(mixed)), called, 1 - v))
        if len(ring) == o.update_every:
            learn(ring, text, memory, cell_map, layer, visual, data.pool.logit_scale, o)
            ring, rings = [], rings + 1
    return [np.array(column) for column in zip(*answers, strict=True)]


def proxies(text, memory):
    return np.array([
        direction(t + sum(x for _, x in images)) for t, images in zip(text, memory, strict=True)
    ])  # fmt: skip


def learn(ring, text, memory, cell_map, layer, visual, scale, o):
    cell_map.learn([x for _, x, _, _, is_noise, _ in ring if is_noise])
    for _, x, c, entropy, is_noise, _ in ring:
        if is_noise:
            continue
        if len(memory[c]) == o.syde_shots:
            worst = max(range(o.syde_shots), key=lambda k: memory[c][k][0])
            if entropy >= memory[c][worst][0]:
                continue
            memory[c].pop(worst)
        memory[c].append((entropy, x))
    both = np.array([*proxies(text, memory), *cell_map.prototypes()])
    scores = [1 - softmax(scale * both @ x)[: len(text)].sum() for _, x, *_ in ring]
    found = visual(np.array(scores))
    pairs = []
    for (raw, _, _, entropy, _, known), u, limit in zip(ring, scores, found, strict=True):
        sure = entropy <= o.syde_entropy
        if known or (sure and u > limit + o.syde_gap * (1 - limit)):
            pairs.append((raw, True))
        elif sure and u < limit - o.syde_gap * limit:
            pairs.append((raw, False))
    if pairs:
        layer.step(pairs)
