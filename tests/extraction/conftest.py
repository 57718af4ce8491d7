from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from made import Notes
from web_writer import write_web_set

from zsntta_cli.cache import store
from zsntta_cli.extraction.extractor import Extractor
from zsntta_cli.settings import EncoderChoice, ExtractSettings


@pytest.fixture
def extractor(tmp_path, tiny):
    """Make an extractor of small batches with the embedded encoder, or another under its name."""

    def make(root=tmp_path / "features", encoder=tiny, **settings):
        settings = {"batch_size": 8, "workers": 2, "features_dir": root} | settings
        extractor = Extractor(EncoderChoice("tiny"), ExtractSettings(**settings), Notes())
        extractor.encoder = encoder
        return extractor

    return make


@pytest.fixture
def stopping(tiny):
    """A context in which the embedded encoder is stopped, as by Ctrl-C, after some batches."""

    @contextmanager
    def stop_after(batches):
        left = iter(range(batches))

        def encode(pixels):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return type(tiny).encode_pixels(tiny, pixels)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tiny, "encode_pixels", encode)
            with pytest.raises(KeyboardInterrupt):
                yield

    return stop_after


class Noon(datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2025, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def noon(monkeypatch):
    """The time that files say they were made: with it, they can be compared as a whole."""
    monkeypatch.setattr(store, "datetime", Noon)


@pytest.fixture(scope="session")
def pets(tmp_path_factory):
    """A web data set of seven shards, three images in each but the last."""
    root = tmp_path_factory.mktemp("web") / "pets"
    write_web_set(root, [i % 3 for i in range(20)], ["cat", "dog", "ox"], form="png", a_shard=3)
    return root
