"""OnlineDetector: what a replay decides, whatever the pieces; readers change nothing."""

import copy
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import at_once
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

from zsntta_cli import OnlineDetector
from zsntta_cli.detection.detecting.run import in_hindsight
from zsntta_cli.detection.flags import Flag
from zsntta_cli.detection.inputs import MeantScale
from zsntta_cli.detection.learning import units
from zsntta_cli.detection.stepping import OneThread, passes_for
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import match
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.stream import ID

# --- as a replay


@pytest.mark.parametrize("method", SMALL)
def test_what_is_measured_is_what_is_served(cache, method):
    """Decisions on cached features, one by one, are those of `simulate` on the same stream."""
    run = build_run(
        method, "tiny", "shapes", "glyphs", "a photo of a {}.", noise="none", **SMALL[method]
    )
    replay = Simulator(cache).replay(run)
    sources, stream = replay.sources, replay.stream
    rows = [sources.id_set.image_features, sources.ood_set.image_features]
    features = [rows[0 if k == ID else 1][i] for k, i in zip(stream.kind, stream.row, strict=True)]
    text = sources.id_set.texts["a photo of a {}."].features
    scale = sources.id_set.identity["logit_scale"]
    generic = sources.id_set.generic
    assert generic is not None
    online = OnlineDetector(text, scale, method, generic_text=generic, **SMALL[method])
    served = [online.update(one) for one in features]
    flagged = np.array([v.flagged[0] for v in served])
    np.testing.assert_array_equal(flagged, replay.decisions.is_noise)
    np.testing.assert_array_equal([v.class_index[0] for v in served], replay.decisions.class_index)
    scores = np.array([1 - v.score[0] for v in served])
    np.testing.assert_allclose(scores, replay.decisions.id_score, atol=1e-5)
    assert online.ready
    assert online.seen == len(features) == 600


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("method", SMALL)
@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, COUNT), max_size=6), taught=st.sampled_from([0, 30]))
def test_pieces_change_no_verdict(method, classes, cuts, taught):
    _, features, labels = world(1, classes)
    alone, online = (detector(method, 1, classes) for _ in range(2))
    for one in (alone, online):
        one.feedback(features[:taught], labels[:taught] < 0)
    whole = alone.update(features)
    parts = [online.update(part) for part in np.split(features, sorted(cuts))]
    assert len(whole) == COUNT
    for name in ("class_index", "noise", "adapted"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))
    joined = np.concatenate([part.score for part in parts])
    np.testing.assert_allclose(joined, whole.score, atol=1e-5)


def test_noise_is_found_and_noise_is_what_is_above_the_threshold():
    text, features, labels = world(2, count=2000)
    verdicts = OnlineDetector(text, 20.0).update(features)
    assert verdicts.flagged[labels < 0].mean() > 0.8
    assert verdicts.flagged[labels >= 0].mean() < 0.3
    np.testing.assert_array_equal(verdicts.flagged, verdicts.score > verdicts.threshold)
    assert not verdicts.adapted[:64].any()
    assert verdicts.adapted[64:].all()
    assert verdicts.stage[63:65] == ["warm-up", "adapted"]


# --- readers


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("method", SMALL)
def test_predict_and_score_change_nothing(method, classes):
    _, features, _ = world(3, classes)
    online = detector(method, 3, classes)
    for part in np.split(features, [7, 100]):
        before = copy.deepcopy(online)
        first = online.predict(features)
        np.testing.assert_array_equal(online.score(features), first.score)
        assert_same(online.predict(features), first)
        online.decide_all(features, 2)
        assert_same_state(online, before)
        assert_same(online.predict(features[:1]), first[:1])
        online.update(part)
    assert online.seen == COUNT


def test_predict_is_what_update_says_of_the_next_one():
    _, features, _ = world(4)
    online = detector()
    online.update(features[:200])
    said, known = online.predict(features[200])[0], online.update(features[200])[0]
    assert said == known
    assert known.stage == "adapted"


