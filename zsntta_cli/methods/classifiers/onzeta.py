"""OnZeta, "Online Zero-Shot Classification with CLIP", ECCV 2024, arXiv 2408.13320.

Two corrections of the frozen model are learned online: weights ρ of the classes, by which each gets
at least α / C of the items, and visual proxies w, which start as the texts and move towards the
images. A sample is classified by what was learned before it; then it is learned.

The paper's weight of the proxies, β √(i / n), needs the length n of the stream. Here it reaches β
after a set number of items, or at the stream's end if that number is 0. With α = 1, as published,
all classes get equal shares of the predictions. This is right for balanced test sets and wrong for
uneven streams, which need a smaller α.
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.kernels.compiled import compiled
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks, moved, to_softmax
from zsntta_cli.methods.settings import OnZetaSettings


def classes(
    data: StreamData, options: OnZetaSettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classify T items by both corrections; those that are `offered` (T,) are learned."""
    o = options
    proxies = data.pool.text_features.astype(np.float64)
    weights, room = np.zeros(len(proxies)), np.empty((2, len(proxies)))
    mix_items = o.onzeta_mix_items or np.count_nonzero(~data.injected)
    values = np.array([
        o.onzeta_balance, o.onzeta_prior_rate, o.onzeta_proxy_rate, o.onzeta_temperature,
        o.onzeta_mix, max(mix_items, 1),
    ])  # fmt: skip
    class_index, seen = np.empty(len(data), np.int32), 0
    for part in blocks(len(data)):
        frozen = Frozen.of(data, part)
        v = frozen.features
        steps = np.zeros_like(frozen.logits)
        _learn(
            class_index[part], frozen.logits, v @ proxies.T, v @ v.T, offered[part], weights,
            steps, values, seen, room,
        )  # fmt: skip
        proxies = moved(proxies, steps, v)
        seen += int(offered[part].sum())
    return class_index


@compiled
def _learn(best, logits, cosines, among, offered, weights, steps, values, seen, room):  # type: ignore[no-untyped-def]
    """Write the classes (B,) of a block's items, and change steps (B, C) and weights ρ (C,).

    `cosines` (B, C) are those with the proxies at the block's start, `among` (B, B) those between
    its items. `logits` (B, C), `cosines` and `room` (2, C) are overwritten.
    """
    balance, prior_rate, proxy_rate = values[0], values[1], values[2]
    temperature, mix, mix_items = values[3], values[4], values[5]
    count, total = logits.shape
    image, norm = room[0], room[1]  # w = (w⁰ + Σ a v) / norm
    norm[:] = 1
    for i in range(count):
        text, cosine = logits[i], cosines[i]
        for j in range(i):
            if offered[j]:
                for c in range(total):
                    cosine[c] += among[i, j] * steps[j, c]
        for c in range(total):
            cosine[c] /= norm[c]
            text[c] += weights[c]
            image[c] = cosine[c] / temperature
        to_softmax(text)
        to_softmax(image)
        beta = mix * np.sqrt(min(1.0, (seen + 1) / mix_items))
        highest = -np.inf
        for c in range(total):
            both = beta * image[c] + (1 - beta) * text[c]
            if both > highest:
                best[i], highest = c, both
        if not offered[i]:
            continue
        seen += 1
        rate = 1 / np.sqrt(seen)
        for c in range(total):
            weights[c] = max(weights[c] - prior_rate * rate * (text[c] - balance / total), 0)
            step = proxy_rate * rate / temperature * (image[c] - text[c])
            steps[i, c] = -step * norm[c]
            square = 1 - 2 * step * cosine[c] + step * step * among[i, i]
            norm[c] *= np.sqrt(max(square, 1e-24))
