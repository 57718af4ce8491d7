"""Detectors as pickles: one moment, without locks and encoders, that goes on to the bit."""

import copy
import multiprocessing
import pickle
import threading

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from small_detectors import COUNT, NAMES, SMALL, assert_same_state, detector, world

from zsntta_cli import NoiseDetector, OnlineDetector
from zsntta_cli.errors import StoreError

TEXT, FEATURES, LABELS = world()


def pickled(one):
    return pickle.loads(pickle.dumps(one))


def of(verdicts):
    """All that verdicts say, to the bit."""
    return pickle.dumps([list(verdicts), verdicts.rank.tolist()])


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("method", SMALL)
@settings(max_examples=4)
@given(
    cuts=st.lists(st.integers(0, COUNT), max_size=5),
    taught=st.lists(st.integers(0, COUNT - 1), max_size=6),
)
def test_a_stream_with_pickles_between_is_the_stream_without(method, classes, cuts, taught):
    going_on, stopped = (detector(method, classes=classes, text=TEXT[:classes]) for _ in range(2))
    if taught:
        for one in (going_on, stopped):
            one.feedback(FEATURES[taught], LABELS[taught] < 0)
    for part in np.split(FEATURES, sorted(cuts)):
        stopped = pickled(stopped)
        assert of(stopped.predict(FEATURES[:20])) == of(going_on.predict(FEATURES[:20]))
        assert of(stopped.update(part)) == of(going_on.update(part))
    assert_same_state(stopped, going_on)
    assert of(stopped.decide_all(FEATURES)) == of(going_on.decide_all(FEATURES))


def test_what_is_said_of_a_folder_goes_along():
    online = detector()
    online.decide_all(FEATURES)
    for image, _ in online.questions(3):
        online.answer(image, belongs=False)
    for other in (pickled(online), copy.deepcopy(online)):
        assert of(other.answered()) == of(online.answered())
        assert other.class_names == NAMES
        [(image, _)] = other.questions(1)
        other.answer(image, belongs=True)
        assert other.answered().judged.sum() == 4
    assert online.answered().judged.sum() == 3


def test_settings_go_along():
    online = detector(normalized=True, logit_bias=-3.0, score="match", seed=7)
    online.update(FEATURES[:100])
    other = pickled(online)
    assert other.settings == online.settings
    assert (other.normalized, other.logit_bias, other.logit_scale) == (True, -3.0, 20.0)
    assert of(other.update(FEATURES)) == of(online.update(FEATURES))


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy], ids=lambda f: f.__name__)
def test_a_copy_learns_by_itself(copied):
    online = detector()
    online.update(FEATURES[:100])
    before, other = pickled(online), copied(online)
    other.update(FEATURES[100:])
    other.feedback(FEATURES[:2], [True, False])
    assert_same_state(online, before)
    assert (online.seen, other.seen, other.labelled) == (100, 300, 2)


def test_joblib_keeps_it_with_its_arrays_in_memory_maps(tmp_path):
    online = detector()
    online.update(FEATURES[:100])
    joblib.dump(online, tmp_path / "detector.joblib")
    expected = of(copy.deepcopy(online).update(FEATURES))
    for mode in (None, "r"):
        other = joblib.load(tmp_path / "detector.joblib", mmap_mode=mode)
        assert of(other.update(FEATURES)) == expected


def test_a_pickle_made_while_threads_learn_is_of_one_moment():
    pieces = np.array_split(FEATURES, 60)
    alone, possible = detector(), {}
    for piece in pieces:
        possible[alone.seen] = copy.deepcopy(alone)
        alone.update(piece)
    possible[alone.seen] = copy.deepcopy(alone)
    online, kept, stop = detector(), [], threading.Event()

    def keep():
        while not stop.wait(0.002) and len(kept) < 50:
            kept.append(pickle.dumps(online))

    keeper = threading.Thread(target=keep)
    keeper.start()
    for piece in pieces:
        online.update(piece)
    stop.set()
    keeper.join()
    others = [pickle.loads(one) for one in kept]
    assert others
    for other in others:
        assert_same_state(other, possible[other.seen])


def served(online, features):
    """In another process: what it says next, and the detector afterwards."""
    return of(online.update(features)), online


def test_it_goes_to_a_process_that_is_spawned_and_back():
    online = detector()
    online.update(FEATURES[:100])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        said, other = pool.apply(served, (online, FEATURES[100:]))
    assert said == of(online.update(FEATURES[100:]))
    assert_same_state(other, online)


# --- on images


def pictures():
    rng = np.random.default_rng(1)
    return [Image.fromarray(rng.integers(256, size=(64, 64, 3), dtype=np.uint8)) for _ in range(6)]


def test_a_detector_on_images_brings_no_encoder_and_loads_the_same_again(tiny):
    online = NoiseDetector(["circle", "square"], encoder=tiny)  # by the encoder's own names
    assert "tiny" in repr(online)
    assert len(pickle.dumps(online)) < 20_000, "nothing is loaded, nothing is known"
    online.update(pictures())
    content = pickle.dumps(online)
    assert len(content) < 8 * 2**20
    other = pickle.loads(content)
    assert other._encoder is None
    assert_same_state(other, online)
    assert of(other.online.predict(online.encode(pictures()))) == of(online.predict(pictures()))
    assert of(other.update(pictures())) == of(online.update(pictures()))
    assert other.encoder is not online.encoder
    assert copy.deepcopy(online).encoder is online.encoder
    features_alone = pickled(online.online)
    assert_same_state(features_alone, online)
    assert type(features_alone) is OnlineDetector


def test_another_encoder_than_before_is_refused(tiny, monkeypatch):
    online = NoiseDetector(["circle", "square"], encoder=tiny)
    online.update(pictures())
    other = pickled(online)
    changed = copy.copy(tiny)
    changed.identity = {**tiny.identity, "weights_sha256": "0" * 64}
    monkeypatch.setattr("zsntta_cli.encoders.clip.load_encoder", lambda *_: changed)
    with pytest.raises(StoreError, match="of another encoder than tiny"):
        other.update(pictures())


def test_classes_of_photos_go_along(tiny, tmp_path):
    for number, picture in enumerate(pictures()[:4]):
        (tmp_path / "ab"[number // 2]).mkdir(exist_ok=True)
        picture.save(tmp_path / "ab"[number // 2] / f"{number}.png")
    online = NoiseDetector(class_photos=tmp_path, encoder=tiny)
    early = pickled(online)
    said = of(online.update(pictures()))
    late = pickled(online)
    assert of(early.update(pictures())) == said
    assert of(late.update(pictures())) == of(online.update(pictures()))
