"""The adapters of examples/adapters: on river and pytorch-ood where they are, else on stand-ins."""

import abc
import importlib.util
import runpy
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from zsntta_cli import Detector

ADAPTERS = Path(__file__).parents[2] / "examples" / "adapters"
DIM, COUNT = 16, 300


class AnomalyDetector(abc.ABC):
    """What river 0.26 asks for in its base class."""

    @abc.abstractmethod
    def learn_one(self, x): ...

    @abc.abstractmethod
    def score_one(self, x): ...


class FeaturesDetector(abc.ABC):
    """What pytorch-ood 0.4 asks for, and what it does with it."""

    def __call__(self, *args):
        return self.predict(*args)

    @abc.abstractmethod
    def predict(self, x): ...

    def predict_features(self, x):
        raise NotImplementedError

    def fit_features(self, x, y):
        raise NotImplementedError


def adapter(monkeypatch, file, name, library, place, stand_in):
    """The class of a script, on the library itself where it is installed."""
    if importlib.util.find_spec(library) is None:
        root, module = ModuleType(library), ModuleType(f"{library}.{place}")
        setattr(root, place, module)
        setattr(module, stand_in.__name__, stand_in)
        monkeypatch.setitem(sys.modules, library, root)
        monkeypatch.setitem(sys.modules, f"{library}.{place}", module)
    return runpy.run_path(str(ADAPTERS / file))[name]


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    text = np.linalg.qr(rng.normal(size=(DIM, 4)))[0].T.astype(np.float32)
    labels = rng.integers(0, 4, COUNT)
    rows = 8 * text[labels] + 1.2 * rng.normal(size=(COUNT, DIM)).astype(np.float32)
    return text[:3], rows, labels == 3


def test_rivers_adapter_scores_and_learns_as_the_detector_does(monkeypatch, stream):
    text, rows, noise = stream
    scorer = adapter(monkeypatch, "river_noise.py", "NoiseScorer", "river", "base", AnomalyDetector)
    model, online = scorer(text, 20.0), Detector(text, 20.0)
    scores = []
    for row in rows:
        x = dict(enumerate(row))
        scores.append(model.score_one(dict(reversed(x.items()))))  # by name, in any order
        assert scores[-1] == model.score_one(x) == 1 / (1 + np.exp(-online.predict(row).margin[0]))
        model.learn_one(x)
        online.update(row)
    assert model.detector.seen == COUNT
    flagged = np.array(scores[100:]) > 0.5
    assert flagged[noise[100:]].mean() > 0.8 > 0.2 > flagged[~noise[100:]].mean()


def test_pytorch_oods_adapter_scores_and_learns_as_the_detector_does(monkeypatch, stream):
    text, rows, noise = stream
    features = adapter(
        monkeypatch, "ood_noise.py", "NoiseFeatures", "pytorch_ood", "api", FeaturesDetector
    )
    model, online = features(torch.nn.Identity(), text, 20.0), Detector(text, 20.0)
    x, y = torch.from_numpy(rows), torch.from_numpy(np.where(noise, -1, 0))
    np.testing.assert_array_equal(model(x), online.predict(rows).margin)
    assert model.fit([(part, part) for part in x.split(64)]) is model
    online.update(rows)
    assert model.detector.seen == COUNT
    for scores in (model(x), model.predict(x), model.predict_features(x)):
        np.testing.assert_allclose(scores, online.predict(rows).margin, atol=1e-6)
    assert model.detector.seen == COUNT, "asking teaches nothing"
    assert (scores[y < 0] > 0).double().mean() > 0.8
    assert (scores[y >= 0] > 0).double().mean() < 0.2
    assert model.fit_features(x[:5], y[:5]) is model
    assert model.detector.seen == COUNT + 5
