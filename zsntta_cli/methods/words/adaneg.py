"""AdaNeg, arXiv 2410.20149: negative words that the stream's images adapt, as proxies.

A memory keeps images beside the class names and the negative words. The unit mean of a text and its
images is a proxy w. An image's score is NegLabel's on proxies, plus λ times that on texts. An image
that is sure by the score on texts enters the memory before it is scored: an ID image beside the
nearest name, noise beside the nearest negative.

Whether an image is sure depends on the online threshold of the text score with a gap, not on the
paper's fixed 0.5 (`--adaneg-sure`), which the released code sets to nearly 0 for few classes.
Injected noise enters as noise. A row holds L images as in the paper; the code's rows hold L - 1. As
in the released code, λ weights the texts in the score, but the proxies in the choice of the class.

Only texts determine what enters. So a block of items takes one product with the proxies at its
start and one with the proxies that its items make; each of these counts from its item on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import Rows
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.scores import cosine_logits, energy, entropy, unit
from zsntta_cli.methods.threshold import OnlineThreshold, is_surely_id, is_surely_noise
from zsntta_cli.methods.words.neglabel import decided
from zsntta_cli.methods.words.settings import AdaNegSettings
from zsntta_cli.methods.words.vocabulary import Vocabulary, item_blocks
from zsntta_cli.settings import ThresholdSettings

Array = NDArray[np.float32]


def run(data: StreamData, options: AdaNegSettings, threshold: ThresholdSettings) -> Decisions:
    """Call an item noise iff 1 - S / (1 + λ) is above its threshold; classify by both softmaxes."""
    pool, weight = data.pool, options.adaneg_text
    vocabulary = Vocabulary.of(pool, options)
    memory = AdaNegMemory(vocabulary.text, pool.image_features, options.adaneg_shots)
    text_threshold = OnlineThreshold(threshold)
    score, class_index = np.empty(len(data)), np.empty(len(data), np.int32)
    for block in item_blocks(len(data), len(vocabulary.text)):
        logits = cosine_logits(data.features(block), vocabulary.text, pool.logit_scale)
        by_text = vocabulary.id_share(logits).astype(np.float64)
        sure = text_threshold(1 - by_text)
        if options.adaneg_sure is not None:
            sure = np.full(len(by_text), 1 - options.adaneg_sure)
        offers = _offers(1 - by_text, sure, data.injected[block], options.gap)
        seen = _by_proxies(data, block, logits, offers, memory, vocabulary.classes)
        score[block] = vocabulary.id_share(seen) + weight * by_text
        c = vocabulary.classes
        class_index[block] = (_softmax(logits, c) + weight * _softmax(seen, c)).argmax(axis=1)
    return decided(class_index, score / (1 + weight), threshold)


class AdaNegMemory:
    """Up to `shots` images for each text; a new one then replaces one of higher entropy.

    A row is a text and its images; its proxy is their unit mean. Only rows with an image are kept,
    each as a running sum and its images' places in the pool. The other proxies are the texts.
    """

    def __init__(self, text: Array, images: Array | Rows, shots: int) -> None:
        """`text` (K, D) has unit norm, `images` (P, D) are raw features."""
        self._text, self._images, self._shots = text, images, shots
        self._held: dict[int, list[tuple[float, int]]] = {}  # entropy and image
        self._sum: dict[int, NDArray[np.float64]] = {}
        self._proxy: dict[int, Array] = {}

    def proxies(self) -> tuple[NDArray[np.intp], Array]:
        """The rows (A,) that hold an image, and their proxies (A, D)."""
        return np.array(list(self._proxy), np.intp), self._stacked(list(self._proxy.values()))

    def enter(
        self, rows: Sequence[int], entropies: Sequence[float], images: Sequence[int]
    ) -> tuple[list[int], Array]:
        """Offer images in turn; return which entered, and the proxy (E, D) that each made."""
        entered, proxies = [], []
        for i, (row, doubt, image) in enumerate(zip(rows, entropies, images, strict=True)):
            if self._place(row, doubt, image):
                entered.append(i)
                proxies.append(self._proxy[row])
        return entered, self._stacked(proxies)

    def _place(self, row: int, doubt: float, image: int) -> bool:
        """Put an image into a free place of a row, or into that of one of higher entropy."""
        held = self._held.setdefault(row, [])
        if len(held) == self._shots:
            worst = max(held)
            if doubt >= worst[0]:
                return False
            held.remove(worst)
            self._sum[row] = self._sum[row] - self._feature(worst[1])
        held.append((doubt, image))
        start = self._sum.get(row)
        total = self._feature(image) + (self._text[row] if start is None else start)
        self._sum[row], self._proxy[row] = total, unit(total[None])[0].astype(np.float32)
        return True

    def _feature(self, image: int) -> NDArray[np.float64]:
        return np.asarray(unit(self._images[image : image + 1].astype(np.float64))[0])

    def _stacked(self, rows: list[Array]) -> Array:
        return np.array(rows, np.float32).reshape(len(rows), self._text.shape[1])


@dataclass(frozen=True)
class _Offers:
    """The items of a block that are offered to the memory, (B,) each."""

    as_id: NDArray[np.bool_]
    as_noise: NDArray[np.bool_]


def _offers(
    u: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    injected: NDArray[np.bool_],
    gap: float,
) -> _Offers:
    as_noise = is_surely_noise(u, thresholds, gap) | injected
    return _Offers(is_surely_id(u, thresholds, gap) & ~injected, as_noise)


def _by_proxies(
    data: StreamData,
    block: slice,
    logits: Array,
    offers: _Offers,
    memory: AdaNegMemory,
    classes: int,
) -> Array:
    """The logits (B, C + M) by the proxies, after each item itself was offered."""
    features, scale, seen = data.features(block), data.pool.logit_scale, logits.copy()
    rows, proxies = memory.proxies()
    if len(rows):
        seen[:, rows] = cosine_logits(features, proxies, scale)
    items, row, doubt = _nearest(logits, offers, classes)
    entered, new = memory.enter(row.tolist(), doubt.tolist(), data.index[block][items].tolist())
    if len(new):
        by_made = cosine_logits(features, new, scale)
        for e, i in enumerate(entered):
            seen[items[i] :, row[i]] = by_made[items[i] :, e]
    return seen


def _nearest(
    logits: Array, offers: _Offers, classes: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """The offered items in order, with the nearest text and the entropy of each.

    Both are among the names for ID items, and among the negatives for noise.
    """
    row, doubt = np.zeros(len(logits), np.intp), np.zeros(len(logits))
    for kind, start, stop in (
        (offers.as_id, 0, classes), (offers.as_noise, classes, logits.shape[1])
    ):  # fmt: skip
        among = logits[kind, start:stop]
        row[kind] = start + among.argmax(axis=1)
        doubt[kind] = entropy(among)
    items = np.flatnonzero(offers.as_id | offers.as_noise)
    return items, row[items], doubt[items]


def _softmax(logits: Array, classes: int) -> Array:
    """The names' part (B, C) of the softmax over all texts."""
    share: Array = np.exp(logits[:, :classes] - energy(logits)[:, None])
    return share
