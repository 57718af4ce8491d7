"""Every family of open_clip's models that is told to work: as small as it can be, weights random.

Text is held to the model's own `encode_text` on whole prompts: what is cut must not matter. What
the encoder is fed is held to open_clip's own transform, to the bit.
"""

import sys
import zlib

import numpy as np
import open_clip
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made import refused
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image

from zsntta_cli.cache import store
from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.encoders.weights import Weights
from zsntta_cli.errors import EncoderError
from zsntta_cli.settings import EncoderChoice

WORDS, LENGTH = 997, 64  # of the made-up tokenizer
CLIP_TEXT = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
SHORT_TEXT = {**CLIP_TEXT, "context_length": 76}
VIT = {"image_size": 32, "layers": 2, "width": 64, "patch_size": 16, "head_width": 32}


def timm(name, size, **more):
    """A tower of timm's, as open_clip's own configurations name one."""
    return {"timm_model_name": name, "timm_model_pretrained": False, "image_size": size, **more}


CONFIGS = {
    "metaclip": {"embed_dim": 32, "quick_gelu": True, "vision_cfg": VIT, "text_cfg": CLIP_TEXT},
    "eva": {
        "embed_dim": 32, "custom_text": True, "text_cfg": CLIP_TEXT,
        "vision_cfg": timm("eva02_small", 28, timm_pool="token", timm_proj=None),
    },
    "mobileclip": {
        "embed_dim": 32, "custom_text": True, "text_cfg": {**CLIP_TEXT, "no_causal_mask": True},
        "vision_cfg": timm("fastvit_t8", 64, timm_pool="avg", timm_proj=None),
    },
    "coca": {
        "embed_dim": 32, "custom_text": True,
        "vision_cfg": {
            **VIT, "attentional_pool": True, "attn_pooler_heads": 4, "output_tokens": True,
        },
        "text_cfg": {**SHORT_TEXT, "embed_cls": True, "output_tokens": True},
        "multimodal_cfg": {**SHORT_TEXT, "attn_pooler_heads": 4},
    },
    "clipa": {
        "embed_dim": 32, "vision_cfg": {**VIT, "no_ln_pre": True, "pool_type": "avg"},
        "text_cfg": {
            **CLIP_TEXT, "context_length": 32, "pool_type": "last", "no_causal_mask": True,
        },
    },
    "siglip-small": {
        "embed_dim": 96, "init_logit_bias": -10, "custom_text": True,
        "text_cfg": {
            "context_length": LENGTH, "vocab_size": WORDS, "width": 32, "heads": 2, "layers": 2,
            "no_causal_mask": True, "proj_bias": True, "pool_type": "last",
            "norm_kwargs": {"eps": 1e-6},
        },
        "vision_cfg": timm("test_vit3", 160, timm_pool="map", timm_proj="none"),
    },
}  # fmt: skip
PROMPTS = ("a photo of a star.", "ring", "a photo of a large green triangle.", "circle " * 90)


def tokenize(texts, length=LENGTH):
    """Tokens (C, length) as SigLIP's are: no start, and the end's token 1 for the padding too."""
    tokens = torch.ones(len(texts), length, dtype=torch.long)
    for row, text in zip(tokens, texts, strict=True):
        words = [2 + zlib.crc32(word.encode()) % (WORDS - 2) for word in text.split()]
        row[: len(words)] = torch.tensor(words[:length])
    return tokens


def tokenizer_of(model):
    """What open_clip.get_tokenizer gives: SigLIP's own would need transformers and the hub."""
    if model == "siglip-small":
        return tokenize
    if model == "clipa":
        return lambda texts, length=32: tokenize(texts, length)
    text = CONFIGS.get(model, {}).get("text_cfg", CLIP_TEXT)
    return open_clip.SimpleTokenizer(context_length=text["context_length"])


def eva02_small(pretrained=False, num_classes=0, **_):
    """EVA-02 as timm makes it, of two layers."""
    from timm.models.eva import _create_eva

    return _create_eva(
        "eva02_tiny_patch14_224", pretrained=pretrained, img_size=28, patch_size=14, embed_dim=48,
        depth=2, num_heads=3, mlp_ratio=4 * 2 / 3, swiglu_mlp=True, use_rot_pos_emb=True,
        ref_feat_shape=(16, 16), num_classes=num_classes, global_pool="token",
    )  # fmt: skip


