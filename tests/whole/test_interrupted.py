"""Ctrl-C while a file is written is Ctrl-C, whatever a library makes of it."""

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
