"""Classes from example photos: their features, the scale of their logits, folders of them."""

import math
import pickle
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import refused

from zsntta_cli import Detector, encode
from zsntta_cli.detection.photos import class_features, photo_classes
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
    once, twice = (
        class_features(FOUR[[*more, 0, 1, 2, 3]], [*more, *TWO_CLASSES]) for more in ([], [0])
    )
    np.testing.assert_array_equal(twice.features, once.features)
    assert twice[2:] == once[2:], "a photo that is there twice counts once"


@pytest.mark.parametrize(
    ("rows", "labels", "scale", "right", "judged"),
    [
        # 0.93 - 0.05 + 0.02 with the own class, less than the mean of 0.96 and 0.86 with the other.
        (FOUR, [0, 1, 0, 1], 1.5, 0, 4),
        (FOUR[:2], [0, 0], 100, 2, 2),  # of one class any scale gives the same decisions
        ([*FOUR, [COMMON, 0, 0.2]], [*TWO_CLASSES, 2], 35.7, 2, 4),  # a single photo competes
    ],
)
def test_the_scale_of_crossed_classes_of_one_class_and_beside_a_single_photo(
    rows, labels, scale, right, judged
):
    made = class_features(rows, labels)
    assert (made.scale, made.right, made.judged) == (pytest.approx(scale, rel=1e-2), right, judged)


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
    assert again[2:] == made[2:]


@pytest.mark.parametrize(
    ("rows", "labels", "error"),
    [
        (FOUR, [0, 0, 1], "one for each of 4"),
        (FOUR, [0, 0, 1, 1.5], "whole numbers"),
        (FOUR, [0, 0, 2, 2], "class 1 has no example photo"),
        (FOUR, [-1, 0, 0, 0], "a label is -1"),
        (FOUR[:0], np.empty(0, int), "there are no example photos"),
        (FOUR[[0, 0, 2, 2]], TWO_CLASSES, "no class has two different photos"),
        ([[0.0, 0], [1, 0]], [0, 0], "a row of zeros"),
        ([[1.0, 0], [-1, 0]], [0, 0], "cancel out"),
        ([[1.0, np.nan], [-1, 0]], [0, 0], "not finite"),
    ],
)
def test_examples_that_will_not_do(rows, labels, error):
    with refused(error, error=SettingsError):
        class_features(rows, labels)


# --- folders


@pytest.fixture
def examples(drawn, tmp_path):
    """Three photos of each of three shapes."""
    for name in ("circle", "star", "cross"):
        (tmp_path / "examples" / name).mkdir(parents=True)
        for path in sorted((drawn / "pictures" / name).iterdir())[:3]:
            shutil.copy(path, tmp_path / "examples" / name)
    return tmp_path / "examples"


def test_subfolders_are_classes_with_all_that_is_within(examples, encoding, tiny):
    (examples / "star/more").mkdir()
    star, *_ = (examples / "star").glob("*.png")
    star.rename(examples / "star/more" / star.name)
    (examples / ".hidden").mkdir()
    (examples / "beside.png").write_bytes(b"of no class")
    classes = photo_classes(examples, encoding)
    assert (classes.names, classes.judged) == (("circle", "cross", "star"), 9)
    detector = Detector.of(tiny, photos=examples)
    assert detector.names == classes.names
    np.testing.assert_allclose(detector.text, classes.features, atol=2e-3)
    pictures = sorted(examples.rglob("*/*.png"))
    rows = detector.update(encode(tiny, pictures)).rows()
    pairs = zip(rows, pictures, strict=True)
    assert sum(row["class"] in str(path.relative_to(examples)) for row, path in pairs) >= 7
    assert pickle.loads(pickle.dumps(detector)).scale == detector.scale


def test_what_cannot_be_read_is_told_and_left_out(examples, encoding):
    first, second, _ = (examples / "star").iterdir()
    first.write_text("no image")
    second.unlink()
    assert photo_classes(examples, encoding).judged == 6
    unreadable, single, _ = encoding.reporter.notes
    assert f"1 of 8 example photos cannot be read (the first: {first}: " in unreadable
    assert "only one example photo: star;" in single


def test_folders_that_will_not_do(examples, encoding):
    def check(folder, *parts):
        with refused(*parts, error=DatasetError):
            photo_classes(folder, encoding)

    (examples / "empty").mkdir()
    check(examples, "the class 'empty' has no photo")
    (examples / "empty/broken.png").write_text("no image")
    check(examples, "no photo of the class 'empty' can be read", "broken.png")
    shutil.copy(next((examples / "star").iterdir()), examples / "empty/star.png")
    check(examples, "are the same photo", "'empty'", "'star'")


@pytest.mark.parametrize(
    ("given", "said"),
    [({}, "give either names or photos"),
     ({"names": ["a"], "photos": "examples"}, "give either names or photos"),
     ({"names": ["circle"], "prompt": "photo"}, "prompt 'photo' is neither"),
     ({"names": ["circle"], "method": "tent"}, "method is 'tent'")],
)  # fmt: skip
def test_a_detector_of_an_encoder_that_cannot_be(tiny, given, said):
    with refused(said, error=SettingsError):
        Detector.of(tiny, **given)


def test_a_detector_reads_the_generic_text_where_a_level_is_given(tiny):
    detector = Detector.of(tiny, ["circle", "square"], prompt="paper", cull_low=1.0)
    assert detector.generic is not None
    assert not detector.note
    assert Detector.of(tiny, ["circle", "square"]).note
