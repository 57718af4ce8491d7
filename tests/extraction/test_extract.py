"""One set to its feature file: the encoder's features, once, resumed, never mixed."""

import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from made import IMAGE_BOMB, PROMPT, refused

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.identity import is_level_known
from zsntta_cli.datasets.images import limited
from zsntta_cli.errors import DatasetError, StoreError
from zsntta_cli.settings.prompts import class_prompts


def glyphs(count=70):
    return limited(datasets.load_images("glyphs", Path()), count)


def test_features_are_the_encoders(extractor, tiny, picture_folder):
    images = datasets.load_images(f"pets={picture_folder}", Path())
    extracted = extractor().dataset(images, [PROMPT])
    features = store.read(extracted.path)
    pixels = np.stack([tiny.resize(images.read(i)) for i in range(len(images))])
    expected = tiny.encode_pixels(pixels)
    np.testing.assert_allclose(features.image_features, expected, atol=0.02)
    assert features.class_names == ("big_cat", "dog")
    assert features.labels.tolist() == [0] * 6 + [1] * 6
    of_names = tiny.encode_texts(["a photo of a big cat.", "a photo of a dog."])
    np.testing.assert_array_equal(features.texts[PROMPT].features, of_names)
    np.testing.assert_allclose(np.linalg.norm(of_names, axis=1), 1, rtol=1e-5)
    assert store.read_sample_ids(extracted.path) == tuple(images.sample_ids)
    assert extracted.encoded == 12


def test_a_second_run_encodes_nothing_and_may_add_a_prompt(extractor, tiny):
    images = limited(datasets.load_images("shapes", Path()), 20)
    path = extractor().dataset(images, [PROMPT]).path
    before = store.read(path)
    assert extractor(encoder=None).dataset(images, [PROMPT]).encoded == 0, "no encoder is needed"
    extractor().dataset(images, [PROMPT, "art of a {}."])
    after = store.read(path)
    assert (after.digest, after.created) == (before.digest, before.created)
    assert store.read_sample_ids(path) == tuple(images.sample_ids)
    assert {*after.texts} == {PROMPT, "art of a {}."}
    expected = tiny.encode_texts(class_prompts("art of a {}.", images.class_names))
    np.testing.assert_array_equal(after.texts["art of a {}."].features, expected)


def test_an_interrupted_extraction_goes_on_where_it_was(extractor, tmp_path, stopping):
    reference = store.read(extractor(tmp_path / "whole").dataset(glyphs()).path)
    for root in (tmp_path / "others", tmp_path / "features"):
        with stopping(5):
            extractor(root).dataset(glyphs())
    others = extractor(tmp_path / "others", batch_size=16)
    assert others.dataset(glyphs()).encoded == 70
    assert "glyphs: starting over: an interrupted run had a different" in others.reporter.notes[0]
    path = feature_path(tmp_path / "features", "tiny", "glyphs")
    assert not path.exists()
    resumed = extractor()
    assert resumed.dataset(glyphs()).encoded == 70 - 32, "four batches were kept"
    assert resumed.reporter.advanced[0] == 32
    assert store.read(path).digest == reference.digest
    assert {p.name for p in path.parent.iterdir()} == {".glyphs.lock", "glyphs.h5"}


def test_rows_that_another_process_appended_behind_the_last_are_not_used(extractor, tmp_path):
    """Two processes may write the same rows on a disk without locks."""
    whole = extractor(tmp_path / "whole").dataset(glyphs())
    stopped = patch.object(store, "write", side_effect=KeyboardInterrupt)
    with stopped, pytest.raises(KeyboardInterrupt):
        extractor().dataset(glyphs())
    [rows] = tmp_path.rglob("*.rows")
    with rows.open("ab") as file:
        file.write(rows.read_bytes()[-10_000:])
    resumed = extractor().dataset(glyphs())
    assert (resumed.encoded, resumed.features.digest) == (0, whole.features.digest)


def test_a_file_of_other_images_another_encoder_or_type_is_kept(extractor, monkeypatch):
    path = extractor().dataset(glyphs(20)).path
    before = path.read_bytes()
    changed = replace(glyphs(20), fingerprint="other pixels")
    for extracting, images, part in (
        (extractor(), glyphs(30), "(images is 20, not 30)"),
        (extractor(), changed, "(file names, sizes"),
        (extractor(store="float32"), glyphs(20), "(type is float16, not float32)"),
    ):
        with refused(part):
            extracting.dataset(images)
        assert path.read_bytes() == before
    monkeypatch.setattr(
        "zsntta_cli.extraction.extractor.weights_request", lambda _: {"weights_sha256": "another"}
    )
    with refused("different encoder"):
        extractor().dataset(glyphs(20))
    assert path.read_bytes() == before
    assert extractor(overwrite=True).dataset(glyphs(30)).images == 30
    assert extractor(store="float32", overwrite=True).dataset(glyphs(20)).encoded == 20


def test_noise_is_made_anew_where_there_is_too_little(extractor):
    few = store.read(extractor().noise("gaussian", 16).path)
    more = extractor().noise("gaussian", 50)
    assert more.encoded == 50
    rows = store.read(more.path).image_features
    np.testing.assert_array_equal(rows[:16], few.image_features)
    assert extractor(encoder=None).noise("gaussian", 30).encoded == 0
    assert extractor(store="float32").noise("gaussian", 30).encoded == 30


