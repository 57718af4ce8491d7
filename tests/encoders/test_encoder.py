import json
from pathlib import Path

import numpy as np
import pytest
import released
import torch
from made import CONFIG
from PIL import Image

from zsntta_cli.cache.hdf5 import read_features
from zsntta_cli.cli.line.hints import encoder_options
from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.encoders.weights import activation_note
from zsntta_cli.errors import EncoderError, SettingsError
from zsntta_cli.files import sha256
from zsntta_cli.methods.scores import cosine_logits
from zsntta_cli.settings import EncoderChoice, published
from zsntta_cli.settings.prompts import class_prompts

VECTORS = released.load("live")
RESNET = {
    "embed_dim": 32,
    "vision_cfg": {"image_size": 32, "layers": [1, 1, 2, 1], "width": 16, "patch_size": None},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 1, "layers": 2},
}  # as RN50 is, but small
PATCH_14 = {
    "embed_dim": 48,
    "vision_cfg": {"image_size": 28, "layers": 3, "width": 128, "patch_size": 14},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 1, "layers": 2},
}  # as ViT-L-14 is, but small


@pytest.fixture
def openai_state():
    """An OpenAI-format state dict."""
    return released.clip_state()


@pytest.fixture
def registered():
    """Let open_clip know the architecture under two names, as it knows its own."""
    import open_clip.factory

    known = dict(open_clip.factory._MODEL_CONFIGS)
    open_clip.factory._MODEL_CONFIGS["clip-test"] = CONFIG
    open_clip.factory._MODEL_CONFIGS["clip-test-quickgelu"] = {**CONFIG, "quick_gelu": True}
    open_clip.factory._MODEL_CONFIGS["resnet"] = RESNET
    open_clip.factory._MODEL_CONFIGS["patch-14"] = PATCH_14
    yield
    open_clip.factory._MODEL_CONFIGS.clear()
    open_clip.factory._MODEL_CONFIGS.update(known)


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


@pytest.mark.filterwarnings("ignore:.torch.jit")
@pytest.mark.parametrize(("model", "config"), [("resnet", RESNET), ("patch-14", PATCH_14)])
def test_openais_archives_of_other_towers(registered, tmp_path, model, config):
    """In half precision, as OpenAI's are, against open_clip's own model with QuickGELU."""
    import open_clip

    torch.manual_seed(1)
    reference = open_clip.CLIP(**config, quick_gelu=True).half().float().eval()
    state = {k: v.half() if v.is_floating_point() else v for k, v in reference.state_dict().items()}
    torch.jit.script(Archive(state)).save(str(tmp_path / "RN.pt"))
    encoder = load_encoder(EncoderChoice(model, str(tmp_path / "RN.pt")), "cpu")
    assert encoder.identity["quick_gelu"] is True
    images = torch.randn(3, 3, encoder.image_size, encoder.image_size)
    with torch.inference_mode():
        expected = reference.encode_image(images).numpy()
        text = reference.encode_text(encoder.text._tokenize(["a cat"]), normalize=True).numpy()
    np.testing.assert_allclose(encoder.encode_images(images), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_texts(["a cat"]), text, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "note"),
    [("ViT-B-16", "ViT-B-16 runs it with GELU, but the weights openai, dfn2b, metaclip_400m … "
      "want QuickGELU; for these use the model ViT-B-16-quickgelu."),
     ("ViT-B-16-quickgelu", "ViT-B-16-quickgelu runs it with QuickGELU, but the weights "
      "laion400m_e31, laion400m_e32, laion2b_s34b_b88k … want GELU; for these use the model "
      "ViT-B-16."),
     ("RN50", "RN50 runs it with GELU, but the weights openai, yfcc15m, cc12m want QuickGELU; for "
      "these use the model RN50-quickgelu."),
     ("RN50-quickgelu", None),  # all its known weights want it
     ("coca_ViT-B-32", None)],  # has no such twin
)  # fmt: skip
def test_a_file_does_not_tell_its_activation(tmp_path, model, note):
    path = tmp_path / "weights.safetensors"
    path.touch()
    told = activation_note(EncoderChoice(model, str(path)))
    start = f"{path} does not tell which activation it was trained with: "
    assert told == (note and start + note)
    assert activation_note(EncoderChoice(model, "openai")) is None, "a tag tells it"


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_the_note_on_the_activation_is_told_once(zsntta, openai_state, monkeypatch, tmp_path):
    """For tensors alone; not for OpenAI's archive, nor where the features are there already."""
    import open_clip.factory

    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-B-16", CONFIG)
    torch.save(openai_state, tmp_path / "tensors.pt")
    torch.jit.script(Archive(openai_state)).save(str(tmp_path / "archive.pt"))
    notes = []
    for name in ("tensors", "tensors", "archive"):
        result = zsntta("extract", "--model", "ViT-B-16", "--pretrained", f"{name}.pt", "--dataset",
                        "digits", "--limit", 4, "--noise", "gaussian", "--no-partners")  # fmt: skip
        assert result.exit_code == 0, result.output
        notes.append(result.stderr.count("does not tell which activation"))
    assert notes == [1, 0, 0]
    known = [
        read_features(path).identity["quick_gelu"]
        for name in ("tensors", "archive")
        for path in Path("features").glob(f"ViT-B-16-{name}-*/digits.h5")
    ]
    assert known == [False, True]


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_openais_file_from_elsewhere_makes_the_features_of_its_tag(
    zsntta, openai_state, monkeypatch, tmp_path
):
    """Known by its content: another file of its name has a folder of its own."""
    import open_clip.factory

    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-B-16", CONFIG)
    (tmp_path / "mine").mkdir()
    for path in (tmp_path / "ViT-B-16.pt", tmp_path / "mine" / "ViT-B-16.pt"):
        torch.jit.script(Archive(openai_state)).save(str(path))
        openai_state["logit_scale"] = openai_state["logit_scale"] * 0.9
    monkeypatch.setitem(published.OPENAI_SHA256, "ViT-B-16", sha256(tmp_path / "ViT-B-16.pt"))
    command = ("extract", "--model", "ViT-B-16", "--dataset", "digits", "--limit", 4, "--noise",
               "gaussian", "--no-partners")  # fmt: skip
    for path in ("ViT-B-16.pt", "mine/ViT-B-16.pt"):
        assert zsntta(*command, "--pretrained", path).exit_code == 0
    own = f"ViT-B-16-ViT-B-16-{sha256(tmp_path / 'mine' / 'ViT-B-16.pt')[:8]}"
    assert {path.name for path in Path("features").iterdir()} == {"ViT-B-16-openai", own}
    again = zsntta(*command)  # by the tag: it is there, so nothing is loaded
    assert (again.exit_code, again.stdout.count("there already")) == (0, 2), again.output
    of_tag = read_features(Path("features/ViT-B-16-openai/digits.h5")).identity
    assert of_tag["weights_sha256"] == sha256(tmp_path / "ViT-B-16.pt")
    assert of_tag["quick_gelu"]


