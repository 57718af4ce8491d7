"""The families of open_clip's models, each as small as it can be: classes, options, no weights."""

import zlib

import torch

WORDS, LENGTH = 997, 64  # of the made-up tokenizer
CLIP_TEXT = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
VIT = {"image_size": 32, "layers": 2, "width": 64, "patch_size": 16, "head_width": 32}
SIGLIP_TEXT = {
    "context_length": LENGTH, "vocab_size": WORDS, "width": 32, "heads": 2, "layers": 2,
    "no_causal_mask": True, "proj_bias": True, "pool_type": "last", "norm_kwargs": {"eps": 1e-6},
}  # fmt: skip


def timm(name, size, **more):
    """A tower of timm's, as open_clip's own configurations name one."""
    return {"timm_model_name": name, "timm_model_pretrained": False, "image_size": size, **more}


SIGLIP = {
    "embed_dim": 96, "init_logit_bias": -10, "custom_text": True, "text_cfg": SIGLIP_TEXT,
    "vision_cfg": timm("test_vit3", 160, timm_pool="map", timm_proj="none"),
}  # fmt: skip
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
        "text_cfg": {
            **CLIP_TEXT, "context_length": 76, "embed_cls": True, "output_tokens": True,
        },
        "multimodal_cfg": {**CLIP_TEXT, "context_length": 76, "attn_pooler_heads": 4},
    },
    "clipa": {
        "embed_dim": 32, "vision_cfg": {**VIT, "no_ln_pre": True, "pool_type": "avg"},
        "text_cfg": {**CLIP_TEXT, "context_length": 32, "pool_type": "last",
                     "no_causal_mask": True},
    },
    "siglip-small": SIGLIP,
}  # fmt: skip
SIGMOID = tuple(name for name in CONFIGS if name.startswith("siglip"))


def tokenize(texts, length=LENGTH):
    """Tokens (C, length) as SigLIP's are: no start, and the end's token 1 for the padding too."""
    tokens = torch.ones(len(texts), length, dtype=torch.long)
    for row, text in zip(tokens, texts, strict=True):
        words = [2 + zlib.crc32(word.encode()) % (WORDS - 2) for word in text.split()]
        row[: len(words)] = torch.tensor(words[:length])
    return tokens


def tokenizer_of(model):
    """What open_clip.get_tokenizer gives: SigLIP's own would need transformers and the hub."""
    import open_clip

    if model in SIGMOID:
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
        ref_feat_shape=(16, 16), num_classes=num_classes,
        global_pool="token",
    )  # fmt: skip


def register(monkeypatch):
    """Let open_clip know the families by name, as it knows its own models."""
    import open_clip.factory
    import timm.models._registry as registry

    monkeypatch.setitem(registry._model_entrypoints, eva02_small.__name__, eva02_small)
    for name, config in CONFIGS.items():
        monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, name, config)
    monkeypatch.setattr(open_clip, "get_tokenizer", tokenizer_of)
