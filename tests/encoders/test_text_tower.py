"""Text features without the image side of an encoder: the same to the bit, or not at all."""

import shutil
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from made import CONFIG, Notes
from safetensors.torch import save_file

from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.encoders import clip
from zsntta_cli.encoders.clip import load_encoder, load_text_tower
from zsntta_cli.errors import EncoderError, StoreError
from zsntta_cli.settings import EncoderChoice

PROMPTS = ["a photo of a cat.", "a photo of a very long-haired dog, in a park.", ""]


@pytest.fixture
def small(know, tmp_path):
    """Weights of chance in a file, of a small architecture that open_clip knows meanwhile."""
    know(small=CONFIG, small_quickgelu={**CONFIG, "quick_gelu": True})
    path = tmp_path / "small.safetensors"
    torch.manual_seed(1)
    save_file(open_clip.create_model("small").state_dict(), path)
    return path


@pytest.mark.parametrize("precision", ["fp32", "amp"])
@pytest.mark.parametrize("model", ["small", "small-quickgelu"])
def test_its_features_are_those_of_the_whole_encoder(small, model, precision):
    choice = EncoderChoice(model, str(small), precision)
    whole = load_encoder(choice, "cpu")
    tower, identity = load_text_tower(choice, "cpu")
    assert (tower.encode(PROMPTS) == whole.encode_texts(PROMPTS)).all()
    assert identity.items() <= whole.identity.items()
    assert identity["quick_gelu"] == (model != "small")


def test_there_is_no_image_side_in_it(small, monkeypatch):
    models = []
    tower_of = clip.TextTower
    monkeypatch.setattr(
        clip, "TextTower", lambda model, *more: models.append(model) or tower_of(model, *more)
    )
    load_text_tower(EncoderChoice("small", str(small)), "cpu")
    [model] = models
    assert model.visual is None
    assert not any(name.startswith("visual") for name, _ in model.named_parameters())


def test_what_has_no_text_side_of_its_own_is_loaded_whole(small, tmp_path):
    state = load_encoder(EncoderChoice("small", str(small)), "cpu").model.state_dict()
    torch.save(state, tmp_path / "small.pt")
    lacking = {name: state[name] for name in state if name != "text_projection"}
    save_file(lacking, tmp_path / "lacking.safetensors")
    wide = {**state, "text_projection": torch.zeros(64, 33)}
    save_file(wide, tmp_path / "wide.safetensors")
    for choice in (
        EncoderChoice("small", str(tmp_path / "small.pt")),
        EncoderChoice("small", str(tmp_path / "lacking.safetensors")),
        EncoderChoice("small", str(tmp_path / "wide.safetensors")),
        EncoderChoice("small", str(small), "bf16"),
        EncoderChoice("small", "none"),
        EncoderChoice("tiny"),
    ):
        assert load_text_tower(choice, "cpu") is None
    (tmp_path / "broken.safetensors").write_bytes(small.read_bytes()[:999])
    with pytest.raises(EncoderError, match="cannot load small"):
        load_text_tower(EncoderChoice("small", str(tmp_path / "broken.safetensors")), "cpu")


def encoding(path, root, model="small"):
    return Encoding(EncoderChoice(model, str(path)), root, "cpu", 1, Notes())


def test_new_names_are_encoded_without_the_image_side(small, tmp_path, monkeypatch):
    root, template = tmp_path / "features", "a photo of a {}."
    with encoding(small, root).store:
        first = encoding(small, root)
        first.texts(["cat"], template)  # of an encoder that nobody knows yet: whole
        assert "encoder" in vars(first)
    monkeypatch.setattr(clip, "load_encoder", lambda *_: pytest.fail("it was loaded whole"))
    second = encoding(small, root)
    rows = second.texts(["cat", "dog"], template)
    third = encoding(small, root)
    monkeypatch.setattr(clip, "load_text_tower", lambda *_: pytest.fail("nothing is new"))
    assert (third.texts(["dog", "cat"], template) == rows[::-1]).all()
    for one in (first, second, third):
        one.store.close()


def test_the_text_side_of_other_weights_is_refused(small, tmp_path, monkeypatch):
    """A tag's weights are looked at when they are loaded, and not before."""
    root, other = tmp_path / "features", tmp_path / "other.safetensors"
    torch.manual_seed(2)
    save_file(open_clip.create_model("small").state_dict(), other)
    where = [small]
    monkeypatch.setattr("zsntta_cli.encoders.weights._weights_file", lambda _: ({}, Path(where[0])))
    with (first := encoding("tagged", root)).store:
        first.texts(["cat"], "{}")
    where[0] = other
    with (second := encoding("tagged", root)).store, pytest.raises(StoreError) as error:
        second.texts(["dog"], "{}")
    assert "another encoder than this is now (weights_sha256" in str(error.value)
    shutil.copyfile(small, tmp_path / "again.safetensors")
    where[0] = tmp_path / "again.safetensors"
    with (third := encoding("tagged", root)).store:
        assert np.isfinite(third.texts(["dog"], "{}")).all()
