import numpy as np
import pytest
from PIL import Image

from zsntta_cli.cli import app
from zsntta_cli.encoder import load_encoder
from zsntta_cli.settings import EncoderChoice


@pytest.fixture(scope="session")
def tiny():
    return load_encoder(EncoderChoice("tiny"), "cpu")


@pytest.fixture
def picture_folder(tmp_path):
    """Two classes of small pictures, in the formats people have."""
    root = tmp_path / "pictures"
    generator = np.random.default_rng(0)
    for i in range(12):
        name = f"{'big_cat' if i % 2 else 'dog'}/{i}.{('jpg', 'png', 'bmp')[i % 3]}"
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = generator.integers(0, 256, (40 + i, 50, 3), np.uint8)
        Image.fromarray(pixels).save(root / name)
    return root


@pytest.fixture
def zsntta(tmp_path, monkeypatch):
    """Run the command line in an empty folder: exit code, stdout, stderr."""
    from typer.testing import CliRunner

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return CliRunner().invoke(app, [str(a) for a in arguments])

    return run
