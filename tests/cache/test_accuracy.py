"""Zero-shot accuracy of features: a number, the notes that keep it, labels in another order."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from feature_files import write_features, write_pets
from hypothesis import given, settings
from hypothesis import strategies as st
from made import PROMPT

from zsntta_cli.cache import accuracy, store
from zsntta_cli.cache.accuracy import note_path, zero_shot, zero_shots
from zsntta_cli.cache.label_orders import better_order
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets.names import DATASET, NOISE


def write(folder, labels, rows, text=None):
    """A feature file of some images; text features are the axes unless they are given."""
    text = np.eye(rows.shape[1], dtype=np.float32) if text is None else text
    path = folder / "own.h5"
    write_features(
        path, kind=DATASET, name="own", encoder={"model": "m", "logit_scale": 20.0},
        source={}, blocks=[rows.astype(np.float16)], labels=np.asarray(labels, np.int32),
        sample_ids=[str(i) for i in range(len(labels))],
        class_names=[f"class {i}" for i in range(len(text))], texts=[Text(PROMPT, text)],
    )  # fmt: skip
    return path


def held(labels, rows):
    """Features in memory, whose text features are the axes."""
    names = tuple(f"class {i}" for i in range(rows.shape[1]))
    return Features(
        Path("own.h5"), DATASET, "own", {}, {}, rows, np.asarray(labels, np.int32), names,
        {PROMPT: Text(PROMPT, np.eye(rows.shape[1], dtype=np.float32))},
    )  # fmt: skip


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
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), labels, rows, text)
        shots = zero_shots(path)
        assert [(shot.correct, shot.images) for shot in shots] == expected
        assert zero_shots(path) == shots, "what was kept says the same"


def test_it_is_that_of_any_dtype_and_scale_and_of_no_warning():
    rows = np.random.default_rng(0).standard_normal((64, 8))
    for dtype, factor in ((np.float16, 1), (np.float32, 1e-3), (np.float32, 1e4)):
        assert zero_shot(held(rows.argmax(1), (rows * factor).astype(dtype)), PROMPT).correct == 64
    unsound = np.array([[np.inf, 1], [np.nan, 0], [0, 1]], np.float16)
    assert zero_shot(held([0, 0, 1], unsound), PROMPT).images == 3


def test_a_set_without_texts_or_of_noise_has_none(tmp_path):
    for changes in ({"texts": []}, {"kind": NOISE, "name": "noise-uniform"}):
        write_pets(tmp_path / "noise-uniform.h5", **changes)
        assert zero_shots(tmp_path / "noise-uniform.h5") == []


# --- kept in a note beside the file


def test_what_was_kept_is_forgotten_with_what_it_was_of(tmp_path):
    labels = np.arange(40) % 4
    path = write(tmp_path, labels, images(labels, 4))
    (before,) = zero_shots(path)
    write(tmp_path, (labels + 1) % 4, images(labels, 4))
    (after,) = zero_shots(path)
    assert after.accuracy < before.accuracy
    store.add_texts(path, [Text("the {}", np.eye(4, dtype=np.float32)[::-1].copy())])
    assert {shot.template for shot in zero_shots(path)} == {PROMPT, "the {}"}


@pytest.mark.parametrize("note", [
    b'{"of": ', b"[" * 100_000, b"[]", b"null", b"{}", b"\xff", b'{"of": OF, "accuracies": 3}',
    b'{"of": OF, "accuracies": [{"template": "x", "correct": Infinity, "images": 8, "swaps": []}]}',
    b'{"of": OF, "accuracies": [{"template": "x", "correct": 2, "images": 1, "swaps": []}]}',
])  # fmt: skip
def test_a_note_that_is_none_is_made_again(tmp_path, note):
    labels = np.arange(40) % 4
    path = write(tmp_path, labels, images(labels, 4))
    shots = zero_shots(path)
    of = json.dumps(json.loads(note_path(path).read_bytes())["of"]).encode()
    note_path(path).write_bytes(note.replace(b"OF", of))
    assert zero_shots(path) == shots


def test_a_folder_that_cannot_be_written_is_read_all_the_same(tmp_path, monkeypatch):
    labels = np.arange(8) % 2
    path = write(tmp_path, labels, images(labels, 2))

    def refuse(*_):
        raise accuracy.StoreError("read-only")

    monkeypatch.setattr(accuracy, "write_whole", refuse)
    assert zero_shots(path)[0].images == 8
    assert not note_path(path).exists()


# --- labels in another order


@given(st.permutations(range(8)), st.integers(0, 1000))
@settings(max_examples=25)
def test_a_label_column_in_another_order_is_noticed(order, seed):
    labels = np.random.default_rng(seed).integers(0, 8, 400)
    shot = zero_shot(held(np.asarray(order)[labels], images(labels, 8, seed=seed)), PROMPT)
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
    assert not zero_shot(held(labels, generator.standard_normal((count, classes))), PROMPT).swaps


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
    better = order_of(np.array([labels_of(c) for c in truth]), answers)
    assert better.words.startswith(words)
    assert better.accuracy == (truth == answers).mean()
    assert [labels_of(c) for c in better.classes] == list(range(12)), "of a label, its class"


@pytest.mark.parametrize(
    ("key", "words"), [(str, "labels count the class names"), (str.lower, "regardless of case")]
)
def test_labels_of_sorted_names_beside_names_that_are_not(key, words):
    names = ["Boxer", "pug", "Basset", "afghan", "beagle", "Collie"]
    truth, answers = seen_right(6, each=40)
    in_order = sorted(names, key=key)
    place = np.array([in_order.index(name) for name in names])
    better = order_of(place[truth], answers, names)
    assert words in better.words
    assert ("case" in better.words) == ("case" in words)
    text_in_order = order_of(truth, place[answers], names)
    assert text_in_order.words.startswith("text features are in the order of the class names")


def test_two_labels_are_exchanged_and_one_is_not():
    truth, answers = seen_right(2, each=60)
    assert order_of(1 - truth, answers, ["cat", "dog"]).words == "the two labels are exchanged"
    assert order_of(truth[:1], answers[:1], ["cat"]) is None


@pytest.mark.parametrize(("classes", "share"), [(500, 0.6), (20_000, 1)])
def test_a_known_order_is_seen_with_one_image_to_a_class(classes, share):
    truth, answers = seen_right(classes, each=1, share=share)
    names = list(map(str, range(classes)))
    better = order_of((truth + 1) % classes, answers, names)
    assert better.words.startswith("every label is one too high")
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
