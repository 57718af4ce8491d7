"""The settings of methods: the numbers of papers and of released codes."""

import dataclasses

import pytest

from zsntta_cli.methods.detectors import adand
from zsntta_cli.simulation.runs import build_run


def options(method, id_set="", preset="paper", **values):
    return build_run(method, "", id_set, None, "a {}.", preset, **values).options


def test_adands_defaults_are_the_papers():
    """Sec. 5.1, and variants of the appendix and of the released code are off."""
    assert dataclasses.asdict(adand.AdaND.Settings()) == {
        "batch_size": 1, "update_every": 128, "warmup": 10, "learning_rate": 5e-4,
        "reevaluate": True, "late_start": False, "pseudo_labels": "frozen",
    }  # fmt: skip
    assert adand.AdaND.Settings().warm_up == 1280
    assert adand.AdaND.Settings(late_start=True).warm_up == 1281
    assert adand.AdaND.Settings(batch_size=16, warmup=3).warm_up == 48
    assert adand.AdaND.Settings(batch_size=16, warmup=3, late_start=True).warm_up == 64
    assert adand.AdaND.Settings.warm_up_by == "warmup x update-every"


# By a method and a set: what the paper has, and what the released code has.
NUMBERS = [
    ("neglabel", "", {"word_prompts": "run", "mined_share": None, "negatives": 10_000},
     {"word_prompts": "speech", "mined_share": 0.15, "groups": 100, "grouping": "random",
      "percentile": 0.05}),
    ("logitgap", "imagenet", {"logitgap_others": None}, {"logitgap_others": 88}),
    ("logitgap", "cifar10", {"logitgap_others": None}, {"logitgap_others": 5}),
    ("logitgap", "pets37", {"logitgap_others": None}, {"logitgap_others": None}),
    ("dde", "imagenet",
     {"dde_exclusion": 0.5, "dde_doubled": False, "dde_cells": "exact", "dde_words": 500,
      "dde_gate": 0.5},
     {"dde_exclusion": 0, "dde_doubled": True, "dde_cells": "grid", "dde_words": 500,
      "dde_gate": 0.5}),
    ("dde", "cars196", {"dde_words": 100, "dde_gate": 0.5}, {"dde_words": 100, "dde_gate": 0.1}),
    ("dde", "pets37", {"dde_gate": 0.5}, {"dde_words": 50, "dde_gate": 0.1}),
    ("dde", "cifar10", {"dde_gate": 0.5}, {"dde_words": 5, "dde_gate": 0.5}),
    ("dde", "imagenet-c:fog:1", {"dde_gate": 0.5}, {"dde_words": 500, "dde_gate": 0.5}),
    ("dde", "pets37-12-s0-id", {"dde_gate": 0.5}, {"dde_words": 100, "dde_gate": 0.5}),
    ("oga", "cifar10", {"oga_short_means": False}, {"oga_short_means": True}),
    ("onzeta", "", {}, {"onzeta_mix_items": 0}),
    ("sotta", "", {"frozen_blocks": "last"}, {"frozen_blocks": "9-11"}),
    ("tent", "imagenet-a", {"optimizer": "sgd", "learning_rate": 2.5e-4}, {}),
    ("unient", "imagenet-a", {"optimizer": "sgd", "learning_rate": 2.5e-4}, {}),
    ("ostta", "imagenet-a", {"optimizer": "sgd", "learning_rate": 2.5e-4}, {}),
    ("tent", "", {"optimizer": "adam", "learning_rate": 1e-4}, {}),
    ("unient", "", {"optimizer": "adam", "learning_rate": 1e-4}, {}),
    ("ostta", "", {"optimizer": "adam", "learning_rate": 1e-4}, {}),
    ("tpt", "imagenet", {"augmix": False}, {}),
    ("tpt", "cifar10", {"augmix": True}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "id_set", "paper", "official"), NUMBERS)
def test_presets_have_the_numbers_of_the_paper_and_of_its_code(method, id_set, paper, official):
    for preset, expected in (("paper", paper), ("official", official)):
        found = options(method, id_set, preset).values()
        assert {name: found[name] for name in expected} == expected
