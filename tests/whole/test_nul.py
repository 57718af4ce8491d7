"""A NUL in any path or name of the Python API, or of an experiment file, is one line."""

import warnings
from pathlib import Path

import pytest

import zsntta_cli as zsntta
from zsntta_cli.errors import ZsnttaError
from zsntta_cli.results.experiment import read_experiment
from zsntta_cli.settings import LiveSettings

BAD = "a\0b"
SIMULATE = (
    "features_dir", "records", "id_set", "ood_set", "encoder", "prompt", "preset", "model",
    "pretrained", "words", "no_text", "plugins",
)  # fmt: skip
EXTRACT = ("features_dir", "data_root", "model", "pretrained", "prompts", "words")
DETECTOR = ("class_photos", "others", "pretrained", "prompt", "method")
LISTS = ("plugins", "prompts")


def one_line(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ZsnttaError) as caught:
            call()
    assert "\n" not in str(caught.value)


def given(name):
    return [BAD] if name in LISTS or name == "words" else BAD


@pytest.mark.parametrize("method", ["zs-clip", "neglabel", "clipn"])
@pytest.mark.parametrize("name", SIMULATE)
def test_simulate(tmp_path, monkeypatch, name, method):
    monkeypatch.chdir(tmp_path)
    usual = {"id_set": "shapes", "ood_set": "glyphs", "model": "tiny"}
    one_line(lambda: zsntta.simulate(method, **{**usual, name: given(name)}))


@pytest.mark.parametrize("name", EXTRACT)
def test_extract(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    one_line(lambda: zsntta.extract("shapes", **{"model": "tiny", name: given(name)}))


@pytest.mark.parametrize("named", [BAD, f"x={BAD}", f"{BAD}=x"])
def test_a_set_to_extract(tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    one_line(lambda: zsntta.extract(named, model="tiny"))


@pytest.mark.parametrize("name", DETECTOR)
def test_a_detector(name):
    usual = {"class_names": ["circle", "square"], "model": "tiny"}
    if name == "class_photos":
        usual.pop("class_names")
    one_line(lambda: zsntta.NoiseDetector(**{**usual, name: BAD}))


def test_a_detectors_files():
    detector = zsntta.NoiseDetector(["circle", "square"], model="tiny")
    one_line(lambda: detector.predict(BAD))
    one_line(lambda: detector.predict([BAD]))


@pytest.mark.parametrize(
    "values",
    [{"data_root": BAD}, {"data_root": Path(BAD)}, {"datasets": (f"x={BAD}",)},
     {"pretrained": BAD}],
)  # fmt: skip
def test_where_live_methods_read(values):
    one_line(lambda: LiveSettings(**values))


def test_where_live_methods_read_may_be_a_path():
    assert LiveSettings(data_root=Path("data"), pretrained=Path("weights.pt"))


@pytest.mark.parametrize(
    "line", ['features = "{}"', 'records = "{}"', 'data = "{}"', 'datasets = ["x={}"]',
             '[[tables]]\noutput = "{}"', '[[figures]]\noutput = "{}"']
)  # fmt: skip
def test_an_experiment_file(tmp_path, line):
    path = tmp_path / "e.toml"
    runs = '[[runs]]\nmethods = ["zs-clip"]\nid = "shapes"\nood = "glyphs"\n'
    text = line.format("a\\u0000b")
    path.write_text(f"{text}\n{runs}" if not line.startswith("[[") else f"{runs}{text}\n")
    one_line(lambda: read_experiment(path))
