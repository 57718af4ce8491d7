import originals
import pytest

from zsntta_cli.datasets import known_sets


@pytest.fixture
def original(monkeypatch, tmp_path):
    """Make a known set in the format of its original, in small, below a folder: its tree."""
    yield lambda name, root=tmp_path / "data": originals.made(name, monkeypatch, root)
    known_sets.names_by_wnid.cache_clear()
