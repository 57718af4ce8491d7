"""AdaNeg, arXiv 2410.20149: negative words that the stream's images adapt, as proxies.

A memory keeps images beside the class names and the negative words. The unit mean of a text and its
images is a proxy w. An image's score is NegLabel's on proxies, plus λ times that on texts. An image
that is sure by the score on texts enters the memory before it is scored: an ID image beside the
nearest name, noise beside the nearest negative.

Whether an image is sure depends on the online threshold of the text score with a gap, not on the
paper's fixed 0.5 (`--set adaneg-sure=0.5`), which the released code sets to nearly 0 for few
classes. Injected noise enters as noise. A row holds L images as in the paper; the code's rows hold
L - 1. As in the released code, λ weights the texts in the score, but the proxies in the choice of
the class.

Only texts determine what enters, so a block of items takes one product with the proxies at its
start, and a proxy that changes within the block takes one more, from its item on.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.method import FROM_ONE, FROM_ZERO, GAP, SHARE, WORDS, Method
from zsntta_cli.methods.scores import cosine_logits, entropy, softmax, unit
from zsntta_cli.methods.threshold import OnlineThreshold, is_surely_id, is_surely_noise
from zsntta_cli.methods.words.neglabel import NegLabel, Vocabulary, grouped
from zsntta_cli.methods.words.vocabulary import Array, item_blocks
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import option


class AdaNeg(Method):
    """AdaNeg, arXiv 2410.20149: NegLabel's score on proxies that the stream's images adapt."""

    @dataclass(frozen=True)
    class Settings(NegLabel.Settings):
        groups: int = option(
            5, "Number of groups of negative words, whose scores are averaged.", within=FROM_ONE
        )
        grouping: str = grouped("random")
        adaneg_shots: int = option(10, "L: images of each word in the memory.", within=FROM_ONE)
        adaneg_text: float = option(0.1, "λ: weight of the score by texts.", within=FROM_ZERO)
        adaneg_sure: float | None = option(  # the released code's is 0.5 on ImageNet
            None, "Fixed threshold on the score by texts; none: the adaptive one.", within=SHARE
        )
        gap: float = option(0.5, GAP, within=SHARE)

    needs = WORDS
    cites = ("zhang2024adaneg",)
    cost = "keeps up to adaneg-shots images of each class and of each word"
    official = {**NegLabel.official, "adaneg_shots": 9, "adaneg_sure": 0.5}
    is_probability = True

    def __init__(self, data: StreamData, options: Settings, threshold: ThresholdSettings) -> None:
        self.options, self.vocabulary = options, Vocabulary.of(data.pool, options)
        self.memory = Memory(self.vocabulary.text, options.adaneg_shots)
        self.text_threshold, self.threshold = OnlineThreshold(threshold), OnlineThreshold(threshold)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise iff 1 - S / (1 + λ) is above its threshold; name by both softmaxes."""
        weight, scale = self.options.adaneg_text, items.pool.logit_scale
        text, classes = self.vocabulary.text, self.vocabulary.classes
        score, class_index = np.empty(len(items)), np.empty(len(items), np.int32)
        for block in item_blocks(len(items), len(text)):
            features = items.features(block)
            logits = cosine_logits(features, text, scale)
            by_text = self.vocabulary.id_share(logits).astype(np.float64)
            is_id, is_noise = self._sure(1 - by_text, items.injected[block], learn)
            seen = self._by_proxies(features, logits, is_id & learn, is_noise & learn, scale)
            score[block] = self.vocabulary.id_share(seen) + weight * by_text
            both = softmax(logits) + weight * softmax(seen)
            class_index[block] = both[:, :classes].argmax(axis=1)
        score /= 1 + weight
        own = self.threshold(1 - score, learn)
        return Decisions(class_index, 1 - score > own, score, detector_threshold=own)

    def _sure(
        self, u: NDArray[np.float64], injected: NDArray[np.bool_], learn: bool
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which items of a block are surely ID, and which surely noise, by the score on texts."""
        threshold, gap = self.text_threshold(u, learn), self.options.gap
        if self.options.adaneg_sure is not None:
            threshold = np.full(len(u), 1 - self.options.adaneg_sure)
        is_noise = is_surely_noise(u, threshold, gap) | injected
        return is_surely_id(u, threshold, gap) & ~injected, is_noise

    def _by_proxies(
        self,
        features: Array,
        logits: Array,
        is_id: NDArray[np.bool_],
        is_noise: NDArray[np.bool_],
        scale: float,
    ) -> Array:
        """The logits (B, C + M) by the proxies, after each sure item was offered to the memory."""
        memory, classes, seen = self.memory, self.vocabulary.classes, logits.copy()
        if len(rows := memory.rows):
            seen[:, rows] = cosine_logits(features, memory.proxies[rows], scale)
        for i in np.flatnonzero(is_id | is_noise):
            first, last = (0, classes) if is_id[i] else (classes, logits.shape[1])
            among = logits[i, first:last]
            row = first + int(among.argmax())
            if memory.enter(row, float(entropy(among[None])[0]), features[i]):
                proxy = memory.proxies[row : row + 1]
                seen[i:, row] = cosine_logits(features[i:], proxy, scale)[:, 0]
        return seen


class Memory:
    """Up to L images beside each of K texts; a new one then replaces one of higher entropy."""

    def __init__(self, text: Array, shots: int) -> None:
        self.text, self.proxies = text, text.copy()  # (K, D) unit norm
        self.entropies = np.full((len(text), shots), np.inf)  # inf: a free place
        # Unit images (K, L, D); the system allocates memory when it is written, and few texts
        # have images.
        self.images = np.zeros((len(text), shots, text.shape[1]), np.float32)

    @property
    def rows(self) -> NDArray[np.intp]:
        """The texts that have an image."""
        return np.flatnonzero(np.isfinite(self.entropies).any(axis=1))

    def enter(self, row: int, entropy: float, image: Array) -> bool:
        """Offer an image (D,) to a text; say whether it entered and changed the text's proxy."""
        place = int(self.entropies[row].argmax())
        if entropy >= self.entropies[row, place]:
            return False
        self.entropies[row, place], self.images[row, place] = entropy, unit(image)
        self.proxies[row] = unit(self.text[row] + self.images[row].sum(axis=0, dtype=np.float64))
        return True
