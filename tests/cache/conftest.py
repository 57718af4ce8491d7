import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that is worked in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
