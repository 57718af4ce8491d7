"""Words as a fourth score of ridge: t by hand, the rule beside its reference, pieces, states."""

import dataclasses

import numpy as np
import pytest
from reference.ridge import ridge as reference

from zsntta_cli import OnlineDetector
from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import MoreText, Pool, StreamData
from zsntta_cli.methods.detectors import ridge
from zsntta_cli.methods.detectors.ridge import RidgeSettings, _word_weight
from zsntta_cli.methods.scores import without_names, word_scores
from zsntta_cli.settings import ThresholdSettings

COUNT, DIM, SCALE = 900, 24, 30.0
OPTIONS = RidgeSettings()


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def world(seed=0, ratio=0.25, injected=False):
    """A stream of the classes' kind, with noise of three more such: labels, -1 noise."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.normal(size=(9, DIM)) + 1)
    labels = np.where(
        rng.random(COUNT) < ratio, rng.integers(6, 9, COUNT), rng.integers(6, size=COUNT)
    )
    spread = rng.uniform(0.1, 0.4, (COUNT, 1))
    features = (10 * (centres[labels] + spread * rng.normal(size=(COUNT, DIM)))).astype(np.float32)
    pool = Pool.scored(features, centres[:6], SCALE)
    known = (np.arange(COUNT) % 9 == 8) & injected
    return StreamData(pool, np.arange(COUNT), known), np.where(labels < 6, labels, -1), centres[6:]


def beside(data, words, names=None):
    return dataclasses.replace(data, pool=data.pool.beside(MoreText(words, more_names=names)))


def decide(data, options=OPTIONS):
    return ridge.Ridge(data, options, ThresholdSettings()).push(data)


# --- t


def test_t_by_hand():
    text, words = np.eye(4, dtype=np.float32)[:2], np.eye(4, dtype=np.float32)[2:]
    images = np.array([[3, 0, 4, 0], [4, 0, 0, 3], [0, 0, 0, 0]], np.float32)
    scores = word_scores(images, text, words, 10.0)
    # Logits 6, 0 of the classes and 8, 0 of the words; 8, 0 and 0, 6; a zero feature has none.
    t = np.log((np.exp(8) + 1) / (np.exp(6) + 1))
    np.testing.assert_allclose(scores.ratio, [t, -t, 0], atol=1e-5)
    np.testing.assert_array_equal(scores.is_word, [True, False, False])


def test_many_words_are_those_of_one_product():
    rng = np.random.default_rng(0)
    images, text, words = (unit(rng.normal(size=(n, 512))) for n in (7, 5, 700))
    scores = word_scores(images, text, words, 100.0)
    logits = [100 * images.astype(float) @ one.T.astype(float) for one in (words, text)]
    mass = [np.log(np.exp(one).sum(1)) for one in logits]
    np.testing.assert_allclose(scores.ratio, mass[0] - mass[1], atol=1e-4)
    np.testing.assert_array_equal(scores.is_word, logits[0].max(1) > logits[1].max(1))
    for i in range(7):  # to the bit, whatever stands beside an image
        alone = word_scores(images[i : i + 1], text, words, 100.0)
        assert alone.ratio[0] == scores.ratio[i]


def test_a_word_that_is_a_class_is_taken_out():
    names = np.eye(3, dtype=np.float32)[:2]
    words = unit(np.array([[1, 0, 0.1], [1, 0, 0.5], [0, 0, 1]]))  # cosines 0.995, 0.894, 0
    np.testing.assert_array_equal(without_names(words, names), words[1:])
    np.testing.assert_array_equal(MoreText(words).without(names).more_text, words[1:])
    other = unit(np.array([[0, 1, 0], [0.0, 0, 1]]))
    kept = MoreText(words, more_names=other).without(names)
    np.testing.assert_array_equal(kept.more_text, words[:2])
    assert kept.more_names is other
    with pytest.raises(SettingsError, match="every word of the list is one of the classes"):
        MoreText(names).without(names)


def test_the_weight_by_hand():
    ring = np.array([[1.0, 1], *24 * [[3.0, 0]], *25 * [[1.0, 0]]])  # a word is best for 2 %
    assert _word_weight(ring, 1.5)[1] == 0
    ring[:2, 1] = 1  # for 4 %: half of 2, beside scores of deviation 1.5
    t = ring[:, 0]
    assert _word_weight(ring, 1.5) == pytest.approx((t.mean(), 1.5 / t.std()))
    ring[:25, 1] = 1
    assert _word_weight(ring, 1.5)[1] == pytest.approx(3 / t.std())
    assert _word_weight(np.zeros((50, 0)), 1.5) == (0, 0)


# --- the rule


@pytest.mark.parametrize(("seed", "ratio"), [(0, 0.25), (1, 0.05), (2, 0.0)])
def test_agrees_with_the_reference(seed, ratio):
    data, _, words = world(seed, ratio, injected=True)
    data = beside(data, words)
    found = decide(data)
    _, is_noise, scores, thresholds, *_ = reference(data, OPTIONS, ThresholdSettings())
    np.testing.assert_allclose(1 - found.id_score, scores, atol=2e-3)
    tests = ~data.injected
    np.testing.assert_allclose(found.detector_threshold[tests], thresholds[tests], atol=2e-3)
    clear = ~(np.abs(scores - thresholds) < 4e-3)
    assert clear.mean() > 0.97
    np.testing.assert_array_equal(found.is_noise[clear], is_noise[clear])


def test_noise_that_the_words_name_is_found():
    data, labels, words = world()
    late, is_ood = slice(300, None), labels < 0
    without, found = decide(data), decide(beside(data, words))
    right = [(one.is_noise == is_ood)[late].mean() for one in (without, found)]
    assert right[1] > right[0] + 0.05


def test_words_that_match_nothing_change_nothing():
    """Bit for bit, but only as long as hardly an image matches one best."""
    data, _, words = world()
    found = decide(beside(data, -words))
    for one, other in zip(vars(found).values(), vars(decide(data)).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_class_names_under_the_words_prompt_are_what_t_is_of():
    data, _, words = world()
    names = unit(data.pool.text_features + 0.3)
    pool = beside(data, words, names).pool
    expected = word_scores(pool.image_features, names, words, SCALE)
    np.testing.assert_array_equal(pool.word_scores.ratio, expected.ratio)


# --- pieces, states


def online(words=None, **settings):
    data, _, near = world()
    words = near if words is None else words
    return OnlineDetector(data.pool.text_features, SCALE, other_features=words, **settings)


def test_pieces_and_states_with_words():
    data, _, words = world()
    data = beside(data, words)
    features, whole = data.pool.image_features, Verdicts.of(data, decide(data), range(6))
    detector, served = online(), []
    for start in range(0, COUNT, 37):
        served.append(detector.update(features[start : start + 37]))
        if start == 370:  # another goes on from here
            state, detector = detector.state(), online()
            detector.restore(state)
    for name in ("score", "threshold", "noise", "class_index"):
        of_pieces = np.concatenate([getattr(one, name) for one in served])
        np.testing.assert_array_equal(of_pieces, getattr(whole, name))
    judged = detector.predict(features[:50])
    each = [detector.predict(features[i]).score[0] for i in range(50)]
    np.testing.assert_array_equal(judged.score, each)


def test_a_state_without_words_has_none_of_them():
    data, _, _ = world()
    without = OnlineDetector(data.pool.text_features, SCALE)
    assert not any("block.words" in name for name in without.state())
    with pytest.raises(SettingsError, match="words is unknown"):
        without.restore(online().state())


def test_a_folder_in_hindsight_with_words():
    data, labels, _ = world()
    features, is_ood = data.pool.image_features[:200], labels[:200] < 0
    text = data.pool.text_features
    right = []
    for detector in (OnlineDetector(text, SCALE), online()):
        verdicts = detector.decide_all(features)
        right.append((verdicts.flagged == is_ood).mean())
    assert right[1] > right[0] + 0.03


def test_only_where_words_are_asked_for_does_ridge_need_them():
    method = METHODS["ridge"]
    assert [method.needs, method.needs_with(OPTIONS)] == ["", ""]
    asked = RidgeSettings(words="wordnet")
    assert method.needs_with(asked) == "words"
    both = METHODS["ridge+tda"]
    assert both.needs_with(both.settings_class(words="wordnet")) == "words"
    assert not both.needs_with(both.settings_class())
    assert METHODS["neglabel"].needs_with(METHODS["neglabel"].settings_class()) == "words"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "adand"}, "adand takes no words for what else images may show: leave them out"),
        ({"words": np.ones((2, 3))}, "other_features have 3 dims, text_features 24"),
        ({"words": np.ones((0, DIM))}, "other_features are empty: name one word or more"),
        ({"names_beside": np.ones((2, DIM))}, "names_beside must be text features of the classes"),
    ],
)
def test_words_that_will_not_do(given, message):
    with pytest.raises(SettingsError, match=message):
        online(**given)


def test_words_are_features_here():
    text = world()[0].pool.text_features
    with pytest.raises(SettingsError, match="words are no setting here"):
        OnlineDetector(text, SCALE, words="wordnet")
    with pytest.raises(SettingsError, match="names_beside go with other_features"):
        OnlineDetector(text, SCALE, names_beside=text)
