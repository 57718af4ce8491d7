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


NO_CHECKPOINTS = {  # and what is said of it
    "text.pt": (lambda path: path.write_text("hello, I am no checkpoint"), ""),
    "empty.pt": (lambda path: path.touch(), ""),
    "zip.pt": (write_zip, ""),
    "list.pt": (lambda path: path.write_bytes(pickle.dumps([1, 2, 3])), ""),
    "nothing.pt": (lambda path: torch.save({}, path), ""),
    "cut.pt": (cut(torch.save), ""),
    "cut.safetensors": (cut(save_file), ""),
    "object beside.pt": (lambda path: torch.save({"model": Touches()}, path), "state_dict()"),
    "other.pt": (lambda path: torch.save({"visual.proj": torch.zeros(2)}, path), "Missing key"),
    "larger.pt": (
        lambda path: torch.save(released.clip_state() | {"visual.proj": torch.zeros(64, 70)}, path),
        "size mismatch for visual.proj",
    ),
    "adapter.bin": (lambda path: torch.save({"q_proj.lora_A.weight": torch.ones(1)}, path), "PEFT"),
    "two.pt": (
        lambda path: torch.save(dict.fromkeys(("model", "ema"), released.clip_state()), path),
        "(model: *, ema: *)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_CHECKPOINTS)
def test_a_file_that_is_no_such_checkpoint_is_refused_in_a_line(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    write, said = NO_CHECKPOINTS[name]
    write(tmp_path / name)
    with refused(name, said, error=EncoderError):
        loaded(name)
    assert not Path("ran").exists()


def prefixed(prefix, state):
    return {f"{prefix}{name}": tensor for name, tensor in state.items()}


WRAPPED = {  # how training scripts save a model, and what the note names
    "model.pt": (torch.save, lambda state: {"model": state, "epoch": 3}, "model: *"),
    "lightning.ckpt": (
        torch.save,
        lambda state: {"state_dict": {"head.weight": torch.zeros(2), **prefixed("m.clip.", state)},
                       "optimizer": {"param_groups": [{"lr": 0.1}]}},
        "state_dict: m.clip.*",
    ),
    "parallel.pt": (torch.save, lambda state: prefixed("module.", state), ""),
    "beside.pt": (torch.save, lambda state: {"state_dict": state, "optimizer": {"lr": 0.1}}, ""),
    "of torch.safetensors": (torch.save, lambda state: state, ""),
    "of safetensors.pt": (save_file, lambda state: state, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPED)
def test_wrapped_weights_are_read_with_a_note(tmp_path, name):
    (save, wrap, place), state = WRAPPED[name], released.clip_state()
    save(wrap(state), tmp_path / name)
    weights = loaded(tmp_path / name)
    assert all(torch.equal(weights.model.state_dict()[key], of) for key, of in state.items())
    assert [f"under {place} " in note for note in weights.notes] == [True] * bool(place)
