import shutil

import pytest

from zsntta_cli.settings import PAPER_ENCODERS
from zsntta_cli.simulation import notes

# Built-in sets under the names of CIFAR-10 and its OOD sets: for layouts, not for numbers.
NAMES = {
    "shapes": "cifar10", "glyphs": "svhn", "textures": "lsun", "other-shapes": "texture",
    "digits": "places", "noise-gaussian": "noise-gaussian",
}  # fmt: skip


@pytest.fixture
def ours(tmp_path):
    """The folder of the features by the paper's encoder."""
    return tmp_path / "features" / PAPER_ENCODERS[0].slug


@pytest.fixture
def named(cached, ours, tmp_path):
    """The command line beside features that bear the names of the paper's sets."""
    ours.mkdir()
    for name, theirs in NAMES.items():
        shutil.copyfile(tmp_path / "features" / "tiny" / f"{name}.h5", ours / f"{theirs}.h5")
    return cached


@pytest.fixture
def whole(monkeypatch):
    """Let the few images stand for whole sets, so that differences are marked."""
    monkeypatch.setattr(notes, "miscounted", lambda name, images: "")