@pytest.fixture(autouse=True)
def known(monkeypatch, know):
    import timm.models._registry as registry

    monkeypatch.setitem(registry._model_entrypoints, eva02_small.__name__, eva02_small)
    know(**CONFIGS)
    monkeypatch.setattr(open_clip, "get_tokenizer", tokenizer_of)


def loaded(name):
    return load_encoder(EncoderChoice(name, "none"), "cpu")


@pytest.mark.parametrize("name", CONFIGS)
def test_a_family_is_extracted_and_replayed(zsntta, name, tmp_path):
    model = ("--model", name, "--pretrained", "none")
    sets = ("--dataset", "shapes", "--dataset", "glyphs", "--no-partners", "--limit", 16)
    assert zsntta("extract", *model, *sets).exit_code == 0
    run = ("simulate", *model, "--id", "shapes", "--ood", "glyphs", "--method", "zs-clip")
    for score in ("mcm", "match"):
        assert zsntta(*run, "--method", "adand", "--set", f"score={score}").exit_code == 0
    features = store.read(tmp_path / f"features/{name}-none/shapes.h5")
    norms = np.linalg.norm(features.image_features.astype(np.float64), axis=1)
    assert np.ptp(norms) > 1e-4 * norms.mean(), "raw features, of no unit norm"
    sigmoid = ("sigmoid", -10) if name == "siglip-small" else (None, None)
    assert (features.identity.get("loss"), features.identity.get("logit_bias")) == sigmoid


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.filterwarnings("ignore:note. the encoder reads")
def test_prompts_get_the_features_of_whole_ones(name):
    encoder = loaded(name)
    with torch.inference_mode():
        whole = encoder.model.encode_text(tokenizer_of(name)(list(PROMPTS)), normalize=True).numpy()
    many = encoder.encode_texts(PROMPTS * 20)  # in groups of about one length where they are cut
    np.testing.assert_allclose(many, np.tile(whole, (20, 1)), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_texts(PROMPTS[:3]), whole[:3], atol=1e-6)


def test_a_tokenizer_that_cannot_be_read_is_told_before_the_weights(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setattr("huggingface_hub.model_info", None)
    with refused("'zsntta[transformers]'", error=EncoderError):
        load_encoder(EncoderChoice("ViT-B-16-SigLIP", "webli"), "cpu")


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
    assert pixels[80, -1].tolist() == [255, 255, 255]
    assert encoder.normalize(pixels[None].copy())[0, :, 80, -1].tolist() == [1.0, 1.0, 1.0]
    assert encoder.identity["preprocessing"]["resize_mode"] == "squash"


# --- what an encoder is fed

HALF = {"mean": (0.5,) * 3, "std": (0.5,) * 3}
ASKED = [
    {}, {**HALF, "resize_mode": "squash"}, {**HALF, "resize_mode": "longest"},
    {"interpolation": "bilinear", "mean": (0.0,) * 3, "std": (1.0,) * 3},  # MobileCLIP's
    {"resize_mode": "longest", "interpolation": "bilinear", "fill_color": 7},
]  # fmt: skip


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_any_picture_is_fed_as_open_clip_does_it(asked):
    choice, config = EncoderChoice("metaclip", "none"), {"size": 32, **asked}
    model = loaded("metaclip").model
    model.visual.preprocess_cfg = {**vars(PreprocessCfg()), **config}
    weights = Weights(model, open_clip.SimpleTokenizer(), "")
    encoder = Encoder(weights, choice, torch.device("cpu"))
    reference = image_transform_v2(PreprocessCfg(**config), is_train=False)

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(
        st.integers(1, 120), st.integers(1, 120), st.sampled_from(["RGB", "L", "P", "RGBA", "LA"]),
        st.integers(0, 2**32),
    )  # fmt: skip
    def check(height, width, mode, seed):
        # A side that would shrink to nothing is open_clip's own error.
        short = 32 * min(height, width) >= max(height, width)
        assume(asked.get("resize_mode") != "longest" or short)
        pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
        image = Image.fromarray(pixels).convert(mode)
        fed = encoder.normalize(np.stack([encoder.resize(image)]))[0]
        assert torch.equal(fed, reference(image))

    check()
