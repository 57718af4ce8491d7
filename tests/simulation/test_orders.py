"""Orders of streams: every sample once, by the seed alone, and as correlated as they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import PLAIN, StreamSettings, parse_order
from zsntta_cli.simulation.stream import ID, NOISE, OOD, arrival_order, build_stream

NAMED = (*PLAIN, "dirichlet:0.1", "dirichlet:inf", "parts:3")


def order_of(order, labels, n_ood=0, seed=0):
    generator = np.random.Generator(np.random.PCG64(seed))
    return arrival_order(order, generator, len(labels), n_ood, np.asarray(labels))


@given(st.sampled_from(NAMED), st.lists(st.integers(0, 6), min_size=1, max_size=300),
       st.integers(0, 90), st.integers(0, 2**31))  # fmt: skip
@settings(max_examples=150)
def test_every_sample_is_there_once_and_the_seed_says_where(order, labels, n_ood, seed):
    items = order_of(order, labels, n_ood, seed)
    assert sorted(items.tolist()) == list(range(len(labels) + n_ood))
    assert (items == order_of(order, labels, n_ood, seed)).all()


def stream(order, n_id=100, n_ood=60, ratio=0.25, seed=0, **values):
    labels = np.arange(n_id) % 7
    settings = StreamSettings(order=order, ratio=ratio, seed=seed, **values)
    return build_stream(settings, n_id, n_ood, 20, labels), labels


def test_class_by_class_with_noise_anywhere():
    ordered, labels = stream("class")
    seen = labels[ordered.row[ordered.kind == ID]]
    assert np.array_equal(seen, np.sort(labels))
    noisy = np.flatnonzero(ordered.kind == OOD)
    assert noisy.min() < 20
    assert noisy.max() > len(ordered) - 20


def test_parts_of_the_set_follow_each_other_with_noise_anywhere():
    ordered, _ = stream("parts:4")
    rows = ordered.row[ordered.kind == ID]
    assert (rows // 25 == np.repeat(np.arange(4), 25)).all()
    assert (rows[:25] != np.arange(25)).any()
    noisy = np.flatnonzero(ordered.kind == OOD)
    assert noisy.min() < 20
    assert noisy.max() > len(ordered) - 20


def test_injection_and_limit_come_after_the_order():
    ordered, _ = stream("first", noise="gaussian", limit=40)
    assert (ordered.kind != NOISE).sum() == 40
    assert (ordered.kind == NOISE).sum() == 5


def classes_in_windows(labels, size=128):
    """How many classes windows of a stream have, on average."""
    windows = labels[: len(labels) // size * size].reshape(-1, size)
    return np.mean([len(np.unique(window)) for window in windows])


def statas_stream(labels, concentration, generator, batch=128):
    """A stream as its paper says it, written apart: slot by slot, class by class."""
    classes = np.unique(labels)
    slots = [[] for _ in range(min(len(labels) // batch, len(classes)))]
    for c in classes:
        own = generator.permutation(np.flatnonzero(labels == c))
        edges = np.floor(np.cumsum(generator.dirichlet([concentration] * len(slots))) * len(own))
        start = 0
        for slot, edge in zip(slots, [*edges[:-1].astype(int), len(own)], strict=True):
            slot.extend(own[start:edge])
            start = edge
    return np.concatenate([generator.permutation(np.array(slot, int)) for slot in slots])


LABELS = np.arange(10_000) % 50


@pytest.mark.parametrize("concentration", [0.001, 0.01, 0.1, 10.0])
def test_dirichlets_are_as_correlated_as_the_reference(concentration):
    seeds = range(8)
    ours = [classes_in_windows(LABELS[order_of(f"dirichlet:{concentration}", LABELS, 0, seed)])
            for seed in seeds]  # fmt: skip
    theirs = [
        classes_in_windows(
            LABELS[statas_stream(LABELS, concentration, np.random.default_rng(100 + seed))]
        )
        for seed in seeds
    ]
    error = np.hypot(np.std(ours), np.std(theirs)) / np.sqrt(len(seeds))
    assert abs(np.mean(ours) - np.mean(theirs)) < 4 * error + 0.02 * np.mean(theirs)


@pytest.mark.parametrize("order", [
    "dirichlet", "dirichlet:", "dirichlet:0", "dirichlet:-1", "dirichlet:nan", "dirichlet:1e9",
    "dirichlet:x", "parts", "parts:0", "parts:1.5", "parts:-1",
])  # fmt: skip
def test_numbers_that_an_order_does_not_take(order):
    with pytest.raises(SettingsError, match="must be as"):
        StreamSettings(order=order)


@pytest.mark.parametrize(
    "order",
    ["", "shufled", "shuffled:1", "class:0.1", ":0.1", "separate", "note:0.1", "classes:1-4"],
)
def test_an_order_that_there_is_not(order):
    with pytest.raises(SettingsError, match="must be one of: shuffled"):
        parse_order(order)


def test_noise_in_a_burst_late_or_first():
    (burst, _), (late, _), (first, _) = map(stream, ("burst", "late", "first"))
    noisy = np.flatnonzero(burst.kind == OOD)
    assert np.array_equal(noisy, np.arange(50, 50 + len(noisy)))
    assert (late.kind[:60] == ID).all()
    assert (late.kind[60:] == OOD).sum() == len(noisy)
    assert (first.kind[: len(noisy)] == OOD).all()
