"""Classes from example photos: their features, the scale of their logits, folders of them."""

import math
import pickle
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli import NoiseDetector, OnlineDetector
from zsntta_cli.detection.classes.examples import class_features
from zsntta_cli.detection.classes.photos import photo_classes, photo_items
from zsntta_cli.errors import DatasetError, SettingsError

COMMON, APART, WITHIN = np.sqrt([0.93, 0.05, 0.02])
# Two photos of each of two classes: they share a part, classes and photos differ by the others.
FOUR = np.array(
    [[COMMON, side * APART, other * WITHIN] for side in (1, -1) for other in (1, -1)]
)  # fmt: skip
TWO_CLASSES = [0, 0, 1, 1]


def test_classes_and_scale_worked_by_hand():
    made = class_features(3 * FOUR, TWO_CLASSES)
    mean = np.array([COMMON, APART]) / math.sqrt(0.98)
    np.testing.assert_allclose(made.features, [[*mean, 0], [mean[0], -mean[1], 0]], atol=1e-7)
    # Left out, each photo has the cosine 0.93 + 0.05 - 0.02 with its own class and 0.93 - 0.05 on
    # average with the photos of the other: 0.08 apart. Taken to be right with 5 / 6 = 1 / (1 +
    # exp(-0.08 scale)), the likeliest scale is log(5) / 0.08; what is used is 1.5 times as much.
    assert made.scale == pytest.approx(1.5 * math.log(5) / 0.08, rel=5e-3)
    assert (made.right, made.judged) == (4, 4)


def test_photos_of_the_wrong_class_are_counted_and_need_a_small_scale():
    # 0.93 - 0.05 + 0.02 with the own class, less than the mean of 0.96 and 0.86 with the other.
    crossed = class_features(FOUR, [0, 1, 0, 1])
    assert (crossed.right, crossed.judged) == (0, 4)
    assert crossed.scale == pytest.approx(1.5), "the smallest one that is sought"


def test_a_photo_that_is_there_twice_counts_once():
    twice = class_features(FOUR[[0, 0, 1, 2, 3]], [0, *TWO_CLASSES])
    once = class_features(FOUR, TWO_CLASSES)
    np.testing.assert_array_equal(twice.features, once.features)
    assert twice[1:] == once[1:]


def test_a_single_photo_is_left_in_and_still_competes():
    made = class_features([*FOUR, [COMMON, 0, 0.2]], [*TWO_CLASSES, 2])
    assert made.judged == 4
    assert len(made.features) == 3
    assert made.scale != class_features(FOUR, TWO_CLASSES).scale


def test_one_class_has_any_scale_and_the_same_decisions():
    made = class_features(FOUR[:2], [0, 0])
    assert (made.scale, made.right, made.judged) == (100, 2, 2)
    rows = np.random.default_rng(0).normal(size=(200, 3))
    detectors = [OnlineDetector(made.features, scale, "zs-clip") for scale in (made.scale, 30)]
    first, other = (detector.update(rows).noise for detector in detectors)
    np.testing.assert_array_equal(first, other)


@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(2, 5), st.floats(0, 3))
def test_any_examples_have_a_scale_whatever_their_order(seed, classes, photos, spread):
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), generator.integers(2, photos + 1, classes))
    centres = generator.normal(size=(classes, 8))
    rows = centres[labels] + spread * generator.normal(size=(len(labels), 8)) + 1e-3
    rows[1::2] += 1e-3  # where there is no spread, photos are no copies
    rows += 1e-4 * generator.normal(size=rows.shape)
    made = class_features(rows, labels)
    assert 1 <= made.scale <= 1500
    np.testing.assert_allclose(np.linalg.norm(made.features, axis=1), 1, atol=1e-6)
    order = generator.permutation(len(rows))
    again = class_features(rows[order], labels[order])
    np.testing.assert_array_equal(again.features, made.features)
    assert again[1:] == made[1:]


