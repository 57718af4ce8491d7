"""Encoders that open_clip loads: the released code's logits, OpenAI's files, what is said."""

import json

import numpy as np
import pytest
import released
import torch
from made import CONFIG, refused
from safetensors.torch import save_file

from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.encoders.weights import activation_note
from zsntta_cli.errors import EncoderError
from zsntta_cli.methods.scores import cosine_logits
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.prompts import class_prompts

VECTORS = released.load("live")


class Archive(torch.nn.Module):
    """Parameters under OpenAI's names, to be saved as OpenAI does: a TorchScript archive."""

    def __init__(self, state):
        super().__init__()
        for name, value in state.items():
            *path, last = name.split(".")
            module = self
            for part in path:
                if not hasattr(module, part):
                    module.add_module(part, torch.nn.Module())
                module = getattr(module, part)
            module.register_buffer(last, value)
        self.register_buffer("input_resolution", torch.tensor(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def state_dict(path):
    torch.save(released.clip_state(), path / "clip.pt")
    return EncoderChoice("clip-test-quickgelu", str(path / "clip.pt"))


def archive(path):
    """A name without QuickGELU, which OpenAI's own file forces."""
    torch.jit.script(Archive(released.clip_state())).save(str(path / "ViT.pt"))
    return EncoderChoice("clip-test", str(path / "ViT.pt"))


def folder(path):
    config = {"model_cfg": {**CONFIG, "quick_gelu": True}, "preprocess_cfg": {}}
    (path / "open_clip_config.json").write_text(json.dumps(config))
    save_file(released.clip_state(), path / "open_clip_model.safetensors")
    return EncoderChoice(f"local-dir:{path}")


@pytest.mark.filterwarnings("ignore:.torch.jit")
@pytest.mark.parametrize("source", [state_dict, archive, folder])
def test_each_source_gives_the_released_codes_logits(know, tmp_path, source):
    know(clip_test=CONFIG, clip_test_quickgelu={**CONFIG, "quick_gelu": True})
    choice = source(tmp_path)
    encoder = load_encoder(choice, "cpu")
    assert encoder.identity["quick_gelu"] is True
    assert len(encoder.identity["weights_sha256"]) == 64
    assert "/" not in choice.slug
    images = encoder.encode_images(released.live_inputs()[0])
    names = [str(name) for name in VECTORS["class_names"]]
    text = encoder.encode_texts(class_prompts("a photo of a {}.", names))
    logits = cosine_logits(images, text, encoder.identity["logit_scale"])
    np.testing.assert_allclose(logits, VECTORS["zs-clip/logits"], atol=1e-4)


@pytest.mark.parametrize(
    ("model", "said"),
    [("ViT-B-16", "the model ViT-B-16-quickgelu."), ("RN50-quickgelu", "the model RN50."),
     ("coca_ViT-B-32", "")],  # has no such twin
)  # fmt: skip
def test_a_file_does_not_tell_its_activation(tmp_path, model, said):
    path = tmp_path / "weights.safetensors"
    path.touch()
    note = activation_note(EncoderChoice(model, str(path)))
    assert note.endswith(said)
    assert bool(note) == bool(said)
    assert not activation_note(EncoderChoice(model, "openai")), "a tag tells it"


@pytest.mark.parametrize(
    ("model", "parts"),
    [("ViT-B-16", ["open_clip_model.safetensors",
                   "https://huggingface.co/timm/vit_base_patch16_clip_224.openai",
                   "--model ViT-B-16-quickgelu --pretrained PATH",
                   "/ViT-B-16.pt and type --model ViT-B-16 --pretrained PATH"]),
     ("hf-hub:org/name", ["https://huggingface.co/org/name", "--model local-dir:FOLDER",
                          "Name or service not known"])],
)  # fmt: skip
def test_without_a_network_the_line_says_at_once_which_file_to_get(monkeypatch, model, parts):
    """open_clip itself asks for one file after the other, half a minute long."""
    import huggingface_hub
    import open_clip

    def no_network(*_args, **_kwargs):
        raise OSError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(huggingface_hub, "model_info", no_network)
    monkeypatch.setattr(open_clip, "create_model", lambda *_a, **_k: pytest.fail("asked again"))
    with refused(*parts, error=EncoderError):
        load_encoder(EncoderChoice(model), "cpu")


def test_weights_are_fetched_beforehand_into_the_hubs_cache(zsntta, monkeypatch, tmp_path):
    import huggingface_hub
    import open_clip

    asked, cached, weights = [], {}, str(tmp_path / "weights")

    def download(tag):
        asked.append(tag["hf_hub"])
        cached[tag["hf_hub"].rstrip("/")] = weights
        return weights

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda name, _: cached.get(name))
    monkeypatch.setattr(huggingface_hub, "model_info", lambda *_args, **_kwargs: None)
    monkeypatch.setattr(open_clip, "download_pretrained", download)
    for _ in range(2):  # the second time all are there
        result = zsntta("encoders", "get")
        assert result.stdout.splitlines()[0] == f"ViT-B-16 openai: {weights}"
    hub = ("vit_base_patch16_clip_224", "resnet50_clip", "vit_large_patch14_clip_224")
    assert asked == [f"timm/{name}.openai/" for name in hub]


@pytest.mark.parametrize(
    ("choice", "slug", "options"),
    [(EncoderChoice(), "ViT-B-16-openai", ""),
     (EncoderChoice("tiny"), "tiny", "--model tiny"),
     (EncoderChoice("RN50", "none", "bf16"), "RN50-none-bf16",
      "--model RN50 --pretrained none --precision bf16"),
     (EncoderChoice("hf-hub:org/name"), "hf-hub-org-name", "--model hf-hub:org/name")],
)  # fmt: skip
def test_names_of_encoders(choice, slug, options):
    assert (choice.slug, choice.options) == (slug, options)


def test_a_text_beyond_the_context_is_told_and_two_that_become_one_are_refused(tiny, monkeypatch):
    notes = []
    monkeypatch.setattr(tiny.text, "tell", notes.append)
    room = "a " * 29  # with the start and the end 31 of the 32 tokens
    tiny.encode_texts([room + "cat", room + "dog"])
    assert notes == []
    tiny.encode_texts(["cat", "dog" + " very" * 40])
    assert "1 of 2 prompts, such as 'dog very" in notes[0]
    with refused("cat' and ", "dog'", error=EncoderError):
        tiny.encode_texts([room + "a cat", room + "a dog"])
