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
from zsntta_cli.settings.options import Range, option


class CMA(Method):
    """CMA, arXiv 2405.16766: neutral texts stand beside the classes in the softmax."""

    @dataclass(frozen=True)
    class Settings(MethodSettings):
        words: str = option("cma", WORD_LIST)
        cma_times: int = option(
            1, "k: the neutral texts are repeated in turn to k C texts.", within=FROM_ONE
        )
        cma_temperature: float | None = option(  # the released code takes 1
            None,
            "Temperature of the softmax over cosines; none: 1 / logit scale.",
            within=Range(least=1e-4),
        )

    needs = WORDS
    cites = ("lee2025concept",)
    cost = "keeps the last N_q scores; k C texts more in the product with the texts"
    is_probability = True
    class_probability = FROZEN

    def __init__(self, data: StreamData, options: Settings, threshold: ThresholdSettings) -> None:
        names, neutral = data.pool.text_features, data.pool.more_text
        assert neutral is not None
        self.threshold, self.classes = OnlineThreshold(threshold), len(names)
        self.scale = options.cma_temperature and 1 / options.cma_temperature
        # How often each neutral text is there: n times the same logit is one that is log n larger.
        times = np.bincount(
            np.arange(options.cma_times * len(names)) % len(neutral), minlength=len(neutral)
        )
        self.text = np.concatenate([names, neutral[times > 0]])
        self.weight = np.log(times[times > 0]).astype(np.float32)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Noise iff u = 1 - score is above the threshold; classes are the frozen model's."""
        id_score = image_scores(items, self._score, self.text, self.scale)
        own = self.threshold(1 - id_score, learn)
        return Decisions(items.class_index, 1 - id_score > own, id_score, detector_threshold=own)

    def _score(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """The largest share (B,) of a class in the softmax beside the neutral texts."""
        logits[:, self.classes :] += self.weight
        return np.exp(logits[:, : self.classes].max(axis=1) - energy(logits))
