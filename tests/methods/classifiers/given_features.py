"""A stream of given features."""

import numpy as np

from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.scores import zero_shot


def of_features(features, text, scale):
    features, text = np.asarray(features, np.float32), np.asarray(text, np.float32)
    pool = Pool(features, text, scale, zero_shot(features, text, scale))
    return StreamData(pool, np.arange(len(features)), np.zeros(len(features), bool))
