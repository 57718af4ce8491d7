"""DLA, of "Dynamic Logits Adjustment and Exploration for Test-Time Adaptation", CVPR 2026.

The logit of a class is lowered by its share of the answers so far. It is lowered more if the frozen
model is less certain of this sample than it usually is of the predicted class. A sample is
classified by what was learned before it; then its frozen answer is counted. The paper's second
part, a cache of samples near decision boundaries, is not implemented.

Logits are multiplied by a factor below 1, which lowers positive logits only; CLIP's cosines times
its scale are positive. A negative logit would rise, so it is left unchanged. The equations are
those of the released code (MIT, logits_adjustment), which chooses α for each set.
"""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.adapting import Adapting, Sample
from zsntta_cli.methods.method import MethodSettings
from zsntta_cli.methods.scores import Floats
from zsntta_cli.settings.options import amount


class DLA(Adapting):
    """DLA, with ImageNet's value: the logits of often predicted classes are lowered."""

    class Settings(MethodSettings):
        dla_strength: float = amount(
            0.8, "α: how strongly the logits of often predicted classes are lowered."
        )

    cites = ("wu2026dynamic",)
    cost = "keeps two numbers for each class"

    def start(self, data: StreamData) -> None:
        self.answers = np.ones(len(self.text))  # n: how often a class was the frozen answer, plus 1
        self.certainty = np.zeros(len(self.text))  # m: mean probability of these answers

    def scores(self, item: Sample, learn: bool) -> Floats:
        """Lower the positive logits; then count the frozen answer."""
        n, m, c = self.answers, self.certainty, int(item.logits.argmax())
        p = item.probability[c]
        rate = self.options.dla_strength * (1 - (p - m[c])) / n.sum()
        lowered = np.where(item.logits > 0, item.logits * np.exp(-rate * n), item.logits)
        if learn:
            m[c] += (p - m[c]) / n[c]
            n[c] += 1
        return lowered
