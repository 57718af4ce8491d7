"""CMA item by item from its equations: every neutral text written out, k C of them."""

import numpy as np

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors.cma import CmaSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


def cma(data: StreamData, o: CmaSettings, threshold: ThresholdSettings):
    """Decisions and ID scores (T,)."""
    pool, online = data.pool, OnlineThreshold(threshold)
    classes = len(pool.text_features)
    neutral = [pool.more_text[i % len(pool.more_text)] for i in range(o.cma_times * classes)]
    texts = [row.astype(float) for row in (*pool.text_features, *neutral)]
    is_noise, id_score = [], []
    for feature in data.features(slice(None)).astype(float):
        cosines = [feature @ text / np.linalg.norm(feature) for text in texts]
        powers = [np.exp(pool.logit_scale * (c - max(cosines))) for c in cosines]
        score = max(powers[:classes]) / sum(powers)
        id_score.append(score)
        is_noise.append(1 - score > online(np.array([1 - score]))[0])
    return np.array(is_noise), np.array(id_score)
