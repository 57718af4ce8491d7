import pytest
from made import Notes

from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection import sources
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.settings import EncoderChoice


@pytest.fixture
def passes(monkeypatch, tiny):
    """How many images were encoded, files read, and encoders loaded."""
    seen = {"encoded": 0, "read": 0, "loaded": 0}
    plain, read = Encoder.encode_pixels, sources.read_input

    def encode(self, pixels):
        seen["encoded"] += len(pixels)
        return plain(self, pixels)

    def load(choice, device):
        seen["loaded"] += 1
        return tiny

    def reads(*args):
        seen["read"] += 1
        return read(*args)

    monkeypatch.setattr(Encoder, "encode_pixels", encode)
    monkeypatch.setattr("zsntta_cli.encoders.clip.load_encoder", load)
    monkeypatch.setattr(sources, "read_input", reads)
    monkeypatch.setattr(sources, "_SETTLED", 0.0)  # ctime cannot be set back
    return seen


@pytest.fixture
def encoding(tmp_path):
    """Features that are kept in a folder of their own."""
    with (made := Encoding(EncoderChoice("tiny"), tmp_path / "features", "cpu", 2, Notes())).store:
        yield made


@pytest.fixture
def encoded(tmp_path):
    """Encode the images of a folder as a process of its own does."""

    def encode(root):
        given = Encoding(EncoderChoice("tiny"), tmp_path / "features", "cpu", 2, Notes())
        with given.store:
            [photos] = sources.photos_of([str(root)], LeftOut())
            given.encode(photos)
        return photos

    return encode