@pytest.mark.parametrize(
    ("rows", "labels", "error"),
    [
        (FOUR, [0, 0, 1], "one for each of 4"),
        (FOUR, [0, 0, 1, 1.5], "whole numbers"),
        (FOUR, [0, 0, 2, 2], "class 1 has no example photo"),
        (FOUR, [-1, 0, 0, 0], "a label is -1"),
        (FOUR[:0], np.empty(0, int), "there are no example photos"),
        (FOUR[::2], [0, 1], "no class has two different photos"),
        (FOUR[[0, 0, 2, 2]], TWO_CLASSES, "no class has two different photos"),
        ([[0.0, 0], [1, 0]], [0, 0], "a row of zeros"),
        ([[1.0, 0], [-1, 0]], [0, 0], "cancel out"),
        ([[1.0, np.nan], [-1, 0]], [0, 0], "not finite"),
    ],
)
def test_examples_that_will_not_do(rows, labels, error):
    with pytest.raises(SettingsError, match=error):
        class_features(rows, labels)


def test_a_detector_from_features_of_examples():
    detector = OnlineDetector.from_examples(FOUR, TWO_CLASSES, "zs-clip", class_names=["a", "b"])
    made = class_features(FOUR, TWO_CLASSES)
    np.testing.assert_array_equal(detector.text_features, made.features)
    assert detector.logit_scale == made.scale
    assert [one.class_name for one in detector.update(FOUR)] == ["a", "a", "b", "b"]


@pytest.fixture
def examples(drawn, tmp_path):
    """Three photos of each of three shapes."""
    for name in ("circle", "star", "cross"):
        (tmp_path / "examples" / name).mkdir(parents=True)
        for path in sorted((drawn / "pictures" / name).iterdir())[:3]:
            shutil.copy(path, tmp_path / "examples" / name)
    return tmp_path / "examples"


def test_subfolders_are_classes_with_all_that_is_within(examples, encoding):
    (examples / "star/more").mkdir()
    star, *_ = (examples / "star").glob("*.png")
    star.rename(examples / "star/more" / star.name)
    (examples / ".hidden").mkdir()
    (examples / "beside.png").write_bytes(b"of no class")
    classes = photo_classes(examples, encoding)
    assert classes.names == ("circle", "cross", "star")
    assert len(classes.photos) == 9
    [note] = encoding.reporter.notes
    assert note.startswith("note: 3 classes from 9 example photos: ")
    features = [
        [one.features for one in encoding.images(items)] for items in photo_items(examples).values()
    ]
    made = class_features(np.concatenate(features), np.repeat([0, 1, 2], 3))
    np.testing.assert_array_equal(classes.classes.features, made.features)


def test_what_cannot_be_read_is_told_and_left_out(examples, encoding):
    first, second, _ = (examples / "star").iterdir()
    first.write_text("no image")
    second.unlink()
    classes = photo_classes(examples, encoding)
    assert len(classes.photos) == 7
    unreadable, single, _ = encoding.reporter.notes
    assert "1 of 8 example photos cannot be read" in unreadable
    assert str(first) in unreadable
    assert single == "warning: classes with one example photo: star; give 2 to 8 of each."


def test_folders_that_will_not_do(examples, encoding, tmp_path):
    def refused(folder, *parts):
        with pytest.raises(DatasetError) as caught:
            photo_classes(folder, encoding)
        assert all(part in str(caught.value) for part in parts), caught.value

    refused(tmp_path / "missing", "cannot read the example photos", "missing")
    refused(examples / "star", "has no folders", "a folder for each class")
    (examples / "empty").mkdir()
    refused(examples, "the class 'empty' has no photo")
    (examples / "empty/broken.png").write_text("no image")
    refused(examples, "no photo of the class 'empty' can be read", "broken.png")
    shutil.copy(next((examples / "star").iterdir()), examples / "empty/star.png")
    refused(examples, "are the same photo", "'empty'", "'star'", "remove one")


def test_the_detector_on_images_takes_a_folder(examples, tiny):
    detector = NoiseDetector(class_photos=examples, model="tiny", encoder=tiny)
    assert detector.class_names == ("circle", "cross", "star")
    pictures = [path for folder in examples.iterdir() for path in sorted(folder.iterdir())]
    verdicts = detector.update(pictures)
    right = sum(one.class_name == path.parent.name for one, path in zip(verdicts, pictures))  # noqa: B905
    assert right >= 7
    again = pickle.loads(pickle.dumps(detector))
    assert (again.seen, again.logit_scale) == (9, detector.logit_scale)
