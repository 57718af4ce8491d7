"""What is said of runs before they start, and runs of methods that ask for texts."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import PROMPT

import zsntta_cli
from zsntta_cli.cache.store import Features
from zsntta_cli.simulation.notes import run_notes
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, OOD

PAIR = ("--id", "pets", "--ood", "sky", "--noise", "none")
WARM_UP = " decides as zs-clip does throughout: a stream of "


def test_a_stream_within_the_warm_up_of_any_method_is_told(simulate):
    result = simulate("--method", "adand,cull,oodd", *PAIR, "--limit", 40, "--jobs", 1)
    first, second = [line.strip() for line in result.stdout.splitlines() if WARM_UP in line]
    assert (first.split()[0], second.split()[0]) == ("adand", "cull")
    assert (first.endswith("(warmup x update-every)."), second.endswith("(cull-first).")) == (1, 1)


def test_in_python_a_note_is_a_warning_and_stands_in_the_record(features, tmp_path):
    sets = {"id_set": "pets", "ood_set": "sky", "encoder": "made", "features_dir": features}
    sets |= {"noise": "none", "ood_fill": "cap", "ratio": 0.25, "records": tmp_path / "kept.sqlite"}
    with pytest.warns(UserWarning, match=f"adand{WARM_UP}") as warned:
        [record] = zsntta_cli.simulate("adand", limit=40, **sets)
    assert warned[0].filename == __file__
    assert [note.kind for note in record.notes] == ["warm-up"]
    assert f"adand{WARM_UP}" in zsntta_cli.table([record])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [started] = zsntta_cli.simulate("adand", limit=40, warmup=1, update_every=8, **sets)
    assert started.notes == ()


def test_a_score_without_a_decision_has_its_note_under_accuracies_alone(simulate):
    accuracies = simulate("--method", "max-logit", *PAIR)
    assert "max-logit gives a score but no decision" in accuracies.stdout
    assert "no decision" not in simulate("--method", "max-logit", *PAIR, "--report", "ood").stdout


@pytest.mark.parametrize(
    ("ood_names", "digest", "said"),
    [
        (("fox",), "2", []),
        (("Big_Dog", "fox", "CAT"), "2", ["'a' and 'b' share 2 classes (cat, big dog)"]),
        (("fox",), "1", ["'a' and 'b' have the same images"]),
    ],
)
def test_what_id_and_ood_set_have_in_common_is_told(ood_names, digest, said):
    rows, labels = np.zeros((1, 4), np.float16), np.zeros(1, np.int32)
    names = ("cat", "big dog")
    id_set = Features(Path(), "dataset", "a", {}, {}, rows, labels, names, digest="1")
    ood_set = replace(id_set, name="b", class_names=ood_names, digest=digest)
    sources = Sources(RunSettings("zs-clip", "made", "a", "b", PROMPT), {ID: id_set, OOD: ood_set})
    assert [note.text.partition(":")[0] for note in run_notes(sources)] == said
