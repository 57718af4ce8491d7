import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.adand import criteria

from zsntta_cli.methods.threshold import GRID, OnlineThreshold
from zsntta_cli.methods.words.vocabulary import surely_id_or_noise
from zsntta_cli.settings import ThresholdSettings


def assert_is_brute_force(scores, found, config: ThresholdSettings, batch_size: int) -> None:
    """Each threshold is the first grid value of a split with the smallest criterion."""
    last = 0.5
    for start in range(0, len(scores), batch_size):
        stop = min(start + batch_size, len(scores))
        queue = scores[max(0, stop - config.queue) : stop]
        assert len(set(found[start:stop])) == 1
        values = criteria(queue, config.criterion)
        if np.isinf(values).all():
            last = last if config.degenerate == "hold" else 0.0
            assert found[start] == last
            continue
        k = int(np.searchsorted(GRID, found[start]))
        assert GRID[k] == found[start]
        assert values[k] <= values.min() + 1e-9
        same_split = [(queue >= g).sum() == (queue >= GRID[k]).sum() for g in GRID[:k]]
        assert not any(same_split), "an earlier grid value makes the same split"
        last = found[start]


grid_edges = st.sampled_from([*GRID.tolist(), 1.0])
just_below = st.sampled_from(np.nextafter(GRID[1:], 0).tolist())  # times 100 some are whole numbers
score = st.one_of(grid_edges, just_below, st.floats(0, 1), st.floats(0, 1, width=32))


@settings(max_examples=200, deadline=None)
@given(
    scores=st.lists(score, min_size=1, max_size=60),
    queue=st.integers(1, 40),
    batch_size=st.integers(1, 20),
    criterion=st.sampled_from(["otsu", "unweighted"]),
    degenerate=st.sampled_from(["hold", "zero"]),
)
def test_sliding_threshold_is_the_definition(scores, queue, batch_size, criterion, degenerate):
    config = ThresholdSettings(queue=queue, criterion=criterion, degenerate=degenerate)
    array, online = np.array(scores, np.float64), OnlineThreshold(config, batch_size)
    pieces = np.split(array, [len(array) // 2 // batch_size * batch_size])
    assert_is_brute_force(array, np.concatenate([*map(online, pieces)]), config, batch_size)


def test_two_clusters_by_hand():
    # Clean 0.1, 0.2 and noise 0.8: the split {0.1, 0.2 | 0.8} is first made by 0.21.
    online = OnlineThreshold(ThresholdSettings())
    assert online(np.array([0.1, 0.2, 0.8])).tolist() == [0.5, 0.11, 0.21]
    # {0.25 | 0.5, 0.75} and {0.25, 0.5 | 0.75} are equally good: the first one counts.
    assert OnlineThreshold(ThresholdSettings())(np.array([0.25, 0.5, 0.75]))[-1] == 0.26
    # The last grid value is 0.99, as in the released code: none splits these two.
    assert OnlineThreshold(ThresholdSettings())(np.array([0.995, 1.0]))[-1] == 0.5


def test_long_streams_do_not_drift():
    """Sums are exact whatever has entered and left: those of the last scores alone, to the bit."""
    scores = np.random.default_rng(0).beta(0.5, 0.5, 200_000)
    config = ThresholdSettings(criterion="unweighted", queue=64)
    whole = OnlineThreshold(config)
    for end in (64, 100_000, 200_000):
        thresholds, fresh = whole(scores[whole.seen : end]), OnlineThreshold(config)
        assert thresholds[-1] == fresh(scores[end - 64 : end])[-1]
        assert np.array_equal(whole.queue, scores[end - 64 : end])


def test_equal_scores_hold_the_last_threshold_or_zero():
    scores = np.array([0.1, 0.9, 0.9, 0.9])
    hold = OnlineThreshold(ThresholdSettings(queue=2))
    assert hold(scores).tolist() == [0.5, 0.11, 0.11, 0.11]
    assert hold(np.array([0.9])).tolist() == [0.11]
    zero = OnlineThreshold(ThresholdSettings(queue=2, degenerate="zero"))
    assert zero(scores).tolist() == [0.0, 0.11, 0.0, 0.0]


def test_a_fixed_threshold_is_one_on_the_id_score_unless_it_says_otherwise():
    for fixed_on, expected in (("id-score", 0.3), ("noise-score", 0.7)):
        online = OnlineThreshold(ThresholdSettings(fixed=0.7, fixed_on=fixed_on))
        assert online(np.zeros(2)) == pytest.approx([expected, expected])


SCORES = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.69, 0.71, 1.0])


def test_the_gap_rule_by_hand():
    # θ = 0.4, g = 0.5: ID below 0.2, noise above 0.7.
    threshold = np.full(len(SCORES), 0.4)
    is_id, is_noise = surely_id_or_noise(SCORES, threshold, 0.5)
    assert is_id.tolist() == [True, True, *[False] * 6]
    assert is_noise.tolist() == [*[False] * 6, True, True]
    # θ = 0.5, g = 0.5: what lies on the bounds 0.25 and 0.75 is not sure.
    bounds, threshold = np.array([0.25, 0.5, 0.75]), np.full(3, 0.5)
    assert not np.any(surely_id_or_noise(bounds, threshold, 0.5))
