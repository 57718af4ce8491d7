"""Weights that are none: one line that says so, not what Python, torch or open_clip say."""

import pickle
import zipfile
from collections import OrderedDict

import open_clip.factory
import pytest
import torch
from made import CONFIG
from safetensors.torch import save_file

from zsntta_cli.encoders.weights import load_weights
from zsntta_cli.errors import EncoderError
from zsntta_cli.settings import EncoderChoice


class Anything:
    """An object that a pickle would make."""


def write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("words.txt", "none of this is a weight")


def write_cut(path):
    torch.save({"a": torch.zeros(1000)}, path)
    path.write_bytes(path.read_bytes()[:2000])


def write_cut_tensors(path):
    save_file({"a": torch.zeros(1000)}, path)
    path.write_bytes(path.read_bytes()[:2000])


NO_CHECKPOINTS = {
    "text.pt": lambda path: path.write_text("hello, I am no checkpoint"),
    "noise.pt": lambda path: path.write_bytes(bytes(range(256)) * 20),
    "noise.safetensors": lambda path: path.write_bytes(bytes(range(256)) * 20),
    "empty.pt": lambda path: path.touch(),
    "empty.safetensors": lambda path: path.touch(),
    "zip.pt": write_zip,
    "list.pt": lambda path: path.write_bytes(pickle.dumps([1, 2, 3])),
    "numbers.pt": lambda path: torch.save([1, 2, 3], path),
    "nothing.pt": lambda path: torch.save({}, path),
    "nothing within.pt": lambda path: torch.save({"state_dict": {}}, path),
    "a list within.pt": lambda path: torch.save({"state_dict": [1]}, path),
    "no names.pt": lambda path: torch.save({1: torch.zeros(2)}, path),
    "cut.pt": write_cut,
    "cut.safetensors": write_cut_tensors,
    "page.pt": lambda path: path.write_text("<!DOCTYPE html><html>404</html>"),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A model of 13 MB under a name: the error holds it, and a suite that ran on would grow."""
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "small", CONFIG)


def refusal(path):
    with pytest.raises(EncoderError) as caught:
        load_weights(EncoderChoice("small", str(path)))
    return str(caught.value)


@pytest.mark.parametrize("name", NO_CHECKPOINTS)
def test_a_file_that_is_no_checkpoint_is_said_to_be_none(tmp_path, name):
    path = tmp_path / name
    NO_CHECKPOINTS[name](path)
    assert refusal(path) == f"cannot load small with weights '{path}': the file is no checkpoint."


def test_objects_beside_weights_are_not_unpickled(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"model": Anything()}, path)
    assert refusal(path) == (
        f"cannot load small with weights '{path}': the file has objects beside weights, which are "
        f"not unpickled: save only the model's state_dict()."
    )


@pytest.mark.parametrize("name", ["other.pt", "other.safetensors"])
def test_weights_of_another_model_are_no_broken_file(tmp_path, name):
    path, state = tmp_path / name, OrderedDict(a=torch.zeros(3))
    save_file(state, path) if name.endswith(".safetensors") else torch.save(state, path)
    message = refusal(path)
    assert "they do not fit" in message
    assert "\n" not in message
