"""Kernels where none can be kept: the same machine code, from memory or a folder of one's own."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from zsntta_cli.methods import compiled, compiled_threshold

SCORES = np.random.default_rng(0).random(3000)


def slid(slide) -> bytes:
    ring, cells = np.zeros(512), np.zeros((3, 101))
    found = slide(SCORES, ring, cells, 0, 1, 2.0**42, False)
    return found.tobytes() + cells.tobytes()


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Numba finds no place but one that it is given; gives where that would be."""
    real = numba.njit

    def njit(*functions, cache=False, **options):
        if cache and not numba.config.CACHE_DIR:
            raise RuntimeError("cannot cache function: no locator available")
        return real(*functions, cache=cache, **options)

    monkeypatch.setattr(numba, "njit", njit)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"zsntta-kernels-{os.getuid()}"


def test_a_folder_of_ones_own(nowhere):
    again = compiled.compiled(compiled_threshold.slide.__wrapped__)
    assert slid(again) == slid(compiled_threshold.slide)
    assert nowhere.stat().st_mode & 0o777 == 0o700
    assert list(nowhere.rglob("*.nbc"))


@pytest.mark.parametrize("taken", ["writable by others", "a link", "a file"])
def test_a_folder_of_somebody_else_is_not_used(nowhere, taken):
    """What lies there would be run."""
    elsewhere = nowhere.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    if taken == "a link":
        nowhere.symlink_to(elsewhere)
    elif taken == "a file":
        nowhere.touch()
    else:
        nowhere.mkdir()
        nowhere.chmod(0o770)
    again = compiled.compiled(compiled_threshold.slide.__wrapped__)
    assert slid(again) == slid(compiled_threshold.slide)
    assert not list(nowhere.parent.rglob("*.nb*"))


def test_a_damaged_file_is_compiled_anew(nowhere):
    slid(compiled.compiled(compiled_threshold.slide.__wrapped__))
    for path in nowhere.rglob("*.nb?"):
        path.write_bytes(b"\x80junk")
    assert slid(compiled.compiled(compiled_threshold.slide.__wrapped__)) == slid(
        compiled_threshold.slide
    )


def test_ctrl_c_waits_for_a_kernel_and_then_comes():
    """Within LLVM it would be said by LLVM, and be lost."""
    done = []

    @compiled.compiled
    def plain(value):
        return value + 1

    def interrupted(value):
        signal.raise_signal(signal.SIGINT)
        done.append(value)
        return value

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), compiled._ctrl_c_waits():
        interrupted(3)
    assert done == [3]
    assert signal.getsignal(signal.SIGINT) is before
    assert plain(1) == 2
    with ThreadPoolExecutor(1) as other:
        assert other.submit(plain, 1).result() == 2
