"""A detector among pytorch-ood's."""

import torch
from pytorch_ood.api import FeaturesDetector

from zsntta_cli import Detector


class NoiseFeatures(FeaturesDetector):
    def __init__(self, encoder, text_features, logit_scale=100.0, method="cull"):
        self.encoder = encoder  # images (B, 3, S, S) to raw features (B, D)
        self.detector = Detector(text_features, logit_scale, method=method)

    def predict(self, x):
        return self.predict_features(self.encoder(x))

    def predict_features(self, x):
        return torch.from_numpy(self.detector.predict(x).margin).to(x.device)

    def fit(self, data_loader):
        for x, y in data_loader:
            self.fit_features(self.encoder(x), y)
        return self

    def fit_features(self, x, y=None):
        self.detector.update(x)
        return self
