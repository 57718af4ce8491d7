"""The adapters of examples/adapters; without river and pytorch-ood on stand-ins."""

import importlib.util
import runpy
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

from zsntta_cli import Detector

ADAPTERS = Path(__file__).parents[2] / "examples" / "adapters"
RNG = np.random.default_rng(0)
TEXT = np.linalg.qr(RNG.normal(size=(16, 4)))[0].T.astype(np.float32)
LABELS = RNG.integers(0, 4, 300)
ROWS = 8 * TEXT[LABELS] + 1.2 * RNG.normal(size=(300, 16)).astype(np.float32)
TEXT, NOISE = TEXT[:3], LABELS == 3


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


def assert_finds(flagged, noise):
    assert flagged[noise].mean() > 0.8 > 0.2 > flagged[~noise].mean()


def test_rivers_adapter_scores_and_learns_as_the_detector_does(monkeypatch):
    place = ("river", "base", "AnomalyDetector")
    model = adapter(monkeypatch, "river_noise.py", "NoiseScorer", *place)(TEXT, 20.0)
    online, scores = Detector(TEXT, 20.0), []
    for row in ROWS:
        x = dict(enumerate(row))
        scores.append(model.score_one(dict(reversed(x.items()))))  # by name, in any order
        assert scores[-1] == 1 / (1 + np.exp(-online.predict(row).margin[0]))
        model.learn_one(x)
        online.update(row)
    assert_finds(np.array(scores[100:]) > 0.5, NOISE[100:])


def test_pytorch_oods_adapter_scores_and_learns_as_the_detector_does(monkeypatch):
    place = ("pytorch_ood", "api", "FeaturesDetector")
    make = adapter(monkeypatch, "ood_noise.py", "NoiseFeatures", *place)
    model, online = make(torch.nn.Identity(), TEXT, 20.0), Detector(TEXT, 20.0)
    x = torch.from_numpy(ROWS)
    np.testing.assert_array_equal(model(x), online.predict(ROWS).margin)
    assert model.fit([(part, part) for part in x.split(64)]) is model
    online.update(ROWS)
    for scores in (model(x), model.predict_features(x)):
        np.testing.assert_allclose(scores, online.predict(ROWS).margin, atol=1e-6)
    assert_finds((scores > 0).numpy(), NOISE)
    assert model.fit_features(x[:5], x[:5]).detector.seen == len(x) + 5, "asking teaches nothing"


def test_scikit_learns_adapter_fits_as_the_detector_does():
    make = runpy.run_path(str(ADAPTERS / "sklearn_noise.py"))["NoiseEstimator"]
    found, online = make(TEXT, 20.0).fit_predict(ROWS), Detector(TEXT, 20.0)
    online.decide_all(ROWS, learn=True)
    np.testing.assert_array_equal(found == -1, online.predict(ROWS).flagged)
    assert_finds(found == -1, NOISE)
