"""AdaND's noise detector: a linear layer on raw image features, trained online by Adam (Sec. 4)."""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.state import State


class LinearDetector:
    """`Linear(D, 2)` under softmax and cross-entropy, trained by Adam.

    Output 0 is noise, 1 is clean. Softmax over two outputs depends on their difference alone, and
    the two rows get opposite gradients, hence opposite Adam steps. So only the difference
    `weight[0] - weight[1]` is kept, and a step moves it twice as far. The bias is the last entry.
    A detector never changes; a step returns a new one.
    """

    def __init__(self, weight: NDArray[np.floating], bias: NDArray[np.floating]) -> None:
        """Start from the layer's weight (2, D) and bias (2,)."""
        self._weight = np.append(weight[0] - weight[1], bias[0] - bias[1]).astype(np.float64)
        self._mean = np.zeros_like(self._weight)
        self._square = np.zeros_like(self._weight)
        self._steps = 0

    @classmethod
    def random(cls, dim: int, seed: int) -> "LinearDetector":
        """The default initialisation of torch's linear layers: uniform in ±1/sqrt(D)."""
        generator = np.random.Generator(np.random.PCG64(seed))
        bound = 1 / np.sqrt(dim)
        return cls(generator.uniform(-bound, bound, (2, dim)), generator.uniform(-bound, bound, 2))

    @classmethod
    def zero(cls, dim: int, _seed: int) -> "LinearDetector":
        """All weights are zero, so there is no random start to overcome (ours, not the paper's)."""
        return cls(np.zeros((2, dim)), np.zeros(2))

    def logits(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """The noise logits minus the clean logits (B,) of raw image features (B, D)."""
        # Row by row, because a product of several rows adds up in an order that depends on them.
        return np.vecdot(features, self._weight[:-1].astype(np.float32)) + self._weight[-1]

    def after(
        self, features: NDArray[np.float32], is_noise: NDArray[np.bool_], learning_rate: float
    ) -> "LinearDetector":
        """The detector after an Adam step (β 0.9/0.999, no weight decay) on mean cross-entropy.

        `features` (B, D) are raw, and `is_noise` (B,) are pseudo-labels.
        """
        logits = features @ self._weight[:-1].astype(np.float32) + self._weight[-1]
        error = ((sigmoid(logits) - is_noise) / len(features)).astype(np.float32)
        gradient = np.append(error @ features, error.sum()).astype(np.float64)
        new = object.__new__(LinearDetector)
        new._steps = self._steps + 1
        new._mean = self._mean + 0.1 * (gradient - self._mean)
        new._square = self._square + 0.001 * (gradient**2 - self._square)
        mean = new._mean / (1 - 0.9**new._steps)
        square = new._square / (1 - 0.999**new._steps)
        new._weight = self._weight - 2 * learning_rate * mean / (np.sqrt(square) + 1e-8)
        return new

    @property
    def dim(self) -> int:
        """D, the number of dims of a feature."""
        return len(self._weight) - 1

    def state(self) -> State:
        """The layer and Adam's moments."""
        return {
            "weight": self._weight, "mean": self._mean, "square": self._square,
            "steps": self._steps,
        }  # fmt: skip

    @classmethod
    def restored(cls, state: State) -> "LinearDetector":
        """Make a detector from a state that was checked against one of as many dims."""
        detector = cls(np.zeros((2, 0)), np.zeros(2))
        for name, value in state.items():
            setattr(detector, f"_{name}", value)
        return detector


def sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The softmax of two outputs, given their difference."""
    return 1 / (1 + np.exp(np.minimum(-logits, 500)))
