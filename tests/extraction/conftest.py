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

    def make(root=tmp_path / "features", encoder=tiny, reporter=None, **settings):
        settings = ExtractSettings(**{"batch_size": 8, "workers": 2} | settings)
        choice, reporter = EncoderChoice("tiny"), reporter or Notes()
        return Extractor(choice, lambda: encoder, root, settings, reporter)

    return make


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
