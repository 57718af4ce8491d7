"""What is said of runs before they start, and runs of methods that ask for texts."""

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from made import PROMPT, TINY

import zsntta_cli
from zsntta_cli.cache.store import Features
from zsntta_cli.simulation.notes import overlap, run_notes
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Sources

PAIR = ("--id", "pets", "--ood", "sky", "--noise", "none")
OFFLINE = (
    "etlt sees the whole stream before it decides, so it is shown for reference, and never marked."
)
WARM_UP = "adand decides as zs-clip does throughout: a stream of "


def test_a_method_that_is_offline_is_said_to_be_once(simulate):
    methods = ("--method", "etlt", "--method", "zs-clip")
    result = simulate(*methods, *PAIR, "--ratio", 0.25, "--ratio", 0.5, "--jobs", 1)
    assert result.exit_code == 0, result.stderr
    said = [line.strip() for line in result.stdout.splitlines() if "sees the whole" in line]
    assert said == [OFFLINE]
    assert "sees the whole" not in result.stderr


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


@pytest.mark.parametrize("ood_set", ["textures", "digits"])
def test_in_its_warm_up_adand_is_zs_clip_on_a_stream_with_its_injected_noise(
    zsntta, ood_set, tmp_path
):
    for name, images in (("shapes", 60), (ood_set, 20)):
        assert zsntta("extract", *TINY, "--dataset", name, "--limit", images,
                      "--no-partners").exit_code == 0  # fmt: skip
    run = ("simulate", *TINY, "--ood", ood_set, "--ratio", "natural", "--method")
    lines = {}
    for method, *noise in (("adand",), ("zs-clip", "--noise", "gaussian"), ("zs-clip",)):
        result = zsntta(*run, method, *noise, "--scores", "scores.csv")
        assert result.exit_code == 0, result.stderr
        lines[method, *noise] = (tmp_path / "scores.csv").read_text().splitlines()
        if method == "adand":
            said = " ".join(result.stdout.split())
    assert lines["adand",] == lines["zs-clip", "--noise", "gaussian"]
    decisions = {
        key: {row["sample_id"]: row["decision"] for row in csv.DictReader(rows)}
        for key, rows in lines.items()
    }
    plain, of_adand = decisions["zs-clip",], decisions["adand",]
    assert any(of_adand[sample] != decision for sample, decision in plain.items())
    assert "adand decides as 'zs-clip --noise gaussian' does throughout: a stream of 90" in said
    assert "10 of them are injected noise: in its threshold they weigh as much as" in said


def test_cull_leaves_injected_noise_out_of_its_threshold(simulate):
    options = ("--method", "cull", "--id", "pets", "--ood", "sky", "--noise", "gaussian")
    result = simulate(*options, "--limit", 40)
    said = " ".join(result.stdout.split())
    assert "cull decides as 'zs-clip --noise none' does throughout" in said
    assert "weigh" not in said


def adand(simulate, *options):
    result = simulate("--method", "adand", *PAIR, *options)
    assert result.exit_code == 0, result.stderr
    return result


def test_a_note_is_kept_with_the_run(simulate, tmp_path):
    adand(simulate, "--limit", 40)
    kept_before = adand(simulate, "--limit", 40)
    assert "kept from before" in kept_before.stderr
    assert kept_before.stdout.count(WARM_UP) == 1
    assert (
        WARM_UP
        not in adand(simulate, "--limit", 40, "--set", "warmup=1", "--set", "update-every=8").stdout
    )


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
    assert "max-logit gives a score and no decision" in accuracies.stdout
    assert "no decision" not in simulate("--method", "max-logit", *PAIR, "--report", "ood").stdout


def test_cma_takes_the_list_that_is_named(simulate):
    result = simulate("--method", "cma", "--set", "words=nouns", *PAIR, "--format", "json")
    assert result.exit_code == 0, result.stderr
    [record] = json.loads(result.stdout)
    assert record["settings"]["options"]["words"] == "nouns"
    missing = simulate("--method", "cma", *PAIR)
    assert missing.exit_code == 1
    assert "words-cma" in missing.stderr or "'cma'" in missing.stderr


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
    notes = [note.text for note in run_notes(run, Sources(one, other, None))]
    assert [text.startswith(f"'a' and 'b' {said}:") for text in notes] == [True] * bool(said)
