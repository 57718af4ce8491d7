"""A detector among scikit-learn's: +1 is clean, -1 is noise or unsure."""

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin

from zsntta_cli import Detector


class NoiseEstimator(OutlierMixin, BaseEstimator):
    def __init__(self, text_features=None, logit_scale=100.0):
        self.text_features, self.logit_scale = text_features, logit_scale

    def fit(self, X, y=None):
        self.detector_ = Detector(self.text_features, self.logit_scale)
        self.detector_.decide_all(X, learn=True)
        return self

    def decision_function(self, X):
        return -self.detector_.predict(X).margin

    def predict(self, X):
        return np.where(self.decision_function(X) < 0, -1, 1)
