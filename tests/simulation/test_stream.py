"""Streams: their counts, their order by a seed to the bit, and what cannot be."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import StreamSettings, ood_share
from zsntta_cli.simulation.stream import ID, NOISE, OOD, arrival_order, build_stream


def counts(stream):
    return tuple(int((stream.kind == kind).sum()) for kind in (ID, OOD, NOISE))


@pytest.mark.parametrize(
    ("ratio", "official", "ood"),
    [(0.0, False, 0), (0.25, False, 3333), (0.5, False, 10_000), (0.75, False, 30_000),
     (0.25, True, 3300), (0.5, True, 10_000), (0.75, True, 30_000)],
)  # fmt: skip
def test_counts_of_the_papers_ratios(ratio, official, ood):
    settings = StreamSettings(ratio=ratio, rounded_odds=official, noise="gaussian")
    stream = build_stream(settings, 10_000, 26_032, 5_000)
    assert counts(stream) == (10_000, ood, (10_000 + ood) // 8)


@given(
    seed=st.integers(0, 9),
    noise_every=st.integers(1, 20),
    placement=st.sampled_from(["periodic", "shuffled"]),
)
def test_injection_never_changes_the_order_of_the_test_samples(seed, noise_every, placement):
    plain = build_stream(StreamSettings(seed=seed), 30, 40, 0)
    settings = StreamSettings(
        seed=seed, noise="poisson", noise_every=noise_every, placement=placement
    )
    injected = build_stream(settings, 30, 40, 9)
    tests = injected.kind != NOISE
    assert np.array_equal(injected.row[tests], plain.row)
    assert np.array_equal(injected.kind[tests], plain.kind)
    noise_rows = injected.row[injected.kind == NOISE]
    assert np.array_equal(noise_rows, np.arange(60 // noise_every) % 9)


def test_seeds_change_the_order_and_not_the_ood_choice():
    first, second = (build_stream(StreamSettings(seed=s), 100, 300, 0) for s in (0, 1))
    assert not np.array_equal(first.row, second.row)
    chosen = [sorted(s.row[s.kind == OOD]) for s in (first, second)]
    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) == 100


def test_a_small_ood_set_is_repeated_or_caps_the_ratio():
    repeated = build_stream(StreamSettings(), 250, 100, 0)
    times = np.bincount(repeated.row[repeated.kind == OOD])
    assert times.sum() == 250
    assert sorted(set(times)) == [2, 3]
    capped = build_stream(StreamSettings(ood_fill="cap"), 250, 100, 0)
    assert counts(capped) == (250, 100, 0)


def test_noise_needs_an_ood_set():
    with pytest.raises(SettingsError, match="needs an OOD set"):
        build_stream(StreamSettings(ratio=0.5), 10, 0, 0)


def test_a_stream_that_no_memory_holds_is_refused_before_it_is_made(monkeypatch):
    """A set that only caps the ratio adds no more than it has."""
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 25, "SC_PHYS_PAGES": 88}.get)
    assert len(build_stream(StreamSettings(ratio=0.5), 11, 11, 0)) == 22
    with pytest.raises(SettingsError, match="24 items"):
        build_stream(StreamSettings(ratio=0.5), 12, 11, 0)
    assert len(build_stream(StreamSettings(ratio=0.75, ood_fill="cap"), 11, 11, 0)) == 22


@given(
    st.sampled_from(["natural", 0.0, 0.1, 0.45, 0.99]),
    st.integers(1, 60),
    st.integers(1, 40),
    st.sampled_from(["repeat", "cap"]),
    st.integers(0, 99),
)
def test_every_id_sample_once_whatever_the_ratio(ratio, n_id, n_ood, fill, seed):
    settings = StreamSettings(ratio=ratio, ood_fill=fill, seed=seed)
    stream = build_stream(settings, n_id, n_ood, 0)
    assert sorted(stream.row[stream.kind == ID]) == list(range(n_id))
    oods = stream.row[stream.kind != ID]
    sizes = settings.sizes(n_id, n_ood)
    wanted = sizes.wanted
    assert len(oods) == (min(wanted, n_ood) if fill == "cap" else wanted)
    assert len(stream) == sizes.tests
    if ratio == "natural":
        assert sorted(oods) == list(range(n_ood))
    else:
        assert wanted == round(n_id * ood_share(ratio) / (1 - ood_share(ratio)))


# Orders


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


def test_dirichlets_have_a_slot_for_each_128_images():
    labels = np.arange(256) % 20
    assert classes_in_windows(labels[order_of("dirichlet:0.001", labels)]) < 15
    assert classes_in_windows(labels[order_of("dirichlet:0.001", labels[:255])]) == 20


def test_noise_in_a_burst_late_or_first():
    (burst, _), (late, _), (first, _) = map(stream, ("burst", "late", "first"))
    noisy = np.flatnonzero(burst.kind == OOD)
    assert np.array_equal(noisy, np.arange(50, 50 + len(noisy)))
    assert (late.kind[:60] == ID).all()
    assert (late.kind[60:] == OOD).sum() == len(noisy)
    assert (first.kind[: len(noisy)] == OOD).all()


SIZES = (300, 170, 40)  # of the ID set, the OOD set and the pool of noise images
CLASSES = np.arange(300) ** 2 * 31 % 7
STREAMS = [
    ({}, "9b7a2867b5da79f6"),
    ({"seed": 1}, "0a84f64750fd522d"),
    ({"seed": 17}, "1240baaed79a5af3"),
    ({"order": "class"}, "5efc60e9482dbf05"),
    ({"order": "burst"}, "04297157072a633c"),
    ({"order": "late"}, "63cff41acaeeb67c"),
    ({"order": "first"}, "b2b6187b95c09474"),
    ({"order": "dirichlet:0.1"}, "67919cca062925dd"),
    ({"order": "dirichlet:10"}, "08bcb080c3510457"),
    ({"order": "dirichlet:inf"}, "9b7a2867b5da79f6"),
    ({"order": "class", "ratio": 0.25, "seed": 4}, "20419b8ecbaddc29"),
    ({"order": "burst", "ratio": 0.25, "seed": 4}, "335290c7e74aad24"),
    ({"order": "late", "ratio": 0.25, "seed": 4}, "75b5bc1ac5668953"),
    ({"order": "first", "ratio": 0.25, "seed": 4}, "c9400a946175d0ea"),
    ({"order": "dirichlet:0.001", "ratio": 0.25, "seed": 4}, "cf976c3f69649b74"),
    ({"ratio": 0.0}, "be59283c674ad19a"),
    ({"ratio": 0.75}, "4fd1bd03e944eeec"),
    ({"ratio": "natural"}, "fda160fd7508eee5"),
    ({"ratio": "natural", "order": "class", "seed": 2}, "b4f2fb6a6ad4aa13"),
    ({"ratio": "natural", "order": "burst", "seed": 2}, "2cc92985afe5ef2e"),
    ({"ratio": "natural", "order": "late", "seed": 2}, "11f2a7afb8eca375"),
    ({"ratio": "natural", "order": "first", "seed": 2}, "cab4024435fe4d4c"),
    ({"ratio": "natural", "order": "dirichlet:0.1", "seed": 2}, "cef98de616d68282"),
    ({"noise": "gaussian"}, "0dff0b55fb2f7b1e"),
    ({"noise": "gaussian", "placement": "shuffled", "seed": 3}, "ad2979d42dbf0870"),
    ({"noise": "uniform", "noise_every": 3, "limit": 57}, "12aba45b45af818a"),
    ({"ratio": 0.75, "ood_fill": "cap"}, "fda160fd7508eee5"),
    ({"ratio": 0.25, "rounded_odds": True}, "13d1ba22d934e5aa"),
    (
        {"order": "class", "placement": "shuffled", "noise": "poisson", "ratio": 0.75, "seed": 1},
        "89ddb7b00d638313",
    ),
    ({"order": "dirichlet:0.1", "noise": "gaussian", "ratio": 0.25, "seed": 5}, "df90cdcc01684b1c"),
]


@pytest.mark.parametrize(("settings", "expected"), STREAMS)
def test_whoever_names_the_settings_and_the_seed_gets_the_same_items(settings, expected):
    stream = build_stream(StreamSettings(**settings), *SIZES, CLASSES)
    content = stream.kind.astype(np.int8).tobytes() + stream.row.astype(np.int64).tobytes()
    assert hashlib.sha256(content).hexdigest()[:16] == expected
