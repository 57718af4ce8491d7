"""OnZeta, "Online Zero-Shot Classification with CLIP", ECCV 2024, arXiv 2408.13320.

Two corrections of the frozen model, learned online: weights ρ of the classes, by which each gets at
least α / C of the items, and visual proxies w, which start as the texts and move to where images
are. A sample is classified by what was learned before it; then it is learned.

The paper's weight of the proxies β √(i / n) needs the length n of the stream; here it reaches β
after a given number of items. With α = 1, as published, predictions go to equal shares of the
classes: right for balanced test sets, wrong for skewed streams, which a smaller α suits.
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks, moved
from zsntta_cli.methods.classifiers.settings import OnZetaSettings
from zsntta_cli.methods.compiled import compiled


def classes(
    data: StreamData, options: OnZetaSettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classes (T,) by both corrections; `offered` (T,): the items that are learned."""
    o = options
    proxies = data.pool.text_features.astype(np.float64)
    weights = np.zeros(len(proxies))
    values = np.array([
        o.onzeta_balance, o.onzeta_prior_rate, o.onzeta_proxy_rate, o.onzeta_temperature,
        o.onzeta_mix, o.onzeta_mix_items,
    ])  # fmt: skip
    class_index, seen = np.empty(len(data), np.int32), 0
    for part in blocks(len(data)):
        frozen = Frozen.of(data, part)
        v = frozen.features
        steps = np.zeros_like(frozen.logits)
        class_index[part] = _learn(
            frozen.logits, v @ proxies.T, v @ v.T, offered[part], weights, steps, values, seen
        )
        proxies = moved(proxies, steps, v)
        seen += int(offered[part].sum())
    return class_index


@compiled
def _learn(logits, cosines, among, offered, weights, steps, values, seen):  # type: ignore[no-untyped-def]
    """Classes (B,) of a block's items; their steps (B, C) and the class weights ρ (C,) in place.

    `cosines` (B, C) are those with the block's first proxies, `among` (B, B) those of its items.
    """
    balance, prior_rate, proxy_rate, temperature, mix, mix_items = values
    count, total = logits.shape
    best, norm = np.empty(count, np.int32), np.ones(total)  # w = (w⁰ + Σ a v) / norm
    cosine, text, image = np.empty(total), np.empty(total), np.empty(total)
    for i in range(count):
        cosine[:] = cosines[i]
        for j in range(i):
            if offered[j]:
                cosine += among[i, j] * steps[j]
        cosine /= norm
        text[:] = logits[i] + weights
        text[:] = np.exp(text - text.max())
        text /= text.sum()
        image[:] = cosine / temperature
        image[:] = np.exp(image - image.max())
        image /= image.sum()
        beta = mix * np.sqrt(min(1.0, (seen + 1) / mix_items))
        best[i] = np.argmax(beta * image + (1 - beta) * text)
        if not offered[i]:
            continue
        seen += 1
        rate = 1 / np.sqrt(seen)
        weights[:] = np.maximum(weights - prior_rate * rate * (text - balance / total), 0)
        step = proxy_rate * rate / temperature * (image - text)
        steps[i] = -step * norm
        norm *= np.sqrt(np.maximum(1 - 2 * step * cosine + step**2 * among[i, i], 1e-24))
    return best
