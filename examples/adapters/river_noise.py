"""A detector among river's."""

import numpy as np
from river import base

from zsntta_cli import Detector


class NoiseScorer(base.AnomalyDetector):
    def __init__(self, text_features, logit_scale=100.0, method="cull"):
        self.text_features, self.logit_scale, self.method = text_features, logit_scale, method
        self.detector = Detector(text_features, logit_scale, method=method)

    def learn_one(self, x):
        self.detector.update(np.array([x[i] for i in range(len(x))]))

    def score_one(self, x):
        [margin] = self.detector.predict(np.array([x[i] for i in range(len(x))])).margin
        return float(1 / (1 + np.exp(-margin)))
