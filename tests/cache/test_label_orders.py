"""Labels in another order than the class names, and what only looks like it."""

import numpy as np
import pytest

from zsntta_cli.cache.label_orders import better_order

AS_TEXT = [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]


def seen_right(classes, each=5, share=0.8, seed=0):
    """Classes of images, and answers of which about a share is right."""
    generator = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), each)
    wrong = generator.integers(0, classes, len(truth))
    return truth, np.where(generator.random(len(truth)) < share, truth, wrong)


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
    labels = np.array([labels_of(c) for c in truth], np.int32)
    better = better_order(labels, answers, [f"name {i:02d}" for i in range(12)])
    assert better is not None
    assert better.words.startswith(words)
    assert better.accuracy == (truth == answers).mean()
    assert [labels_of(c) for c in better.classes] == list(range(12)), "of a label, its class"


def test_labels_of_sorted_names_beside_names_that_are_not():
    names = ["Boxer", "pug", "Basset", "afghan", "beagle", "Collie"]
    truth, answers = seen_right(6, each=40)
    for key, words in ((str, "labels count the class names"), (str.lower, "regardless of case")):
        in_order = sorted(names, key=key)
        labels = np.array([in_order.index(names[c]) for c in truth], np.int32)
        better = better_order(labels, answers, names)
        assert better is not None
        assert words in better.words
        assert ("case" in better.words) == ("case" in words)
        text_in_order = better_order(
            truth.astype(np.int32), np.array([in_order.index(names[c]) for c in answers]), names
        )
        assert text_in_order is not None
        assert text_in_order.words.startswith("text features are in the order of the class names")


def test_two_labels_are_exchanged():
    truth, answers = seen_right(2, each=60)
    better = better_order((1 - truth).astype(np.int32), answers, ["cat", "dog"])
    assert better is not None
    assert better.words == "the two labels are exchanged"
    assert better_order(truth[:1].astype(np.int32), answers[:1], ["cat"]) is None


def test_a_known_order_is_seen_with_one_image_to_a_class():
    truth, answers = seen_right(500, each=1, share=0.6)
    labels = np.array((truth + 1) % 500, np.int32)
    better = better_order(labels, answers, list(map(str, range(500))))
    assert better is not None
    assert better.words.startswith("every label is one too high")


@pytest.mark.parametrize(
    "confused", [[[40, 60], [60, 40]], [[10, 90, 0], [10, 90, 0], [5, 60, 35]]]
)
def test_an_encoder_that_cannot_tell_classes_apart_has_no_other_order(confused):
    """Two classes a little below chance; one class that takes all."""
    rows = [
        (i, j) for i, row in enumerate(confused) for j, n in enumerate(row) for _ in range(20 * n)
    ]
    labels, answers = np.random.default_rng(0).permutation(np.array(rows)).T
    names = [f"name {i}" for i in range(len(confused))]
    assert better_order(labels.astype(np.int32), answers, names) is None


def test_of_very_many_classes_known_orders_alone_are_tried():
    classes = 20_000
    answers = np.arange(classes)
    names = list(map(str, range(classes)))
    shifted = ((answers + 1) % classes).astype(np.int32)
    better = better_order(shifted, answers, names)
    assert better is not None
    assert better.words.startswith("every label is one too high")
    drawn = np.random.default_rng(0).permutation(classes).astype(np.int32)
    assert better_order(drawn, answers, names) is None
