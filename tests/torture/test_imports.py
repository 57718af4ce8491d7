"""Arrays made elsewhere, of any shape and type, in files of any kind; and CLIPN's "no" features."""

import io
import os

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torture.tool import SETS, examples

DTYPES = ("f2", "f8", ">f4", "i4", "u1", "?", "c8", "U5", "S4", "M8[s]", "V3", "f4,i4")
FILLS = (0, 1, -1, 3, np.nan, np.inf, 1e30, -2, 1000)


@st.composite
def arrays(draw):
    """An array, mostly of features."""
    fill = draw(st.sampled_from(FILLS))
    with np.errstate(all="ignore"):
        if draw(st.booleans()):
            rows = np.arange(40, dtype="f4").reshape(5, 8) + 1
            rows[draw(st.integers(0, 4))] = fill
            return rows.astype(draw(st.sampled_from(["f2", "f4", "f8"])))
        shape = tuple(draw(st.lists(st.integers(0, 6), max_size=3)))
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        is_number = dtype.kind in "fiu?c"
        return np.full(shape, fill, "f8").astype(dtype) if is_number else np.zeros(shape, dtype)


def saved(write, *args, **kwargs):
    file = io.BytesIO()
    write(file, *args, **kwargs)
    return file.getvalue()


def npz(**content):
    return saved(np.savez, **content)


GOOD = npz(features=np.eye(5, 8, dtype="f4"), labels=np.arange(5), class_names=np.array([*"abcde"]))
FILES = st.one_of(
    st.tuples(st.just(".npz"), st.builds(npz, features=arrays(), labels=arrays())),
    st.tuples(st.just(".npz"), st.integers(0, len(GOOD)).map(lambda end: GOOD[:end])),
    st.tuples(st.just(".npy"), arrays().map(lambda one: saved(np.lib.format.write_array, one))),
    st.tuples(st.sampled_from([".npy", ".npz", ".pt", ".txt", ""]), st.binary(max_size=200)),
)


@pytest.fixture(scope="module")
def stage(place):
    os.mkfifo(place / "pipe.npy")
    return place


def take(zsntta, stage, name):
    """Import a file: what is taken in is whole."""
    (stage / "features" / "mine" / "new.h5").unlink(missing_ok=True)
    words = ("new", "--encoder", "mine")
    answer = zsntta("cache", "import", *words, "--features", name, cwd=stage).check()
    if answer.code == 0:
        assert zsntta("cache", "verify", *words, cwd=stage).check().code == 0
    return answer


def no_text(zsntta, stage, name):
    run = ("simulate", *SETS, "--method", "clipn", "--set", f"no-text={name}")
    return zsntta(*run, cwd=stage).check()


@given(file=FILES)
@example(file=(".npz", GOOD))
@examples(20, 400)
def test_arrays(zsntta, stage, file):
    (stage / f"in{file[0]}").write_bytes(file[1])
    answer = take(zsntta, stage, f"in{file[0]}")
    assert answer.code == 0 or file[1] is not GOOD
    no_text(zsntta, stage, f"in{file[0]}")


@pytest.mark.parametrize("name", ["pipe.npy", "none.npy", ".", "/dev/zero", "x" * 300])
def test_what_is_no_file(zsntta, stage, name):
    assert take(zsntta, stage, name).code == 1
    assert no_text(zsntta, stage, name).code == 1
