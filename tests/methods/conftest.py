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


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The weights of the small ViT of the released code's vectors."""
    import released
    import torch

    path = tmp_path_factory.mktemp("weights") / "clip.pt"
    torch.save(released.clip_state(), path)
    return str(path)


@pytest.fixture(scope="module")
def clip(weights):
    """The small ViT of the released code's vectors."""
    import towers
    from made import CONFIG

    with towers.registered({"clip-live-quickgelu": {**CONFIG, "quick_gelu": True}}):
        return towers.load_encoder(towers.EncoderChoice("clip-live-quickgelu", weights), "cpu")
