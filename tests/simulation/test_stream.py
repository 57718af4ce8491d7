import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import StreamSettings, ood_share
from zsntta_cli.simulation.stream import (
    ID,
    NOISE,
    OOD,
    build_stream,
    stream_sizes,
)


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


def test_what_cannot_be_is_refused():
    with pytest.raises(SettingsError, match=r"ratio of 0\.5 needs an OOD set"):
        build_stream(StreamSettings(ratio=0.5), 10, 0, 0)
    with pytest.raises(SettingsError, match="needs a noise pool"):
        build_stream(StreamSettings(ratio=0, noise="gaussian"), 10, 0, 0)
    with pytest.raises(SettingsError, match=r"must be in \[0, 1\)"):
        StreamSettings(ratio=1.0)


def test_a_stream_that_memory_is_too_small_for(monkeypatch):
    """An item takes 100 bytes; a set that only caps the ratio adds no more than it has."""
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 20, "SC_PHYS_PAGES": 100}.get)
    assert len(build_stream(StreamSettings(ratio=0.5), 10, 10, 0)) == 20
    with pytest.raises(SettingsError, match=r"stream of 22 items, .* enough for 20\."):
        build_stream(StreamSettings(ratio=0.5), 11, 11, 0)
    assert len(build_stream(StreamSettings(ratio=0.5, ood_fill="cap"), 11, 11, 0)) == 22


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
    sizes = stream_sizes(settings, n_id, n_ood)
    wanted = sizes.wanted
    assert len(oods) == (min(wanted, n_ood) if fill == "cap" else wanted)
    assert len(stream) == sizes.tests
    if ratio == "natural":
        assert sorted(oods) == list(range(n_ood))
    else:
        assert wanted == round(n_id * ood_share(ratio) / (1 - ood_share(ratio)))
