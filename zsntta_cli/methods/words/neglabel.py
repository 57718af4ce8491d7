"""NegLabel, arXiv 2403.20078, and CSP, arXiv 2410.08611: class names against negative words."""

from functools import partial

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.method import FROZEN, WORD_LIST, WORDS, Method
from zsntta_cli.methods.scores import Features, Floats, energy, sigmoid
from zsntta_cli.methods.words.vocabulary import WordSettings, mined_words
from zsntta_cli.settings.options import choice, count, option, part, share

grouping = partial(
    option, about="How words are grouped: by distance, or at random into groups of one size.",
    choices=("ranked", "random"),
)  # fmt: skip


class NegLabel(Method):
    """NegLabel, arXiv 2403.20078: the class names against words that are far from them."""

    class Settings(WordSettings):
        groups: int = count(100, "Number of groups of negative words, whose scores are averaged.")
        grouping: str = grouping("ranked")
        # By the mean a group has the weight of C words, whatever its size.
        group_mass: str = choice(
            "Softmax mass of a group of words: their sum, or C times their mean.", "sum", "mean"
        )

    needs = WORDS
    cites = ("jiang2024negative",)
    cost = "keeps the last N_q scores; also multiplies each item by M words"
    revision = 2
    official = {"word_prompts": "speech", "mined_share": 0.15, "grouping": "random"}
    is_probability = True
    class_probability = FROZEN

    def start(self, data: StreamData) -> None:
        """Take the class names, then negatives group by group; words of no group are last."""
        o, (names, far) = self.options, mined_words(data, self.options)
        number, rows = min(o.groups, len(far)), np.arange(len(far))
        sizes = [len(group) for group in np.array_split(rows, number)]
        if o.grouping == "random":  # of one size, in one order for all seeds, as released
            rows = np.random.default_rng(0).permutation(len(far))
            sizes = [len(far) // number] * number
            rows = np.concatenate([rows[: sum(sizes)], np.sort(rows[sum(sizes) :])])
        self.text, self.classes = np.concatenate([names, far[rows]]), len(names)  # (C + M, D)
        self.bounds = len(names) + np.cumsum([0, *sizes])  # rows at which the G groups start, end

    def scores(self, items: StreamData, learn: bool) -> Floats:
        return items.score(self.id_share, self.text)

    def id_share(self, logits: Features) -> Features:
        """The share (B,) of class names in the softmax beside a group, averaged over all groups.

        `logits` (B, C + M) are those of the texts, or of proxies in their place.
        """
        id_mass, shares = energy(logits[:, : self.classes]), []
        for start, stop in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            mass = energy(logits[:, start:stop])  # the log of the group's mass (B,)
            if self.options.group_mass == "mean":
                mass = mass + np.float32(np.log(self.classes / (stop - start)))
            shares.append(sigmoid(id_mass - mass))
        share: Features = np.mean(shares, axis=0)
        return share


class CSP(NegLabel):
    """CSP, arXiv 2410.08611: NegLabel's score with its own words and phrases."""

    class Settings(NegLabel.Settings):
        words: str = option("csp", WORD_LIST)
        mined_share: float | None = part(0.15, "Share of each list that is mined, instead of M.")
        too_near: float | None = share(
            0.95, "Cosine to an ID name above which a word is mined last."
        )
        grouping: str = grouping("random")

    cites = ("chen2024conjugated",)
    cost = "keeps the last N_q scores; also multiplies each item by the mined words"
    revision = 1