def test_readers_see_one_moment_while_another_learns():
    """Eight threads predict while one updates: every verdict is that of some state between two."""
    _, features, _ = world(5)
    probe, pieces = features[:3], np.array_split(features, 60)

    def said(by):
        found = by.predict(probe)
        return found.score.tobytes() + found.threshold.tobytes()

    alone = detector(world_seed=5)
    possible = {said(alone)}
    for piece in pieces:
        alone.update(piece)
        possible.add(said(alone))
    online, seen, stop = detector(world_seed=5), [set() for _ in range(8)], threading.Event()

    def read(mine):
        while not stop.is_set():
            mine.add(said(online))

    readers = [threading.Thread(target=read, args=(mine,)) for mine in seen]
    for reader in readers:
        reader.start()
    for piece in pieces:
        online.update(piece)
    stop.set()
    for reader in readers:
        reader.join()
    assert all(seen)
    assert set.union(*seen) <= possible
    assert len(possible) > 5
    assert_same_state(online, alone)


def test_updates_of_several_threads_are_all_learned():
    _, features, _ = world(6)
    online = detector(world_seed=6)
    parts = np.split(features, 6)
    at_once(6, lambda number: online.update(parts[number]))
    assert online.seen == COUNT


def test_blas_has_as_many_threads_as_before():
    def threads():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    one_thread = OneThread()
    with threadpool_limits(2, "blas"):
        with one_thread:
            assert threads() == {1}
            with one_thread:
                assert threads() == {1}
            assert threads() == {1}
        assert threads() == {2}


# --- flags


@pytest.mark.parametrize(("flag", "count"), [("5%", 15), (0.05, 15), (40, 40), (1000, COUNT)])
def test_a_flag_says_how_many_of_a_folder_are_noise_as_the_command_does(flag, count):
    _, features, _ = world(11)
    online, names = detector(), [f"{i}.png" for i in range(COUNT)]
    own, asked = online.decide_all(features), online.decide_all(features, flag=flag, sources=names)
    assert asked.noise.sum() == count
    assert not asked.unsure.any()
    np.testing.assert_array_equal(np.sort(own.rank[asked.noise]), np.arange(1, count + 1))
    np.testing.assert_array_equal(asked.score, own.score)
    moves = asked.threshold - own.threshold
    np.testing.assert_allclose(moves, moves[0])
    known, ranks = in_hindsight(online, Flag.of(flag))(features)
    assert_same(asked, known)
    assert asked.rank.tolist() == ranks
    assert asked[1].source == "1.png"


def test_a_flag_that_will_not_do_teaches_nothing():
    online = detector()
    with pytest.raises(SettingsError, match="flag is 'x', must be a share"):
        online.decide_all(world()[1], flag="x", learn=True)
    assert_same_state(online, detector())


def test_there_are_no_questions_where_a_flag_says_how_many():
    online, features = detector(), world()[1]
    online.decide_all(features)
    assert online.questions(1)
    online.decide_all(features, flag=5)
    with pytest.raises(SettingsError, match="call decide_all, without a flag"):
        online.questions(1)


# --- the scale


@pytest.mark.parametrize("scale", [4.6052, 4, np.float32(5.2)])
def test_the_logarithm_of_a_scale_is_warned_of(scale):
    with pytest.warns(UserWarning, match=r"looks like the logarithm of a scale: .* exp\(") as told:
        online = OnlineDetector(np.eye(3), scale)
    assert told[0].filename == __file__
    assert online.logit_scale == float(scale)


def test_other_scales_are_taken_as_they_are():
    for scale in (3.9, 5.3, 100.0, 10):
        OnlineDetector(np.eye(3), scale)
    of_photos = OnlineDetector(np.eye(3), MeantScale(4.6))
    assert copy.deepcopy(of_photos).logit_scale == 4.6


# --- the rest of its life


def test_reset_and_copy():
    _, features, _ = world(7)
    online, fresh = detector(world_seed=7), detector(world_seed=7)
    first = online.update(features[:150])
    other = copy.deepcopy(online)
    rest = online.update(features[150:])
    assert other.seen == 150
    assert_same(other.update(features[150:]), rest)
    assert_same_state(other, online)
    online.feedback(features[:9], [True] * 9)
    online.reset()
    assert (online.seen, online.labelled, online.ready) == (0, 0, False)
    assert online.stage == "warm-up"
    assert_same_state(online, fresh)
    assert_same(online.update(features[:150]), first)
    assert other.seen == COUNT


