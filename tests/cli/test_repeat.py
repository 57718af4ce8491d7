"""The command that a report shows for a row: read back, it is these runs and no others."""

import importlib
import itertools
import shlex

import pytest
from typer.testing import CliRunner

from zsntta_cli.cli import app
from zsntta_cli.cli.results.report import repeat_command
from zsntta_cli.methods import METHODS
from zsntta_cli.settings.options import value_type
from zsntta_cli.simulation.runs import PRESETS, build_run, declared


@pytest.fixture
def read_back(monkeypatch, tmp_path):
    """The runs that a command line stands for."""
    met = []

    class Asked(Exception):
        pass

    def remember(_root, asked, *_):
        met.append(list(asked))
        raise Asked

    monkeypatch.setattr(importlib.import_module("zsntta_cli.cli.simulate"), "_run", remember)
    monkeypatch.chdir(tmp_path)

    def read(line):
        program, *words = shlex.split(line)
        assert program == "zsntta"
        result = CliRunner().invoke(app, words)
        assert isinstance(result.exception, Asked), result.output
        return met.pop()

    return read


def runs(method="adand", id_set="cifar10", oods=("svhn",), seeds=(0,), **values):
    prompt, encoder = values.pop("prompt", "a photo of a {}."), values.pop("encoder", "tiny")
    return [
        build_run(method, encoder, id_set, ood, prompt, **{"seed": seed, **values})
        for ood in oods for seed in seeds
    ]  # fmt: skip


def test_a_command_by_hand():
    assert repeat_command(runs(oods=("svhn", "lsun"), seeds=(0, 3), ratio=0.25)) == (
        "zsntta simulate --method adand --model tiny --id cifar10 --ood svhn --ood lsun "
        "--ratio 0.25 --seed 0 --seed 3"
    )
    assert repeat_command(runs("zs-clip", ratio=0, encoder="ViT-B-16-openai")) == (
        "zsntta simulate --method zs-clip --id cifar10 --ratio 0 --seed 0"
    )
    assert repeat_command(runs(preset="official", fixed=0.3, encoder="RN50-openai")) == (
        "zsntta simulate --method adand --model RN50 --id cifar10 --ood svhn --preset official "
        "--ratio 0.5 --seed 0 --threshold 0.3"
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_method_and_preset_is_read_back(read_back, method):
    for preset, id_set in itertools.product(PRESETS, ("cifar10", "imagenet", "pets37")):
        asked = runs(method, id_set, ("svhn", "my set"), (0, 1), preset=preset, ratio=0.3)
        assert read_back(repeat_command(asked)) == asked, (preset, id_set)


_WITHIN_OTHERS = {  # settings whose range is another setting
    "entropy_low": 0.3, "entropy_high": 0.9, "mask_low": 0.07, "mask_high": 0.9,
    "ridge_first": 5, "ridge_ring": 5000, "oodd_items": 5000, "batch_size": 32,
    "tent_batch_size": 96,
}  # fmt: skip


def changed(name, field):
    """Another value of a setting than its default."""
    if name in _WITHIN_OTHERS:
        return _WITHIN_OTHERS[name]
    kind, said = value_type(field)[0], field.metadata
    if kind is bool:
        return not field.default
    if said["choices"]:
        return next(choice for choice in said["choices"] if choice != field.default)
    if kind is str:
        return '-it\'s "odd" $HOME'
    options = (0.35, 0.07, 3.25) if kind is float else (7, 5000)
    return next(x for x in options if said["within"] is None or x in said["within"])


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_is_read_back(read_back, method):
    values = {name: changed(name, field) for name, field in declared(method).items()}
    assert all(value != declared(method)[name].default for name, value in values.items())
    for preset, part in itertools.product(PRESETS, ((0, 1), (0, 2), (1, 2))):
        some = dict(list(values.items())[part[0] :: part[1]])
        asked = runs(method, preset=preset, **some)
        assert read_back(repeat_command(asked)) == asked, (preset, some)


@pytest.mark.parametrize("name", ["-x", "it's", "<img src=x onerror=alert(1)>", "$(rm x)", "a;b"])
def test_names_are_quoted(read_back, name):
    asked = runs("zs-clip", name, (f"{name}2",), prompt=f"{name} {{}}", encoder=f"{name}3")
    assert read_back(repeat_command(asked)) == asked
    assert shlex.split(repeat_command(asked))[0] == "zsntta"
