"""The ranking of images while there is no evidence for noise of another kind."""

from dataclasses import dataclass

import numpy as np

from zsntta_cli.methods.detectors.ridge.items import Floats
from zsntta_cli.methods.detectors.ridge.regression import deviation

# These multiply the weights of z, entropy, minus the largest logit and q in the score s. Without
# evidence the largest logit ranks well; -log MCM, which is left out, ranks worst.
_TIMES = np.array([0.5, 1.0, 2.0, 1.0])


@dataclass(frozen=True)
class Suspicion:
    """A score that ranks better than s if there is no evidence; it decides nothing."""

    weights: Floats  # (4,) of the views
    words: float  # weight of the words' term of s
    threshold: float  # as many items of the ring are above it as have s above tau

    @classmethod
    def over(cls, v: Floats, weights: Floats, words: Floats | float, flagged: float) -> "Suspicion":
        """Make it from the ring's views (M, 4), their weights in s, and the share above tau."""
        weights = weights * _TIMES
        spread = float(deviation(v @ weights + words))
        weights /= spread
        p = v @ weights + words / spread
        return cls(weights, 1 / spread, float(np.quantile(p, 1 - flagged)))

    @classmethod
    def none(cls) -> "Suspicion":
        """The suspicion that stands in a state if there is none."""
        return cls(np.zeros(4), 0.0, 0.0)

    def __call__(self, v: Floats, words: Floats | float) -> Floats:
        """The distances (B,) above the threshold, by views (B, 4) and the words' term."""
        above: Floats = np.vecdot(v, self.weights) + self.words * words - self.threshold
        return above