def test_normalised_features_are_brought_to_a_norm_of_ten():
    text, features, _ = world(8)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    one = OnlineDetector(text, 20.0, "adand", normalized=True, **SMALL["adand"]).update(unit)
    raw = OnlineDetector(text, 20.0, "adand", **SMALL["adand"]).update(10 * unit)
    assert_same(one, raw)
    assert one.adapted.any()


def test_tensors_are_taken():
    torch = pytest.importorskip("torch")
    text, features, _ = world(8)
    of_arrays = OnlineDetector(text, 20.0).update(features)
    of_tensors = OnlineDetector(torch.tensor(text), 20.0).update(torch.tensor(features))
    assert_same(of_arrays, of_tensors)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"text_features": np.zeros((0, 3))}, "text_features are empty"),
        ({"text_features": np.zeros((2, 3))}, "text_features have a row of zeros"),
        ({"text_features": np.ones(3)}, r"text_features have the shape \(3,\), must be \(N, D\)"),
        ({"text_features": [["a"]]}, "text_features are list, must be an array of numbers"),
        ({"logit_scale": 0}, "logit_scale is 0, must be above 0 and at most 1,000,000"),
        ({"logit_scale": "100"}, "logit_scale is '100'"),
        ({"method": "tda"}, "method is 'tda', must be one of: zs-clip, adand, cull"),
        ({"class_names": ["a"]}, "1 class names for 3 rows of text_features"),
        ({"class_names": "abc"}, "class names are the text 'abc', not a list"),
        ({"class_names": ["a", "b", "a"]}, "the class name 'a' is there twice"),
        ({"class_names": ["a", "b", " "]}, "class name 3 is empty"),
        ({"class_names": ["a", "b", "c\0d"]}, "class name 3 is 'c.*d', must have no NUL"),
        ({"class_names": ["a", "b", 3]}, "class name 3 is 3, must be a text"),
        ({"cull_rings": 3}, "cull_rings is no setting of cull .did you mean 'cull_ring'.."),
        ({"cull_tail": 0.0}, "cull-tail is 0.0, must be above 0"),
        ({"seed": -1}, "seed is -1, must be a whole number, 0 or more"),
        ({"method": "adand", "batch_size": 4}, "batch-size is 4, must be 1"),
    ],
)
def test_a_detector_that_cannot_be_is_refused(changed, message):
    given = {"text_features": world()[0], "logit_scale": 20.0, "class_names": NAMES, **changed}
    with pytest.raises(SettingsError, match=message) as refused:
        OnlineDetector(given.pop("text_features"), given.pop("logit_scale"), **given)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones((2, 5)), "features have 5 dims, text_features have 16"),
        (np.ones((2, 3, 16)), r"features have the shape \(2, 3, 16\), must be \(N, D\)"),
        (
            np.full((2, 16), np.nan),
            r"2 features are not finite, or too large \(the first in row 0\)",
        ),
        (np.full((1, 16), 1e30), "1 features are not finite, or too large"),
        (np.full((1, 16), 1e39), "1 features are not finite"),
        ([[1, 2], [3]], "features are list, must be an array of numbers"),
        (np.ones((2, 16), complex), "features are ndarray, must be an array of numbers"),
        ("photo.jpg", "features are str, must be an array of numbers"),
        (np.array([[1.5] + 15 * [0.5], *2 * [16 * [-2.5]]]), r"\[1\] are -2.5 in all dims.*: 2 of"),
        (np.zeros((2, 16)), r"features\[0\] are 0 in all dims.*: 2 of"),
    ],
)
def test_features_that_will_not_do_teach_nothing(features, message):
    online = detector()
    for asked in (online.update, online.predict, online.decide_all):
        with pytest.raises(SettingsError, match=message):
            asked(features)
    assert_same_state(online, detector())


def test_sources_are_one_an_image():
    online, features = detector(), world()[1]
    assert [v.source for v in online.update(features[:2], ["a.jpg", None])] == ["a.jpg", None]
    with pytest.raises(SettingsError, match="1 sources for 2 images"):
        online.update(features[:2], ["a.jpg"])
    assert online.seen == 2


def test_nothing_at_all_is_decided_too():
    online = detector()
    assert list(online.update(np.empty((0, DIM)))) == []
    assert list(online.predict(np.empty((0, DIM)))) == []
    assert list(online.decide_all(np.empty((0, DIM)))) == []


