"""Files of weights: wrapped as training scripts wrap them, or refused; nothing is unpickled."""

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


def loaded(path):
    return load_weights(EncoderChoice("small", str(path)))


def write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("words.txt", "none of this is a weight")


def cut(save):
    def write(path):
        save({"a": torch.zeros(1000)}, path)
        path.write_bytes(path.read_bytes()[:2000])

    return write


class Touches:
    """An object that makes a file when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("ran"),)


MORE = "save only the model's state_dict()"
NO_CHECKPOINTS = {  # and what is said of it
    "text.pt": (lambda path: path.write_text("hello, I am no checkpoint"), ""),
    "empty.pt": (lambda path: path.touch(), ""),
    "zip.pt": (write_zip, ""),
    "list.pt": (lambda path: path.write_bytes(pickle.dumps([1, 2, 3])), ""),
    "nothing.pt": (lambda path: torch.save({}, path), ""),
    "cut.pt": (cut(torch.save), ""),
    "cut.safetensors": (cut(save_file), ""),
    "object beside.pt": (lambda path: torch.save({"model": Touches()}, path), MORE),
    "other.pt": (lambda path: torch.save({"visual.proj": torch.zeros(2)}, path),
                 "they do not fit: Missing key"),
    "larger.pt": (
        lambda path: torch.save(released.clip_state() | {"visual.proj": torch.zeros(64, 70)}, path),
        "they do not fit: size mismatch for visual.proj",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_CHECKPOINTS)
def test_a_file_that_is_no_such_checkpoint_is_refused_in_a_line(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    write, said = NO_CHECKPOINTS[name]
    write(tmp_path / name)
    with refused(f"cannot load small with weights '{name}' (", said, error=EncoderError):
        loaded(name)
    assert not Path("ran").exists()


def test_an_adapter_is_no_model_and_of_several_models_none_is_chosen(tmp_path):
    torch.save({"model.q_proj.lora_A.weight": torch.ones(1)}, tmp_path / "adapter_model.bin")
    with refused("has a PEFT adapter instead of a complete model", error=EncoderError):
        loaded(tmp_path / "adapter_model.bin")
    torch.save(dict.fromkeys(("model", "ema"), released.clip_state()), tmp_path / "two.pt")
    with refused("two.pt has several models (model: *, ema: *): save only one", error=EncoderError):
        loaded(tmp_path / "two.pt")


def prefixed(prefix, state):
    return {f"{prefix}{name}": tensor for name, tensor in state.items()}


WRAPPED = {  # how training scripts save a model, and what the note names
    "model.pt": (lambda state: {"model": state, "epoch": 3}, "model: *"),
    "prefixed.bin": (
        lambda state: {"state_dict": prefixed("module.clip.", state)}, "state_dict: module.clip.*",
    ),
    "lightning.ckpt": (
        lambda state: {"state_dict": {"head.weight": torch.zeros(2), **prefixed("m.", state)},
                       "optimizer": {"param_groups": [{"lr": 0.1}]}},
        "state_dict: m.*",
    ),
    "parallel.pt": (lambda state: prefixed("module.", state), ""),
    "beside.pt": (lambda state: {"state_dict": state, "optimizer": {"lr": 0.1}}, ""),
    "of torch.safetensors": (lambda state: state, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPED)
def test_wrapped_weights_are_read_with_a_note(tmp_path, name):
    wrap, place = WRAPPED[name]
    path, state = tmp_path / name, released.clip_state()
    torch.save(wrap(state), path)
    weights = loaded(path)
    assert all(torch.equal(weights.model.state_dict()[key], of) for key, of in state.items())
    note = f"note: {path}: the weights under {place} are used."
    assert weights.notes == ((note,) if place else ())


def test_tensors_of_safetensors_are_read_whatever_the_ending(tmp_path):
    state = released.clip_state()
    save_file(state, tmp_path / "a.pt")
    weights = loaded(tmp_path / "a.pt")
    assert torch.equal(weights.model.state_dict()["visual.proj"], state["visual.proj"])
    assert not weights.notes
