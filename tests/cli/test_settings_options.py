"""Options and what they stand for: settings of methods, lists and ranges, names in any case."""

import json
import re
from pathlib import Path

import pytest
from made import TINY
from typed import understood

from zsntta_cli.cli.options import RARE, method_settings
from zsntta_cli.methods import METHODS
from zsntta_cli.settings.options import option_name, value_type
from zsntta_cli.simulation.runs import declared

PAIR = (*TINY, "--ood", "glyphs", "--limit", 60)
LISTS = {
    "--seed 0-2": "--seed 0 --seed 1 --seed 2",
    "--seed=1,3-4": "--seed 1 --seed 3 --seed 4",
    "--seed 0–2": "--seed 0-2",
    "--preset Paper,official": "--preset paper --preset official",
    "--columns auroc,fpr95": "--columns auroc --columns fpr95",
    "--ratio natural,0.1": "--ratio natural --ratio 0.1",
    "--threshold adaptive,0.4": "--threshold adaptive --threshold 0.4",
    "--method AdaND,TDA": "--method adand --method tda",
}


@pytest.mark.parametrize("typed", LISTS)
def test_a_list_is_its_values(typed):
    one, several = (understood(["simulate", *text.split()]) for text in (typed, LISTS[typed]))
    assert one == several


def test_names_in_any_case_and_formats_by_other_words(zsntta):
    for one, other in (
        ("datasets show SVHN", "datasets show svhn"),
        ("methods show AdaND --format TeX", "methods show adand --format latex"),
        ("methods show adand --format MD", "methods show adand --format markdown"),
    ):
        assert zsntta(*one.split()).stdout == zsntta(*other.split()).stdout


def example(field):
    """A value of a setting that is not its default."""
    kind, _ = value_type(field)
    if choices := field.metadata["choices"]:
        return next(choice for choice in choices if choice != field.default)
    if kind is bool:
        return "false" if field.default else "true"
    if kind is str:
        return "x"
    if kind is int:
        return (field.default or 1) + 1
    return 0.9 * field.default if field.default else 0.25


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_is_reached_by_its_option_and_by_set(method):
    for field in declared(method).values():
        text = f"{method}.{option_name(field)}={example(field)}"
        of_all, own = method_settings([text])
        [(name, [value])] = own[method].items()
        assert not of_all
        assert name == field.name
        assert value != field.default
        if name in METHODS[method].fields():
            assert METHODS[method].settings(**{name: value}).values()[name] == value


def records(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_value_for_one_method_of_several(cached):
    command = ("simulate", "--method", "zs-clip", "--method", "tda", *PAIR, "--format", "json")
    found = records(cached(*command, "--set", "queue=64", "--set", "tda.queue=32",
                           "--set", "tda.positive-shots=1"))  # fmt: skip
    queues = {r["settings"]["method"]: r["settings"]["threshold"]["queue"] for r in found}
    assert queues == {"zs-clip": 64, "tda": 32}
    assert found[1]["settings"]["options"]["positive_shots"] == 1
    found = records(cached(*command, "--set", "tda.queue=32", "--set", "tda.queue=16",
                           "--set", "tda.threshold=0.5"))  # fmt: skip
    assert [r["settings"]["threshold"]["queue"] for r in found] == [512, 32, 16]
    assert [r["settings"]["threshold"]["fixed"] for r in found] == [None, 0.5, 0.5]


def test_values_of_set_are_of_their_types():
    axes = {
        "tent.learning-rate=1e-3": {"tent": {"learning_rate": [1e-3]}},
        "adand+tent.tent-batch-size=8,16": {"adand+tent": {"tent_batch_size": [8, 16]}},
        "tpt.augmix=no": {"tpt": {"augmix": [False]}},
        "zs-clip.threshold=adaptive,0.5": {"zs-clip": {"fixed": [None, 0.5]}},
        "neglabel.words=a=b,c": {"neglabel": {"words": ["a=b,c"]}},
    }
    for text, of_one in axes.items():
        assert method_settings([text]) == ({}, of_one)
    of_all = method_settings(["warmup=5,10", "warmup=20", "seed=0-2"])
    assert of_all == ({"warmup": [5, 10, 20], "seed": [0, 1, 2]}, {})


def test_the_page_on_streams_has_the_settings_without_an_option():
    page = (Path(__file__).parents[2] / "docs" / "streams.md").read_text(encoding="utf-8")
    section = page[page.index("## Rare settings") : page.index("## Other groups'")]
    told = dict(re.findall(r"^\| `([a-z][a-z-]+)` \|[^|]*\| (\w[\w-]*) \|", section, re.MULTILINE))
    fields = {option_name(field): field for field in declared("zs-clip").values()}
    defaults = {name: str(fields[name].default).lower() for name in RARE}
    assert told == defaults
