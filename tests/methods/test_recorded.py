"""The answers of each method on made-up streams, when it agreed with its authors' code.

docs/compared.md says what was compared. A change of an equation changes answers here; rounding may
change one in a hundred. Whoever changes a rule on purpose writes them anew:
`ZSNTTA_RECORD=1 pytest tests/methods/test_recorded.py`.
"""

import os

import numpy as np
import pytest
import released
import torch
import towers
from made import FIXTURES
from streams import decide, near_words

from zsntta_cli.methods.live import rosita
from zsntta_cli.settings import ThresholdSettings

PATH = FIXTURES / "answers.npz"
COLUMNS = "is_noise", "class_index", "id_score"
CACHED = {
    "adand": {"update_every": 32, "warmup": 2, "learning_rate": 0.01},
    "adand in batches": {"batch_size": 16, "warmup": 3, "learning_rate": 0.01},
    "adand official": {"update_every": 32, "warmup": 2, "reevaluate": False, "late_start": True},
    "adand own labels": {"update_every": 32, "warmup": 2, "pseudo_labels": "detector"},
    "cull": {"cull_first": 16, "cull_ring": 100}, "cull in order": {"cull_first": 16},
    "oodd": {"oodd_items": 60},
    "oodd official": {"oodd_items": 60, "batch_size": 16, "oodd_temperature": 1.0},
    "cma": {"cma_times": 2},
    "etlt": {},
    "neglabel": {}, "neglabel by mean": {"groups": 4, "group_mass": "mean"},
    "csp": {"mined_share": 0.5, "groups": 6}, "csp far": {"mined_share": 0.4, "too_near": 0.3},
    "adaneg": {}, "adaneg few": {"adaneg_shots": 2, "gap": 0.2, "adaneg_text": 0.7},
    "adaneg official": {"adaneg_shots": 9, "adaneg_sure": 0.5},
    "tanl": {"tanl_words": 20}, "tanl small": {"tanl_words": 15, "tanl_ring": 10, "gap": 0.2},
    "tanl mined": {"tanl_candidates": "mined", "negatives": 25, "tanl_step": 0, "tanl_words": 8},
    "dde": {"batch_size": 32, "dde_words": 10},
    "dde official": {"batch_size": 20, "dde_words": 9, "dde_doubled": True, "dde_cells": "grid"},
    "dde small": {"batch_size": 50, "dde_exclusion": 3.0, "dde_cache": 12, "negatives": 23},
    "tda": {"positive_alpha": 4.0},
    "oga": {}, "oga official": {"oga_short_means": True},
    "onzeta": {"onzeta_mix_items": 100}, "onzeta official": {"onzeta_mix_items": 0},
    "bca": {}, "bca moving": {"bca_mean_items": 2.0, "bca_prior_least": 0.3},
    "dla": {"dla_strength": 3.0}, "dmn": {}, "dmn few": {"dmn_shots": 2, "dmn_sharpness": 1.0},
    "dota": {"dota_weight": 0.4},
    "stata": {"block": 20}, "transclip": {"block": 20}, "lame": {"block": 20},
    "lame strong": {"block": 20, "lame_neighbours": 2, "lame_strength": 4.0},
}  # fmt: skip
LIVE = {
    "unient": {"batch_size": 32, "learning_rate": 1e-3},
    "unient soft": {"batch_size": 32, "learning_rate": 1e-3, "unient_soft": True},
    "ostta": {"batch_size": 32, "learning_rate": 1e-3},
    "rosita": {"rosita_neighbours": 2, "rosita_undesired": 8, "learning_rate": 0.01},
    "adand+tent": {"update_every": 16, "warmup": 2, "tent_batch_size": 32},
    "adand+tent shared": {
        "update_every": 16, "warmup": 2, "tent_batch_size": 32, "detector_features": "adapted",
        "tent_learning_rate": 1e-3,
    },
}  # fmt: skip


def assert_as_recorded(case, found, atol):
    known = dict(np.load(PATH)) if PATH.exists() else {}
    if "ZSNTTA_RECORD" in os.environ:
        known |= {f"{case}/{name}": vars(found)[name] for name in COLUMNS}
        known[f"{case}/id_score"] = found.id_score.astype(np.float32)
        np.savez_compressed(PATH, **known)
    is_noise, class_index, id_score = (known[f"{case}/{name}"] for name in COLUMNS)
    assert 0.02 < is_noise.mean() < 0.98
    assert (found.is_noise != is_noise).mean() <= 0.01
    assert (found.class_index != class_index).mean() <= 0.01
    np.testing.assert_allclose(found.id_score, id_score, atol=atol)


@pytest.mark.parametrize("case", CACHED)
def test_answers_from_features(case):
    """Of 300 items about eight names, and about words."""
    data = near_words(11, items=300, classes=8)
    if case == "cull in order":
        data = data.part(np.argsort(data.class_index, kind="stable"))
    found, _ = decide(case.partition(" ")[0], data, ThresholdSettings(queue=64), **CACHED[case])
    assert_as_recorded(case, found, 2e-4)


@pytest.mark.parametrize("case", LIVE)
def test_answers_of_live_methods(case, clip, monkeypatch):
    """Of the first inputs of the released code's vectors."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    monkeypatch.setattr(rosita, "load_views", towers.noisy_crops)
    names = [str(name) for name in released.load("live")["class_names"]]
    data = towers.of_inputs(clip, released.live_inputs()[0][:128], names)
    run = towers.live_run(case.partition(" ")[0], **LIVE[case])
    assert_as_recorded(case, towers.decided(data, run), 2e-3)
