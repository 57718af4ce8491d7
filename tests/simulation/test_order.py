"""Ordered streams: what comes when, and that all of it comes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.settings import StreamSettings
from zsntta_cli.simulation.metrics import Judged, measure
from zsntta_cli.simulation.stream import ID, OOD, build_stream

ORDERS = ("shuffled", "class", "burst", "late", "first")


def stream(order, n_id=100, n_ood=60, ratio=0.25, seed=0, **values):
    labels = np.arange(n_id) % 7
    settings = StreamSettings(order=order, ratio=ratio, seed=seed, **values)
    return build_stream(settings, n_id, n_ood, 20, labels), labels


@given(st.sampled_from(ORDERS), st.integers(1, 80), st.integers(1, 80), st.integers(0, 5),
       st.floats(0, 0.9))  # fmt: skip
def test_every_order_has_the_same_items(order, n_id, n_ood, seed, ratio):
    usual, _ = stream("shuffled", n_id, n_ood, ratio, seed)
    ordered, _ = stream(order, n_id, n_ood, ratio, seed)
    for kind in (ID, OOD):
        assert sorted(ordered.row[ordered.kind == kind]) == sorted(usual.row[usual.kind == kind])


@pytest.mark.parametrize("order", ORDERS)
def test_the_seed_is_the_order(order):
    one, again, other = (stream(order, seed=seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(one.row, again.row)
    assert not np.array_equal(one.row, other.row)


def test_class_by_class_with_noise_anywhere():
    ordered, labels = stream("class")
    seen = labels[ordered.row[ordered.kind == ID]]
    assert np.array_equal(seen, np.sort(labels))
    noisy = np.flatnonzero(ordered.kind == OOD)
    assert noisy.min() < 20
    assert noisy.max() > len(ordered) - 20


def test_one_burst_in_the_middle():
    ordered, _ = stream("burst")
    noisy = np.flatnonzero(ordered.kind == OOD)
    assert np.array_equal(noisy, np.arange(50, 50 + len(noisy)))


def test_clean_for_a_while_then_mixed():
    ordered, _ = stream("late")
    assert (ordered.kind[:60] == ID).all()
    mixed = ordered.kind[60:]
    assert (mixed == OOD).sum() == (ordered.kind == OOD).sum()
    assert len(np.flatnonzero(np.diff(mixed))) > 5


def test_all_noise_first():
    ordered, _ = stream("first")
    count = (ordered.kind == OOD).sum()
    assert (ordered.kind[:count] == OOD).all()


def test_injection_and_limit_come_after_the_order():
    ordered, _ = stream("first", noise="gaussian", limit=40)
    assert (ordered.kind != 2).sum() == 40
    assert (ordered.kind == 2).sum() == 5


def flags(labels, is_noise):
    return measure(Judged(labels, np.zeros_like(labels), is_noise, np.zeros(len(labels))))["flags"]


def test_flags_by_hand():
    labels = np.array([0, 1, 2, 3, -1, -1])
    found = flags(labels, np.array([True, False, False, True, True, False]))
    assert (found.precision, found.flagged, found.clean_flagged) == (1 / 3, 1 / 2, 1 / 2)
    nothing = flags(labels, np.zeros(6, bool))
    assert np.isnan(nothing.precision)
    assert nothing.flagged == 0


def test_orders_are_settings_in_records_and_tables(cached):
    result = cached("simulate", "--method", "zs-clip", "--ood", "glyphs", "--ratio", 0.05,
                    "--order", "burst", "--order", "class", "--report", "flags", "--model",
                    "tiny")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "FEW noise samples: 16 against glyphs at 0.05" in " ".join(result.stdout.split())
    for word in ("burst", "class", "Prec", "Flagged", "Recall"):
        assert word in result.stdout
    live = cached("simulate", "--method", "tent", "--ood", "glyphs", "--order", "late",
                  "--limit", 20, "--model", "tiny")  # fmt: skip
    assert live.exit_code == 0, live.stderr
