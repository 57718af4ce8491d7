"""Zero-shot accuracy of features: a number; labels in another order."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import PROMPT

from zsntta_cli.cache.accuracy import better_order, zero_shots
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets.names import DATASET, NOISE


def held(labels, rows, text=None, **more):
    """Features in memory; text features are the axes unless they are given."""
    text = np.eye(rows.shape[1], dtype=np.float32) if text is None else text
    names = tuple(f"class {i}" for i in range(len(text)))
    content = {"kind": DATASET, "texts": {PROMPT: Text(PROMPT, text)}, **more}
    return Features(
        Path("own.h5"), name="own", identity={}, source={}, image_features=rows,
        labels=np.asarray(labels, np.int32), class_names=names, **content,
    )  # fmt: skip


def one(*content):
    [shot] = zero_shots(held(*content))
    return shot


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
    expected = [((cosines.argmax(1) == labels)[known].sum(), known.sum())] if known.any() else []
    shots = zero_shots(held(labels, rows, text))
    assert [(shot.correct, shot.images) for shot in shots] == expected


def test_a_set_without_texts_or_of_noise_has_none():
    for changes in ({"texts": {}}, {"kind": NOISE}):
        assert zero_shots(held([0, 1], np.eye(2, dtype=np.float32), **changes)) == []


# --- labels in another order


@given(st.permutations(range(8)), st.integers(0, 1000))
@settings(max_examples=25)
def test_a_label_column_in_another_order_is_noticed(order, seed):
    labels = np.random.default_rng(seed).integers(0, 8, 400)
    shot = one(np.asarray(order)[labels], images(labels, 8, seed=seed))
    moved = [i for i in range(8) if order[i] != i]
    assert bool(shot.warning) == bool(moved)
    if moved:
        swaps = re.findall(r"'(class \d)' for '(class \d)'", shot.warning)
        assert {*swaps} <= {(f"class {order[i]}", f"class {i}") for i in moved}
        assert float(re.search(r"would give (\S+) %", shot.warning)[1]) > 90


@given(st.integers(2, 40), st.integers(2, 300), st.integers(0, 10_000))
@settings(max_examples=60)
def test_features_that_tell_nothing_are_no_other_order(classes, count, seed):
    """By chance some order always fits those better that it was chosen on."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, count)
    assert not one(labels, generator.standard_normal((count, classes))).warning


AS_TEXT = [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]


def seen_right(classes, each=5, share=0.8, seed=0):
    """Classes of images, and answers of which about a share is right."""
    generator = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), each)
    wrong = generator.integers(0, classes, len(truth))
    return truth, np.where(generator.random(len(truth)) < share, truth, wrong)


def order_of(labels, answers, names=None):
    names = names or [f"name {i:05d}" for i in range(int(max(labels.max(), answers.max())) + 1)]
    return better_order(labels.astype(np.int32), answers, names)


@pytest.mark.parametrize(
    ("labels_of", "words"),
    [
        (lambda c: (c + 1) % 12, "every label is one too high"),
        (lambda c: (c - 1) % 12, "every label is one too low"),
        (lambda c: AS_TEXT.index(c), "labels count numbers as text is sorted"),
        (lambda c: AS_TEXT[c], "text features are in the order of numbers as"),
        (lambda c: 11 - c, "labels count from the last class"),
    ],
)  # fmt: skip
def test_orders_that_come_about_in_known_ways_have_a_name(labels_of, words):
    truth, answers = seen_right(12, each=12)
    found, order = order_of(np.array([labels_of(c) for c in truth]), answers)
    assert found.startswith(words)
    assert [labels_of(c) for c in order] == list(range(12)), "of a label, its class"


@pytest.mark.parametrize(("classes", "share"), [(500, 0.6), (20_000, 1)])
def test_a_known_order_is_seen_with_one_image_to_a_class(classes, share):
    truth, answers = seen_right(classes, each=1, share=share)
    names = list(map(str, range(classes)))
    found, _ = order_of((truth + 1) % classes, answers, names)
    assert found.startswith("every label is one too high")
    if classes == 20_000:  # of very many classes known orders alone are tried
        drawn = np.random.default_rng(0).permutation(classes)
        assert order_of(drawn, answers, names) is None


@pytest.mark.parametrize(
    "confused", [[[40, 60], [60, 40]], [[10, 90, 0], [10, 90, 0], [5, 60, 35]]]
)
def test_an_encoder_that_cannot_tell_classes_apart_has_no_other_order(confused):
    """Two classes a little below chance; one class that takes all."""
    rows = [
        (i, j) for i, row in enumerate(confused) for j, n in enumerate(row) for _ in range(20 * n)
    ]
    labels, answers = np.random.default_rng(0).permutation(np.array(rows)).T
    assert order_of(labels, answers, [f"name {i}" for i in range(len(confused))]) is None
