"""Arrays made elsewhere, of any shape and type, in files of any kind; and CLIPN's "no" features."""

import io
import os

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torture.tool import SETS, Zsntta, examples

NPY = np.lib.format
DTYPES = st.sampled_from(
    ["f2", "f4", "f8", ">f4", "i4", "i8", "u1", "?", "c8", "U5", "S4", "M8[s]", "V3", "f4,i4"]
)  # fmt: skip

SHAPES = st.lists(st.integers(0, 6), max_size=3).map(tuple)
FILLS = st.sampled_from([0, 1, -1, 3, np.nan, np.inf, 1e30, -2, 1000])


@st.composite
def arrays(draw):
    """An array, mostly of features."""
    if draw(st.booleans()):
        rows = np.arange(40, dtype="f4").reshape(5, 8) + 1
        rows[draw(st.integers(0, 4))] = draw(FILLS)
        with np.errstate(all="ignore"):
            return rows.astype(draw(st.sampled_from(["f2", "f4", "f8"])))
    with np.errstate(all="ignore"):
        shape, dtype = draw(SHAPES), np.dtype(draw(DTYPES))
        if dtype.kind in "fiu?c":
            return np.full(shape, draw(FILLS), "f8").astype(dtype)
        return np.zeros(shape, dtype)


@st.composite
def headers(draw):
    """A .npy file that declares another array than it holds."""
    shape = draw(st.sampled_from([(10**9, 8), (10**15,), (-1, 8), (5, 8), (2**62, 2**62)]))
    header = {"descr": draw(st.sampled_from(["<f4", "|O", "<f8", "x", "<U9"])),
              "fortran_order": draw(st.booleans()), "shape": shape}  # fmt: skip
    content = io.BytesIO()
    NPY.write_array_header_1_0(content, header)
    return content.getvalue() + bytes(draw(st.integers(0, 400)))


def npz(**content) -> bytes:
    file = io.BytesIO()
    np.savez(file, **content)
    return file.getvalue()


def npz_of(features, labels) -> bytes:
    return npz(features=features, labels=labels)


def npy(array) -> bytes:
    file = io.BytesIO()
    NPY.write_array(file, array, allow_pickle=False)
    return file.getvalue()


@st.composite
def damaged(draw, content):
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


GOOD = npz(features=np.eye(5, 8, dtype="f4"), labels=np.arange(5), class_names=np.array([*"abcde"]))
FILES = st.one_of(
    st.tuples(st.just(".npz"), st.tuples(arrays(), arrays()).map(lambda pair: npz_of(*pair))),
    st.tuples(st.just(".npz"), damaged(GOOD)),
    st.tuples(st.just(".npy"), arrays().map(npy) | headers()),
    st.tuples(st.sampled_from([".npy", ".npz", ".pt", ".pth", ".txt", ""]),
              st.binary(max_size=200)),
)  # fmt: skip


@pytest.fixture(scope="module")
def stage(place):
    os.mkfifo(place / "pipe.npy")
    return place


def fresh(stage) -> None:
    for path in (stage / "features" / "mine").glob("*.h5"):
        path.unlink()


def take(zsntta, stage, name, *more):
    answer = zsntta(
        "cache", "import", "new", "--encoder", "mine", "--features", name, *more, cwd=stage
    ).check()
    if answer.code == 0:
        verified = zsntta("cache", "verify", "new", "--encoder", "mine", cwd=stage).check()
        assert verified.code == 0, verified
    return answer


@given(file=FILES)
@example(file=(".npz", GOOD))
@examples(20, 400)
def test_features(zsntta, stage, file):
    """What is taken in is whole; the rest is refused."""
    fresh(stage)
    (stage / f"in{file[0]}").write_bytes(file[1])
    answer = take(zsntta, stage, f"in{file[0]}")
    assert answer.code == 0 or file[1] is not GOOD


@pytest.mark.parametrize("name", ["pipe.npy", "none.npy", ".", "features", "/dev/zero", "x" * 300])
def test_what_is_no_file(zsntta, stage, name):
    assert take(zsntta, stage, name).code == 1


@given(file=FILES)
@example(file=(".npz", npz(features=np.eye(3, 8))))
@example(file=(".npy", npy(np.eye(3, 8, dtype="c8"))))
@example(file=(".npy", npy(np.full((3, 8), "x"))))
@examples(8, 150)
def test_no_text(zsntta, stage, file):
    (stage / "no.npy").write_bytes(file[1])
    zsntta("simulate", *SETS, "--method", "clipn", "--set", "no-text=no.npy", cwd=stage).check()


def test_no_text_of_a_pipe(zsntta, stage):
    run = ("simulate", *SETS, "--method", "clipn", "--set", "no-text=pipe.npy")
    answer = zsntta(*run, cwd=stage).check()
    assert "no regular file" in answer.stderr


def test_tensors(stage):
    """Expanded, huge, of other types, with objects: a .pt of any sort."""
    torch = pytest.importorskip("torch")
    zsntta = Zsntta("--torch")
    tensors = {
        "expanded": torch.ones(1).expand(10**12, 8), "expanded twice": torch.ones(1).expand(5, 8),
        "half": torch.ones(5, 8).bfloat16(), "complex": torch.ones(5, 8, dtype=torch.cfloat),
        "sparse": torch.ones(5, 8).to_sparse(), "meta": torch.ones(5, 8, device="meta"),
        "object": {"features": object}, "nested": {"features": [[1, 2], [3]]}, "none": None,
    }  # fmt: skip
    try:
        for what, value in tensors.items():
            fresh(stage)
            torch.save(value, stage / "in.pt")
            answer = take(zsntta, stage, "in.pt")
            assert (answer.code == 0) == (what == "half"), (what, answer)
    finally:
        zsntta.close()


def test_an_endless_list_of_words(zsntta, stage):
    answer = zsntta("extract", "--model", "tiny", "--words", "/dev/zero", cwd=stage).check()
    assert answer.code == 1
