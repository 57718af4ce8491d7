"""Encoders that open_clip loads: the released code's logits, OpenAI's files, what is said."""

import json

import numpy as np
import pytest
import released
import torch
from made import CONFIG, fails, refused

from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.encoders.weights import activation_note
from zsntta_cli.errors import EncoderError
from zsntta_cli.methods.scores import cosine_logits
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.prompts import class_prompts

VECTORS = released.load("live")


@pytest.fixture
def openai_state():
    """An OpenAI-format state dict."""
    return released.clip_state()


@pytest.fixture
def registered(know):
    know(clip_test=CONFIG, clip_test_quickgelu={**CONFIG, "quick_gelu": True})


def logits_of(encoder):
    images = encoder.encode_images(released.live_inputs()[0])
    names = [str(name) for name in VECTORS["class_names"]]
    text = encoder.encode_texts(class_prompts("a photo of a {}.", names))
    return cosine_logits(images, text, encoder.identity["logit_scale"])


def test_an_openai_state_dict_gives_the_released_codes_logits(openai_state, registered, tmp_path):
    path = tmp_path / "clip.pt"
    torch.save(openai_state, path)
    encoder = load_encoder(EncoderChoice("clip-test-quickgelu", str(path)), "cpu")
    np.testing.assert_allclose(logits_of(encoder), VECTORS["zs-clip/logits"], atol=1e-4)
    assert encoder.identity["quick_gelu"] is True
    assert len(encoder.identity["weights_sha256"]) == 64
    plain = load_encoder(EncoderChoice("clip-test", str(path)), "cpu")
    assert plain.identity["quick_gelu"] is False
    assert np.abs(logits_of(plain) - VECTORS["zs-clip/logits"]).max() > 1e-3


def test_a_folder_in_open_clips_own_form(openai_state, tmp_path):
    from safetensors.torch import save_file

    config = {"model_cfg": {**CONFIG, "quick_gelu": True}, "preprocess_cfg": {}}
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    save_file(openai_state, tmp_path / "open_clip_model.safetensors")
    choice = EncoderChoice(f"local-dir:{tmp_path}")
    logits = logits_of(load_encoder(choice, "cpu"))
    np.testing.assert_allclose(logits, VECTORS["zs-clip/logits"], atol=1e-4)
    assert "/" not in choice.slug


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


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_openais_own_archive_forces_quick_gelu(openai_state, registered, tmp_path):
    path = tmp_path / "ViT.pt"
    torch.jit.script(Archive(openai_state)).save(str(path))
    encoder = load_encoder(EncoderChoice("clip-test", str(path)), "cpu")
    assert encoder.identity["quick_gelu"] is True
    np.testing.assert_allclose(logits_of(encoder), VECTORS["zs-clip/logits"], atol=1e-4)


@pytest.mark.parametrize(
    ("model", "said"),
    [("ViT-B-16", "it with GELU. For weights that were trained with QuickGELU, as OpenAI's, use "
      "the model ViT-B-16-quickgelu."),
     ("RN50-quickgelu", "it with QuickGELU. For weights that were trained with GELU, use the model "
      "RN50."),
     ("coca_ViT-B-32", None)],  # has no such twin
)  # fmt: skip
def test_a_file_does_not_tell_its_activation(tmp_path, model, said):
    path = tmp_path / "weights.safetensors"
    path.touch()
    told = activation_note(EncoderChoice(model, str(path)))
    if said is None:
        assert told is None
    else:
        assert told.startswith(str(path))
        assert told.endswith(said)
    assert activation_note(EncoderChoice(model, "openai")) is None, "a tag tells it"


def test_without_a_network_the_line_says_which_file_to_get(monkeypatch, tmp_path):
    import huggingface_hub

    def no_network(*_args, **_kwargs):
        raise OSError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(huggingface_hub, "model_info", no_network)
    with refused(
        "open_clip_model.safetensors",
        "https://huggingface.co/timm/vit_base_patch16_clip_224.openai",
        "--model ViT-B-16-quickgelu --pretrained PATH",
        "/ViT-B-16.pt and type --model ViT-B-16 --pretrained PATH (",
    ):
        load_encoder(EncoderChoice(), "cpu")