@pytest.mark.parametrize("broken", ["truncated", "text", "empty", "bomb"])
def test_a_broken_image_is_named_or_skipped(extractor, picture_folder, broken):
    victim = picture_folder / "dog" / "0.jpg"
    content = {
        "truncated": victim.read_bytes()[:400], "text": b"no image", "empty": b"",
        "bomb": IMAGE_BOMB,
    }  # fmt: skip
    victim.write_bytes(content[broken])
    images = datasets.load_images(f"pets={picture_folder}", Path())
    with refused("'dog/0.jpg' of 'pets'", "--skip-broken", error=DatasetError):
        extractor().dataset(images)
    extracted = extractor(skip_broken=True).dataset(images, [PROMPT])
    assert extracted.skipped == ("dog/0.jpg",)
    features = store.read(extracted.path)
    assert len(features) == 11
    assert features.source["skipped"] == ["dog/0.jpg"]
    assert "dog/0.jpg" not in store.read_sample_ids(extracted.path)
    assert extractor().dataset(images, [PROMPT]).encoded == 0, "a skipped image is not a change"


class Waiting:
    """The embedded encoder, which waits in the middle until it may go on."""

    def __init__(self, tiny, may_go_on):
        self._tiny, self.begun, self._may_go_on = tiny, threading.Event(), may_go_on

    def __getattr__(self, name):
        return getattr(self._tiny, name)

    def encode_pixels(self, pixels):
        self.begun.set()
        assert self._may_go_on.wait(30)
        return self._tiny.encode_pixels(pixels)


def test_of_two_extractions_of_one_set_the_second_waits(extractor, tmp_path, tiny):
    """It says so, and has nothing left to do."""
    second = extractor()
    first = extractor(encoder=(waiting := Waiting(tiny, second.reporter.told)))
    with ThreadPoolExecutor(1) as threads:
        extracted = threads.submit(first.dataset, glyphs(40))
        assert waiting.begun.wait(30)
        assert second.dataset(glyphs(40)).encoded == 0
        assert extracted.result().encoded == 40
    path = feature_path(tmp_path / "features", "tiny", "glyphs")
    assert first.reporter.notes == []
    assert second.reporter.notes == [f"waiting for another process that writes {path}."]
    assert {p.name for p in path.parent.iterdir()} == {".glyphs.lock", "glyphs.h5"}


@pytest.mark.parametrize("room", [20_000, 50_000])
def test_a_disk_that_fills_up_loses_no_finished_part(extractor, tmp_path, room):
    """Full at the third batch (8 kB each), or at the feature file (72 kB) that holds them all."""
    whole = extractor(tmp_path / "whole").dataset(glyphs())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))  # stands in for a full disk
    try:
        with pytest.raises(StoreError, match=r"^cannot write .*Finished work is kept\.$"):
            extractor().dataset(glyphs())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    path = feature_path(tmp_path / "features", "tiny", "glyphs")
    assert not path.exists()
    assert not list(path.parent.rglob("*.tmp"))
    left = extractor().dataset(glyphs()).encoded
    assert left == (54 if room == 20_000 else 22), "two batches, or one keep, and what fitted"
    assert store.read(path).digest == store.read(whole.path).digest


def test_features_in_float32_are_the_encoders_to_the_bit_and_float16_are_them_rounded(
    extractor, tiny
):
    images = limited(datasets.load_images("shapes", Path()), 16)
    exact = store.read(extractor(store="float32").dataset(images).path)
    pixels = np.stack([tiny.resize(images.read(i)) for i in range(16)])
    by_encoder = np.concatenate([tiny.encode_pixels(pixels[i : i + 8]) for i in (0, 8)])
    assert exact.image_features.dtype == np.float32
    np.testing.assert_array_equal(exact.image_features, by_encoder)
    rounded = store.read(extractor(overwrite=True).dataset(images).path)
    np.testing.assert_array_equal(rounded.image_features, by_encoder.astype(np.float16))


# --- the encoder's generic text


def test_the_generic_text_is_the_mean_of_256_words_and_stands_beside_class_texts(extractor, tiny):
    images = limited(datasets.load_images("shapes", Path()), 8)
    path = extractor().dataset(images, [PROMPT]).path
    first = store.read(path)
    words = first.generic_source.removeprefix("a photo of a {}. ").split(", ")
    assert len({*words}) == 256
    mean = tiny.encode_texts([f"a photo of a {word}." for word in words]).mean(0)
    np.testing.assert_allclose(first.generic, mean, atol=1e-6)
    assert 0 < np.linalg.norm(first.generic) < 0.999, "no unit vector"
    bare = replace(first, generic=None, generic_source="")
    store.write(bare, store.read_sample_ids(path))
    assert extractor().dataset(images, [PROMPT]).encoded == 0
    assert store.read(path).generic.tobytes() == first.generic.tobytes()
    assert store.read(extractor().dataset(glyphs(8)).path).generic is None, "it has no class texts"


@pytest.mark.parametrize(
    ("model", "pretrained", "known"),
    [("ViT-B-32", "openai", True), ("ViT-B-16-quickgelu", "openai", True),
     ("ViT-B-32", "laion2b_s34b_b79k", False), ("RN50", "openai", False)],
)  # fmt: skip
def test_the_level_is_known_of_openais_vits(model, pretrained, known):
    assert is_level_known({"model": model, "pretrained": pretrained}) is known
