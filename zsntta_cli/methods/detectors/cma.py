"""CMA, "Concept Matching with Agent for Out-of-Distribution Detection", arXiv 2405.16766.

Texts that fit any image ("a photo of a thing.") stand beside the classes in the softmax. They are
repeated in turn until there are k C of them; the ID score is the largest probability of a class.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.method import FROM_ONE, FROZEN, WORD_LIST, WORDS, Method, MethodSettings
from zsntta_cli.methods.ood_scores import image_scores
from zsntta_cli.methods.scores import energy
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import option


@dataclass(frozen=True)
class CmaSettings(MethodSettings):
    """The settings of CMA."""

    words: str = option("cma", WORD_LIST)
    cma_times: int = option(
        1, "k: the neutral texts are repeated in turn to k C texts.", within=FROM_ONE
    )


@dataclass(frozen=True, eq=False)
class Neutral:
    """The class names and the neutral texts that stand beside them."""

    text: NDArray[np.float32]  # (C + W, D) unit norm
    weight: NDArray[np.float32]  # (W,) the log of how often each neutral text is there
    classes: int  # C

    @classmethod
    def of(cls, data: StreamData, options: CmaSettings) -> "Neutral":
        """The texts of a pool, repeated in turn to k C texts."""
        names, neutral = data.pool.text_features, data.pool.more_text
        assert neutral is not None
        times = repetitions(len(neutral), options.cma_times * len(names))
        weight = np.log(times[times > 0]).astype(np.float32)  # n times the same logit: log n more
        return cls(np.concatenate([names, neutral[times > 0]]), weight, len(names))

    def id_score(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """The largest share (B,) of a class in the softmax beside the neutral texts."""
        logits[:, self.classes :] += self.weight
        share: NDArray[np.float32] = np.exp(logits[:, : self.classes].max(axis=1) - energy(logits))
        return share


class CMA(Method):
    """CMA, arXiv 2405.16766: neutral texts stand beside the classes in the softmax."""

    Settings = CmaSettings
    needs = WORDS
    cites = ("lee2025concept",)
    cost = "keeps the last N_q scores; k C texts more in the product with the texts"
    is_probability = True
    class_probability = FROZEN

    def __init__(
        self, data: StreamData, options: CmaSettings, threshold: ThresholdSettings
    ) -> None:
        self.texts, self.threshold = Neutral.of(data, options), OnlineThreshold(threshold)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Noise iff u = 1 - score is above the threshold; classes are the frozen model's."""
        id_score = image_scores(items, self.texts.id_score, self.texts.text)
        own = self.threshold(1 - id_score, learn)
        return Decisions(items.class_index, 1 - id_score > own, id_score, detector_threshold=own)


def repetitions(texts: int, total: int) -> NDArray[np.intp]:
    """How often each of some texts is there when they are repeated in turn up to a total."""
    return np.bincount(np.arange(total) % texts, minlength=texts)
