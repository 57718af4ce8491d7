"""A classifier behind any detector: found by its two names, its settings those of both."""

import dataclasses
import pickle

import numpy as np
import pytest
from streams import stream

from zsntta_cli.errors import UnknownName
from zsntta_cli.methods import CLASSIFIERS, METHODS, check_method
from zsntta_cli.methods.settings import TDASettings, ZsClipSettings
from zsntta_cli.settings import ThresholdSettings


def test_a_pair_is_made_of_any_detector_and_classifier():
    made = METHODS["zs-clip+tda"]
    assert METHODS["zs-clip+tda"] is made
    names = {f.name for f in dataclasses.fields(made.settings)}
    assert names == {f.name for s in (ZsClipSettings, TDASettings) for f in dataclasses.fields(s)}


def test_settings_of_a_pair_go_to_other_processes():
    options = METHODS["zs-clip+tda"].settings(positive_shots=5)
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    "name", ["tda+zs-clip", "zs-clip+", "+tda", "tda+", "tent+tda", "mcm+tda", "adand+tda+tda", "x"]
)
def test_other_pairs_are_refused(name):
    with pytest.raises(UnknownName, match="method is"):
        check_method(name)


@pytest.mark.parametrize("detector", ["zs-clip", "adand", "ridge"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_detector_decides_and_the_classifier_names(detector, classifier):
    data, threshold = stream(3), ThresholdSettings(queue=64)
    pair = METHODS[f"{detector}+{classifier}"]
    options = pair.settings()
    both = pair.load()(data, options, threshold)
    alone = METHODS[detector].load()(data, options, threshold)
    assert np.array_equal(both.is_noise, alone.is_noise)
    assert np.array_equal(both.id_score, alone.id_score)
    offered = ~alone.is_noise & ~data.injected
    classes = CLASSIFIERS[classifier].load()(data, options, offered)
    assert np.array_equal(both.class_index, classes)
