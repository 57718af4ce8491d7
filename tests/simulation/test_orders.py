"""Orders of streams: every sample once, by the seed alone, and as correlated as they say."""

import numpy as np
import pytest

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import StreamSettings, parse_order
from zsntta_cli.simulation.stream import ID, OOD, arrival_order, build_stream


def order_of(order, labels, n_ood=0, seed=0):
    generator = np.random.Generator(np.random.PCG64(seed))
    return arrival_order(order, generator, len(labels), n_ood, np.asarray(labels))


def stream(order, n_id=100, n_ood=60, ratio=0.25, seed=0, **values):
    labels = np.arange(n_id) % 7
    settings = StreamSettings(order=order, ratio=ratio, seed=seed, **values)
    return build_stream(settings, n_id, n_ood, 20, labels), labels


@pytest.mark.parametrize(("order", "group_of"), [("class", lambda row: row % 7),
                                                 ("parts:4", lambda row: row // 25)])  # fmt: skip
def test_group_by_group_with_noise_anywhere(order, group_of):
    ordered, _ = stream(order)
    rows, noisy = ordered.row[ordered.kind == ID], np.flatnonzero(ordered.kind == OOD)
    assert np.array_equal(group_of(rows), np.sort(group_of(np.arange(100))))
    assert (rows[:14] != np.sort(rows[:14])).any()
    assert noisy.min() < 20
    assert noisy.max() > len(ordered) - 20


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
