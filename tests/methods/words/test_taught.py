"""AdaND taught by negative words, and its gap."""

import dataclasses

import numpy as np
import pytest
from streams import decide, near_words

from zsntta_cli.detection import OnlineDetector
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.detectors import adand
from zsntta_cli.methods.detectors.adand import AdaNDSettings
from zsntta_cli.methods.detectors.linear import LinearDetector
from zsntta_cli.methods.learned import copied, equal
from zsntta_cli.settings import ThresholdSettings

QUEUE = ThresholdSettings(queue=64)
SHORT = {"update_every": 16, "warmup": 3, "learning_rate": 0.01}


@pytest.mark.parametrize("gap", [0.0, 0.5])
@pytest.mark.parametrize("teacher", ["neglabel", "csp"])
def test_it_is_adand_on_the_words_noise_score(teacher, gap):
    data = near_words(0)
    few = {"mined_share": 0.5, "groups": 3}
    found, options = decide(f"{teacher}+adand", data, QUEUE, **SHORT, **few, gap=gap)
    words, _ = decide(teacher, data, QUEUE, **few)
    scores = dataclasses.replace(data.pool.zero_shot, noise_score=1 - words.id_score)
    pool = dataclasses.replace(data.pool, zero_shot=scores)
    own = {f.name: getattr(options, f.name) for f in dataclasses.fields(AdaNDSettings)}
    expected = adand.AdaND(dataclasses.replace(data, pool=pool), AdaNDSettings(**own), QUEUE).push(
        dataclasses.replace(data, pool=pool)
    )
    for one, other in zip(vars(found).values(), vars(expected).values(), strict=True):
        np.testing.assert_array_equal(one, other)
    stage1 = slice(options.warm_up)
    np.testing.assert_array_equal(found.is_noise[stage1], words.is_noise[stage1])
    assert (found.is_noise != words.is_noise).any()


def test_images_of_the_pool_that_come_in_another_order_have_their_own_scores():
    data = near_words(1, injected=False)
    order = np.random.default_rng(0).permutation(len(data))
    mixed = dataclasses.replace(data, index=order)
    found, _ = decide("neglabel+adand", mixed, QUEUE, warmup=99)  # to its end, the teacher decides
    words, _ = decide("neglabel", data, QUEUE)
    np.testing.assert_allclose(found.id_score, words.id_score[order], atol=1e-15)


def test_a_step_learns_from_what_is_sure_alone():
    data = near_words(2, items=20)
    options = AdaNDSettings(update_every=20, warmup=1, gap=0.5)
    stepper = adand.AdaND(data, options, ThresholdSettings(fixed=0.5))
    start = LinearDetector.random(data.pool.image_features.shape[1], data.seed)
    stepper.push(data)
    u = data.noise_score
    sure = (u < 0.25) | (u > 0.75) | data.injected
    assert 5 < sure.sum() < 18
    features = data.features(slice(None))
    everything = copied(start)
    start.learn(features[sure], ((u > 0.5) | data.injected)[sure], 5e-4)
    everything.learn(features, (u > 0.5) | data.injected, 5e-4)
    np.testing.assert_array_equal(stepper.detector.weight, start.weight)
    assert not np.allclose(stepper.detector.weight, everything.weight, atol=1e-6)


def test_a_queue_without_anything_sure_makes_no_step():
    data = near_words(3, items=40, injected=False)
    options = AdaNDSettings(update_every=20, warmup=1, gap=1.0)
    stepper = adand.AdaND(data, options, ThresholdSettings(fixed=0.5))
    before = copied(stepper.detector)
    stepper.push(data)
    assert stepper.adapted
    assert equal(stepper.detector, before)


def test_a_classifier_goes_behind():
    data = near_words(5)
    for method in ("csp+tda", "tanl+tda", "neglabel+adand+tda"):
        few = {"mined_share": 0.5} if "csp" in method else {}
        found, _ = decide(method, data, QUEUE, **few)
        alone, _ = decide(method.removesuffix("+tda"), data, QUEUE, **few)
        np.testing.assert_array_equal(found.is_noise, alone.is_noise)
        assert METHODS[method].needs == "words"


def test_a_detector_of_own_images_has_no_words():
    with pytest.raises(SettingsError, match=r"method is 'neglabel\+adand'.* must be one of"):
        OnlineDetector(np.eye(2, dtype=np.float32), 100.0, "neglabel+adand")
