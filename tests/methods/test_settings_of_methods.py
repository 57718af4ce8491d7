"""The settings of methods: what is out of range, the numbers of papers and of released codes."""

import dataclasses

import pytest

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods.detectors import adand
from zsntta_cli.simulation.runs import build_run


def options(method, id_set="", preset="paper", **values):
    return build_run(method, "", id_set, None, "a {}.", preset, **values).options


WRONG = [
    ("mcm", {"temperature": 0.0}, "temperature is 0.0, must be 0.0001 or more."),
    ("cull", {"cull_first": 1}, "cull-first is 1, must be 2 or more."),
    ("oodd", {"oodd_items": 5}, "oodd-items is 5, must be above oodd-neighbour, 5."),
    ("tda", {"entropy_low": 0.5}, "entropy-low is 0.5 and entropy-high 0.5, must be "),
    ("adand+tda", {"mask_low": 0.5, "mask_high": 0.4}, "mask-low is 0.5 and mask-high 0.4, must"),
    ("adand+tda", {"mask_high": 1.5}, "mask-high is 1.5, must be in [0, 1]."),
    ("onzeta", {"onzeta_balance": 1.5}, "onzeta-balance is 1.5, must be in [0, 1]."),
    ("cull+dota", {"dota_shrinkage": 0.0}, "dota-shrinkage is 0.0, must be in (0, 1]."),
    ("tent", {"pipeline": "best"}, "pipeline is 'best', must be one of: normal, gt, all."),
    ("tent", {"optimizer": "lion"}, "optimizer is 'lion', must be one of: "),
    ("sotta", {"frozen_blocks": "8-11"}, "frozen-blocks is '8-11' (did you mean '9-11'?)"),
    ("tpt", {"keep": 0.0}, "keep is 0.0, must be "),
    ("rosita", {"rosita_weight": -1.0}, "rosita-weight is -1.0, must be 0 or more."),
    ("adand+tent", {"tent_batch_size": 0}, "batch-size is 0, must be 1 or more."),
    ("adand+tent", {"detector_features": "live"}, "detector-features is 'live', must be one of: "),
    (
        "adand+tent",
        {"detector_features": "adapted", "batch_size": 48},
        "tent-batch-size is 64 and batch-size 48",
    ),
]


@pytest.mark.parametrize(("method", "values", "message"), WRONG)
def test_what_is_out_of_range_is_said(method, values, message):
    with pytest.raises(SettingsError) as error:
        options(method, **values)
    assert message in str(error.value)


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
