"""Rows of several files, and halves: what one array of single precision would give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.methods.scores import Rows

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
