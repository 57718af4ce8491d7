"""Rows of several files, and halves: what one array of single precision would give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zsntta_cli.methods import rows
from zsntta_cli.methods.rows import Rows, float32_of

PARTS = [
    np.random.default_rng(i).normal(size=(n, 3)).astype(kind)
    for i, (n, kind) in enumerate([(4, np.float16), (0, np.float16), (7, np.float32), (1, "f2")])
]
FACTORS = [1.0, 1.0, 10.0, 10.0]
ALL = np.concatenate(
    [part.astype(np.float32) * np.float32(f) for part, f in zip(PARTS, FACTORS, strict=True)]
)
ROWS = Rows(PARTS, FACTORS)


@given(st.lists(st.integers(-12, 11), max_size=30))
def test_rows_in_any_order_and_any_number_of_times(index):
    taken = ROWS[np.array(index, np.int64)]
    assert taken.dtype == np.float32
    assert taken.flags.c_contiguous
    np.testing.assert_array_equal(taken, ALL[np.array(index, np.int64)])


@given(st.slices(12))
def test_slices(rows):
    np.testing.assert_array_equal(ROWS[rows], ALL[rows])


def test_as_an_array():
    assert (len(ROWS), ROWS.shape) == (12, (12, 3))
    np.testing.assert_array_equal(np.asarray(ROWS), ALL)
    np.testing.assert_array_equal(ROWS / np.ones((12, 1), np.float32), ALL)
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(ROWS, copy=False)


def test_what_is_not_there():
    with pytest.raises(IndexError, match="index 12 is out of bounds"):
        ROWS[np.array([0, 12])]
    with pytest.raises(IndexError, match="index -13 is out of bounds"):
        ROWS[np.array([-13])]


# --- halves

HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)


def bits(values):
    assert values.dtype == np.float32
    return values.tobytes()


def test_every_half_becomes_what_numpy_makes_of_it():
    finite = HALVES[np.isfinite(HALVES)]
    for shape in ((-1, 1), (-1, 2048), (1, -1)):
        assert bits(float32_of(finite.reshape(shape))) == bits(
            finite.reshape(shape).astype(np.float32)
        )
    made = float32_of(HALVES.reshape(-1, 64))  # infinities and NaNs among them
    assert np.array_equal(made, HALVES.reshape(-1, 64).astype(np.float32), equal_nan=True)


@given(
    hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.dtype(">f2")]),
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=40),
    ),
    st.booleans(),
    st.integers(1, 3),
)
def test_any_array_becomes_what_numpy_makes_of_it(values, into, every):
    values = values[::every]  # rows that do not lie side by side
    room = np.full(values.shape, 7, np.float32) if into else None
    with np.errstate(over="ignore"):
        made = float32_of(values, room)
        assert np.array_equal(made, values.astype(np.float32), equal_nan=True)
    assert room is None or made is room


def test_a_processor_that_knows_no_tiny_numbers(monkeypatch):
    """As where a library was compiled with -ffast-math, which sets that for all of a process."""
    monkeypatch.setattr(rows, "_TINY", np.float32(0))
    finite = HALVES[np.isfinite(HALVES)].reshape(-1, 2048)
    assert bits(float32_of(finite)) == bits(finite.astype(np.float32))
