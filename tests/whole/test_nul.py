"""A NUL in a path or name of the Python API, or of an experiment file, is one line."""

import pytest
from made import refused

import zsntta_cli as zsntta
from zsntta_cli.results.experiment import read_experiment

BAD = "a\0b"
SIMULATE = ("features_dir", "records", "id_set", "ood_set", "encoder", "prompt", "preset", "model",
            "pretrained", "words", "no_text", "plugins")  # fmt: skip
EXTRACT = ("features_dir", "data_root", "model", "pretrained", "prompts", "words")
DETECTOR = ("photos", "prompt", "method")
EXPERIMENT = ("features", "records", "data")


def given(name):
    return [BAD] if name in ("plugins", "prompts", "words") else BAD


def simulate(name):
    usual = {"id_set": "shapes", "ood_set": "glyphs", "model": "tiny"}
    zsntta.simulate("zs-clip", **{**usual, name: given(name)})


def extract(name):
    zsntta.extract("shapes", **{"model": "tiny", name: given(name)})


def detector(name):
    encoder = zsntta.load_encoder(zsntta.EncoderChoice("tiny"))
    names = {} if name == "photos" else {"names": ["circle", "square"]}
    zsntta.Detector.of(encoder, **names, **{name: BAD})


def experiment(name):
    with open("e.toml", "w") as file:
        file.write(f'{name} = "a\\u0000b"\n[[runs]]\nmethods = ["zs-clip"]\nid = "shapes"\n')
    read_experiment("e.toml")


@pytest.mark.parametrize(
    ("call", "name"),
    [(call, name)
     for call, names in ((simulate, SIMULATE), (extract, EXTRACT), (detector, DETECTOR),
                         (experiment, EXPERIMENT))
     for name in names],
)  # fmt: skip
def test_it_is_refused_in_one_line(tmp_path, monkeypatch, call, name):
    monkeypatch.chdir(tmp_path)
    with refused():
        call(name)
