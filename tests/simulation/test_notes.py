"""What is said of runs before they start, and runs of methods that ask for texts."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from made import PROMPT

import zsntta_cli
from zsntta_cli.cache.identity import overlap
from zsntta_cli.cache.store import Features
from zsntta_cli.simulation.notes import run_notes
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Sources

PAIR = ("--id", "pets", "--ood", "sky", "--noise", "none")
WARM_UP = "adand decides as zs-clip does throughout: a stream of "


def test_a_stream_within_the_warm_up_of_any_method_is_told(simulate):
    methods = [("adand", "warmup x update-every"), ("cull", "cull-first"), ("oodd", "")]
    chosen = [word for name, _ in methods for word in ("--method", name)]
    result = simulate(*chosen, *PAIR, "--limit", 40, "--jobs", 1)
    assert result.exit_code == 0, result.stderr
    said = [line.strip() for line in result.stdout.splitlines() if "throughout" in line]
    assert len(said) == 2
    for line, (method, settings) in zip(said, methods, strict=False):
        assert line.startswith(f"{method} decides as zs-clip does throughout: a stream of ")
        assert line.endswith(f"({settings}).")


def test_in_python_a_note_is_a_warning_and_stands_in_the_record(features, tmp_path):
    sets = {"id_set": "pets", "ood_set": "sky", "encoder": "made", "features_dir": features}
    sets |= {"noise": "none", "ood_fill": "cap", "ratio": 0.25, "records": tmp_path / "kept.sqlite"}
    with pytest.warns(UserWarning, match="adand decides as zs-clip does throughout") as warned:
        [record] = zsntta_cli.simulate("adand", limit=40, **sets)
    assert warned[0].filename == __file__
    assert [note.kind for note in record.notes] == ["warm-up"]
    assert WARM_UP in zsntta_cli.table([record])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [started] = zsntta_cli.simulate("adand", limit=40, warmup=1, update_every=8, **sets)
    assert started.notes == ()


def test_a_score_without_a_decision_has_its_note_under_accuracies_alone(simulate):
    accuracies = simulate("--method", "max-logit", *PAIR)
    assert "max-logit gives a score but no decision" in accuracies.stdout
    assert "no decision" not in simulate("--method", "max-logit", *PAIR, "--report", "ood").stdout


@pytest.mark.parametrize(
    ("ood_names", "rows", "said"),
    [
        (("fox",), 2, ""),
        (("Big_Dog", "fox", "CAT"), 2, "share 2 classes (cat, big dog)"),
        (("fox",), 1, "have the same images"),
    ],
)
def test_what_id_and_ood_set_have_in_common_is_told(ood_names, rows, said):
    images = {"kind": "dataset", "identity": {}, "source": {}}
    features, labels = np.zeros((1, 4), np.float16), np.zeros(1, np.int32)
    one, other = (
        Features(Path(name), name=name, image_features=features, labels=labels, class_names=names,
                 digest=digest, **images)
        for name, names, digest in (
            ("a", ("cat", "big dog"), "1"), ("b", ood_names, str(rows)),
        )
    )  # fmt: skip
    assert overlap(one, other) == said
    run = RunSettings("zs-clip", "made", "a", "b", PROMPT)
    notes = [note.text for note in run_notes(Sources(run, {0: one, 1: other}))]
    assert [text.startswith(f"'a' and 'b' {said}:") for text in notes] == [True] * bool(said)
