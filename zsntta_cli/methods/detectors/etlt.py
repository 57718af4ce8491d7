"""ETLT, "A Simple Test-Time Method for Out-of-Distribution Detection", arXiv 2207.08210.

Ordinary least squares of the base noise score u = 1 - MCM on the features of the whole stream; the
fitted value is the noise score. It sees all items before it decides on one: no online method, but
what an online one such as ridge can be measured by. Then the exact Otsu split of all fitted values.

Our choices: features of unit norm, an intercept, a tiny ridge so that there may be more dims than
items, one split for the stream. Known noise counts for neither fit nor split, as for ridge. The
robust step of its successor (RTL, CVPR 2024) is an option: a second fit without the share with the
largest residuals of the first (their lasso over principal components is left out).
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors.ridge.rule import otsu
from zsntta_cli.methods.scores import unit
from zsntta_cli.methods.settings import EtltSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

Floats = NDArray[np.float64]


def run(data: StreamData, options: EtltSettings, threshold: ThresholdSettings) -> Decisions:
    """Noise iff the fitted value is above the split, or above the threshold where that is fixed."""
    test = ~data.injected
    v = fitted(unit(data.features(slice(None))).astype(float), data.noise_score, test, options)
    value = OnlineThreshold(threshold).latest if threshold.fixed is not None else split(v[test])
    return Decisions(
        data.class_index, (v > value) | data.injected, 1 - v,
        detector_threshold=np.full(len(v), value),
    )  # fmt: skip


def fitted(x: Floats, u: Floats, test: NDArray[np.bool_], options: EtltSettings) -> Floats:
    """Fitted noise scores (T,) of features (T, D), learned from the items under test."""
    if not test.any():
        return u
    v = _least_squares(x, u, test, options.etlt_penalty)
    if options.etlt_dropped:
        residual = np.where(test, np.abs(u - v), np.inf)
        kept = max(1, round((1 - options.etlt_dropped) * test.sum()))
        nearest = np.argsort(residual, kind="stable")[:kept]
        v = _least_squares(x, u, np.isin(np.arange(len(u)), nearest), options.etlt_penalty)
    return v


def _least_squares(x: Floats, u: Floats, of: NDArray[np.bool_], penalty: float) -> Floats:
    """Values (T,) of the regression of some items' scores on their features and a constant."""
    center, mean = x[of].mean(axis=0), u[of].mean()
    centered = x - center
    learned = centered[of]
    covariance = learned.T @ learned / len(learned)
    ridge = penalty * max(np.trace(covariance) / len(covariance), 1e-12)
    covariance[np.diag_indices_from(covariance)] += ridge
    weight = np.linalg.solve(covariance, learned.T @ (u[of] - mean) / len(learned))
    return np.asarray(mean + centered @ weight)


def split(v: Floats) -> float:
    """The Otsu split of values (N,); their largest one where there are no two."""
    if not len(v):
        return 0.5
    return otsu(v) if v.min() < v.max() else float(v[0])