def test_weights_never_unpickle_code(registered, tmp_path):
    import pickle

    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    path = tmp_path / "evil.pt"
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(EncoderError, match="cannot load clip-test"):
        load_encoder(EncoderChoice("clip-test", str(path)), "cpu")
    assert not (tmp_path / "ran").exists()


def test_weights_of_another_model(registered, tmp_path):
    torch.save({"visual.proj": torch.zeros(2)}, tmp_path / "half.pt")
    with pytest.raises(EncoderError, match=r"half.pt' \(they do not fit: Missing key.* …\)\.$"):
        load_encoder(EncoderChoice("clip-test", str(tmp_path / "half.pt")), "cpu")


@pytest.mark.parametrize("form", ["pt", "safetensors"])
def test_weights_of_another_size(openai_state, registered, tmp_path, form):
    from safetensors.torch import save_file

    path = tmp_path / f"wide.{form}"
    wide = {**openai_state, "visual.proj": torch.zeros(64, 70)}
    torch.save(wide, path) if form == "pt" else save_file(wide, path)
    with pytest.raises(EncoderError) as error:
        load_encoder(EncoderChoice("clip-test", str(path)), "cpu")
    line = str(error.value)
    assert "they do not fit: size mismatch for visual.proj: copying a param with shape" in line
    assert "[64, 70]" in line
    assert "\n" not in line


def test_without_a_network_the_line_says_which_file_to_get(monkeypatch, tmp_path):
    import huggingface_hub

    def no_network(*_args, **_kwargs):
        raise OSError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(huggingface_hub, "model_info", no_network)
    with pytest.raises(EncoderError) as error:
        load_encoder(EncoderChoice(), "cpu")
    assert "open_clip_model.safetensors" in str(error.value)
    assert "https://huggingface.co/timm/vit_base_patch16_clip_224.openai" in str(error.value)
    assert "take its path as the weights of ViT-B-16-quickgelu" in str(error.value)
    assert "/ViT-B-16.pt and take its path as those of ViT-B-16 (" in str(error.value)


