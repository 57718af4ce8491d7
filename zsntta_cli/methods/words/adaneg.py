"""AdaNeg, arXiv 2410.20149: negatives that images of the stream adapt; task-adaptive proxies.

A memory has images beside the class names and the negative words; the unit mean of a text and its
images is a proxy w. An image's score is NegLabel's on proxies, plus λ times that on texts. What the
score on texts is sure of enters the memory before it is scored: an ID image beside the name that it
is nearest to, noise beside the nearest negative.

What "sure" is follows the online threshold of the text score with a gap, not the paper's fixed 0.5
(`--adaneg-sure`), which the released code sets to nearly 0 where there are few classes. Known noise
enters as noise. A row holds L images as the paper has it; the code's hold L - 1. λ weighs the score
by texts, but the proxies where classes are told apart: both as released.

What enters follows from texts alone. So a block of items is one product with the proxies at its
start and one with those that its items make, each of which counts from its item on.
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
    """Noise where 1 - S / (1 + λ) is above its online threshold; classes by texts and proxies."""
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
    """Per text, up to `shots` images of lowest entropy; more only take the place of higher ones.

    A row is a text and its images; its proxy is the unit mean of both. Only rows that have an image
    are held, as a running sum each and its images' places in the pool: the other proxies are texts.
    """

    def __init__(self, text: Array, images: Array | Rows, shots: int) -> None:
        """Texts (K, D) of unit norm, raw images (P, D)."""
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
        """Offer images in turn: which of them entered, and the proxy (E, D) that each made."""
        entered, proxies = [], []
        for i, (row, doubt, image) in enumerate(zip(rows, entropies, images, strict=True)):
            if self._place(row, doubt, image):
                entered.append(i)
                proxies.append(self._proxy[row])
        return entered, self._stacked(proxies)

    def _place(self, row: int, doubt: float, image: int) -> bool:
        """Put an image into a row: into a free place, or that of the largest entropy above its."""
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
    """Items of a block that the memory is offered, (B,) each."""

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
    """Logits (B, C + M) by the proxies as they are once each item was offered itself."""
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
    """Which items are offered, in order, the text that each is nearest to, and its entropy.

    Both among the names for ID, among the negatives for noise.
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
