"""Detector: what a replay decides, whatever the pieces; readers change nothing; it pickles."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import at_once, refused
from small_detectors import (
    COUNT,
    DIM,
    NAMES,
    SMALL,
    assert_same,
    assert_same_state,
    detector,
    world,
)
from threadpoolctl import threadpool_info, threadpool_limits

from zsntta_cli import Detector
from zsntta_cli.detection.detector import fewest_for
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS, Method
from zsntta_cli.methods.base import Decisions
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator


def pickled(one):
    return pickle.loads(pickle.dumps(one))


@pytest.mark.parametrize("method", SMALL)
def test_what_is_measured_is_what_is_served(cache, method):
    """Decisions on cached features, one by one, are those of `simulate` on the same stream."""
    run = build_run(
        method, "tiny", "shapes", "glyphs", "a photo of a {}.", noise="none", **SMALL[method]
    )
    replay = Simulator(cache).replay(run)
    files, stream, id_set = replay.sources.files, replay.stream, replay.sources.id_set
    rows = [files[k].image_features[i] for k, i in zip(stream.kind, stream.row, strict=True)]
    text = id_set.texts["a photo of a {}."].features
    online = Detector(
        text, id_set.identity["logit_scale"], method=method, generic=id_set.generic,
        **SMALL[method],
    )  # fmt: skip
    served = [online.update(row) for row in rows]
    flagged = np.array([v.flagged[0] for v in served])
    np.testing.assert_array_equal(flagged, replay.made.decisions.is_noise)
    np.testing.assert_array_equal(
        [v.class_index[0] for v in served], replay.made.decisions.class_index
    )
    scores = np.array([1 - v.score[0] for v in served])
    np.testing.assert_allclose(scores, replay.made.decisions.id_score, atol=1e-5)
    assert online.ready
    assert online.seen == len(rows) == 600


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("method", SMALL)
@settings(max_examples=10)
@given(cuts=st.lists(st.integers(0, COUNT), max_size=6), taught=st.sampled_from([0, 30]))
def test_pieces_and_pickles_between_change_no_verdict(method, classes, cuts, taught):
    _, features, labels = world(1, classes)
    alone, online = (detector(method, 1, classes) for _ in range(2))
    for one in (alone, online):
        one.feedback(features[:taught], labels[:taught] < 0)
    whole, parts = alone.update(features), []
    for part in np.split(features, sorted(cuts)):
        online = pickled(online)
        parts.append(online.update(part))
    for name in ("class_index", "answer", "stage"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))
    joined = np.concatenate([part.score for part in parts])
    np.testing.assert_allclose(joined, whole.score, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "classes", "warm_up"), [("cull", 3, 16), ("zs-clip", 1, 0), ("cull", 1, 16)]
)
def test_noise_is_found_and_flagged_is_what_is_above_the_threshold(method, classes, warm_up):
    text, features, labels = world(2, classes, 1000)
    verdicts = Detector(text, 20.0, method=method, **SMALL[method]).update(features)
    late = np.arange(1000) > 300
    assert verdicts.flagged[late & (labels < 0)].mean() > 0.9
    assert verdicts.flagged[late & (labels >= 0)].mean() < 0.1
    np.testing.assert_array_equal(verdicts.flagged, verdicts.margin > 0)
    assert verdicts.stage.tolist() == ["warm-up"] * warm_up + ["adapted"] * (1000 - warm_up)


def test_tensors_are_taken_and_features_of_unit_norm_are_brought_to_a_norm_of_ten():
    torch = pytest.importorskip("torch")
    text, features, _ = world(8)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    expected = Detector(text, 20.0).update(10 * unit)
    tensors = torch.tensor(text), 20.0
    assert_same(Detector(*tensors, normalized=True).update(torch.tensor(unit)), expected)


# --- readers, threads, copies


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("method", SMALL)
def test_predict_and_hindsight_change_nothing(method, classes):
    _, features, _ = world(3, classes)
    online = detector(method, 3, classes)
    for part in np.split(features, [7, 100]):
        before = pickled(online)
        first = online.predict(features)
        assert_same(online.predict(features), first)
        online.decide_all(features)
        assert_same_state(online, before)
        online.update(part)
    assert online.seen == COUNT


def test_predict_is_what_update_says_of_the_next_one_and_nothing_is_decided_too():
    _, features, _ = world(4)
    online = detector()
    online.update(features[:200])
    assert online.predict(features[200]).rows() == online.update(features[200]).rows()
    for asked in (online.update, online.predict, online.decide_all):
        assert asked(np.empty((0, DIM))).rows() == []


def test_calls_of_several_threads_run_one_after_another_and_blas_has_its_threads_again():
    def work(number):
        online.update(parts[number])
        copies.append(pickled(online))
        online.predict(parts[number])

    _, features, _ = world(6)
    online, parts, copies = detector(world_seed=6), np.split(features, 6), []
    with threadpool_limits(2, "blas"):
        at_once(6, work)
        blas = (library for library in threadpool_info() if library["user_api"] == "blas")
        assert {library["num_threads"] for library in blas} == {2}
    assert online.seen == COUNT
    assert {copied.seen % len(parts[0]) for copied in copies} == {0}, "of whole moments"


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy], ids=lambda f: f.__name__)
def test_a_copy_learns_by_itself(copied):
    _, features, _ = world()
    online = detector(bias=-3.0, score="match", seed=7, normalized=True)
    online.update(features[:100])
    before, other = pickled(online), copied(online)
    other.update(features[100:])
    other.feedback(features[:2], [True, False])
    assert_same_state(online, before)
    assert (online.seen, other.seen, other.labelled) == (100, 300, 2)
    assert (other.bias, other.seed, other.normalized, other.names) == (-3.0, 7, True, NAMES)


# --- hindsight


@pytest.mark.parametrize("method", SMALL)
def test_hindsight_is_the_last_of_some_passes_in_the_inputs_order(method):
    _, features, _ = world(10)
    online = detector(method, 10)
    rng = np.random.Generator(np.random.PCG64(3))
    orders = [rng.permutation(COUNT) for _ in range(3)]
    passes = [online.update(features[order]) for order in orders]
    learner = detector(method, 10)
    verdicts = learner.decide_all(features, passes=3, seed=3, learn=True)
    np.testing.assert_array_equal(verdicts.answer[orders[2]], passes[2].answer)
    np.testing.assert_allclose(verdicts.score[orders[2]], passes[2].score, atol=1e-5)
    assert_same(detector(method, 10).decide_all(features, passes=3, seed=3), verdicts)
    other = detector(method, 10).decide_all(features, passes=3, seed=4)
    assert not np.array_equal(other.threshold, verdicts.threshold)
    assert learner.seen == COUNT
    after, shown = learner.predict(features), online.predict(features)
    np.testing.assert_allclose(after.margin, shown.margin, atol=1e-5)


@pytest.mark.parametrize(("count", "passes"), [(6, 12), (20, 5), (60, 3), (64, 2), (1_000, 2)])
def test_the_last_pass_has_no_warm_up_in_it(count, passes):
    text, features, _ = world(0, count=count)
    online = Detector(text, 20.0)
    assert {*online.decide_all(features).stage} == {"adapted"}
    assert "warm-up" in online.decide_all(features, passes=passes - 1).stage


def test_fewest_is_where_all_are_decided_by_the_methods_rule():
    # 6 images are shown 11 times before the last pass, 50 twice, 1,280 once.
    fewest = {1: 1, 64: 6, 100: 50, 1280: 1280}
    assert {warm_up: fewest_for(warm_up) for warm_up in fewest} == fewest


# --- what is refused


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"text": np.zeros((0, 3))}, "text is empty"),
        ({"text": np.zeros((2, 3))}, "text has a row of zeros"),
        ({"text": np.ones((2, 3, 4))}, "text has the shape (2, 3, 4)"),
        ({"text": [["a"]]}, "text is a list"),
        ({"scale": 0}, "scale is 0, must be above 0 and at most 1,000,000"),
        ({"scale": "100"}, "scale is '100'"),
        ({"bias": float("nan")}, "bias is nan, must be a number"),
        ({"generic": np.ones(16)}, "generic has the norm 4, must be below 1"),
        ({"method": "tda"}, "method is 'tda', must be one of: zs-clip, adand, cull"),
        ({"names": ["a"]}, "1 name for 3 rows of text"),
        ({"names": "abc"}, "class names are the text 'abc'"),
        ({"names": ["a", "b", " "]}, "class 3 is ' '"),
        ({"names": ["a", "b", "c\0d"]}, "NUL"),
        ({"names": ["a", "b", 3]}, "class 3 is 3"),
        ({"cull_rings": 3}, "cull_rings is not a setting of cull (did you mean 'cull_ring'?)"),
        ({"seed": -1}, "seed is -1"),
        ({"method": "adand", "batch_size": 4}, "batch-size is 4, must be 1"),
    ],
)
def test_a_detector_that_cannot_be_is_refused(changed, message):
    with refused(message, error=SettingsError):
        Detector(**{"text": world()[0], "scale": 20.0, "names": NAMES, **changed})


def test_the_logarithm_of_a_scale_is_warned_of():
    for scale in (4, np.float32(5.2)):
        with pytest.warns(UserWarning, match=r"the logarithm of a scale: .* exp\("):
            assert Detector(np.eye(3), scale).scale == float(scale)
    for scale in (3.9, 5.3):
        Detector(np.eye(3), scale)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones((2, 5)), "features have 5 dimensions, text has 16"),
        (np.full((2, 16), np.nan), "2 rows of features are not finite, or too large (the first is"),
        (np.full((1, 16), 1e30), "too large"),
        ([[1, 2], [3]], "features is a list"),
        (np.ones((2, 16), complex), "features is a ndarray"),
        (np.array([[1.5] + 15 * [0.5], 16 * [-2.5]]), "features[1] are -2.5 in all dimensions"),
        (np.zeros((2, 16)), "2 of 2 rows are constant"),
    ],
)
def test_features_that_will_not_do_teach_nothing(features, message):
    online = detector()
    for asked in (online.update, online.predict, online.decide_all):
        with refused(message, error=SettingsError):
            asked(features)
    for wrong, said in (({"passes": 0}, "passes is 0"), ({"flag": "x", "learn": True}, "flag is")):
        with refused(said, error=SettingsError):
            online.decide_all(world()[1], **wrong)
    assert_same_state(online, detector())


def test_a_method_of_ones_own_judges_by_its_score_and_is_refused_without_a_threshold(monkeypatch):
    class Own(Method):
        def scores(self, items, learn):
            return 1 - items.noise_score

    class Without(Method):
        def push(self, items, learn=True):
            return Decisions(items.class_index, items.noise_score > 0.5, 1 - items.noise_score)

    monkeypatch.setitem(METHODS.data, "own", Own)
    monkeypatch.setitem(METHODS.data, "without", Without)
    rows, text = np.random.default_rng(3).normal(size=(60, 8)).astype(np.float32), np.eye(4, 8)
    own, zero_shot = (Detector(text, 20.0, method=m).update(rows) for m in ("own", "zs-clip"))
    for column in ("answer", "score", "threshold", "class_index"):
        np.testing.assert_array_equal(getattr(own, column), getattr(zero_shot, column))
    with refused("verdicts need both"):
        Detector(text, 20.0, method="without").update(rows)
