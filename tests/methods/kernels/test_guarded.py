"""Kept machine code is run: where somebody else can have written it, it is made anew."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from zsntta_cli.methods.kernels import compiled, guarded

SOMEBODY = 12_345  # a user that is neither root nor this one
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="root alone can give files away")


def ones(values):
    for i in range(values.shape[0]):
        values[i] = 1.0


def planted(values):
    for i in range(values.shape[0]):
        values[i] = 666.0


def result(function) -> float:
    values = np.zeros(3)
    compiled.compiled(function)(values)
    return float(values[0])


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The chosen place, where the code of `ones` does something else, with a good checksum."""
    monkeypatch.setattr("importlib.util.cache_from_source", lambda path: "/proc/none/x")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "deep" / "chosen"))
    result(planted)
    [file] = (tmp_path / "deep" / "chosen").iterdir()
    file.rename(file.with_name(compiled._file_name(ones, ((np.dtype("f8"), 1),))))
    assert result(ones) == 666.0, "what is planted in a safe place is run: it is our own"
    return file.parent


def kernel_in(folder) -> Path:
    [path] = folder.glob("*.kernel")
    return path


def rights_for_all(folder):
    folder.chmod(0o777)


def rights_for_a_group(folder):
    folder.chmod(0o770)


def rights_for_all_above(folder):
    folder.parent.chmod(0o777)


def rights_to_the_file(folder):
    kernel_in(folder).chmod(0o666)


def another_owner(folder):
    os.chown(kernel_in(folder), SOMEBODY, SOMEBODY)


def another_owner_of_the_folder(folder):
    os.chown(folder, SOMEBODY, SOMEBODY)


def another_owner_above(folder):
    os.chown(folder.parent, SOMEBODY, SOMEBODY)


def a_link_to_such_a_file(folder):
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    path = kernel_in(folder)
    path.rename(elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)


def a_link_to_such_a_folder(folder):
    folder.rename(folder.with_name("elsewhere"))
    folder.with_name("elsewhere").chmod(0o777)
    folder.symlink_to("elsewhere")


def a_link_to_another_kernel(folder):
    path = kernel_in(folder)
    path.rename(path.with_name("planted.kernel"))
    path.symlink_to("planted.kernel")


def shared_as_tmp_by_somebody(folder):
    """In a sticky folder others can make files, and link there what is not theirs."""
    folder.chmod(0o1777)
    os.chown(kernel_in(folder), SOMEBODY, SOMEBODY)


def a_pipe(folder):
    path = kernel_in(folder)
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "plant",
    [
        rights_for_all, rights_for_a_group, rights_for_all_above, rights_to_the_file,
        a_link_to_such_a_file, a_link_to_such_a_folder, a_link_to_another_kernel, a_pipe,
        *(
            pytest.param(plant, marks=as_root)
            for plant in (another_owner, another_owner_of_the_folder, another_owner_above,
                          shared_as_tmp_by_somebody)
        ),
    ],
)  # fmt: skip
def test_what_somebody_else_can_have_written_is_not_run(folder, plant, caplog):
    plant(folder)
    caplog.set_level("INFO", "zsntta_cli")
    assert result(ones) == 1.0
    [said] = caplog.messages
    assert said.startswith("kept machine code is not used: ")
    made = [*(folder.parent.parent / "temporary").rglob("*.kernel")]
    assert all(path.stat().st_mode & 0o7777 == 0o644 for path in made)
    caplog.clear()
    assert result(ones) == 1.0, "whether it was kept or is made again"


def test_a_sticky_folder_is_safe_for_what_is_our_own(folder):
    folder.parent.chmod(0o1777)
    assert result(ones) == 666.0


def test_it_is_the_opened_file_that_is_looked_at(folder, monkeypatch):
    """What is put in its place once it is open is not read, nor was what lay there before."""
    path, others = kernel_in(folder), folder / "others"
    shutil.copy(path, others)
    others.chmod(0o666)
    opened = os.open

    def open_another(name, *rest, **more):
        return opened(others if str(name) == str(path) else name, *rest, **more)

    monkeypatch.setattr(guarded.os, "open", open_another)
    with pytest.raises(guarded.UnsafeError, match="others can write"):
        guarded.read_guarded(path)


def test_a_generous_umask_does_not_keep_code_from_being_used_again(folder, monkeypatch):
    """Folders and files are made for their owner alone to write to."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder.parent / "new" / "chosen"))
    before = os.umask(0o000)
    try:
        assert result(ones) == 1.0
    finally:
        os.umask(before)
    path = kernel_in(folder.parent / "new" / "chosen")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    monkeypatch.setattr(compiled, "_COMPILING", "none.such")  # it is not made again
    assert result(ones) == 1.0


def test_nothing_is_kept_where_others_can_replace_it(folder, monkeypatch):
    (folder.parent / "open").mkdir()
    (folder.parent / "open").chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder.parent / "open" / "deep"))
    assert result(ones) == 1.0
    assert not [*(folder.parent / "open").rglob("*.kernel")]


def test_debug_says_which_code_is_not_used(folder):
    folder.chmod(0o777)
    program = """
import sys
from typer.testing import CliRunner
from zsntta_cli.cli import app
from zsntta_cli.methods.kernels import compiled
CliRunner().invoke(app, [*sys.argv[1:], "encoders"])
compiled._say("kept machine code is not used: others can write to \\x1b.")
"""
    answers = [
        subprocess.run(
            [sys.executable, "-c", program, *words], check=True, capture_output=True, text=True
        ).stderr
        for words in ((), ("--debug",))
    ]
    note = "note: kept machine code is not used: others can write to \\x1b.\n"
    assert answers == ["", note]
