"""TANL, "Activation Matters: Test-time Activated Negative Labels", arXiv 2603.25250.

An image's activation of a word is the word's part of the softmax over names and words. Of the last
images that are surely ID, and of those that are surely noise, the activations are kept. The words
with the largest difference of means, noise minus ID, are the next image's negatives, in that order.
The score averages NegLabel's over growing numbers of negatives, so the first are in all
denominators.

This is the paper's α = 1: earlier images choose the words. (The released command has α = 0, which
mixes in the batch itself, so that single images choose the words that score them.) ID starts with
the activations by the class names, and noise with none and a mean of zero, where the released code
has noise images. Here these are injected into the stream and are learned whatever their score.
Whether an image is sure depends on the online threshold of the score with a gap; the project's
queue takes the place of the code's ring of 20,000 scores.
"""

import numpy as np

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.method import FROZEN, WORDS, Method
from zsntta_cli.methods.scores import Features
from zsntta_cli.methods.words import vocabulary
from zsntta_cli.settings.options import amount, choice, count


class TANL(Method):
    """TANL, arXiv 2603.25250: the words that noise activates more than ID images do."""

    class Settings(vocabulary.WordSettings):
        tanl_candidates: str = choice(
            "Words that may be activated: all, or those mined.", "all", "mined"
        )
        tanl_words: int = count(1000, "B: number of most activated words that count.")
        # the released command goes through 2, 1 and 0
        tanl_step: int = amount(
            2, "γ: number of words that each averaged score adds; 0 means one score by all B words."
        )
        tanl_ring: int = count(300, "L: number of last images of either kind in the memory.")
        gap: float = vocabulary.GAP

    needs = WORDS
    cites = ("zhang2026activation",)
    cost = "keeps the activations of all words by the last L images of each kind"
    revision = 2
    official = {"word_prompts": "speech", "mined_share": 0.15}
    is_probability = True
    class_probability = FROZEN

    def start(self, data: StreamData) -> None:
        names, words = vocabulary.names_and_words(data)
        if self.options.tanl_candidates == "mined":
            words = vocabulary.mined_words(data, self.options)[1]
        self.text, self.classes = np.concatenate([names, words]), len(names)
        self.id, self.noise = (vocabulary.Recent(self.options.tanl_ring, len(words)) for _ in "+-")
        shuffled = names[np.random.default_rng(0).permutation(len(names))]  # alike for all seeds
        for _, logits in vocabulary.logit_blocks(shuffled, self.text, data.logit_scale):
            self.id.add(vocabulary.activations(logits, self.classes))
        self._choose()

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise iff u = 1 - S is above its online threshold; keep ZS-CLIP's class."""
        u, thresholds, scale = np.empty(len(items)), np.empty(len(items)), items.logit_scale
        for block, logits in vocabulary.logit_blocks(items.features(), self.text, scale):
            activated = vocabulary.activations(logits, self.classes)
            for i, t in enumerate(range(block.start, block.stop)):
                u[t] = 1 - self._score(logits[i])
                thresholds[t : t + 1] = self.threshold(u[t : t + 1], learn)
                if learn:
                    self._learn(activated[i : i + 1], u[t], thresholds[t], items.injected[t])
        return Decisions(items.class_index, u > thresholds, 1 - u, None, thresholds)

    def _score(self, logits: Features) -> float:
        """S: the mean share of the names (C,) beside the first γ, 2 γ, … and at last all B words.

        `logits` (C + M,) are those of names and words. With a step γ of 0 it is the share beside
        all.
        """
        names, words = logits[: self.classes], logits[self.classes :][self.order]
        top = max(names.max(), words.max())
        masses = np.exp(words.astype(np.float64) - top).cumsum()
        names_mass = np.exp(names.astype(np.float64) - top).sum()
        step = self.options.tanl_step or len(masses)
        counts = np.minimum(np.arange(step, len(masses) + step, step), len(masses))
        return float((names_mass / (names_mass + masses[counts - 1])).mean())

    def _learn(self, activated: Features, u: float, threshold: float, injected: bool) -> None:
        """Keep an item's activations (1, M) if it is surely noise, or surely ID."""
        is_id, is_noise = vocabulary.surely_id_or_noise(u, threshold, self.options.gap)
        if is_noise or injected:
            self.noise.add(activated)
        elif is_id:
            self.id.add(activated)
        else:
            return
        self._choose()

    def _choose(self) -> None:
        """The B words with the largest difference of means are the next item's negatives."""
        difference = self.noise.mean - self.id.mean
        self.order = vocabulary.largest(difference, min(self.options.tanl_words, len(difference)))
