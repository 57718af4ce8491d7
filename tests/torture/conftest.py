import os
import shutil
from multiprocessing import forkserver

import pytest

from torture.tool import ROOT, ask


@pytest.fixture(scope="module")
def zsntta():
    """Ask the command line; it is imported once, by a process that forks for each question."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'tests'}")
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        forkserver.ensure_running()
    return ask


@pytest.fixture(scope="module")
def place(features, tmp_path_factory):
    """A folder with features; examples of one test share it."""
    folder = tmp_path_factory.mktemp("place")
    shutil.copytree(features, folder / "features")
    return folder
