"""What an accuracy that is off tells of its cause, and what is no cause."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import PROMPT

from zsntta_cli import datasets
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.accuracy import ZeroShotAccuracy, note_path, zero_shot, zero_shots
from zsntta_cli.cache.clues import judged_file, name_clues
from zsntta_cli.cache.features import DATASET, FeatureSet, Text
from zsntta_cli.cache.label_orders import better_order
from zsntta_cli.cache.published import TEMPLATES, judge, judged, published_for
from zsntta_cli.settings.prompts import PHOTOS, ensembles

B16 = {"model": "ViT-B-16", "pretrained": "openai", "logit_scale": 100.0}
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


@pytest.mark.parametrize(("names", "clues"), [
    (["cat", "dog"], []),
    (["n01440764", "n01443537"], ["2 of 2 class names are ids of WordNet ('n01440764')"]),
    (["0", "1", "cat"], ["2 of 3 class names are numbers ('0')"]),
    (["great_white_shark", "dog"],
     ["1 of 2 class names have underscores for spaces ('great_white_shark')"]),
    (["tench, Tinca tinca", "dog"],
     ["1 of 2 class names have several names in one ('tench, Tinca tinca')"]),
    (["crane", "dog", "crane"], ["1 of 3 class names are there twice ('crane')"]),
    (["golden ret", "great whit", "dog", "tiger shar"],
     ["3 of 4 class names may be cut, for none is longer ('golden ret')"]),
    ([], []),
])  # fmt: skip
def test_class_names_that_no_person_would_say(names, clues):
    assert list(name_clues(names)) == clues


def test_names_that_clip_gives_to_imagenet_are_not_thought_to_be_cut():
    from zsntta_cli.datasets.readers import imagenet

    clues = list(name_clues([row.name for row in imagenet.classes()]))
    assert not [clue for clue in clues if "cut" in clue or "WordNet" in clue or "numbers" in clue]


IMAGES, RIGHT = 10_000, 9_077  # of CIFAR-10's test set, as is published


def cifar10(folder, texts, names=None):
    """A file named as CIFAR-10 whose images lie at axes of classes, RIGHT of them at their own."""
    labels = np.arange(IMAGES, dtype=np.int32) % 10
    seen = np.where(np.arange(IMAGES) < RIGHT, labels, (labels + 1) % 10)
    path = folder / "cifar10.h5"
    hdf5.write_features(
        path, kind=DATASET, name="cifar10", encoder=B16, source={},
        blocks=[np.eye(10, 11, dtype=np.float16)[seen]], labels=labels,
        sample_ids=[str(i) for i in range(IMAGES)],
        class_names=names or [f"class {i}" for i in range(10)],
        texts=[Text(template, text) for template, text in texts.items()],
    )  # fmt: skip
    return path


def astray(*classes):
    """Text features at the axes of their classes, but of some, which have no image near them."""
    text = np.eye(10, 11, dtype=np.float32)
    text[list(classes)] = np.eye(11, dtype=np.float32)[10]
    return text


def test_a_prompt_that_is_off_beside_one_that_is_not(tmp_path):
    path = cifar10(tmp_path, {"clip-cifar": astray(), PROMPT: astray(4, 5)})
    near, far = judged_file(path)
    assert not near.is_suspect
    assert near.clues == ()
    assert far.is_outside
    assert "here under 'clip-cifar' it is within what is allowed" in far.warning


def test_prompts_whose_average_is_near_enough(tmp_path):
    path = cifar10(tmp_path, {"a {}": astray(1, 2), "the {}": astray(4, 5)})
    for one in judged_file(path):
        assert one.is_outside
        assert len(one.clues) == 1
        assert "here the average of its 2 prompts gives 90.77 %, which is within" in one.warning


def test_names_are_a_clue_of_what_is_off_alone(tmp_path):
    names = [f"class_{i}" for i in range(10)]
    (near,) = judged_file(cifar10(tmp_path, {"clip-cifar": astray()}, names))
    assert near.warning == ""
    (far,) = judged_file(cifar10(tmp_path, {"clip-cifar": astray(3)}, names))
    assert "here 10 of 10 class names have underscores for spaces ('class_0')" in far.warning


def test_why_nothing_is_compared():
    shot = ZeroShotAccuracy("clip-80", 600, 1000)
    named = {"model": "own", "pretrained": "imported"}
    for identity, name, classes, reason in [
        (B16, "imagenet", 1000, ""),
        (B16, "imagenet", 100, "it has 100 classes, the published set 1,000"),
        (B16, "mine", 100, ""),
        (B16, "wds_cars", 100, "it has 100 classes, the published set 196"),
        (named, "imagenet", 1000, "its encoder is only known by its name"),
        ({**named, "pretrained": "laion2b"}, "imagenet", 1000, "the table has no accuracy of this"),
    ]:
        (one,) = judged(identity, name, [shot], classes)
        assert one.not_compared.startswith(reason) if reason else one.not_compared == ""
        assert (one.published is None) == (bool(reason) or name == "mine")
        assert one.line.startswith("zero-shot accuracy 60.00 %")
        assert (" (not compared: " in one.line) == bool(reason)
    (photos,) = judged(B16, "imagenet", [ZeroShotAccuracy(PHOTOS, 900, 1000)], 1000)
    assert photos.not_compared == "its classes are of photos"
    assert not photos.is_suspect


def test_few_classes_without_images_cost_as_much_as_they_could_change():
    full, some, many = (
        judged(B16, "imagenet", [ZeroShotAccuracy("clip-80", 34_000, 50_000, lacking=n)], 1000)[0]
        for n in (0, 20, 51)
    )
    assert (full.allowed, some.allowed) == (0.5, 2.5)
    assert many.not_compared == "51 of 1,000 classes have no images"


def test_another_prompt_is_allowed_what_prompts_can_cost():
    rows = published_for(B16, "imagenet")
    ours = judge(ZeroShotAccuracy("the nice {}", 31_500, 50_000), rows)
    assert ours.allowed >= TEMPLATES
    assert not ours.is_outside


def test_every_set_of_the_table_has_a_number_of_classes():
    from zsntta_cli.cache.published import table

    assert all(datasets.known(row.set).classes for row in table())


def test_text_features_joined_are_the_ensemble_of_that_name():
    """What is filed as a list of templates and what has an ensemble's name are held alike."""
    rows = published_for(B16, "cars196")
    shot = ZeroShotAccuracy("clip-cars", 5_200, 8_041)
    listed = replace(shot, template=" | ".join(ensembles()["clip-cars"]))
    assert judge(shot, rows).allowed == judge(listed, rows).allowed == 0.5


