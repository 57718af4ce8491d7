"""Orders of streams: every sample once, by the seed alone, and as correlated as they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zsntta_cli.errors import SettingsError, UnknownName
from zsntta_cli.settings import StreamSettings
from zsntta_cli.settings.orders import PLAIN, parse_order
from zsntta_cli.simulation.orders import arrival_order
from zsntta_cli.simulation.stream import ID, build_stream

NAMED = (*PLAIN, "dirichlet:0.1", "dirichlet:inf", "note:0.05", "note:inf", "classes:1-4",
         "classes:9-9", "shuffled-blocks", "shuffled-blocks:7")  # fmt: skip


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


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 20), st.integers(0, 2**31))
@settings(max_examples=80)
def test_blocks_are_runs_of_rows_with_the_same_share_of_noise(of_id, of_ood, blocks, seed):
    size, n_id = max(of_id + of_ood, 1), of_id * blocks
    items = order_of(f"shuffled-blocks:{size}", [0] * n_id, of_ood * blocks, seed)
    for start in range(0, len(items), size):
        block = items[start : start + size]
        assert (block < n_id).sum() == of_id
        assert is_run(block, True, n_id)
        assert is_run(block, False, n_id)


def is_run(items, is_id, n_id):
    """Whether the items of a kind follow each other in their file, whatever their order."""
    rows = np.sort(items[(items < n_id) == is_id])
    return len(rows) == 0 or rows[-1] - rows[0] == len(rows) - 1


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


@pytest.mark.parametrize("name", ["dirichlet", "note"])
def test_without_concentration_it_is_shuffled(name):
    assert (order_of(f"{name}:inf", LABELS) == order_of("shuffled", LABELS)).all()
    # A large one is more even than chance, as each class is split evenly: 48.6 against 46.7.
    even, shuffled = (classes_in_windows(LABELS[order_of(o, LABELS)])
                      for o in ("dirichlet:100000", "shuffled"))  # fmt: skip
    assert even > shuffled


def test_correlation_grows_as_the_concentration_falls():
    for name in ("dirichlet", "note"):
        counts = [classes_in_windows(LABELS[order_of(f"{name}:{c}", LABELS)])
                  for c in ("0.001", "0.1", "10")]  # fmt: skip
        assert counts == sorted(counts)
    assert classes_in_windows(LABELS[order_of("separate", LABELS)]) < 3


@given(st.integers(1, 5), st.integers(0, 5), st.integers(0, 1000))
@settings(max_examples=30)
def test_windows_have_few_classes(fewest, more, seed):
    labels = np.arange(2_000) % 20
    streamed = labels[order_of(f"classes:{fewest}-{fewest + more}", labels, 0, seed)]
    changes = np.flatnonzero(np.diff(streamed))  # windows of 64 as long as classes last
    assert len(np.unique(streamed[:64])) <= fewest + more
    assert len(changes) <= len(streamed)


def test_notes_chunks_are_class_after_class():
    streamed = LABELS[order_of("note:0.1", LABELS)]
    runs = 1 + np.count_nonzero(np.diff(streamed))
    assert 50 < runs < 50 * 50


@pytest.mark.parametrize("order", ["dirichlet:0.1", "note:0.1", "classes:2-4", "separate"])
def test_noise_stands_anywhere(order):
    stream = build_stream(
        StreamSettings(ratio=0.25, order=order, seed=3), 6_000, 2_500, 0, np.arange(6_000) % 30
    )
    shares = (stream.kind != ID)[: len(stream) // 8 * 8].reshape(8, -1).mean(axis=1)
    assert (abs(shares - 0.25) < 0.05).all()


@pytest.mark.parametrize("order", [
    "dirichlet", "dirichlet:", "dirichlet:0", "dirichlet:-1", "dirichlet:nan", "dirichlet:1e9",
    "note:x", "classes:", "classes:0-4", "classes:4-1", "classes:3", "classes:1-4-5",
])  # fmt: skip
def test_numbers_that_an_order_does_not_take(order):
    with pytest.raises(SettingsError, match="must be as"):
        StreamSettings(order=order)


@pytest.mark.parametrize("order", ["", "shufled", "shuffled:1", "class:0.1", ":0.1"])
def test_an_order_that_there_is_not(order):
    with pytest.raises(UnknownName, match="must be one of: shuffled"):
        parse_order(order)