def test_weights_are_fetched_beforehand_into_the_hubs_cache(zsntta, monkeypatch, tmp_path):
    import huggingface_hub
    import open_clip

    asked, cached = [], {}

    def download(tag):
        asked.append(tag["hf_hub"])
        cached[tag["hf_hub"].rstrip("/")] = str(tmp_path / "weights")
        return str(tmp_path / "weights")

    monkeypatch.setattr(
        huggingface_hub, "try_to_load_from_cache", lambda repository, _: cached.get(repository)
    )
    monkeypatch.setattr(huggingface_hub, "model_info", lambda *_args, **_kwargs: None)
    monkeypatch.setattr(open_clip, "download_pretrained", download)
    for _ in range(2):  # the second time all are there
        result = zsntta("encoders", "get")
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines()[0] == f"ViT-B-16 openai: {tmp_path / 'weights'}"
    hub = ("vit_base_patch16_clip_224", "resnet50_clip", "vit_large_patch14_clip_224")
    assert asked == [f"timm/{name}.openai/" for name in hub]
    fails(zsntta("encoders", "get", "ViT-B-16", "--pretrained", "opanai"), "mean 'openai'")
    fails(zsntta("encoders", "get", "ViT-B16"), "mean 'ViT-B-16'")


def test_a_hub_name_without_a_network_fails_at_once(monkeypatch):
    """open_clip itself asks for one file after the other, half a minute long."""
    import huggingface_hub
    import open_clip

    def no_network(*_args, **_kwargs):
        raise OSError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "model_info", no_network)
    monkeypatch.setattr(open_clip, "create_model", lambda *_a, **_k: pytest.fail("asked again"))
    with refused("cannot load hf-hub:org/name", "https://huggingface.co/org/name", "local-dir:PATH",
                 "OSError: Name or service not known"):  # fmt: skip
        load_encoder(EncoderChoice("hf-hub:org/name"), "cpu")


@pytest.mark.parametrize(
    ("model", "pretrained", "device", "line"),
    [("ViT-B-99", "openai", "cpu", "open_clip has no model 'ViT-B-99'"),
     ("ViT-B-16", "nonsense", "cpu",
      "'nonsense' is no file and no weights of ViT-B-16 (known: openai"),
     ("local-dir:/nowhere", "openai", "cpu", "cannot load local-dir:/nowhere"),
     ("tiny", "embedded", "nonsense", "device 'nonsense' cannot be used")],
)  # fmt: skip
def test_what_cannot_be_loaded(model, pretrained, device, line):
    with refused(line, error=EncoderError):
        load_encoder(EncoderChoice(model, pretrained), device)


def test_the_embedded_encoder(tiny):
    assert (tiny.image_size, tiny.embed_dim) == (32, 512)
    assert 10 < tiny.identity["logit_scale"] <= 100
    again = load_encoder(EncoderChoice("tiny"), "cpu")
    prompts = ["a photo of a star.", "a photo of a ring."]
    assert np.array_equal(tiny.encode_texts(prompts), again.encode_texts(prompts))
    assert tiny.encode_texts(prompts)[0] @ tiny.encode_texts(prompts)[1] < 0.95


@pytest.mark.parametrize(
    ("choice", "slug", "options"),
    [(EncoderChoice(), "ViT-B-16-openai", ""),
     (EncoderChoice("tiny"), "tiny", "--model tiny"),
     (EncoderChoice("RN50", "none", "bf16"), "RN50-none-bf16",
      "--model RN50 --pretrained none --precision bf16"),
     (EncoderChoice("hf-hub:org/name"), "hf-hub-org-name", "--model hf-hub:org/name")],
)  # fmt: skip
def test_names_of_encoders(choice, slug, options):
    assert choice.slug == slug
    assert choice.options == options


def test_a_text_beyond_the_context_is_told_and_two_that_become_one_are_refused(tiny, monkeypatch):
    told = []
    monkeypatch.setattr(tiny.text, "tell", told.append)
    room = "a " * 29  # with the start and the end 31 of the 32 tokens
    tiny.encode_texts([room + "cat", room + "dog"])
    assert told == []
    tiny.encode_texts(["cat", "dog" + " very" * 40])
    assert "cuts 1 of 2 prompts" in told[0]
    assert "dog very" in told[0]
    with pytest.raises(EncoderError, match=r"cat' and .*dog' differ behind"):
        tiny.encode_texts([room + "a cat", room + "a dog"])
