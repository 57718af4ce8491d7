"""Tars of samples, as webdataset, CLIP_benchmark's builder and others write them."""

import hashlib
import json
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest
from made import TINY, pack, refused
from web_writer import encoded, pictures, write_split, write_web_set

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.datasets import hub
from zsntta_cli.datasets.class_names import with_class_names
from zsntta_cli.datasets.images import account

LABELS = [2, 0, 1, 1, 0, 2, 2, 0, 1]
NAMES = ["tabby cat", "Äffchen", "ox"]
TEMPLATES = ["a photo of a {c}.", "a blurry photo of the {c}."]
PNG = encoded(pictures(1)[0], "png")


def load(path, name="pets"):
    return datasets.load_images(f"{name}={path}", Path())


def shard(path, first, labels):
    """In the format of webdataset's ShardWriter: key.cls, key.jpg, key.json."""
    files = {}
    for i, label in enumerate(labels, first):
        key = f"{i:05d}"
        files |= {f"{key}.cls": str(label).encode()} if label is not None else {}
        files |= {f"{key}.jpg": PNG, f"{key}.json": b"{}", f"{key}.mask.png": PNG}
    return pack(path, files)


def test_shards_are_one_set(tmp_path):
    for i, labels in enumerate([(2, 0), (1,), (0, None)]):
        shard(tmp_path / f"s-{8 + i:03d}.tar", 10 * i, labels)
    images = load(tmp_path / "s-{008..010}.tar")
    assert images.labels.tolist() == [2, 0, 1, 0, -1]
    assert list(images.sample_ids) == [
        "s-008/00000", "s-008/00001", "s-009/00010", "s-010/00020", "s-010/00021"
    ]  # fmt: skip
    assert list(images.class_names) == []
    assert "labels from its .cls files" in account(images)
    assert "5 further images" in account(images)
    (tmp_path / "classnames.txt").write_text("cat\nÄffchen\nox\n", encoding="utf-8")
    images = load(tmp_path / "s-{008,010}.tar")
    assert images.labels.tolist() == [2, 0, 0, -1]
    assert list(images.class_names) == ["cat", "Äffchen", "ox"]


def test_labels_without_names_are_noted_and_take_them_from_a_file(zsntta, tmp_path):
    write_web_set(tmp_path / "web", LABELS, NAMES)
    (tmp_path / "web" / "classnames.txt").rename(tmp_path / "names.txt")
    extract = ("extract", *TINY, "--noise", "none", "--dataset", "pets=web")
    assert "no class names" in zsntta(*extract).stderr
    images = load(tmp_path / "web")
    named = with_class_names(images, tmp_path / "names.txt")
    assert (list(named.class_names), named.labels.tolist()) == (NAMES, LABELS)
    (tmp_path / "names.txt").write_text("a\nb\n")
    with refused("2 lines", "3 labels"):
        with_class_names(images, tmp_path / "names.txt")


@pytest.mark.parametrize(
    ("pattern", "word"),
    [("a-{0..3}.tar", "a-1.tar"), ("b-0.tar", "00000"), ("c-0.tar", "00000.jpg and 00000.png"),
     ("d-0.tar", "from 7 to 7"), ("e-{0,1}.tar", "e-0.tar"), ("f/t/0.tar", "'a photo'")],
)  # fmt: skip
def test_shards_that_cannot_be_read(tmp_path, pattern, word):
    (tmp_path / "classnames.txt").write_text("cat\nox\n")
    shard(tmp_path / "a-0.tar", 0, [0])
    shard(tmp_path / "b-0.tar", 0, ["cat"])
    pack(tmp_path / "c-0.tar", {"00000.jpg": PNG, "00000.png": PNG, "00000.cls": b"0"})
    shard(tmp_path / "d-0.tar", 0, [7])
    (tmp_path / "e-0.tar").write_bytes(b"x" * 2000)
    write_web_set(tmp_path / "f", LABELS, NAMES, ["a photo"], split="t")
    with refused(word):
        load(tmp_path / pattern)


@pytest.mark.parametrize("below", ["", "test"])
def test_a_set_is_read_as_clip_benchmarks_writer_left_it(tmp_path, below):
    write_web_set(tmp_path, LABELS, NAMES, TEMPLATES)
    images = load(tmp_path / below)
    assert images.labels.tolist() == LABELS
    assert list(images.class_names) == NAMES
    assert list(images.templates) == ["a photo of a {}.", "a blurry photo of the {}."]
    assert list(images.sample_ids) == [f"{i // 4}/s{i:07d}" for i in range(9)]
    for i, pixels in enumerate(pictures(9)):
        assert np.array_equal(images.read(i), pixels)
    digest = hashlib.sha256("\n".join(NAMES).encode()).hexdigest()
    assert images.facts["lists"]["classnames.txt"] == digest


def test_shards_that_are_missing_or_too_many_are_told(tmp_path):
    write_web_set(tmp_path, LABELS, NAMES)
    count = tmp_path / "test" / "nshards.txt"
    for number in ("2", "", "many", "-1", "0"):
        count.write_text(f"{number}\n")
        with refused("nshards.txt", f"'{number}'"):
            load(tmp_path)


