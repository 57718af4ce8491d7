"""Kernels: the same results by Python, by code made now, kept or not kept, and by Numba."""

import importlib.util
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zsntta_cli.methods.kernels import compiled

OFFSET = 1.5
TABLE = np.array([1.0, 10.0, 100.0])


def _plus(value: float) -> float:
    return value + OFFSET


def weighted(sums, values, used, times, twice):
    """Sums of some values, each with a constant, by the row's weight."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            if used[j]:
                sums[i] += (
                    TABLE[i % 3] * _plus(float(values[i, j])) * times * (2.0 if twice else 1.0)
                )


def made_within(sums):
    """Not what a kernel may do: it makes an array."""
    sums += np.ones(len(sums))


def raised_within(sums):
    """Not what a kernel may do: of nothing it raises."""
    sums[0] += sums.max()


def given_values(dtype=np.float64, rows=4, columns=5):
    random = np.random.default_rng(rows * 7 + columns)
    used = random.random(columns) < 0.5
    return np.zeros(rows), (9 * random.random((rows, columns))).astype(dtype), used, 2, True


def result(function, *values) -> bytes:
    sums, *others = values or given_values()
    function(sums, *others)
    return sums.tobytes()


RIGHT = result(weighted)


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """The one place for code, empty."""
    monkeypatch.setattr(importlib.util, "cache_from_source", lambda path: "/proc/none/x")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / "chosen"


@pytest.fixture
def own(kept, monkeypatch):
    """Where code is kept if there is no other place."""
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    return kept.with_name(f"zsntta-kernels-{os.getuid()}")


@settings(max_examples=20, deadline=None)
@given(
    dtype=st.sampled_from([np.float32, np.float64, np.uint8]),
    rows=st.integers(1, 5),
    columns=st.integers(0, 5),
)
def test_a_kernel_does_what_python_does(dtype, rows, columns):
    values = given_values(dtype, rows, columns)
    assert result(KERNEL, *(np.copy(v) if i == 0 else v for i, v in enumerate(values))) == result(
        weighted, *values
    )


KERNEL = compiled.compiled(weighted)


def test_code_is_kept_and_found_again(kept, monkeypatch):
    assert result(compiled.compiled(weighted)) == RIGHT
    [file] = kept.iterdir()
    monkeypatch.setattr(compiled, "_COMPILING", "none.such")  # it is not made again
    assert result(compiled.compiled(weighted)) == RIGHT
    assert [*kept.iterdir()] == [file]


@pytest.mark.parametrize(
    "damage", [b"", b"\x80junk", None, 40], ids=["empty", "other", "gone", "cut"]
)
def test_damaged_code_is_made_anew(kept, damage):
    result(compiled.compiled(weighted))
    [file] = kept.iterdir()
    whole = file.read_bytes()
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(whole[:damage] if isinstance(damage, int) else damage)
    assert result(compiled.compiled(weighted)) == RIGHT
    assert compiled._read(file)


@pytest.mark.parametrize("name", ["OFFSET", "TABLE", "_plus"])
def test_what_code_was_made_of_decides_which_is_found(kept, monkeypatch, name):
    """A constant, an array, a function that is called: not one is in the kernel's own lines."""
    other = {"OFFSET": 2.5, "TABLE": 2 * TABLE, "_plus": lambda value: value + 3.0}[name]
    result(compiled.compiled(weighted))
    monkeypatch.setitem(globals(), name, other)
    assert result(compiled.compiled(weighted)) == result(weighted) != RIGHT
    assert len([*kept.iterdir()]) == 2


def test_the_users_cache_comes_before_a_temporary_folder(own, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(own.with_name("cache")))
    assert result(compiled.compiled(weighted)) == RIGHT
    assert [*own.with_name("cache").glob("zsntta/*.kernel")]
    assert not own.exists()


def test_a_folder_of_ones_own(own):
    assert result(compiled.compiled(weighted)) == RIGHT
    assert own.stat().st_mode & 0o777 == 0o700
    assert [*own.glob("*.kernel")]


@pytest.mark.parametrize("taken", ["writable by others", "a link", "a file"])
def test_a_folder_of_somebody_else_is_not_used(own, taken):
    """What lies there would be run."""
    elsewhere = own.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    if taken == "a link":
        own.symlink_to(elsewhere)
    elif taken == "a file":
        own.touch()
    else:
        own.mkdir()
        own.chmod(0o770)
    assert result(compiled.compiled(weighted)) == RIGHT
    assert not [*own.parent.rglob("*.kernel")]


@pytest.mark.parametrize("function", [made_within, raised_within])
def test_code_that_needs_numba_is_numbas(kept, function):
    right = np.ones(3)
    function(right)
    sums = np.ones(3)
    compiled.compiled(function)(sums)
    assert sums.tolist() == right.tolist()
    assert not kept.exists()


@pytest.mark.parametrize(
    "wrong", [np.float32(1), np.int64(1), "1", None, [1.0], np.zeros((2, 2)).T]
)
def test_what_a_kernel_does_not_take(wrong):
    with pytest.raises(TypeError, match="takes arrays"):
        KERNEL(np.zeros(2), wrong, np.zeros(2, bool), 2, True)


@pytest.mark.slow
def test_no_method_loads_numba():
    """Once their code is kept: each cached method, and the views of TPT, in a process anew."""
    program = """
import sys
import numpy as np
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.live import augmix
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.settings import ThresholdSettings

random = np.random.default_rng(0)
text = random.normal(size=(20, 32)).astype(np.float32)
text /= np.linalg.norm(text, axis=1, keepdims=True)
features = (3 * text[random.integers(20, size=600)] + random.normal(size=(600, 32))).astype("f4")
pool = Pool(features, text, 100.0, zero_shot(features, text, 100.0))
data = StreamData(pool, np.arange(600), random.random(600) < 0.1)
for name, method in METHODS.items():
    if not (method.live or method.needs):
        method.load()(data, method.settings_class(), ThresholdSettings())
for _ in range(30):
    augmix.mixed(random.integers(0, 256, (8, 8, 3), np.uint8), random)
print("numba" in sys.modules)
"""
    runs = [
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert runs[1].stdout == "False\n"


def test_ctrl_c_waits_for_a_kernel_and_then_comes(kept):
    """Within LLVM it would be said by LLVM, and be lost."""
    done = []

    def interrupted(value):
        signal.raise_signal(signal.SIGINT)
        done.append(value)
        return value

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), compiled._ctrl_c_waits():
        interrupted(3)
    assert done == [3]
    assert signal.getsignal(signal.SIGINT) is before
    with ThreadPoolExecutor(1) as other:
        assert other.submit(result, compiled.compiled(weighted)).result() == RIGHT
