import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zsntta_cli.cache import features
from zsntta_cli.cache.features import float32_of

ALL = np.arange(2**16, dtype=np.uint16).view(np.float16)


def bits(values: np.ndarray) -> bytes:
    assert values.dtype == np.float32
    return values.tobytes()


def test_every_half_becomes_what_numpy_makes_of_it() -> None:
    finite = ALL[np.isfinite(ALL)]
    for shape in ((-1, 1), (-1, 2048), (1, -1)):
        assert bits(float32_of(finite.reshape(shape))) == bits(
            finite.reshape(shape).astype(np.float32)
        )
    made = float32_of(ALL.reshape(-1, 64))  # infinities and NaNs among them
    assert np.array_equal(made, ALL.reshape(-1, 64).astype(np.float32), equal_nan=True)


@given(
    hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.dtype(">f2")]),
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=40),
    ),
    st.booleans(),
    st.integers(1, 3),
)
def test_any_array_becomes_what_numpy_makes_of_it(
    values: np.ndarray, into: bool, every: int
) -> None:
    values = values[::every]  # rows that do not lie side by side
    room = np.full(values.shape, 7, np.float32) if into else None
    with np.errstate(over="ignore"):
        made = float32_of(values, room)
        assert np.array_equal(made, values.astype(np.float32), equal_nan=True)
    assert room is None or made is room


def test_a_processor_that_knows_no_tiny_numbers(monkeypatch) -> None:
    """As where a library was compiled with -ffast-math, which sets that for all of a process."""
    monkeypatch.setattr(features, "_TINY", np.float32(0))
    finite = ALL[np.isfinite(ALL)].reshape(-1, 2048)
    assert bits(float32_of(finite)) == bits(finite.astype(np.float32))