def test_a_hub_name_without_a_network_fails_at_once(monkeypatch):
    """open_clip itself asks for one file after the other, half a minute long."""
    import huggingface_hub
    import open_clip

    def no_network(*_args, **_kwargs):
        raise OSError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "model_info", no_network)
    monkeypatch.setattr(open_clip, "create_model", lambda *_a, **_k: pytest.fail("asked again"))
    with pytest.raises(EncoderError) as error:
        load_encoder(EncoderChoice("hf-hub:org/name"), "cpu")
    assert str(error.value) == (
        "cannot load hf-hub:org/name: download the files of https://huggingface.co/org/name and "
        "take local-dir:PATH of their folder as the model (OSError: Name or service not known)."
    )


@pytest.mark.parametrize(
    ("model", "pretrained", "line"),
    [("ViT-B-99", "openai", "open_clip has no model 'ViT-B-99'"),
     ("ViT-B-16", "nonsense", "'nonsense' is no file and no weights of ViT-B-16 (known: openai"),
     ("local-dir:/nowhere", "openai", "cannot load local-dir:/nowhere")],
)  # fmt: skip
def test_what_cannot_be_loaded(model, pretrained, line):
    with pytest.raises(EncoderError) as error:
        load_encoder(EncoderChoice(model, pretrained), "cpu")
    assert line in str(error.value)


def test_a_device_that_is_not_there():
    with pytest.raises(EncoderError, match="device 'nonsense' cannot be used"):
        load_encoder(EncoderChoice("tiny"), "nonsense")


def test_random_weights_are_the_same_every_time(registered):
    one, other = (load_encoder(EncoderChoice("clip-test", "none"), "cpu") for _ in range(2))
    assert np.array_equal(one.encode_texts(["x"]), other.encode_texts(["x"]))


def test_the_embedded_encoder(tiny):
    assert (tiny.image_size, tiny.embed_dim) == (32, 512)
    assert 10 < tiny.identity["logit_scale"] <= 100
    again = load_encoder(EncoderChoice("tiny"), "cpu")
    prompts = ["a photo of a star.", "a photo of a ring."]
    assert np.array_equal(tiny.encode_texts(prompts), again.encode_texts(prompts))
    assert tiny.encode_texts(prompts)[0] @ tiny.encode_texts(prompts)[1] < 0.95


def test_cut_prompts_give_the_features_of_whole_ones(openai_state, registered, tmp_path):
    torch.save(openai_state, tmp_path / "clip.pt")
    choice = EncoderChoice("clip-test-quickgelu", str(tmp_path / "clip.pt"))
    encoder = load_encoder(choice, "cpu")
    prompts = ["a photo of a star.", "a photo of a green triangle.", "ring", "circle " * 90]
    before = {k: v.clone() for k, v in encoder.model.state_dict().items()}
    for some in (prompts[:3], prompts):
        with torch.inference_mode():
            whole = encoder.model.encode_text(encoder.text._tokenize(some), normalize=True).numpy()
        np.testing.assert_allclose(encoder.encode_texts(some), whole, atol=1e-6)
    after = encoder.model.state_dict()
    assert all(torch.equal(before[k], after[k]) for k in before)


@pytest.mark.parametrize("size", [(32, 32), (40, 300), (300, 41)])
def test_batches_are_preprocessed_as_open_clip_does_it_to_the_bit(tiny, size):
    import open_clip

    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    images = [Image.fromarray(pixels), Image.fromarray(pixels[::-1].copy())]
    config = open_clip.transform.PreprocessCfg(**tiny.model.visual.preprocess_cfg)
    reference = open_clip.transform.image_transform_v2(config, is_train=False)
    expected = torch.stack([reference(image) for image in images])
    assert torch.equal(tiny.normalize(np.stack([tiny.resize(i) for i in images])), expected)
    grey = images[0].convert("L")  # of the final size or not, it gets its three channels
    assert torch.equal(tiny.normalize(np.stack([tiny.resize(grey)]))[0], reference(grey))


def test_half_precision_is_near_and_recorded(tiny):
    half = load_encoder(EncoderChoice("tiny", precision="bf16"), "cpu")
    assert half.identity["precision"] == "bf16"
    images = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    one, other = tiny.encode_images(images), half.encode_images(images)
    cosine = (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert cosine.min() > 0.99
    assert not np.array_equal(one, other)


def test_the_embedded_encoder_brings_its_own_weights():
    assert EncoderChoice("tiny").pretrained == "embedded"
    with pytest.raises(SettingsError, match="brings its own weights"):
        EncoderChoice("tiny", "laion2b")


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
    assert encoder_options(choice) == options
