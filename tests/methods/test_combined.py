"""A classifier behind any detector, by their two names."""

import numpy as np
import pytest
from streams import near_words

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import CLASSIFIERS, METHODS, check_method, method_place
from zsntta_cli.settings import ThresholdSettings


def test_methods_stand_as_listed_and_pairs_behind_their_detector():
    names = ["magic", "cull+tda", "oodd+bca", "cull", "oodd", "etlt", "oodd+tda", "a"]
    assert sorted(names, key=method_place) == [
        "cull", "cull+tda", "oodd", "oodd+tda", "oodd+bca", "etlt", "a", "magic",
    ]  # fmt: skip
    assert sorted(METHODS, key=method_place) == [*METHODS]


NO_PAIRS = "tda+tda tda+zs-clip zs-clip+ +tda tda+ tent+tda mcm+tda adand+tda+tda x"


@pytest.mark.parametrize("name", NO_PAIRS.split())
def test_other_pairs_are_refused(name):
    with pytest.raises(SettingsError):
        check_method(name)


@pytest.mark.parametrize("detector", ["zs-clip", "adand", "cull"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_detector_decides_and_the_classifier_names(detector, classifier):
    data, threshold = near_words(3), ThresholdSettings(queue=64)
    pair = METHODS[f"{detector}+{classifier}"]
    options = pair.settings()
    both = pair(data, options, threshold).push(data)
    alone = METHODS[detector](data, options.detector, threshold).push(data)
    assert np.array_equal(both.is_noise, alone.is_noise)
    assert np.array_equal(both.id_score, alone.id_score)
    offered = ~alone.is_noise & ~data.injected
    classes = CLASSIFIERS[classifier](data, options.classifier).classify(data, offered)
    assert np.array_equal(both.class_index, classes)
