"""AdaND's noise detector: a linear layer on raw image features, trained online by Adam (Sec. 4)."""

import numpy as np
from numpy.typing import NDArray


class LinearDetector:
    """`Linear(D, 2)` under softmax and cross-entropy, trained by Adam.

    Output 0 is noise, 1 is clean. Softmax over two outputs depends on their difference alone, and
    the two rows get opposite gradients, hence opposite Adam steps. So only the difference
    `weight[0] - weight[1]` is kept, and a step moves it twice as far. The bias is the last entry.
    """

    def __init__(self, weight: NDArray[np.floating], bias: NDArray[np.floating]) -> None:
        """Start from the layer's weight (2, D) and bias (2,)."""
        self.weight = np.append(weight[0] - weight[1], bias[0] - bias[1]).astype(np.float64)
        self.mean = np.zeros_like(self.weight)
        self.square = np.zeros_like(self.weight)
        self.steps = 0

    @classmethod
    def random(cls, dim: int, seed: int) -> "LinearDetector":
        """The default initialisation of torch's linear layers: uniform in ±1/sqrt(D)."""
        generator = np.random.Generator(np.random.PCG64(seed))
        bound = 1 / np.sqrt(dim)
        return cls(generator.uniform(-bound, bound, (2, dim)), generator.uniform(-bound, bound, 2))

    def logits(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """The noise logits minus the clean logits (B,) of raw image features (B, D)."""
        # Row by row, because a product of several rows adds up in an order that depends on them.
        return np.vecdot(features, self.weight[:-1].astype(np.float32)) + self.weight[-1]

    def learn(
        self, features: NDArray[np.float32], is_noise: NDArray[np.bool_], learning_rate: float
    ) -> None:
        """Take an Adam step (β 0.9/0.999, no weight decay) on the mean cross-entropy.

        `features` (B, D) are raw, and `is_noise` (B,) are pseudo-labels.
        """
        logits = features @ self.weight[:-1].astype(np.float32) + self.weight[-1]
        error = ((sigmoid(logits) - is_noise) / len(features)).astype(np.float32)
        gradient = np.append(error @ features, error.sum()).astype(np.float64)
        self.steps += 1
        self.mean = self.mean + 0.1 * (gradient - self.mean)
        self.square = self.square + 0.001 * (gradient**2 - self.square)
        mean = self.mean / (1 - 0.9**self.steps)
        square = self.square / (1 - 0.999**self.steps)
        self.weight = self.weight - 2 * learning_rate * mean / (np.sqrt(square) + 1e-8)

    @property
    def dim(self) -> int:
        """D, the number of dims of a feature."""
        return len(self.weight) - 1


def sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The softmax of two outputs, given their difference."""
    return 1 / (1 + np.exp(np.minimum(-logits, 500)))
