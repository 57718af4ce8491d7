"""What images are ranked by as long as nothing speaks for noise of another kind."""

from dataclasses import dataclass

import numpy as np

from zsntta_cli.methods.detectors.ridge.items import Floats
from zsntta_cli.methods.detectors.ridge.regression import deviation

# Times the weights of z, entropy, minus the largest logit and q in the score s. Without evidence
# the largest logit ranks well; -log MCM, which is left out, ranks worst of all.
_TIMES = np.array([0.5, 1.0, 2.0, 1.0])


@dataclass(frozen=True)
class Suspicion:
    """A score that ranks better than s does without evidence, and decides nothing."""

    weights: Floats  # (4,) of the views
    words: float  # weight of what the words add to s
    threshold: float  # as many of the ring are above it as tau has above it: both compare

    @classmethod
    def over(cls, v: Floats, weights: Floats, words: Floats | float, flagged: float) -> "Suspicion":
        """That of the ring's views (M, 4), what makes s of them, and the share above tau."""
        weights = weights * _TIMES
        spread = float(deviation(v @ weights + words))
        weights /= spread
        p = v @ weights + words / spread
        return cls(weights, 1 / spread, float(np.quantile(p, 1 - flagged)))

    @classmethod
    def none(cls) -> "Suspicion":
        """One that stands for none in a state."""
        return cls(np.zeros(4), 0.0, 0.0)

    def __call__(self, v: Floats, words: Floats | float) -> Floats:
        """How far B items are above the threshold, (B,), by views (B, 4) and what words add."""
        above: Floats = np.vecdot(v, self.weights) + self.words * words - self.threshold
        return above
