"""Steppers: whatever the pieces, and wherever a state is taken over, the decisions of a run."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import CLASSES, COUNT, stream

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.scores import cosine_logits, zero_shot_and_detail
from zsntta_cli.methods.settings import AdaNDSettings, RidgeSettings, ZsClipSettings
from zsntta_cli.settings import ThresholdSettings

QUEUE = ThresholdSettings(queue=64)
CASES = {
    "zs-clip": ("zs-clip", ZsClipSettings(), QUEUE),
    "zs-clip fixed": ("zs-clip", ZsClipSettings(), ThresholdSettings(fixed=0.6)),
    "zs-clip zero": ("zs-clip", ZsClipSettings(), ThresholdSettings(queue=2, degenerate="zero")),
    "adand": ("adand", AdaNDSettings(update_every=32, warmup=3, learning_rate=0.01), QUEUE),
    "adand own": (
        "adand",
        AdaNDSettings(update_every=32, warmup=2, pseudo_labels="detector", evidence=0.3),
        QUEUE,
    ),
    "adand late": (
        "adand",
        AdaNDSettings(update_every=32, warmup=2, late_start=True, reevaluate=False),
        QUEUE,
    ),
    "adand gap": (
        "adand",
        AdaNDSettings(update_every=32, warmup=3, gap=0.5, pseudo_labels="detector"),
        QUEUE,
    ),
    "adand each": ("adand", AdaNDSettings(update_every=1, warmup=1, late_start=True), QUEUE),
    "ridge": ("ridge", RidgeSettings(ridge_first=16, ridge_ring=128), QUEUE),
    "ridge as it is": ("ridge", RidgeSettings(), ThresholdSettings()),
}


def pieces(data, bounds):
    """The stream cut at some items."""
    cuts = [0, *sorted(min(b, len(data)) for b in bounds), len(data)]
    return [data.part(slice(a, b)) for a, b in itertools.pairwise(cuts)]


def assert_same(one, other):
    for a, b in zip(vars(one).values(), vars(other).values(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 50), cuts=st.lists(st.integers(0, COUNT), max_size=8))
def test_any_pieces_give_the_decisions_of_a_run(case, seed, cuts):
    method, options, threshold = CASES[case]
    data = stream(seed)
    stepper = METHODS[method].start(data, options, threshold)
    joined = Decisions.joined([stepper.push(part) for part in pieces(data, cuts)])
    assert_same(joined, METHODS[method].load()(data, options, threshold))


@pytest.mark.parametrize("case", CASES)
def test_one_at_a_time_too(case):
    method, options, threshold = CASES[case]
    data = stream(1)
    stepper = METHODS[method].start(data, options, threshold)
    joined = Decisions.joined([stepper.push(part) for part in pieces(data, range(1, COUNT))])
    whole = METHODS[method].load()(data, options, threshold)
    assert_same(joined, whole)
    if whole.detector_threshold is not None and "fixed" not in case:
        decided = ~np.isnan(whole.detector_threshold)
        assert 0 < decided.sum() < COUNT
        assert stepper.adapted


@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize("method", ["zs-clip", "adand"])
def test_pieces_of_whole_batches_give_the_decisions_of_a_run(method, size):
    options = METHODS[method].settings(batch_size=size)
    data = stream(2, 390)  # the last batch is not full
    stepper = METHODS[method].start(data, options, QUEUE)
    joined = Decisions.joined([stepper.push(p) for p in pieces(data, range(48, 390, 48))])
    assert_same(joined, METHODS[method].load()(data, options, QUEUE))
    with pytest.raises(AssertionError, match="ended within a batch"):
        stepper.push(data.part(slice(0, 1)))


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=10, deadline=None)
@given(cut=st.integers(0, COUNT - 1))
def test_another_stepper_goes_on_from_a_state(case, cut):
    method, options, threshold = CASES[case]
    data = stream(3)
    first, second = (METHODS[method].start(data, options, threshold) for _ in "ab")
    before, after = pieces(data, [cut])
    first.push(before)
    state = first.state()
    second.restore(state)
    learned = second.push(after)
    assert_same(learned, first.push(after))
    for name, value in second.state().items():
        np.testing.assert_array_equal(value, first.state()[name], err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_a_judge_never_changes_and_says_what_push_does_of_a_single_image(case):
    method, options, threshold = CASES[case]
    data = stream(4)
    stepper = METHODS[method].start(data, options, threshold)
    first, rest = pieces(data, [250])
    stepper.push(first)
    judge, item = stepper.judge(), rest.part(slice(0, 1))
    known = judge(item)
    assert_same(judge(rest).part(slice(0, 1)), known)
    pushed = stepper.push(rest).part(slice(0, 1))
    assert_same(judge(item), known)
    assert known.class_index == pushed.class_index
    # Not where an item's own u moves the threshold that is in its score, or it ends a queue.
    if case in ("adand", "adand late", "ridge", "ridge as it is"):
        np.testing.assert_array_equal(known.id_score, pushed.id_score)


@pytest.mark.parametrize("case", ["zs-clip", "adand", "ridge"])
def test_a_state_of_another_is_refused(case):
    method, options, threshold = CASES[case]
    data = stream(5)
    stepper = METHODS[method].start(data, options, threshold)
    stepper.push(data)
    before, state = stepper.judge(), stepper.state()
    array = next(name for name, value in state.items() if isinstance(value, np.ndarray))
    seen = next(name for name in state if name.endswith("seen"))
    for changed, message in [
        ({array: state[array][:-1]}, f"{array} is .*, must be "),
        ({array: 1.0}, f"{array} is 1.0, must be float"),
        ({array: state[array].astype(np.float16)}, "float16"),
        ({seen: -1}, f"{seen} is -1, must be a count"),
        ({seen: 1.5}, f"{seen} is 1.5, must be a count"),
        ({seen: np.zeros(2)}, "must be a number"),
        ({"more": 1}, "more is unknown"),
    ]:
        with pytest.raises(ValueError, match=message):
            stepper.restore({**state, **changed})
    del state[array]
    with pytest.raises(ValueError, match=f"{array} is missing"):
        stepper.restore(state)
    assert_same(stepper.judge()(data), before(data))


def test_a_state_whose_items_do_not_fit_is_refused():
    data = stream(6)
    method, options, threshold = CASES["adand"]
    stepper = METHODS[method].start(data, options, threshold)
    stepper.push(data)  # 400 items, queues of 32: 16 wait
    state = stepper.state()
    with pytest.raises(ValueError, match="16 items wait after 401"):
        stepper.restore({**state, "items.seen": 401})
    with pytest.raises(ValueError, match="not all there"):
        stepper.restore({**state, "waiting.score": state["waiting.score"][1:]})
    method, options, threshold = CASES["ridge"]
    stepper = METHODS[method].start(data, options, threshold)
    stepper.push(data)
    state = stepper.state()
    assert len(state["waiting.doubt"])
    for name in ("waiting.top_classes", "order.classes"):
        with pytest.raises(ValueError, match="none of 4"):
            stepper.restore({**state, name: state[name] + CLASSES})
    everything = {k: np.repeat(v, 64, 0) for k, v in state.items() if k.startswith("waiting")}
    with pytest.raises(ValueError, match="items wait"):
        stepper.restore({**state, **everything})


@pytest.mark.parametrize("classes", [1, 2, 7, 8, 24, 200])
def test_scores_of_an_image_hardly_depend_on_the_images_beside_it(classes):
    """With AVX-512 not in a bit; elsewhere BLAS may add up products of another size otherwise."""
    rng = np.random.default_rng(classes)
    text = rng.normal(size=(classes, 96)).astype(np.float32)
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    features = rng.normal(size=(1100, 96)).astype(np.float32)
    whole, detail = zero_shot_and_detail(features, text, 100.0)
    for start, stop in [(0, 1), (5, 6), (1099, 1100), (1, 3), (30, 94), (1000, 1100)]:
        part, looked = zero_shot_and_detail(features[start:stop], text, 100.0)
        np.testing.assert_allclose(part.noise_score, whole.noise_score[start:stop], atol=1e-5)
        np.testing.assert_array_equal(part.class_index, whole.class_index[start:stop])
        np.testing.assert_allclose(looked.entropy, detail.entropy[start:stop], atol=1e-5)
        np.testing.assert_allclose(looked.top_logits, detail.top_logits[start:stop], atol=1e-4)
    unit = features.astype(float) / np.linalg.norm(features, axis=1, keepdims=True)
    exact = 100 * unit @ text.T.astype(float)
    np.testing.assert_allclose(cosine_logits(features[:1], text, 100.0), exact[:1], atol=1e-4)


def test_every_method_that_decides_online_says_where_its_stepper_is():
    for method in METHODS.values():
        if method.stepper:
            stepper = method.start(stream(), method.settings(), QUEUE)
            assert dataclasses.is_dataclass(stepper.judge())
    assert [n for n, m in METHODS.items() if m.stepper] == ["zs-clip", "adand", "ridge"]
