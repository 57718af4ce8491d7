"""OnZeta, "Online Zero-Shot Classification with CLIP", ECCV 2024, arXiv 2408.13320.

Two corrections of the frozen model are learned online: weights ρ of the classes, by which each gets
at least α / C of the items, and visual proxies w, which start as the texts and move towards the
images. A sample is classified by what was learned before it; then it is learned.

The paper's weight of the proxies, β √(i / n), needs the length n of the stream. Here it reaches β
after a set number of items, or at the stream's end if that number is 0. With α = 1, as published,
all classes get equal shares of the predictions. This is right for balanced test sets and wrong for
uneven streams, which need a smaller α.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks, moved, to_softmax
from zsntta_cli.methods.kernels.compiled import compiled
from zsntta_cli.methods.settings import ABOVE_ZERO, FROM_ZERO, SHARE, MethodSettings
from zsntta_cli.settings.options import option


@dataclass(frozen=True)
class OnZetaSettings(MethodSettings):
    """OnZeta, arXiv 2408.13320: class weights and visual proxies are learned online.

    The values are its paper's for ImageNet.
    """

    onzeta_balance: float = option(
        1.0, "α: smallest share of each class, in units of 1/C; 1: equal shares.", within=SHARE
    )
    onzeta_prior_rate: float = option(20.0, "Step size of the class weights ρ.", within=FROM_ZERO)
    onzeta_proxy_rate: float = option(0.5, "Step size of the visual proxies w.", within=FROM_ZERO)
    onzeta_temperature: float = option(
        0.04, "Temperature of the visual proxies' softmax.", within=ABOVE_ZERO
    )
    onzeta_mix: float = option(0.8, "β: largest weight of the visual proxies.", within=SHARE)
    # The released code uses the length of the stream, which no online method knows. This is the
    # size of the paper's validation set of ImageNet. 2,000 loses up to 5 points of Acc_S.
    onzeta_mix_items: int = option(
        50_000,
        "Items after which the proxies have this weight; 0: all items of the stream.",
        within=FROM_ZERO,
    )


class OnZeta:
    """The classifier while the stream runs."""

    def __init__(self, data: StreamData, options: OnZetaSettings) -> None:
        """Only if `onzeta-mix-items` is 0, the number of items of the stream matters."""
        self.options = options
        self.proxies = data.pool.text_features.astype(np.float64)  # w (C, D)
        self.weights = np.zeros(len(self.proxies))  # ρ (C,)
        self.mix_items = options.onzeta_mix_items or max(int((~data.injected).sum()), 1)
        self.seen = 0

    def classify(self, items: StreamData, offered: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Classify T items by both corrections; those that are `offered` (T,) are learned."""
        o, room = self.options, np.empty((2, len(self.proxies)))
        values = np.array([
            o.onzeta_balance, o.onzeta_prior_rate, o.onzeta_proxy_rate, o.onzeta_temperature,
            o.onzeta_mix, self.mix_items,
        ])  # fmt: skip
        class_index = np.empty(len(items), np.int32)
        for part in blocks(len(items)):
            frozen = Frozen.of(items, part)
            v = frozen.features
            steps = np.zeros_like(frozen.logits)
            _learn(
                class_index[part], frozen.logits, v @ self.proxies.T, v @ v.T, offered[part],
                self.weights, steps, values, self.seen, room,
            )  # fmt: skip
            if offered[part].any():  # rows are made unit again, which may change their last bit
                self.proxies = moved(self.proxies, steps, v)
            self.seen += int(offered[part].sum())
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
