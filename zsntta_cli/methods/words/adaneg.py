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

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.scores import cosine_logits, energy, entropy, unit
from zsntta_cli.methods.settings import FROM_ONE, FROM_ZERO, GAP, SHARE
from zsntta_cli.methods.threshold import OnlineThreshold, is_surely_id, is_surely_noise
from zsntta_cli.methods.words.neglabel import NegLabelSettings, decided
from zsntta_cli.methods.words.vocabulary import Vocabulary, item_blocks
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import option


@dataclass(frozen=True)
class AdaNegSettings(NegLabelSettings):
    """AdaNeg, arXiv 2410.20149: NegLabel's score on proxies that the stream's images adapt.

    The score by texts tells which images are sure by an online threshold; `official` fixes it.
    """

    groups: int = option(
        5, "Number of groups of negative words, whose scores are averaged.", within=FROM_ONE
    )
    grouping: str = option(
        "random",
        "How words are grouped: by distance, or shuffled into groups of one size.",
        choices=("ranked", "random"),
    )
    adaneg_shots: int = option(10, "L: images of each word in the memory.", within=FROM_ONE)
    adaneg_text: float = option(0.1, "λ: weight of the score by texts.", within=FROM_ZERO)
    adaneg_sure: float | None = option(  # the released code's is 0.5 on ImageNet
        None, "Fixed threshold on the score by texts; none: the adaptive one.", within=SHARE
    )
    gap: float = option(0.5, GAP, within=SHARE)


Array = NDArray[np.float32]


class AdaNeg:
    """AdaNeg while the stream runs."""

    def __init__(
        self, data: StreamData, options: AdaNegSettings, threshold: ThresholdSettings
    ) -> None:
        self.options, self.vocabulary = options, Vocabulary.of(data.pool, options)
        self.memory = AdaNegMemory(self.vocabulary, options.adaneg_shots)
        self.text_threshold, self.threshold = (OnlineThreshold(threshold) for _ in "ts")

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise iff 1 - S / (1 + λ) is above its threshold; name by both softmaxes."""
        weight, scale = self.options.adaneg_text, items.pool.logit_scale
        text, classes = self.vocabulary.text, self.vocabulary.classes
        score, class_index = np.empty(len(items)), np.empty(len(items), np.int32)
        for block in item_blocks(len(items), len(text)):
            features = items.features(block)
            logits = cosine_logits(features, text, scale)
            by_text = self.vocabulary.id_share(logits).astype(np.float64)
            offers = self._offers(1 - by_text, items.injected[block], learn)
            seen = _by_proxies(features, logits, offers, self.memory, scale)
            score[block] = self.vocabulary.id_share(seen) + weight * by_text
            both = _softmax(logits, classes) + weight * _softmax(seen, classes)
            class_index[block] = both.argmax(axis=1)
        return decided(class_index, score / (1 + weight), self.threshold, learn)

    def _offers(
        self, u: NDArray[np.float64], injected: NDArray[np.bool_], learn: bool
    ) -> "_Offers":
        """The items of a block that are sure enough to enter the memory."""
        sure, gap = self.text_threshold(u, learn), self.options.gap
        if self.options.adaneg_sure is not None:
            sure = np.full(len(u), 1 - self.options.adaneg_sure)
        as_noise = is_surely_noise(u, sure, gap) | injected
        return _Offers(is_surely_id(u, sure, gap) & ~injected & learn, as_noise & learn)


class AdaNegMemory:
    """Up to `shots` images for each text; a new one then replaces one of higher entropy.

    A row is a text and its images; its proxy is their unit mean. Only rows with an image are kept.
    The other proxies are the texts.
    """

    def __init__(self, vocabulary: Vocabulary, shots: int) -> None:
        """The memory of a vocabulary of K texts, before the first image."""
        count, dim = vocabulary.text.shape
        self.vocabulary, self.shots = vocabulary, shots
        self.place = np.full(count, -1, np.int64)  # (K,) of a text's row among those that are kept
        self.filled = 0  # rows that are kept; the arrays below have room for more
        self.text = np.empty(0, np.int64)  # (A,) the text of each
        self.entropy = np.empty((0, shots))  # (A, L) of its images; inf: a free place
        self.images = np.empty((0, shots, dim), np.float32)  # (A, L, D) raw features
        self.sums = np.empty((0, dim))  # (A, D) of the text and the unit images
        self.proxies = np.empty((0, dim), np.float32)  # (A, D)

    def enter(
        self, texts: Sequence[int], entropies: Sequence[float], images: Array
    ) -> tuple[list[int], Array]:
        """Offer images (N, D) in turn; return which entered, and the proxy (E, D) each made."""
        entered, proxies = [], []
        for i, (text, doubt) in enumerate(zip(texts, entropies, strict=True)):
            row = self._row(text)
            if self._put(row, doubt, images[i]):
                entered.append(i)
                proxies.append(self.proxies[row].copy())
        dim = self.proxies.shape[1]
        return entered, np.array(proxies, np.float32).reshape(len(proxies), dim)

    def _row(self, text: int) -> int:
        """The row of a text, which is made if there is none."""
        if self.place[text] < 0:
            if self.filled == len(self.text):
                self._make_room()
            self.place[text], self.text[self.filled] = self.filled, text
            self.entropy[self.filled] = np.inf
            self.sums[self.filled] = self.vocabulary.text[text]
            self.filled += 1
        return int(self.place[text])

    def _make_room(self) -> None:
        """Double the room for rows."""
        more = max(len(self.text), 16)
        for name in ("text", "entropy", "images", "sums", "proxies"):
            old = vars(self)[name]
            vars(self)[name] = np.concatenate([old, np.zeros((more, *old.shape[1:]), old.dtype)])

    def _put(self, row: int, doubt: float, image: Array) -> bool:
        """Put an image into a free place of a row, or into that of one of higher entropy."""
        worst = int(self.entropy[row].argmax())
        is_free = np.isinf(self.entropy[row, worst])
        if not is_free and doubt >= self.entropy[row, worst]:
            return False
        if not is_free:
            self.sums[row] = self.sums[row] - _unit(self.images[row, worst])
        self.entropy[row, worst], self.images[row, worst] = doubt, image
        self.sums[row] = _unit(image) + self.sums[row]
        self.proxies[row] = unit(self.sums[row][None])[0].astype(np.float32)
        return True


def _unit(image: Array) -> NDArray[np.float64]:
    return np.asarray(unit(image[None].astype(np.float64))[0])


@dataclass(frozen=True)
class _Offers:
    """The items of a block that are offered to the memory, (B,) each."""

    as_id: NDArray[np.bool_]
    as_noise: NDArray[np.bool_]


def _by_proxies(
    features: Array, logits: Array, offers: "_Offers", memory: AdaNegMemory, scale: float
) -> Array:
    """The logits (B, C + M) by the proxies, after each item itself was offered."""
    seen, filled = logits.copy(), memory.filled
    if filled:
        seen[:, memory.text[:filled]] = cosine_logits(features, memory.proxies[:filled], scale)
    items, row, doubt = _nearest(logits, offers, memory.vocabulary.classes)
    entered, new = memory.enter(row.tolist(), doubt.tolist(), features[items])
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
