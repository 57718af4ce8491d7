"""A classifier behind any detector: found by its two names, its settings those of both."""

import dataclasses

import numpy as np
import pytest
from made import own_method
from streams import stream

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import (
    CLASSIFIERS,
    METHODS,
    Classifier,
    check_method,
    method_place,
    own_code,
)
from zsntta_cli.methods.detectors.zs_clip import ZsClip
from zsntta_cli.settings import ThresholdSettings


@dataclasses.dataclass(frozen=True)
class OwnSettings(ZsClip.Settings):
    """Of a method in a script."""

    weight: float = 1.0


def own_run(data, options, threshold):
    """ZS-CLIP under another name."""
    return METHODS["zs-clip"](data, options, threshold).push(data)


class Same(Classifier):
    """The frozen model's classes."""

    def classify(self, items, offered):
        return items.class_index


@pytest.fixture
def own(monkeypatch):
    """A method and a classifier as a script adds them."""
    monkeypatch.setitem(METHODS, "own", own_method(own_run, OwnSettings))
    monkeypatch.setitem(CLASSIFIERS, "same", Same)


@pytest.mark.parametrize("name", ["own+same", "own+dota", "adand+same", "oodd+same"])
def test_what_a_script_adds_is_part_of_pairs(own, name):
    pair, data = METHODS[name], stream(1)
    classifier = name.partition("+")[2]
    assert name not in METHODS
    own_classes = {"own": METHODS["own"], "same": CLASSIFIERS["same"]}
    assert [*own_code(name)] == [own_classes[n] for n in name.split("+") if n in own_classes]
    decisions = pair(data, pair.settings(), ThresholdSettings(queue=64)).push(data)
    if classifier == "same":
        assert np.array_equal(decisions.class_index, data.class_index)


def test_methods_stand_as_listed_and_pairs_behind_their_detector(own):
    names = ["magic", "cull+tda", "oodd+bca", "cull", "oodd", "etlt", "oodd+tda", "a"]
    assert sorted(names, key=method_place) == [
        "cull", "cull+tda", "oodd", "oodd+tda", "oodd+bca", "etlt", "a", "magic",
    ]  # fmt: skip
    assert sorted(METHODS, key=method_place) == [*METHODS]
    assert method_place("zs-clip") < method_place("zs-clip+same") < method_place("adand")


NO_PAIRS = "tda+tda tda+zs-clip zs-clip+ +tda tda+ tent+tda mcm+tda adand+tda+tda x"


@pytest.mark.parametrize("name", NO_PAIRS.split())
def test_other_pairs_are_refused(name):
    with pytest.raises(SettingsError, match="method is"):
        check_method(name)


@pytest.mark.parametrize("detector", ["zs-clip", "adand", "cull"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_detector_decides_and_the_classifier_names(detector, classifier):
    data, threshold = stream(3), ThresholdSettings(queue=64)
    pair = METHODS[f"{detector}+{classifier}"]
    options = pair.settings()
    both = pair(data, options, threshold).push(data)
    alone = METHODS[detector](data, options.detector, threshold).push(data)
    assert np.array_equal(both.is_noise, alone.is_noise)
    assert np.array_equal(both.id_score, alone.id_score)
    offered = ~alone.is_noise & ~data.injected
    classes = CLASSIFIERS[classifier](data, options.classifier).classify(data, offered)
    assert np.array_equal(both.class_index, classes)
