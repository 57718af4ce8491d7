"""ZS-CLIP, the baseline of Sec. 2: frozen CLIP with an online threshold on its noise score.

    S(x), Eq. 1: the largest class probability     u = 1 - S(x), `items.noise_score`
    λ, Eq. 3: the best split of the last N_q u     `threshold`
    clean iff S(x) >= λ                            noise iff u > λ

An item's score enters the queue before the threshold is found.
"""

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.method import AT_ONCE, FROZEN, Method, MethodSettings
from zsntta_cli.settings.options import count


class ZsClip(Method):
    """ZS-CLIP, Sec. 2: frozen CLIP with an online threshold on its noise score."""

    class Settings(MethodSettings):
        batch_size: int = count(1, AT_ONCE)

    cites = "cao2025noisy", "ming2022delving", "li2023robustness"
    cost = "keeps the last N_q scores"
    is_probability = True
    class_probability = FROZEN

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on the next items; a batch enters the queue before its threshold is found."""
        u = items.noise_score
        thresholds = self.threshold(u, learn)
        return Decisions(items.class_index, u > thresholds, 1 - u, thresholds)
