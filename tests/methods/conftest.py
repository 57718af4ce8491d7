import pytest


@pytest.fixture(scope="module")
def encoders():
    """OpenAI's kind of ResNet and ViTs of 24 blocks and of 3, random."""
    import towers  # which imports torch

    with towers.encoders() as loaded:
        yield loaded


@pytest.fixture
def vit(encoders):
    return encoders["shallow-towers"]
