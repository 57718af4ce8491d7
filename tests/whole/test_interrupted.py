"""Ctrl-C is Ctrl-C, whatever a library makes of it that writes a file."""

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
    with pytest.raises(StoreError, match="Can't decrement id ref count"):
        write(tmp_path / "a.h5")
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a.h5", interrupt=True)
