"""Zero-shot accuracy: what is published, what is too far from it, labels in another order."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import PROMPT

from zsntta_cli.cache import accuracy, hdf5, published
from zsntta_cli.cache.accuracy import ZeroShotAccuracy, note_path, zero_shot, zero_shots
from zsntta_cli.cache.features import DATASET, Text
from zsntta_cli.cache.published import IMPLEMENTATION, judge, judged, published_for, table
from zsntta_cli.datasets import CATALOGUE
from zsntta_cli.settings.prompts import ensembles, templates_of

B16 = {"model": "ViT-B-16", "pretrained": "openai"}


def features(folder, labels, rows, classes, texts=None, name="own"):
    """A feature file of some images: text features are the axes."""
    text = np.eye(classes, rows.shape[1], dtype=np.float32)
    path = folder / f"{name}.h5"
    hdf5.write_features(
        path, kind=DATASET, name=name, encoder={"model": "m", "logit_scale": 20.0},
        source={}, blocks=[rows.astype(np.float16)], labels=np.asarray(labels, np.int32),
        sample_ids=[str(i) for i in range(len(labels))],
        class_names=[f"class {i}" for i in range(classes)],
        texts=[Text(PROMPT, text)] if texts is None else texts,
    )  # fmt: skip
    return path


def images(labels, classes, noise=0.3, seed=0):
    """Features (N, C) near the axes of their labels."""
    generator = np.random.default_rng(seed)
    return np.eye(classes)[labels] + noise * generator.standard_normal((len(labels), classes))


@given(st.integers(2, 9), st.integers(1, 60), st.integers(0, 2**31))
@settings(max_examples=40)
def test_it_is_the_share_of_nearest_class_texts(classes, count, seed):
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((count, 6)).astype(np.float16)
    text = generator.standard_normal((classes, 6)).astype(np.float32)
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    labels = generator.integers(-1, classes, count)
    cosines = rows.astype(float) @ text.astype(float).T / np.linalg.norm(rows, axis=1)[:, None]
    known = labels >= 0
    with_files(
        rows, text, labels, int((cosines.argmax(1) == labels)[known].sum()), int(known.sum())
    )


def with_files(rows, text, labels, correct, count):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = features(Path(folder), labels, rows, len(text), [Text(PROMPT, text)])
        shots = zero_shots(path)
        if not count:
            assert shots == []
            return
        assert [(shot.correct, shot.images) for shot in shots] == [(correct, count)]
        assert zero_shots(path) == shots, "what was kept says the same"


@given(st.permutations(range(8)), st.integers(0, 1000))
@settings(max_examples=25)
def test_a_label_column_in_another_order_is_noticed(order, seed):
    labels = np.random.default_rng(seed).integers(0, 8, 400)
    rows = images(labels, 8, seed=seed)
    text = {PROMPT: np.eye(8, dtype=np.float32)}
    shot = zero_shot(held(np.asarray(order)[labels], rows, text), PROMPT)
    moved = [i for i in range(8) if order[i] != i]
    assert bool(shot.swaps) == bool(moved)
    if moved:
        assert shot.reordered > 0.9 > shot.accuracy
        right = {(f"class {order[i]}", f"class {i}") for i in moved}
        assert {*shot.swaps} <= right


@given(st.integers(2, 40), st.integers(2, 300), st.integers(0, 10_000))
@settings(max_examples=60)
def test_features_that_tell_nothing_are_no_other_order(classes, count, seed):
    """By chance some order always fits those better that it was chosen on."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, count)
    rows = generator.standard_normal((count, classes))
    shot = zero_shot(held(labels, rows, {PROMPT: np.eye(classes, dtype=np.float32)}), PROMPT)
    assert not shot.swaps


def held(labels, rows, texts):
    """Features in memory."""
    from zsntta_cli.cache.features import FeatureSet

    names = tuple(f"class {i}" for i in range(rows.shape[1]))
    return FeatureSet(
        Path("own.h5"), DATASET, "own", {}, {}, "", rows.astype(np.float16),
        np.asarray(labels, np.int32), names, texts,
    )  # fmt: skip


def test_what_was_kept_is_forgotten_with_what_it_was_of(tmp_path):
    labels = np.arange(40) % 4
    path = features(tmp_path, labels, images(labels, 4), 4)
    (before,) = zero_shots(path)
    note_path(path).write_text('{"of": ')
    assert zero_shots(path) == [before]
    features(tmp_path, (labels + 1) % 4, images(labels, 4), 4)
    (after,) = zero_shots(path)
    assert after.accuracy < before.accuracy
    hdf5.add_texts(path, [Text("the {}", np.eye(4, dtype=np.float32)[::-1].copy())])
    assert {shot.template for shot in zero_shots(path)} == {PROMPT, "the {}"}


