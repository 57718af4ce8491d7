"""OODD item by item: the whole dictionary is sorted anew for every score."""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors.oodd import OoddSettings


def oodd(data: StreamData, o: OoddSettings):
    """Noise scores (T,)."""
    features = data.features(slice(None)).astype(float)
    features = [f / max(np.linalg.norm(f), 1e-12) for f in features]
    dictionary, scores = [], []  # entries (ID-ness, arrival, feature)
    for start in range(0, len(data), o.batch_size):
        batch = range(start, min(start + o.batch_size, len(data)))
        for t in batch:
            q = 1 - data.noise_score[t]
            if len(dictionary) == o.oodd_items:
                worst = max(dictionary, key=lambda entry: entry[:2])  # of equals the newest
                if not data.injected[t] and q >= worst[0]:
                    continue
                dictionary = [entry for entry in dictionary if entry is not worst]
            dictionary.append((q, t, features[t]))
        for t in batch:
            u = data.noise_score[t]
            if len(dictionary) > o.oodd_neighbour:
                cosines = sorted((features[t] @ f for _, _, f in dictionary), reverse=True)
                cosine = min(max(cosines[o.oodd_neighbour - 1], 0), 1)
                u = 1 - ((1 - u) + (1 - cosine)) / 2
            scores.append(u)
    return np.array(scores)
