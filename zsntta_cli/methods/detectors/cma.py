"""CMA, "Concept Matching with Agent for Out-of-Distribution Detection", arXiv 2405.16766.

Texts that fit any image ("a photo of a thing.") are added to the classes in the softmax. They are
repeated until there are k C of them. The ID score is the largest probability of a class.
"""

import numpy as np

from zsntta_cli.methods import method
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.scores import Features, Floats, energy
from zsntta_cli.settings.options import count, option


class CMA(method.Method):
    """CMA, arXiv 2405.16766: neutral texts compete with the classes in the softmax."""

    class Settings(method.MethodSettings):
        words: str = option("cma", method.WORD_LIST)
        cma_times: int = count(1, "k: the neutral texts are repeated to give k C texts.")
        # the released code takes 1
        cma_temperature: float | None = method.cosine_temperature()

    needs = method.WORDS
    cites = ("lee2025concept",)
    cost = "keeps the last N_q scores; multiplies each item by k C more texts"
    is_probability = True
    class_probability = method.FROZEN

    def start(self, data: StreamData) -> None:
        names, neutral = data.text_features, data.more_text
        assert neutral is not None
        # How often each neutral text is there: n times the same logit is one that is log n larger.
        places = np.arange(self.options.cma_times * len(names)) % len(neutral)
        times = np.bincount(places, minlength=len(neutral))
        self.text = np.concatenate([names, neutral[times > 0]])
        self.more = np.log(times[times > 0]).astype(np.float32)
        self.classes = len(names)

    def scores(self, items: StreamData, learn: bool) -> Floats:
        return items.score(self._largest_share, self.text, self.options.cma_temperature)

    def _largest_share(self, logits: Features) -> Features:
        """The largest share (B,) of a class in the softmax beside the neutral texts."""
        logits[:, self.classes :] += self.more
        return np.exp(logits[:, : self.classes].max(axis=1) - energy(logits))
