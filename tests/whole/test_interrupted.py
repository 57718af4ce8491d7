"""Ctrl-C is Ctrl-C, whatever a library makes of it that writes a file or is being imported."""

import subprocess
import sys

import pytest

from zsntta_cli.errors import StoreError
from zsntta_cli.files import writing


def write(path, interrupt=False):
    """As h5py fails: in closing a file, also after Ctrl-C."""
    with writing(path):
        try:
            if interrupt:
                raise KeyboardInterrupt
        finally:
            raise RuntimeError("Can't decrement id ref count")


def test_a_library_that_fails_after_ctrl_c_does_not_hide_it(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a.h5", interrupt=True)


def test_an_error_of_its_own_is_one_line(tmp_path):
    with pytest.raises(StoreError, match=r"cannot write .*: Can't decrement id ref count\."):
        write(tmp_path / "a.h5")


IMPORTING = """
import zsntta_cli.__main__ as start

def command():
    try:
        raise {what}
    except {what} as error:
        raise ImportError("initialization failed") from error

start._loaded = lambda: command
start.main()
"""


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [("KeyboardInterrupt", 130, "interrupted.\n"),
     ("RuntimeError", 1, "error: initialization failed.\n")],
)  # fmt: skip
def test_a_library_that_is_being_imported_does_not_hide_it(what, code, said):
    """As pybind11 makes an ImportError of whatever ends a module's start."""
    command = [sys.executable, "-c", IMPORTING.format(what=what)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)
