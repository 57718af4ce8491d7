"""Weights that are none or others are refused in one line, and no object is unpickled."""

import pickle
import zipfile
from pathlib import Path

import pytest
import released
import torch
from made import CONFIG, refused
from safetensors.torch import save_file

from zsntta_cli.encoders.weights import load_weights
from zsntta_cli.errors import EncoderError
from zsntta_cli.settings import EncoderChoice


@pytest.fixture(autouse=True)
def small(know):
    """A model of 13 MB under a name: the error holds it, and a suite that ran on would grow."""
    know(small=CONFIG)


def write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("words.txt", "none of this is a weight")


def cut(save):
    def write(path):
        save({"a": torch.zeros(1000)}, path)
        path.write_bytes(path.read_bytes()[:2000])

    return write


NO_CHECKPOINTS = {
    "text.pt": lambda path: path.write_text("hello, I am no checkpoint"),
    "noise.pt": lambda path: path.write_bytes(bytes(range(256)) * 20),
    "empty.pt": lambda path: path.touch(),
    "zip.pt": write_zip,
    "list.pt": lambda path: path.write_bytes(pickle.dumps([1, 2, 3])),
    "nothing.pt": lambda path: torch.save({}, path),
    "no names.pt": lambda path: torch.save({1: torch.zeros(2)}, path),
    "cut.pt": cut(torch.save),
    "cut.safetensors": cut(save_file),
    "page.pt": lambda path: path.write_text("<!DOCTYPE html><html>404</html>"),
}


@pytest.mark.parametrize("name", NO_CHECKPOINTS)
def test_a_file_that_is_no_checkpoint_is_refused_in_a_line(tmp_path, name):
    path = tmp_path / name
    NO_CHECKPOINTS[name](path)
    with refused(f"cannot load small with weights '{path}' (", error=EncoderError):
        load_weights(EncoderChoice("small", str(path)))


class Touches:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("how", ["beside weights", "alone"])
def test_objects_are_not_unpickled(tmp_path, how):
    path, ran = tmp_path / "model.pt", tmp_path / "ran"
    if how == "alone":
        path.write_bytes(pickle.dumps(Touches(ran), protocol=2))
    else:
        torch.save({"model": Touches(ran)}, path)
    said = "save the model's state_dict() alone"
    with refused(f"cannot load small with weights '{path}' (", said, error=EncoderError):
        load_weights(EncoderChoice("small", str(path)))
    assert not ran.exists()


@pytest.mark.parametrize("save", [torch.save, save_file], ids=["pt", "safetensors"])
def test_weights_of_another_model_or_size_are_no_broken_file(tmp_path, save):
    path, state = tmp_path / "other", released.clip_state()
    path = path.with_suffix(".pt" if save is torch.save else ".safetensors")
    save({"visual.proj": torch.zeros(2)}, path)
    with refused("they do not fit: ", "Missing key", error=EncoderError):
        load_weights(EncoderChoice("small", str(path)))
    save({**state, "visual.proj": torch.zeros(64, 70)}, path)
    with refused("they do not fit: size mismatch for visual.proj", "[64, 70]", error=EncoderError):
        load_weights(EncoderChoice("small", str(path)))


WRAPPED = {  # how training scripts save a model, and what the note names
    "model.pt": (lambda state: {"model": state, "epoch": 3}, "model: *"),
    "prefixed.bin": (
        lambda state: {"state_dict": {f"module.clip.{name}": of for name, of in state.items()}},
        "state_dict: module.clip.*",
    ),
    "lightning.ckpt": (
        lambda state: {
            "state_dict": {
                "head.weight": torch.zeros(2),
                **{f"m.{k}": v for k, v in state.items()},
            },
            "optimizer": {"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1}]},
        },
        "state_dict: m.*",
    ),
    "parallel.pt": (lambda state: {f"module.{name}": of for name, of in state.items()}, None),
    "beside.pt": (lambda state: {"state_dict": state, "optimizer": {"lr": 0.1}}, None),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_wrapped_weights_are_read_with_a_note(tmp_path, name):
    wrap, place = WRAPPED[name]
    path, state = tmp_path / name, released.clip_state()
    torch.save(wrap(state), path)
    loaded = load_weights(EncoderChoice("small", str(path)))
    assert all(torch.equal(loaded.model.state_dict()[key], of) for key, of in state.items())
    assert loaded.notes == (() if place is None else (
        f"note: {path}: the weights that it has as {place} are read.",
    ))  # fmt: skip


@pytest.mark.parametrize(("save", "name"), [(save_file, "a.pt"), (torch.save, "a.safetensors")])
def test_weights_are_read_by_what_they_are_not_by_their_name(tmp_path, save, name):
    state = released.clip_state()
    save(state, tmp_path / name)
    loaded = load_weights(EncoderChoice("small", str(tmp_path / name)))
    assert loaded.notes == ()
    assert torch.equal(loaded.model.state_dict()["visual.proj"], state["visual.proj"])


def test_an_adapter_is_no_model(tmp_path):
    names = ("base_model.model.text_model.q_proj.lora_A.weight", "logit_scale")
    torch.save({name: torch.ones(1) for name in names}, tmp_path / "adapter_model.bin")
    with refused("adapter of PEFT", "merge_and_unload", error=EncoderError):
        load_weights(EncoderChoice("small", str(tmp_path / "adapter_model.bin")))


def test_of_several_models_none_is_chosen(tmp_path):
    state = released.clip_state()
    torch.save({"model": state, "ema": state}, tmp_path / "two.pt")
    with refused("two.pt has several models (model: *, ema: *): save one", error=EncoderError):
        load_weights(EncoderChoice("small", str(tmp_path / "two.pt")))
