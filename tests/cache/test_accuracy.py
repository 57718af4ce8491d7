"""Zero-shot accuracy of features: beside the published one; labels in another order."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import PROMPT

from zsntta_cli import datasets
from zsntta_cli.cache.accuracy import published, table, zero_shots
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets.names import DATASET, NOISE
from zsntta_cli.settings.prompts import ensembles, templates_of


def held(labels, rows, text=None, name="own", prompts=(PROMPT,), **more):
    """Features in memory; text features are the axes unless they are given."""
    text = np.eye(rows.shape[1], dtype=np.float32) if text is None else text
    content = {
        "kind": DATASET, "identity": {}, "source": {}, "image_features": rows,
        "labels": np.asarray(labels, np.int32), "texts": {p: Text(p, text) for p in prompts},
        "class_names": tuple(f"class {i}" for i in range(len(text))),
    }  # fmt: skip
    return Features(Path(f"{name}.h5"), name=name, **content | more)


def warning_on(labels, rows):
    [shot] = zero_shots(held(labels, rows))
    return shot.warning


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
    expected = [((cosines.argmax(1) == labels)[known].sum(), known.sum())] if known.any() else []
    shots = zero_shots(held(labels, rows, text))
    assert [(shot.correct, shot.images) for shot in shots] == expected


def test_a_set_without_texts_or_of_noise_has_none():
    for changes in ({"texts": {}}, {"kind": NOISE}):
        assert zero_shots(held([0, 1], np.eye(2, dtype=np.float32), **changes)) == []


# --- beside the published one


def test_the_table_is_of_sets_and_templates_that_there_are():
    assert len(table()) > 300
    for row in table():
        assert datasets.known(row.set).classes
        assert 0 < row.accuracy < 100
        assert all(template.count("{}") == 1 for template in templates_of(row.templates))


ANY_ORDER = " | ".join(reversed(ensembles()["clip-cifar"]))


@pytest.mark.parametrize(
    ("encoder", "of_set", "percent"),
    [("ViT-B-16-quickgelu/openai", ("imagenet", "clip-80", 50_000), 68.34),
     ("ViT-B-16-openai/imported", ("imagenet", "clip-80", 50_000), 68.34),
     ("ViT-B-61/openai", ("imagenet", "clip-80", 50_000), None),
     # This one was trained with QuickGELU: two rows, 2.7 points apart.
     ("ViT-B-32/laion400m_e32", ("imagenet", "clip-80", 50_000), 60.24),
     ("ViT-B-32-quickgelu/laion400m_e32", ("imagenet", "clip-80", 50_000), 62.93),
     ("ViT-B-16/openai", ("wds_cars", "clip-cars", 8_041), 64.77),
     ("ViT-B-16/openai", ("cifar10", "clip-cifar", 10_000), 90.77),
     ("ViT-B-16/openai", ("cifar10", ANY_ORDER, 10_000), 90.77),
     ("ViT-B-16/openai", ("cifar10", PROMPT, 10_000), None),
     ("ViT-B-16/openai", ("cifar10", "clip-cifar", 100), None)],
)  # fmt: skip
def test_an_accuracy_is_published_for_weights_a_set_its_images_and_templates(
    encoder, of_set, percent
):
    model, _, pretrained = encoder.partition("/")
    row = published({"model": model, "pretrained": pretrained}, *of_set)
    assert (row and row.accuracy) == percent


@pytest.mark.parametrize(
    ("right", "part"),  # 90.83 % are another published run of the same weights
    [(9_083, ""), (8_900, "1.8 points below"), (9_900, "8.2 points above")],
)
def test_what_is_off_beside_a_prompt_without_a_published_accuracy(right, part):
    """So many images are at the axes of their classes, the others at any other one."""
    labels = np.arange(10_000, dtype=np.int32) % 10
    other = (labels + 1 + np.arange(10_000) // 10 % 9) % 10
    rows = np.eye(10, dtype=np.float16)[np.where(np.arange(10_000) < right, labels, other)]
    encoder = {"model": "ViT-B-16", "pretrained": "openai"}
    features = held(labels, rows, name="cifar10", prompts=("clip-cifar", PROMPT), identity=encoder)
    compared, without = zero_shots(features)
    assert compared.published == 90.77
    assert part in compared.warning
    assert bool(compared.warning) == bool(part)
    assert (without.published, without.warning) == (None, "")


# --- labels in another order


def images(labels, classes, noise=0.3, seed=0):
    """Features (N, C) near the axes of their labels."""
    generator = np.random.default_rng(seed)
    return np.eye(classes)[labels] + noise * generator.standard_normal((len(labels), classes))


@given(st.permutations(range(8)), st.integers(0, 1000))
@settings(max_examples=25)
def test_a_label_column_in_another_order_is_noticed(order, seed):
    labels = np.random.default_rng(seed).integers(0, 8, 400)
    warning = warning_on(np.asarray(order)[labels], images(labels, 8, seed=seed))
    moved = [i for i in range(8) if order[i] != i]
    assert bool(warning) == bool(moved)
    if moved:
        swaps = re.findall(r"'(class \d)' for '(class \d)'", warning)
        assert {*swaps} <= {(f"class {order[i]}", f"class {i}") for i in moved}
        assert float(re.search(r"would give (\S+) %", warning)[1]) > 90


@pytest.mark.parametrize("too", [1, -1])
def test_labels_one_too_high_or_low_are_seen_with_one_image_to_a_class(too):
    labels = np.random.default_rng(0).permutation(300)
    warning = warning_on((labels + too) % 300, images(labels, 300, noise=0.1))
    assert "would give 100.0 % instead of 0.0 %" in warning


@given(st.integers(2, 40), st.integers(2, 300), st.integers(0, 10_000))
@settings(max_examples=60)
def test_features_that_tell_nothing_are_no_other_order(classes, count, seed):
    """By chance some order always fits those better that it was chosen on."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, count)
    assert not warning_on(labels, generator.standard_normal((count, classes)))


@pytest.mark.parametrize(
    "confused", [[[40, 60], [60, 40]], [[10, 90, 0], [10, 90, 0], [5, 60, 35]]]
)
def test_an_encoder_that_cannot_tell_classes_apart_has_no_other_order(confused):
    """Two classes a little below chance; one class that takes all."""
    rows = [
        (i, j) for i, row in enumerate(confused) for j, n in enumerate(row) for _ in range(20 * n)
    ]
    labels, answers = np.random.default_rng(0).permutation(np.array(rows)).T
    assert not warning_on(labels, np.eye(len(confused))[answers])
