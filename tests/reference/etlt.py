"""ETLT by the library's least squares, and Otsu's split by trying each."""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors.etlt import EtltSettings


def etlt(data: StreamData, o: EtltSettings):
    """Decisions, fitted values (T,) and the split."""
    features = data.features(slice(None)).astype(float)
    x = np.array([f / np.linalg.norm(f) for f in features])
    used = [t for t in range(len(data)) if not data.injected[t]]
    v = regressed(x, data.noise_score, used, o.etlt_penalty)
    if o.etlt_dropped:
        nearest = sorted(used, key=lambda t: abs(data.noise_score[t] - v[t]))
        nearest = nearest[: max(1, round((1 - o.etlt_dropped) * len(used)))]
        v = regressed(x, data.noise_score, nearest, o.etlt_penalty)
    values = sorted(v[t] for t in used)
    within = [
        np.var(values[:k]) * k + np.var(values[k:]) * (len(values) - k)
        for k in range(1, len(values))
    ]
    k = int(np.argmin(within)) + 1
    found = (values[k - 1] + values[k]) / 2
    return (v > found) | data.injected, v, found


def regressed(x, u, used, penalty):
    """Least squares with a constant; the penalty as further rows, none on the constant."""
    rows, dim = x[used], x.shape[1]
    spread = np.var(rows, axis=0).mean()
    a = np.block([
        [rows, np.ones((len(rows), 1))],
        [np.sqrt(len(rows) * penalty * spread) * np.eye(dim), np.zeros((dim, 1))],
    ])  # fmt: skip
    found = np.linalg.lstsq(a, np.append(u[used], np.zeros(dim)), rcond=None)[0]
    return x @ found[:-1] + found[-1]
