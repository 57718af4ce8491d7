"""File systems without locks: a soft lock works there, and no library's warning is seen."""

import errno
import fcntl
import os
import socket
import subprocess
import sys

import pytest
from filelock import Timeout
from made import TINY, Notes

from zsntta_cli.cache.folder import lock_path
from zsntta_cli.extraction.parts import locked, locked_if_free
from zsntta_cli.files import lock_at

CODES = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


@pytest.fixture(params=CODES, ids=errno.errorcode.get)
def without_locks(request, monkeypatch):
    def refuse(*_):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.usefixtures("without_locks")
def test_one_at_a_time_has_a_file(tmp_path):
    path = tmp_path / "a.h5"
    with locked(path, Notes().note):
        with locked_if_free(path) as is_free:
            assert not is_free
        soft = lock_path(path).with_name(f"{lock_path(path).name}.soft")
        assert f"{os.getpid()}\n{socket.gethostname()}" in soft.read_text()
    with locked_if_free(path) as is_free:
        assert is_free


@pytest.mark.usefixtures("without_locks")
def test_a_lock_of_a_process_that_is_gone_is_taken(tmp_path):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    lock = lock_at(tmp_path / "lock")
    (tmp_path / "lock.soft").write_text(f"{gone}\n{socket.gethostname()}\n")
    os.utime(tmp_path / "lock.soft", (1, 1))
    lock.acquire(timeout=5)
    lock.release()


@pytest.mark.usefixtures("without_locks")
def test_a_lock_of_another_host_is_waited_for(tmp_path):
    lock = lock_at(tmp_path / "lock")
    (tmp_path / "lock.soft").write_text("1\nelsewhere\n")
    with pytest.raises(Timeout):
        lock.acquire(timeout=0)


@pytest.mark.usefixtures("without_locks")
def test_extract_and_import_work_there(zsntta, picture_folder):
    asked = ("--dataset", f"own={picture_folder}", "--noise", "none")
    result = zsntta("extract", *TINY, *asked)
    assert result.exit_code == 0, result.output
    assert "lock" not in result.output.lower()
    taken = zsntta("cache", "import", "copy", "--encoder", "my", "--features",
                   "features/tiny/own.h5")  # fmt: skip
    assert taken.exit_code == 0, taken.output
