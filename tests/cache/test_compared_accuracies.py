"""Zero-shot accuracies beside the published ones, and the notes that keep them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import PROMPT

from zsntta_cli import datasets
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.accuracy import ZeroShotAccuracy, note_path, zero_shot, zero_shots
from zsntta_cli.cache.features import DATASET, FeatureSet, Text
from zsntta_cli.cache.published import TEMPLATES, judge, judged, judged_file, published_for
from zsntta_cli.settings.prompts import PHOTOS, ensembles

B16 = {"model": "ViT-B-16", "pretrained": "openai", "logit_scale": 100.0}
IMAGES, RIGHT = 10_000, 9_077  # of CIFAR-10's test set, as is published


def cifar10(folder, texts):
    """A file named as CIFAR-10 whose images lie at axes of classes, RIGHT of them at their own."""
    labels = np.arange(IMAGES, dtype=np.int32) % 10
    seen = np.where(np.arange(IMAGES) < RIGHT, labels, (labels + 1) % 10)
    path = folder / "cifar10.h5"
    hdf5.write_features(
        path, kind=DATASET, name="cifar10", encoder=B16, source={},
        blocks=[np.eye(10, 11, dtype=np.float16)[seen]], labels=labels,
        sample_ids=[str(i) for i in range(IMAGES)],
        class_names=[f"class {i}" for i in range(10)],
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
    assert near.warning == ""
    assert far.is_outside
    assert "points below the published accuracy" in far.warning
    assert far.warning.endswith("interpolation (bicubic), QuickGELU, the prompt")


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
