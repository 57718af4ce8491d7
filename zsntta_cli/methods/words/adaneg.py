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

import copy

import numpy as np

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.scores import Features, Mask, cosine_logits, entropy, softmax, unit
from zsntta_cli.methods.words.neglabel import NegLabel, grouping
from zsntta_cli.methods.words.vocabulary import GAP, logit_blocks, surely_id_or_noise
from zsntta_cli.settings.options import amount, count, share


class AdaNeg(NegLabel):
    """AdaNeg, arXiv 2410.20149: NegLabel's score on proxies that the stream's images adapt."""

    class Settings(NegLabel.Settings):
        groups: int = count(5, "Number of groups of negative words, whose scores are averaged.")
        grouping: str = grouping("random")
        adaneg_shots: int = count(10, "L: number of images of each name and word in the memory.")
        adaneg_text: float = amount(0.1, "λ: weight of the score by texts.")
        # the released code's is 0.5 on ImageNet
        adaneg_sure: float | None = share(
            None, "Fixed threshold on the score by texts; none means the adaptive one."
        )
        gap: float = GAP

    cites = ("zhang2024adaneg",)
    cost = "keeps up to adaneg-shots images of each class and of each word"
    official = {**NegLabel.official, "adaneg_shots": 9, "adaneg_sure": 0.5}
    revision = 1
    class_probability = ""

    def start(self, data: StreamData) -> None:
        super().start(data)
        self.text_threshold, self.proxies = copy.copy(self.threshold), self.text.copy()
        # Of up to L unit images beside each text. The system allocates memory when it is written,
        # and few texts have images.
        count, dim = self.text.shape
        self.images = np.zeros((count, self.options.adaneg_shots, dim), np.float32)
        self.entropies = np.full(self.images.shape[:2], np.inf)  # inf: a free place

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise iff 1 - S / (1 + λ) is above its threshold; name by both softmaxes."""
        o, weight, injected = self.options, self.options.adaneg_text, items.injected
        score, class_index = np.empty(len(items)), np.empty(len(items), np.int32)
        for block, logits in logit_blocks(items.features(), self.text, items.logit_scale):
            by_text = self.id_share(logits).astype(float)
            threshold = self.text_threshold(1 - by_text, learn)
            if o.adaneg_sure is not None:
                threshold = np.full(len(by_text), 1 - o.adaneg_sure)
            is_id, is_noise = surely_id_or_noise(1 - by_text, threshold, o.gap)
            is_id, is_noise = is_id & ~injected[block] & learn, (is_noise | injected[block]) & learn
            seen = self._by_proxies(items.part(block), logits, is_id, is_noise)
            score[block] = self.id_share(seen) + weight * by_text
            both = softmax(logits) + weight * softmax(seen)
            class_index[block] = both[:, : self.classes].argmax(axis=1)
        score /= 1 + weight
        thresholds = self.threshold(1 - score, learn)
        return Decisions(class_index, 1 - score > thresholds, score, None, thresholds)

    def _by_proxies(
        self, items: StreamData, logits: Features, is_id: Mask, is_noise: Mask
    ) -> Features:
        """The logits (B, C + M) by the proxies, after each sure item was offered to the memory."""
        features, scale, seen = items.features(), items.logit_scale, logits.copy()
        if len(rows := np.flatnonzero(np.isfinite(self.entropies).any(axis=1))):
            seen[:, rows] = cosine_logits(features, self.proxies[rows], scale)
        for i in np.flatnonzero(is_id | is_noise):
            first, last = (0, self.classes) if is_id[i] else (self.classes, len(self.text))
            among = logits[i, first:last]
            row = first + int(among.argmax())
            if self._enter(row, float(entropy(among[None])[0]), features[i]):
                seen[i:, row] = cosine_logits(features[i:], self.proxies[row][None], scale)[:, 0]
        return seen

    def _enter(self, row: int, entropy: float, image: Features) -> bool:
        """Offer an image (D,) to a text; say whether it entered and changed the text's proxy.

        If the row is full, it replaces the image of highest entropy, if that is higher.
        """
        place = int(self.entropies[row].argmax())
        if entropy >= self.entropies[row, place]:
            return False
        self.entropies[row, place], self.images[row, place] = entropy, unit(image)
        self.proxies[row] = unit(self.text[row] + self.images[row].sum(axis=0, dtype=np.float64))
        return True
