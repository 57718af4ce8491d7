"""Every family of open_clip's models that is told to work: extracted and replayed, weights random.

Text is held to the model's own `encode_text` on whole prompts: what is cut must not matter.
"""

import json
import sys

import numpy as np
import open_clip
import pytest
import torch
from families import CONFIGS, SIGMOID, register, tokenizer_of
from PIL import Image

from zsntta_cli.cache import store
from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.encoders.text import TextTower
from zsntta_cli.errors import EncoderError
from zsntta_cli.settings import EncoderChoice

PROMPTS = ("a photo of a star.", "ring", "a photo of a large green triangle.", "circle " * 90)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    register(monkeypatch)


def loaded(name):
    return load_encoder(EncoderChoice(name, "none"), "cpu")


@pytest.mark.parametrize("name", CONFIGS)
def test_a_family_is_extracted_and_replayed(zsntta, name, tmp_path):
    model = ("--model", name, "--pretrained", "none")
    sets = ("--dataset", "shapes", "--dataset", "glyphs", "--no-partners", "--limit", 16)
    made = zsntta("extract", *model, *sets)
    assert made.exit_code == 0, made.output
    run = ("simulate", *model, "--id", "shapes", "--ood", "glyphs", "--method", "zs-clip")
    for score in ("mcm", "match"):
        result = zsntta(*run, "--method", "adand", "--score", score)
        assert result.exit_code == 0, result.output
    features = store.read(tmp_path / f"features/{name}-none/shapes.h5")
    assert np.isfinite(features.image_features).all()
    norms = np.linalg.norm(features.image_features.astype(np.float64), axis=1)
    assert np.ptp(norms) > 1e-4 * norms.mean(), "raw features, of no unit norm"
    identity = features.identity
    assert identity.get("loss") == ("sigmoid" if name in SIGMOID else None)
    assert identity.get("logit_bias") == (-10 if name in SIGMOID else None)


def content_of(model):
    """The bytes of its weights: those of CoCa that are never set may be no numbers."""
    return {key: value.numpy().tobytes() for key, value in model.state_dict().items()}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.filterwarnings("ignore:note. the encoder reads")
def test_prompts_get_the_features_of_whole_ones(name):
    encoder = loaded(name)
    before = content_of(encoder.model)
    tokens = tokenizer_of(name)(list(PROMPTS))
    with torch.inference_mode():
        whole = encoder.model.encode_text(tokens, normalize=True).numpy()
    np.testing.assert_allclose(encoder.encode_texts(PROMPTS), whole, atol=1e-6)
    many = encoder.encode_texts(PROMPTS * 20)  # in groups of about one length where they are cut
    np.testing.assert_allclose(many, np.tile(whole, (20, 1)), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_texts(PROMPTS[:3]), whole[:3], atol=1e-6)
    assert content_of(encoder.model) == before


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("pool", ["argmax", "eos", "first", "last"])
def test_a_text_tower_of_any_options_gets_whole_prompts_features(pool, causal, custom):
    text = {
        "context_length": 20, "vocab_size": 100, "width": 32, "heads": 2, "layers": 2,
        "pool_type": pool, "eos_id": 99, "no_causal_mask": not causal,
    }  # fmt: skip
    vision = CONFIGS["metaclip"]["vision_cfg"]
    torch.manual_seed(0)
    kind = open_clip.CustomTextCLIP if custom else open_clip.CLIP
    model = kind(16, vision, text).eval()
    tokens = torch.randint(1, 98, (70, 20))
    for row, end in zip(tokens, torch.randint(2, 20, (70,)), strict=True):
        row[end], row[end + 1 :] = 99, 0
    with torch.inference_mode():
        whole = model.encode_text(tokens, normalize=True)
        found = TextTower(model, None, torch.device("cpu")).features(tokens)
    torch.testing.assert_close(found, whole, atol=1e-6, rtol=0)


# --- tokenizers


def test_a_tokenizer_that_cannot_be_read_is_told_before_the_weights(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setattr("zsntta_cli.encoders.clip.load_weights", None)
    with pytest.raises(EncoderError, match="the tokenizer of ViT-B-16-SigLIP") as caught:
        load_encoder(EncoderChoice("ViT-B-16-SigLIP", "webli"), "cpu")
    assert str(caught.value).endswith(": pip install 'zsntta[transformers]' reads it")


# --- preprocessing of a file of weights


def test_a_siglip_of_a_file_squashes(tmp_path, monkeypatch):
    model = loaded("siglip-small").model
    torch.save(model.state_dict(), tmp_path / "siglip.pt")
    cfg = {"mean": (0.5,) * 3, "std": (0.5,) * 3, "resize_mode": "squash"}
    monkeypatch.setattr(open_clip, "list_pretrained_tags_by_model", lambda _: ["webli"])
    monkeypatch.setattr(
        open_clip, "get_pretrained_cfg", lambda _, tag: cfg if tag == "webli" else {}
    )
    encoder = load_encoder(EncoderChoice("siglip-small", str(tmp_path / "siglip.pt")), "cpu")
    wide = np.zeros((20, 300, 3), np.uint8)
    wide[:, 280:] = 255  # a crop of the middle would lose it
    pixels = encoder.resize(Image.fromarray(wide))
    assert pixels.shape == (160, 160, 3)
    assert pixels[80, -1].tolist() == [255, 255, 255]
    assert encoder.normalize(pixels[None].copy())[0, :, 80, -1].tolist() == [1.0, 1.0, 1.0]
    assert encoder.identity["preprocessing"]["resize_mode"] == "squash"
    assert json.dumps(encoder.identity)