# --- one class


def test_one_class_scores_by_hand():
    # Means 1, 2, 2; deviations 0, 1, sqrt(2/3); z 0, 1, 0.
    u, after = match.standardised(np.array([1.0, 3.0, 2.0]), match.Moments())
    np.testing.assert_allclose(u, [0.5, 1 / (1 + np.exp(1.5)), 0.5])
    assert after == match.Moments(3, 6.0, 14.0)


@pytest.mark.parametrize("method", ["zs-clip", "cull"])
def test_one_class_finds_noise(method):
    text, features, labels = world(9, 1, 1000)
    verdicts = OnlineDetector(text, 20.0, method, **SMALL[method]).update(features)
    late = np.arange(1000) > 300
    assert verdicts.flagged[late & (labels < 0)].mean() > 0.9
    assert verdicts.noise[late & (labels >= 0)].mean() < 0.25
    assert verdicts[0].top == (("0", 1.0),)


# --- hindsight


@pytest.mark.parametrize("method", SMALL)
def test_hindsight_is_the_last_of_some_passes_in_the_inputs_order(method):
    _, features, _ = world(10)
    online = detector(method, 10)
    rng = np.random.Generator(np.random.PCG64(3))
    orders = [rng.permutation(COUNT) for _ in range(3)]
    passes = [online.update(features[order]) for order in orders]
    found = detector(method, 10).decide_all(features, 3, seed=3)
    np.testing.assert_array_equal(found.noise[orders[2]], passes[2].noise)
    np.testing.assert_allclose(found.score[orders[2]], passes[2].score, atol=1e-5)
    assert_same(detector(method, 10).decide_all(features, 3, seed=3), found)
    assert found.adapted.all()
    other = detector(method, 10).decide_all(features, 3, seed=4)
    assert not np.array_equal(other.threshold, found.threshold)


def test_hindsight_refuses_no_pass():
    with pytest.raises(SettingsError, match="passes is 0, must be 1 or more"):
        detector().decide_all(world()[1], 0)


@pytest.mark.parametrize("method", SMALL)
def test_hindsight_may_be_learned_from(method):
    _, features, _ = world(10)
    online = detector(method, 10)
    decided = online.decide_all(features, 3, seed=3, learn=True)
    assert_same(decided, detector(method, 10).decide_all(features, 3, seed=3))
    rng, shown = np.random.Generator(np.random.PCG64(3)), detector(method, 10)
    for _ in range(3):
        shown.update(features[rng.permutation(COUNT)])
    assert (online.seen, shown.seen) == (COUNT, 3 * COUNT)
    one, other = online.predict(features), shown.predict(features)
    np.testing.assert_allclose(one.margin, other.margin, atol=1e-5)
    assert_same(copy.deepcopy(online).update(features), online.update(features))


def test_what_was_answered_goes_on_after_hindsight_is_learned_from():
    _, features, labels = world(10)
    online = detector()
    online.feedback(features[:20], labels[:20] < 0)
    online.decide_all(features[20:], learn=True)
    assert (online.labelled, online.seen) == (20, COUNT - 20)
    learner, (_, rule) = online._knows.learner, online._knows.judge
    assert rule is learner.rule
    assert len(rule.usual) > 30
    recent = {row.tobytes() for row in units(learner._recent[: online.seen].astype(np.float32))}
    assert {row.tobytes() for row in rule.usual} <= recent


@pytest.mark.parametrize(
    ("count", "passes"), [(0, 12), (1, 12), (20, 5), (60, 3), (64, 2), (10_000, 2)]
)
def test_the_last_pass_has_no_warm_up_in_it(count, passes):
    assert passes_for(count) == passes
    if count > 5:
        text, features, _ = world(0, count=count)
        online = OnlineDetector(text, 20.0)
        assert online.decide_all(features).adapted.all()
        assert not online.decide_all(features, passes - 1).adapted.all()


def test_how_long_zs_clip_decides():
    text = world()[0]
    found = [OnlineDetector(text, 20.0, method).warm_up for method in ("zs-clip", "adand", "cull")]
    assert found == [0, 1280, 64]
    assert OnlineDetector(text[:1], 20.0).warm_up == 64
