import pytest


@pytest.fixture
def know(monkeypatch):
    """Let open_clip know architectures by name, as it knows its own."""
    import open_clip.factory

    def add(**configs):
        for name, config in configs.items():
            name = name.replace("_", "-")
            monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, name, config)

    return add