def write_texts(root, texts, names):
    """Write samples with texts, a list of contents to an ending, and class names if there are."""
    samples = [{"png": PNG} for _ in next(iter(texts.values()))]
    for ending, contents in texts.items():
        for sample, content in zip(samples, contents, strict=True):
            sample |= {} if content is None else {ending: content.encode()}
    write_split(root / "test", samples)
    if names:
        (root / "classnames.txt").write_text("\n".join(names))


@pytest.mark.parametrize(
    ("texts", "names", "labels", "class_names"),
    [
        # names of classes, with and without a list of them
        ({"txt": ["ox", "cat ", "ox", "cat"]}, None, [1, 0, 1, 0], ["cat", "ox"]),
        ({"txt": ["ox", "cat", "ox"]}, ["ox", "cat", "dog"], [0, 1, 0], ["ox", "cat", "dog"]),
        # captions are no labels
        ({"txt": ["an ox", "two cats", "a dog", "two cats"]}, None, [-1] * 4, []),
        ({"txt": ["an ox", "an ox", "a dog", "a dog"]}, ["ox", "cat"], [-1] * 4, []),
        # numbers
        ({"txt": ["7", "5", "7", "5"]}, ["5", "7"], [1, 0, 1, 0], ["5", "7"]),
        ({"json": ['{"label": 1}', '{"label": 0}', '{"label": -1}', '{"x": 1}']}, ["a", "b"],
         [1, 0, -1, -1], ["a", "b"]),
        ({"json": ['{"class_name": "ox"}', '{"class_name": "cat"}'] * 2}, None, [1, 0] * 2,
         ["cat", "ox"]),
        # .cls comes first, then .json, then .txt
        ({"cls": ["1", "0", "1", None], "json": ['{"label": 5}'] * 3 + ["{}"],
          "txt": ["a b", "c d", "e", None]}, ["a", "b"], [1, 0, 1, -1], ["a", "b"]),
    ],
)  # fmt: skip
def test_what_tells_a_label(tmp_path, texts, names, labels, class_names):
    write_texts(tmp_path, texts, names)
    images = load(tmp_path)
    assert images.labels.tolist() == labels
    assert list(images.class_names) == class_names


@pytest.mark.parametrize("kind", [".tar", ".zip"])
@pytest.mark.parametrize(("ending", "field"), [("json", "fine"), ("species", ".species")])
def test_a_field_or_an_ending_is_named_in_a_note_and_by_an_option(tmp_path, kind, ending, field):
    """However it is packed: samples are told by their keys, not by the name of the archive."""
    files = {f"a/{i}.png": PNG for i in range(4)}
    texts = [json.dumps({"width": 9, "fine": "xy"[i % 2]}) if ending == "json" else "xy"[i % 2]
             for i in range(4)]  # fmt: skip
    files |= {f"a/{i}.{ending}": text.encode() for i, text in enumerate(texts)}
    path = pack(tmp_path / f"s{kind}", files)
    [note] = load(path).notes
    assert field in note
    images = load(f"{path}?label={field}")
    assert list(images.sample_ids) == [f"s/a/{i}" for i in range(4)]
    assert images.labels.tolist() == [0, 1, 0, 1]
    assert list(images.class_names) == ["x", "y"]
    with refused("'coarse'", field):
        load(f"{path}?label=coarse")


@pytest.mark.parametrize(
    ("texts", "names", "word"),
    [
        ({"json": ["{", "{}"]}, None, "s0000000"),
        ({"json": ["[" * 100_000, "{}"]}, None, "s0000000"),
        ({"json": ['{"label": -2}', "{}"]}, None, "-2"),
        ({"json": ['{"label": [1, 2]}', "{}"]}, None, "[1, 2]"),
        ({"json": ['{"label": true}', "{}"]}, None, "True"),
        ({"json": ['{"label": 1}', '{"label": "ox"}']}, None, "mix"),
        ({"txt": ["ox", "ox", "hen", "hen"]}, ["ox", "cat"], "'hen'"),
        ({"txt": ["crane", "ox"] * 2}, ["crane", "ox", "crane"], "twice"),
    ],
)
def test_labels_that_are_none(tmp_path, texts, names, word):
    write_texts(tmp_path, texts, names)
    with refused(word):
        load(tmp_path)


def test_extract_embeds_the_names_under_the_templates_of_the_set(zsntta, tmp_path, tiny):
    write_web_set(tmp_path / "web", LABELS, NAMES, TEMPLATES)
    extract = ("extract", *TINY, "--noise", "none", "--dataset", "pets=web")
    assert zsntta(*extract).exit_code == 0
    features = store.read(tmp_path / "features/tiny/pets.h5")
    assert features.labels.tolist() == LABELS
    assert list(features.class_names) == NAMES
    own = "a photo of a {}. | a blurry photo of the {}."
    assert list(features.texts) == ["a photo of a {}.", own]
    each = [tiny.encode_texts([t.format(name) for name in NAMES]) for t in own.split(" | ")]
    mean = np.mean(each, axis=0)
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(features.texts[own].features, mean, atol=1e-6)


@pytest.mark.parametrize("spec", [None, ModuleSpec("datasets", None)])
def test_the_library_datasets_lacks_or_is_a_folder_of_that_name(monkeypatch, spec, tmp_path):
    monkeypatch.setattr(hub, "find_spec", {"datasets": spec}.get)
    with refused("pip install 'zsntta[datasets]'"):
        datasets.load_images("pets=hf:org/name:test", tmp_path)
