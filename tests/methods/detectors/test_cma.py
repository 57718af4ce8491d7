"""CMA: by hand, and against every text written out."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import cma as reference
from streams import of_features

from zsntta_cli.methods import METHODS, WORDS
from zsntta_cli.methods.detectors import cma
from zsntta_cli.methods.detectors.cma import CmaSettings
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import ThresholdSettings


def run(data, options, threshold):
    return cma.CMA(data, options, threshold).push(data)


def random_stream(classes, neutral, seed, items=300, dim=12):
    rng = np.random.default_rng(seed)
    text = unit(rng.normal(size=(classes, dim)))
    features = 10 * text[rng.integers(classes, size=items)] + 2 * rng.normal(size=(items, dim))
    injected = rng.random(items) < 0.1
    return of_features(features, text, 10.0, injected, unit(rng.normal(size=(neutral, dim))))


def test_by_hand():
    # Logits ln 4 or 0. Two classes, twice as many texts: four of e3, or two of each of e3 and e4.
    eye, features = np.eye(4), np.eye(4)[[2, 0, 3]]
    options, threshold = CmaSettings(cma_times=2), ThresholdSettings()
    one = run(of_features(features, eye[:2], np.log(4), words=eye[2:3]), options, threshold)
    np.testing.assert_allclose(one.id_score, [1 / 18, 4 / 9, 1 / 6], rtol=1e-6)
    two = run(of_features(features, eye[:2], np.log(4), words=eye[2:]), options, threshold)
    np.testing.assert_allclose(two.id_score, [1 / 12, 4 / 9, 1 / 12], rtol=1e-6)
    # u 0.917 and 0.556: the first grid value between is 0.56.
    assert two.detector_threshold.tolist() == [0.5, 0.56, 0.56]
    assert two.is_noise.tolist() == [True, False, True]
    assert two.class_index.tolist() == [0, 0, 0]


def test_repetitions_by_hand():
    assert cma.repetitions(5, 7).tolist() == [2, 2, 1, 1, 1]
    assert cma.repetitions(5, 3).tolist() == [1, 1, 1, 0, 0]
    assert cma.repetitions(5, 10).tolist() == [2] * 5


@given(texts=st.integers(1, 20), total=st.integers(1, 300))
def test_texts_are_there_equally_often_the_first_ones_first(texts, total):
    times = cma.repetitions(texts, total).tolist()
    assert sum(times) == total
    assert max(times) - min(times) <= 1
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("classes", [1, 3, 5, 7])
@pytest.mark.parametrize(("neutral", "times"), [(5, 1), (5, 3), (3, 2), (1, 1)])
def test_every_decision_is_the_references(classes, neutral, times):
    data = random_stream(classes, neutral, classes)
    options, threshold = CmaSettings(cma_times=times), ThresholdSettings(queue=64)
    is_noise, id_score = reference.cma(data, options, threshold)
    decisions = run(data, options, threshold)
    np.testing.assert_allclose(decisions.id_score, id_score, atol=1e-5)
    assert np.array_equal(decisions.is_noise, is_noise)


def test_an_image_of_anything_is_less_id_than_by_its_classes_alone():
    data = random_stream(4, 5, 0)
    text = data.pool.text_features
    like = dataclasses.replace(data.pool, more_text=text)  # each class once more
    found = run(dataclasses.replace(data, pool=like), CmaSettings(), ThresholdSettings())
    np.testing.assert_allclose(2 * found.id_score, 1 - data.noise_score, rtol=1e-5)


def test_it_asks_for_its_list_of_texts():
    assert METHODS["cma"].needs == WORDS
    assert METHODS["cma"].settings().words == "cma"
