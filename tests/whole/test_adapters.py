"""The adapters of examples/adapters: on river and pytorch-ood where they are, else on stand-ins."""

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


class Base:
    """What both libraries ask of a detector here."""

    def __call__(self, *args):
        return self.predict(*args)


def adapter(monkeypatch, file, name, library, place, base):
    """The class of a script, on the library itself where it is installed."""
    if importlib.util.find_spec(library) is None:
        root, module = ModuleType(library), ModuleType(f"{library}.{place}")
        setattr(root, place, module)
        setattr(module, base, Base)
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
    make = adapter(monkeypatch, "river_noise.py", "NoiseScorer", "river", "base", "AnomalyDetector")
    model, online = make(text, 20.0), Detector(text, 20.0)
    scores = []
    for row in rows:
        x = dict(enumerate(row))
        scores.append(model.score_one(dict(reversed(x.items()))))  # by name, in any order
        assert scores[-1] == 1 / (1 + np.exp(-online.predict(row).margin[0]))
        model.learn_one(x)
        online.update(row)
    flagged = np.array(scores[100:]) > 0.5
    assert flagged[noise[100:]].mean() > 0.8 > 0.2 > flagged[~noise[100:]].mean()


def test_pytorch_oods_adapter_scores_and_learns_as_the_detector_does(monkeypatch, stream):
    text, rows, noise = stream
    place = ("pytorch_ood", "api", "FeaturesDetector")
    make = adapter(monkeypatch, "ood_noise.py", "NoiseFeatures", *place)
    model, online = make(torch.nn.Identity(), text, 20.0), Detector(text, 20.0)
    x = torch.from_numpy(rows)
    np.testing.assert_array_equal(model(x), online.predict(rows).margin)
    assert model.fit([(part, part) for part in x.split(64)]) is model
    online.update(rows)
    for scores in (model(x), model.predict_features(x)):
        np.testing.assert_allclose(scores, online.predict(rows).margin, atol=1e-6)
    assert model.detector.seen == COUNT, "asking teaches nothing"
    flagged = (scores > 0).numpy()
    assert flagged[noise].mean() > 0.8 > 0.2 > flagged[~noise].mean()
    assert model.fit_features(x[:5], x[:5]).detector.seen == COUNT + 5
