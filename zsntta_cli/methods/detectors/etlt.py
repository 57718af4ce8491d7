"""ETLT, "A Simple Test-Time Method for Out-of-Distribution Detection", arXiv 2207.08210.

The base noise score u = 1 - MCM is regressed on the features of the whole stream by least squares,
and the fitted value is the noise score. The threshold is the exact Otsu split of all fitted values.
ETLT sees all items before it decides on any: it is a reference for online methods such as cull.

Our choices are features of unit norm, an intercept, a very small ridge penalty, which allows more
dimensions than items, and one split for the stream. Injected noise enters neither fit nor split,
as in cull.
"""

import numpy as np

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors.cull import otsu
from zsntta_cli.methods.method import FROZEN, Method, MethodSettings
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings.options import positive


class ETLT(Method):
    """ETLT, arXiv 2207.08210: the noise score is regressed on the features of the whole stream."""

    class Settings(MethodSettings):
        etlt_penalty: float = positive(
            1e-12, "Ridge penalty of the least-squares fit, as a multiple of the mean eigenvalue."
        )

    offline = True
    online = False
    cites = ("fan2022simple",)
    cost = "solves one least-squares problem in D dimensions over the whole stream"
    class_probability = FROZEN

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Call an item noise iff its fitted value is above the split, or above a fixed threshold.

        `items` are the whole stream, so that nothing is learned for later ones.
        """
        test, v, split = ~items.injected, items.noise_score, 0.5
        if test.any():
            x, u = unit(items.features()).astype(float), v[test]
            x -= x[test].mean(axis=0)
            learned, dim = x[test], x.shape[1]
            eigenvalue = max(float((learned**2).sum()) / dim, 1e-12 * len(learned))
            # The penalty as further rows: normal equations would lose what it lets through.
            q, r = np.linalg.qr(learned)
            penalty = np.sqrt(self.options.etlt_penalty * eigenvalue) * np.eye(dim)
            target = np.concatenate([q.T @ (u - u.mean()), np.zeros(dim)])
            v = u.mean() + x @ np.linalg.lstsq(np.concatenate([r, penalty]), target)[0]
            values = v[test]
            split = otsu(values)[0] if values.min() < values.max() else float(values[0])
        if self.threshold.settings.fixed is not None:
            split = self.threshold.latest
        is_noise = (v > split) | items.injected
        return Decisions(items.class_index, is_noise, 1 - v, None, np.full(len(v), split))
