"""Checkpoints of transformers: small ones of chance, against the library's own functions."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from made import fails, refused

pytest.importorskip("transformers")

import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from zsntta_cli.datasets import load_images
from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.datasets.images import limited
from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.errors import EncoderError
from zsntta_cli.settings import EncoderChoice

NAMES = "circle square triangle star heart cross ring crescent arrow spiral"
WORDS = ["<unk>", "<pad>", *f"a photo of {NAMES} .".split(), "<end>"]
LENGTH, SIDE = 16, 32
TOWER = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
}  # fmt: skip
VISION = {**TOWER, "image_size": SIDE, "patch_size": 8}
TEXT = {
    **TOWER, "vocab_size": len(WORDS), "max_position_embeddings": LENGTH, "pad_token_id": 1,
    "bos_token_id": 0, "eos_token_id": len(WORDS) - 1,
}  # fmt: skip
IMAGES = {
    "clip": {
        "size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE},
        "do_center_crop": True, "resample": 3, "image_mean": [0.48, 0.45, 0.4],
        "image_std": [0.27, 0.26, 0.28],
    },
    "siglip": {
        "size": {"height": SIDE, "width": SIDE}, "resample": 2, "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    },
}  # fmt: skip


def save(kind, folder):
    """Save a checkpoint of chance as its authors do: weights, tokenizer, image processor."""
    torch.manual_seed(0)
    if kind == "clip":
        model = transformers.CLIPModel(
            transformers.CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=24)
        )
    else:
        config = transformers.SiglipConfig(text_config=TEXT, vision_config=VISION)
        model = transformers.SiglipModel(config)
        model.logit_scale.data.fill_(np.log(50.0))
        model.logit_bias.data.fill_(-9.0)
    model.save_pretrained(folder)
    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    end = [("<end>", len(WORDS) - 1)]
    words.post_processor = processors.TemplateProcessing(single="$A <end>", special_tokens=end)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", pad_token="<pad>", eos_token="<end>",
        model_max_length=LENGTH,
    ).save_pretrained(folder)  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(IMAGES[kind]))
    return model.eval()


@pytest.fixture(params=IMAGES)
def checkpoint(request, tmp_path):
    return request.param, save(request.param, tmp_path / request.param)


def test_features_are_those_of_the_library(checkpoint, tmp_path):
    kind, model = checkpoint
    encoder = load_encoder(EncoderChoice(f"hf:{tmp_path / kind}"), "cpu")
    images, config = limited(load_images("shapes", Path()), 20), IMAGES[kind]
    features = encoder.encode_pixels(np.stack([encoder.resize(images.read(i)) for i in range(20)]))
    pixels = np.stack([np.asarray(images.read(i)) for i in range(20)]) / 255  # of its size
    pixels = (pixels - config["image_mean"]) / config["image_std"]
    ids = torch.full((10, LENGTH), 1)
    for row, name in zip(ids, NAMES.split(), strict=True):
        prompt = [WORDS.index(word) for word in f"a photo of a {name} . <end>".split()]
        row[: len(prompt)] = torch.tensor(prompt)
    with torch.inference_mode():
        values = torch.tensor(pixels.transpose(0, 3, 1, 2), dtype=torch.float32)
        expected = model.get_image_features(pixel_values=values).pooler_output.numpy()
        text = model.get_text_features(input_ids=ids).pooler_output
    np.testing.assert_allclose(features, expected, atol=1e-5)
    text = torch.nn.functional.normalize(text, dim=-1).numpy()
    prompts = [f"a photo of a {name}." for name in NAMES.split()]
    np.testing.assert_allclose(encoder.encode_texts(prompts), text, atol=1e-6)


EXTRACT = ("extract", "--dataset", "shapes", "--limit", "20", "--no-partners")


def test_replays_adaptation_and_verdicts_work(zsntta, checkpoint):
    model = ("--model", f"hf:./{checkpoint[0]}")
    assert zsntta(*EXTRACT, *model, "--dataset", "glyphs").exit_code == 0
    run = ("simulate", *model, "--id", "shapes", "--ood", "glyphs", "--limit", "12", "--noise",
           "none")  # fmt: skip
    for method in ("zs-clip", "adand", "tent"):
        result = zsntta(*run, "--method", method)
        assert result.exit_code == 0, result.output
    fails(zsntta(*run, "--method", "tpt"), "text tower", stdout=None)
    render("shapes").read(0).save("one.png")
    result = zsntta("detect", "one.png", *model, "--classes", "circle,star")
    assert result.exit_code == 0, result.output


# --- what is no such checkpoint


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


CONFIG, PROCESSOR = "config.json", "preprocessor_config.json"


@pytest.mark.parametrize(
    ("spoil", "word"),
    [(lambda clip: (clip / "model.safetensors").rename(clip / "pytorch_model.bin"),
      "model.safetensors"),
     (lambda clip: change(clip / CONFIG, model_type="siglip2"), "'siglip2'"),
     (lambda clip: (clip / CONFIG).unlink(), "model type is 'None'"),
     (lambda clip: (clip / CONFIG).rename(clip / "adapter_config.json"), "merge_and_unload"),
     (lambda clip: clip.rename(clip.with_name("moved")), "does not exist"),
     (lambda clip: (clip / PROCESSOR).unlink(), "image processor"),
     (lambda clip: (clip / PROCESSOR).write_text("["), PROCESSOR),
     (lambda clip: change(clip / PROCESSOR, resample=0), PROCESSOR),
     (lambda clip: change(clip / PROCESSOR, crop_size=24), PROCESSOR),
     (lambda clip: change(clip / PROCESSOR, size=None), PROCESSOR)],
)  # fmt: skip
def test_what_is_wrong_is_one_line(tmp_path, spoil, word):
    save("clip", tmp_path / "clip")
    spoil(tmp_path / "clip")
    with refused(word, error=EncoderError):
        load_encoder(EncoderChoice(f"hf:{tmp_path / 'clip'}"), "cpu")


def save_state(path, state):
    save_file({key: tensor.clone() for key, tensor in state.items()}, path, {"format": "pt"})


PROJECTION = "visual_projection.weight"


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("projection", [{}, {PROJECTION: torch.zeros(3, 4)}])
def test_weights_that_do_not_fit_are_no_random_ones(tmp_path, prefix, projection):
    path = tmp_path / "clip" / "model.safetensors"
    state = save("clip", tmp_path / "clip").state_dict()
    del state[PROJECTION]
    save_state(path, {f"{prefix}{key}": tensor for key, tensor in (state | projection).items()})
    with refused(PROJECTION, error=EncoderError):
        load_encoder(EncoderChoice(f"hf:{tmp_path / 'clip'}"), "cpu")


def test_a_prefix_of_all_weights_is_taken_off_with_a_note(tmp_path):
    save("clip", tmp_path / "clip")
    path, choice = tmp_path / "clip" / "model.safetensors", EncoderChoice(f"hf:{tmp_path / 'clip'}")
    before = load_encoder(choice, "cpu").encode_texts(["a photo of a circle."])
    save_state(path, {f"module.{key}": tensor for key, tensor in load_file(path).items()})
    after = load_encoder(choice, "cpu")
    assert "module.*" in after.notes[0]
    np.testing.assert_allclose(after.encode_texts(["a photo of a circle."]), before, atol=1e-6)


def test_without_the_library_it_is_told_what_to_install(zsntta, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    fails(zsntta(*EXTRACT, "--model", "hf:./clip"), "'zsntta[transformers]'", stdout=None)