def test_a_folder_that_cannot_be_written_is_read_all_the_same(tmp_path, monkeypatch):
    labels = np.arange(8) % 2
    path = features(tmp_path, labels, images(labels, 2), 2)

    def refuse(*_):
        raise accuracy.StoreError("read-only")

    monkeypatch.setattr(accuracy, "write_whole", refuse)
    assert zero_shots(path)[0].images == 8
    assert not note_path(path).exists()


def test_the_table_is_of_sets_and_templates_that_there_are():
    assert len(table()) > 300
    for row in table():
        assert row.set in CATALOGUE
        assert 0 < row.accuracy < 100
        assert all(template.count("{}") == 1 for template in templates_of(row.templates))
        assert row.source
    assert {row.set for row in published_for(B16, "imagenet")} == {"imagenet"}


@pytest.mark.parametrize(
    ("name", "templates", "percent"),  # of CLIP_benchmark's csv: another run of the weights
    [("imagenet", "clip-80", 68.352), ("imagenet-sketch", "clip-80", 48.144),
     ("cifar10", "clip-cifar", 90.83), ("cifar100", "clip-cifar", 66.91),
     ("cars196", "clip-cars", 64.46), ("pets37", "a photo of a {}, a type of pet.", 88.93)],
)  # fmt: skip
def test_another_published_run_is_within_what_is_allowed(name, templates, percent):
    (row,) = [row for row in published_for(B16, name) if row.templates == templates]
    assert abs(row.accuracy - percent) < IMPLEMENTATION
    shot = ZeroShotAccuracy(templates, round(percent * row.images / 100), row.images)
    assert not judge(shot, [row]).is_outside


def test_templates_count_and_order_does_not():
    (row,) = published_for(B16, "cifar10")
    same = " | ".join(reversed(ensembles()["clip-cifar"]))
    for template, most in (("clip-cifar", 0.5), (same, 0.5), (PROMPT, 6)):
        shot = ZeroShotAccuracy(template, 9_077, 10_000)
        assert judge(shot, [row]).allowed <= most
    assert judge(ZeroShotAccuracy(PROMPT, 9_077, 10_000), [row]).allowed > 1


def test_few_images_allow_more_and_lacking_classes_allow_no_verdict():
    rows = published_for(B16, "imagenet")
    few = ZeroShotAccuracy("clip-80", 60, 100)
    assert 14 < judge(few, rows).allowed < 15  # 3 sqrt(.6834 x .3166 / 100) is 14.0
    (part,) = judged(B16, "imagenet", [ZeroShotAccuracy("clip-80", 10, 100, lacking=51)], 1000)
    assert part.published is None
    assert not part.is_outside


@pytest.mark.parametrize("identity", [
    B16, {"model": "ViT-B-16-quickgelu", "pretrained": "openai"},
    {"model": "ViT-B-16-openai", "pretrained": "imported"},
    {"model": "ViT-B-16", "pretrained": "/somewhere/ViT-B-16.pt", "weights_sha256":
     "5806e77cd80f8b59890b7e101eabd078d9fb84e6937f9e85e4ecb61988df416f"},
])  # fmt: skip
def test_an_encoder_is_known_by_its_weights(identity):
    assert len(published_for(identity, "imagenet")) == 2
    assert not published_for({**identity, "model": "ViT-B-61"}, "imagenet")


def test_the_right_activation_is_not_taken_for_the_wrong_one():
    """LAION-400M's ViT-B/32 was trained with QuickGELU: two rows, 2.7 points apart."""
    for model, percent in (("ViT-B-32", 60.24), ("ViT-B-32-quickgelu", 62.93)):
        identity = {"model": model, "pretrained": "laion400m_e32"}
        assert [row.accuracy for row in published_for(identity, "imagenet")] == [percent]


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


def test_what_is_above_is_off_too():
    row = published_for(B16, "imagenet")[0]
    above = judge(ZeroShotAccuracy(row.templates, 49_000, 50_000), [row])
    assert above.is_outside
    assert "points above the published accuracy" in above.warning
    assert published.judge(ZeroShotAccuracy("x {}", 1, 1), []).line == "zero-shot accuracy 100.00 %"