@pytest.mark.parametrize("note", [
    b"[" * 100_000, b"[]", b"null", b"{}", b"\xff", b'{"of": OF, "accuracies": 3}',
    b'{"of": OF, "accuracies": [{"template": "x", "correct": Infinity, "images": 1, "swaps": []}]}',
    *(b'{"of": OF, "accuracies": [{"template": "x", "swaps": [], "order": "", "lacking": 0, ' + part
      + b"}]}" for part in (b'"correct": 2, "images": 1, "reordered": 0',
                            b'"correct": 1, "images": 1, "reordered": 1' + b"0" * 400,
                            b'"correct": 1, "images": 1' + b"0" * 400 + b', "reordered": 0')),
])  # fmt: skip
def test_a_note_that_is_none_is_made_again(tmp_path, note):
    path = cifar10(tmp_path, {PROMPT: astray()})
    shots = zero_shots(path)
    of = json.dumps(json.loads(note_path(path).read_bytes())["of"]).encode()
    note_path(path).write_bytes(note.replace(b"OF", of))
    assert zero_shots(path) == shots


def test_features_that_are_not_finite_are_no_warning_of_numpy():
    rows = np.array([[np.inf, 1], [np.nan, 0], [0, 1]], np.float16)
    held = FeatureSet(
        Path("x.h5"), DATASET, "x", {}, {}, "", rows, np.array([0, 0, 1], np.int32), ("a", "b"),
        {PROMPT: np.eye(2, dtype=np.float32)},
    )  # fmt: skip
    shot = zero_shot(held, PROMPT)
    assert shot is not None
    assert shot.images == 3


def test_an_accuracy_is_that_of_any_dtype_and_scale():
    rows = np.random.default_rng(0).standard_normal((64, 8))
    text = np.eye(8, dtype=np.float32)
    labels = rows.argmax(1).astype(np.int32)
    for dtype, factor in ((np.float16, 1), (np.float32, 1e-3), (np.float32, 1e4)):
        held = FeatureSet(
            Path("x.h5"), DATASET, "x", {}, {}, "", (rows * factor).astype(dtype), labels,
            tuple(map(str, range(8))), {PROMPT: text},
        )  # fmt: skip
        shot = zero_shot(held, PROMPT)
        assert shot is not None
        assert shot.correct == 64
