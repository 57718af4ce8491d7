"""Zero-shot accuracies beside the published ones: what is too far off, and what is not compared."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from feature_files import write_features
from made import PROMPT

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.accuracy import ZeroShotAccuracy, judge, published_for, table, zero_shots
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.settings.prompts import ensembles, templates_of

B16 = {"model": "ViT-B-16", "pretrained": "openai", "logit_scale": 100.0}


def test_the_table_is_of_sets_and_templates_that_there_are():
    assert len(table()) > 300
    for row in table():
        assert datasets.known(row.set).classes
        assert 0 < row.accuracy < 100
        assert all(template.count("{}") == 1 for template in templates_of(row.templates))
        assert row.source
    assert {row.set for row in published_for(B16, "imagenet")} == {"imagenet"}


def test_the_tool_refuses_a_number_that_was_copied_wrong(tmp_path):
    tool = Path(__file__).parents[2] / "tools" / "published_accuracies.py"
    columns = ["name", "pretrained", "Average perf. on 38 datasets", "CIFAR-10", "CIFAR-100"]
    rows = [columns, ["m", "w", "0.75", "0.7", "0.9"]]
    with (tmp_path / "results.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    done = subprocess.run(
        [sys.executable, tool, tmp_path / "results.csv", tmp_path / "table.csv"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "m w: the row is not of its average" in done.stderr
    assert not (tmp_path / "table.csv").exists()


@pytest.mark.parametrize("identity", [
    B16, {"model": "ViT-B-16-quickgelu", "pretrained": "openai"},
    {"model": "ViT-B-16-openai", "pretrained": "imported"},
])  # fmt: skip
def test_an_encoder_is_known_by_its_weights(identity):
    assert len(published_for(identity, "imagenet")) == 2
    assert not published_for({**identity, "model": "ViT-B-61"}, "imagenet")


def test_the_right_activation_is_not_taken_for_the_wrong_one():
    """LAION-400M's ViT-B/32 was trained with QuickGELU: two rows, 2.7 points apart."""
    for model, percent in (("ViT-B-32", 60.24), ("ViT-B-32-quickgelu", 62.93)):
        identity = {"model": model, "pretrained": "laion400m_e32"}
        assert [row.accuracy for row in published_for(identity, "imagenet")] == [percent]


def test_sets_of_the_hub_are_known_under_their_own_names():
    for name, images, accuracy in (("wds_cars", 8_041, 64.77), ("wds_vtab-pets", 3_669, 88.86)):
        rows = published_for(B16, name)
        assert (images, accuracy) in [(row.images, row.accuracy) for row in rows], name


# --- how far off is too far


@pytest.mark.parametrize(
    ("name", "templates", "percent"),  # of CLIP_benchmark's csv: another run of the weights
    [("imagenet", "clip-80", 68.352), ("imagenet-sketch", "clip-80", 48.144),
     ("cifar10", "clip-cifar", 90.83), ("cifar100", "clip-cifar", 66.91),
     ("cars196", "clip-cars", 64.46), ("pets37", "a photo of a {}, a type of pet.", 88.93)],
)  # fmt: skip
def test_another_published_run_is_no_reason_to_doubt(name, templates, percent):
    (row,) = [row for row in published_for(B16, name) if row.templates == templates]
    shot = ZeroShotAccuracy(templates, round(percent * row.images / 100), row.images)
    assert judge(shot, [row]).published is row
    assert not judge(shot, [row]).warning


def test_templates_count_and_order_does_not():
    """Text features joined are the ensemble of that name, in any order."""
    (row,) = published_for(B16, "cifar10")
    same = " | ".join(reversed(ensembles()["clip-cifar"]))
    for template, published in (("clip-cifar", row), (same, row), (PROMPT, None)):
        compared = judge(ZeroShotAccuracy(template, 9_077, 10_000), [row])
        assert compared.published is published
    assert compared.line == "zero-shot accuracy 90.77 %"
    assert judge(ZeroShotAccuracy("clip-cifar", 60, 100), [row]).published is None


def test_what_is_above_is_off_too():
    row = published_for(B16, "imagenet")[0]
    above = judge(ZeroShotAccuracy(row.templates, 49_000, 50_000), [row])
    assert "points above the published accuracy" in above.warning
    assert judge(ZeroShotAccuracy("x {}", 1, 1), []).line == "zero-shot accuracy 100.00 %"


def test_a_prompt_that_is_off_beside_one_without_a_published_accuracy(tmp_path):
    """As many images are at the axes of their classes as is published; two texts are elsewhere."""
    labels = np.arange(10_000, dtype=np.int32) % 10
    seen = np.where(np.arange(10_000) < 9_077, labels, (labels + 1) % 10)
    near, far = np.eye(10, 11, dtype=np.float32), np.eye(10, 11, dtype=np.float32)
    far[4:6] = np.eye(11, dtype=np.float32)[10]
    write_features(
        tmp_path / "cifar10.h5", kind=DATASET, name="cifar10", encoder=B16, source={},
        blocks=[np.eye(10, 11, dtype=np.float16)[seen]], labels=labels,
        sample_ids=[str(i) for i in range(10_000)],
        class_names=[f"class {i}" for i in range(10)],
        texts=[Text("clip-cifar", far), Text(PROMPT, near)],
    )  # fmt: skip
    bad, other = zero_shots(store.read(tmp_path / "cifar10.h5"))
    assert "points below the published accuracy" in bad.warning
    assert (other.published, other.warning) == (None, "")
    assert other.line == "zero-shot accuracy 90.77 %"
