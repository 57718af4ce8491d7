"""The regression that `ridge` learns from running sums, and the views that it gives.

Memory does not grow: D² (up to 2,048 dims) + M (D + 13) + 7 C + 6 D numbers. Sums are float64. The
D² matrix is a running mean in float32, whose rounding errors fade as its old values do. Blocks are
added whole and in order, so two runs differ only in the last bits of a machine's products.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import ssymv, ssyrk

from zsntta_cli.methods.detectors.ridge.items import Features, Floats, RidgeItems
from zsntta_cli.methods.state import State

_MAX_COVARIANCE = 2048  # dims; above these lambda is infinite: the covariance is left out
_ALL = 1024  # second moments are learned from this many items in full,
_THIN = 8  # then from one item in eight, which counts eight times
_LEAST_PENALTY = 1e-5  # it exceeds the rounding of the matrix if all features are equal
_CG_STEPS = 8  # two or three suffice from the last solution, as the penalty is large
_CG_ERROR = 1e-3  # relative residual at which the steps stop
_LEARNED = (  # all that a regression changes
    "_count", "_thin_count", "_x", "_y", "_yy", "_xy", "_thin_x", "_logit", "_xx", "_w",
)  # fmt: skip


class Regression:
    """Ridge regression of the model's uncertainty on the image, and moments of the class logits.

    w = (Cov x + lambda t (1 + D/k) I)^-1 sum_j cov(x, y_j) / sd(y_j), t = mean eigenvalue.
    """

    def __init__(self, text: Features, logit_scale: float, penalty: float) -> None:
        """`text` (C, D): unit text features."""
        classes, dim = text.shape
        self._text, self._scale, self._penalty = text, np.float32(logit_scale), penalty
        self._count = self._thin_count = 0
        self._x, self._y, self._yy = np.zeros(dim), np.zeros(3), np.zeros(3)
        self._xy = np.zeros((3, dim))
        self._thin_x, self._logit = np.zeros(dim), np.zeros((2, classes))  # sums, sums of squares
        self._has_matrix = dim <= _MAX_COVARIANCE
        side = dim if self._has_matrix else 0
        self._xx = np.zeros((side, side), np.float32, order="F")  # mean of x x', lower triangle
        self._w = np.zeros(dim, np.float32)

    def add(self, x: Features, y: Floats) -> None:
        """Learn B unit features (B, D) and their uncertainties (B, 3)."""
        every = 1 if self._count < _ALL else _THIN
        self._add_second_moments(x[::every], every)
        self._count += len(x)
        self._x += x.sum(0)
        self._xy += y.T.astype(np.float32) @ x
        self._y += y.sum(0)
        self._yy += (y * y).sum(0)

    def state(self) -> State:
        """The sums and the last solution."""
        return {name.removeprefix("_"): getattr(self, name) for name in _LEARNED}

    def restore(self, state: State) -> None:
        """Continue from a state that was checked against this one's."""
        for name in _LEARNED:
            setattr(self, name, state[name.removeprefix("_")])

    def _add_second_moments(self, x: Features, weight: int) -> None:
        """Add to Cov x and the variance of C logits: expensive, so one item in eight suffices."""
        before = self._thin_count
        self._thin_count += weight * len(x)
        logits = (x * self._scale @ self._text.T).astype(np.float64)
        self._thin_x += weight * x.sum(0)
        self._logit += weight * np.stack([logits.sum(0), np.einsum("ij,ij->j", logits, logits)])
        if self._has_matrix:
            old, new = before / self._thin_count, weight / self._thin_count
            self._xx = ssyrk(new, x.T, beta=old, c=self._xx, lower=1, overwrite_c=1)

    def class_logits(self) -> tuple[Floats, Floats]:
        """The mean and deviation of each class's logit over all items, (C,) each."""
        mean = self._text @ (self._x * (self._scale / self._count)).astype(np.float32)
        thin, square = self._logit / self._thin_count
        variance = square - thin * thin
        return mean.astype(np.float64), np.sqrt(np.maximum(variance, 1e-6))

    def direction(self) -> Features:
        """The unit vector w / |w| (D,), or zero if x or y does not vary."""
        k, y = self._count, self._y / self._count
        variance = self._yy / k - y * y
        rounding = (1e-6 * np.abs(y) + 1e-7) ** 2  # a y that does not vary has no weight
        sd = np.sqrt(np.where(variance > rounding, variance, np.inf))
        covariances = self._xy / k - np.outer(y, self._x / k)
        target = (covariances / sd[:, None]).sum(0).astype(np.float32)
        self._w = self._solve(target) if self._has_matrix else target
        return self._w / np.float32(np.linalg.norm(self._w) + 1e-12)

    def _solve(self, target: Features) -> Features:
        """Solve by conjugate gradients, starting from the last solution."""
        mean = (self._thin_x / self._thin_count).astype(np.float32)
        eigenvalue = (np.trace(self._xx) - mean @ mean) / len(mean)
        factor = self._penalty * (1 + len(mean) / self._count)  # larger if D exceeds the items
        penalty = np.float32(max(factor * eigenvalue, _LEAST_PENALTY))

        def times(v: Features) -> Features:
            product: Features = ssymv(1.0, self._xx, v, lower=1) - mean * (mean @ v) + penalty * v
            return product

        w = self._w
        rest = target - times(w)
        step, error = rest.copy(), float(rest @ rest)
        for _ in range(_CG_STEPS):
            if error <= max(_CG_ERROR**2 * float(target @ target), 1e-30):
                break
            image = times(step)
            length = np.float32(error / float(step @ image))
            w, rest = w + length * step, rest - length * image
            before, error = error, float(rest @ rest)
            step = rest + np.float32(error / before) * step
        return w


@dataclass(frozen=True)
class Views:
    """Steps 1 to 3: four views of an item, standardised over the ring."""

    direction: Features  # (D,) w / |w|
    class_mean: Floats  # (C,) of the classes' logits
    class_deviation: Floats  # (C,)
    mean: Floats  # (4,) of the views over the ring
    deviation: Floats  # (4,) inf where a view does not vary

    @classmethod
    def over(cls, ring: RidgeItems, regression: Regression) -> tuple["Views", Floats]:
        """Make the views from the stream so far; return them with those of the ring (M, 4)."""
        parts = regression.direction(), *regression.class_logits()
        raw = cls(*parts, np.zeros(4), np.ones(4)).raw(ring)
        views = cls(*parts, raw.mean(0), deviation(raw))
        return views, views.standard(raw)

    def __call__(self, items: RidgeItems) -> Floats:
        """The views z, entropy, minus the largest logit, and q of B items, (B, 4)."""
        return self.standard(self.raw(items))

    def standard(self, raw: Floats) -> Floats:
        """Standardise views (B, 4) so that the ring has mean 0 and variance 1."""
        return (raw - self.mean) / self.deviation

    def raw(self, items: RidgeItems) -> Floats:
        """The views (B, 4) before they are standardised."""
        # Row by row, because a product of several rows adds up in an order that depends on them.
        z = np.vecdot(items.features, self.direction)
        predicted = items.top_classes[:, 0]
        # Some classes have larger logits for any image; q corrects for that.
        q = (items.doubt[:, 2] + self.class_mean[predicted]) / self.class_deviation[predicted]
        return np.column_stack([z, items.doubt[:, 1:], q])


def deviation(values: Floats) -> Floats:
    """The deviation over the items (axis 0), or inf if it is no more than rounding."""
    spread = values.std(0)
    rounding = 1e-7 + 1e-6 * np.abs(values).max(0)
    return np.where(spread > rounding, spread, np.inf)
