"""Features that are encoded once: kept by content with how they were read, found by stamps."""

import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from made import PROMPT, Notes, at_once
from PIL import Image

from zsntta_cli import encode
from zsntta_cli.detection import encoding as module
from zsntta_cli.detection import feature_store, sources
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.feature_store import FeatureStore, Kept
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.encoders.text import prompt_features
from zsntta_cli.errors import DatasetError, EncoderError, StoreError
from zsntta_cli.settings import EncoderChoice

NO_PICTURE = "it is no picture of a known kind"


@pytest.fixture
def folder(tmp_path):
    """Whole pictures, one of 16 bits, one of a camera, one that is none."""
    root = tmp_path / "f"
    root.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (5, 40, 40), np.uint8)
    Image.fromarray(pixels[0]).save(root / "0.png")
    Image.fromarray(pixels[0].astype(np.uint16) * 257).save(root / "1.png")
    Image.fromarray(pixels[2]).save(root / "2.jpg")
    (root / "3.png").write_bytes(b"no image")
    Image.fromarray(pixels[4]).save(root / "4.bmp")
    return root


def said(photos):
    return [(one.note, one.error, one.features is None) for one in photos]


def test_what_is_known_is_neither_read_nor_encoded_again(folder, tmp_path, passes, encoded):
    first = encoded(folder)
    assert [one.note for one in first] == ["", "brought to 8 bits", "", "", ""]
    assert [one.error for one in first] == ["", "", "", NO_PICTURE, ""]
    np.testing.assert_allclose(first[0].features, first[1].features, rtol=2e-3, atol=2e-3)
    # Twice what is a picture, as the encoder is loaded then; it is there where names are encoded.
    assert passes == {"encoded": 4, "read": 9, "loaded": 1}
    again = encoded(folder)
    assert passes == {"encoded": 4, "read": 9, "loaded": 1}, "nor what is no picture"
    folder.rename(tmp_path / "moved")
    (tmp_path / "moved/2.jpg").rename(tmp_path / "moved/9.jpg")
    moved = encoded(tmp_path / "moved")
    assert passes == {"encoded": 4, "read": 14, "loaded": 1}, "the encoder is not even loaded"
    for other, order in ((again, [0, 1, 2, 3, 4]), (moved, [0, 1, 3, 4, 2])):
        assert said(other) == said([first[i] for i in order])
        for one, i in zip(other, order, strict=True):
            np.testing.assert_array_equal(one.features, first[i].features)


def test_a_loaded_encoder_reads_new_files_once(folder, encoding, passes):
    assert encoding.encoder.embed_dim
    encoding.encode([sources.of_file(path) for path in folder.iterdir()], "images")
    assert (passes["read"], passes["encoded"]) == (5, 4)


def test_a_changed_file_is_encoded_anew_even_with_its_old_time_and_size(folder, passes, encoded):
    path = folder / "4.bmp"
    before, first = path.stat(), encoded(folder)
    content = bytearray(path.read_bytes())
    content[-20:] = bytes(20)  # black pixels
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert (first[4].features != encoded(folder)[4].features).any()


def test_a_file_that_was_changed_just_now_is_read_again(folder, passes, monkeypatch, encoded):
    monkeypatch.setattr(sources, "_SETTLED", 60.0)
    encoded(folder)
    encoded(folder)
    assert passes == {"encoded": 4, "read": 14, "loaded": 1}


def test_images_of_one_content_are_one(folder, passes, encoded):
    for i in range(200):
        shutil.copy(folder / "0.png", folder / f"copy{i:03}.png")
    found = encoded(folder)
    assert len(found) == 205
    assert passes["encoded"] < 205 / 2
    for one in found[5:]:
        np.testing.assert_array_equal(one.features, found[0].features)


def test_class_names_are_encoded_once(tmp_path, passes, monkeypatch):
    calls = []
    plain = Encoder.encode_texts
    monkeypatch.setattr(
        Encoder, "encode_texts", lambda self, texts: calls.append(list(texts)) or plain(self, texts)
    )
    given = Encoding(EncoderChoice("tiny"), tmp_path, "cpu", 2, Notes())
    both = prompt_features(given.encode_texts, PROMPT, ["star", "big_circle"])
    assert calls == [["a photo of a star.", "a photo of a big circle."]]
    more = prompt_features(given.encode_texts, PROMPT, ["big circle", "cross", "star"])
    assert calls[1:] == [["a photo of a cross."]]
    np.testing.assert_array_equal(more[[2, 0]], both)


def test_a_folder_is_made_only_when_something_is_encoded(tmp_path, passes):
    Encoding(EncoderChoice("no-such-model"), tmp_path / "features", "cpu", 1, Notes())
    assert not (tmp_path / "features").exists()
    given = Encoding(EncoderChoice(folder="mine"), tmp_path / "features", "cpu", 1, Notes())
    with pytest.raises(EncoderError, match="what made the features of mine is not known"):
        given.encode_texts(["cat"])


def sql(path, statement):
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()


def test_features_of_another_encoder_are_refused(folder, tmp_path, passes, encoded):
    encoded(folder)
    given = Encoding(EncoderChoice(folder="tiny"), tmp_path / "features", "cpu", 1, Notes())
    assert given.identity["model"] == "tiny", "a folder by its name is the encoder that made it"
    path = tmp_path / "features/tiny" / module.STORE
    sql(path, "UPDATE kept SET words = replace(words, 'fp32', 'fp16') WHERE kind = 'encoder'")
    with pytest.raises(StoreError, match=r"is of another encoder \(precision is fp16"):
        encoded(folder)


IMAGES = f"WHERE kind = '{feature_store.IMAGE}'"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(b"no database" * 100), "is not a database"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "malformed|disk image|not a d"),
        (lambda path: sql(path, "PRAGMA application_id=1"), "of another program"),
        (lambda path: sql(path, "PRAGMA user_version=9"), "made by another version of zsntta"),
        (lambda path: sql(path, "ALTER TABLE kept RENAME words TO w"), "no such column"),
        (lambda path: sql(path, "UPDATE kept SET words='[1'"), "no JSON"),
        (lambda path: sql(path, "UPDATE kept SET words='[1]'"), "no JSON object"),
        (lambda path: sql(path, f"UPDATE kept SET value=x'00' {IMAGES}"), "multiple of element"),
        (lambda path: sql(path, f"UPDATE kept SET value=7 {IMAGES}"), "bytes-like|buffer"),
        (
            lambda path: sql(path, f"UPDATE kept SET value=x'0000' {IMAGES} AND words != ''"),
            "features of several lengths",
        ),
        (lambda path: (path.unlink(), path.mkdir()), "is a folder"),
    ],
)
def test_a_broken_store_is_one_line(folder, tmp_path, passes, damage, message, encoded):
    encoded(folder)
    path = tmp_path / "features/tiny" / module.STORE
    for extra in path.parent.glob("*-wal"):
        extra.unlink()
    damage(path)
    with pytest.raises(StoreError, match=message):
        encoded(folder)


def test_where_nothing_can_be_written_it_goes_on(folder, passes, monkeypatch, encoded):
    encoded(folder)
    monkeypatch.setattr(os, "access", lambda *_: False)
    (folder / "0.png").unlink()
    assert len(encoded(folder)) == 4
    assert passes["encoded"] == 4


def test_two_that_make_a_store_at_once_share_it_and_what_was_kept_first_stays(tmp_path):
    path = tmp_path / "deep" / "images.sqlite"

    def work(number):
        with FeatureStore(path) as store:
            store.set_identity({"model": "one"})
            for i in range(20):
                rows = {bytes([number, i]): Kept(bytes([i] * 6)), b"same": Kept(bytes([number]))}
                store.keep({"image": rows})

    at_once(4, work)
    with FeatureStore(path) as store:
        assert store.identity == {"model": "one"}
        assert len(store.keys("image")) == 81
        first = store.kept("image", [b"same"])
        store.keep({"image": {b"same": Kept(b"other")}})
        assert store.kept("image", [b"same"]) == first
        half = np.float16
        assert store.unpacked(store.kept("image", [b"\1\0"]), half)[b"\1\0"].tolist() == [0, 0, 0]


# --- what cannot be read


def test_a_failure_is_tried_again_by_another_reader(folder, passes, monkeypatch, encoded):
    encoded(folder)
    monkeypatch.setattr(module, "reader", lambda: "with a plug-in")
    plain = Image.open(folder / "0.png")
    monkeypatch.setattr("zsntta_cli.datasets.decoding._opened", lambda _: plain.copy())
    again = encoded(folder)
    assert again[3].error == ""
    assert again[3].features is not None
    assert (passes["encoded"], passes["loaded"]) == (5, 2)
    encoded(folder)
    assert (passes["encoded"], passes["loaded"]) == (5, 2)


def test_what_is_no_fault_of_the_file_is_not_kept(folder, tmp_path, passes, monkeypatch, encoded):
    def no_memory(_):
        raise MemoryError("no memory")

    (folder / "gone.png").symlink_to(folder / "none")
    monkeypatch.setattr("zsntta_cli.datasets.decoding._opened", no_memory)
    errors = {Path(one.source).name: one.error for one in encoded(folder)}
    assert errors.pop("gone.png").startswith("No such file")
    assert {*errors.values()} == {"no memory"}
    monkeypatch.undo()
    with FeatureStore(tmp_path / "features/tiny" / module.STORE) as store:
        assert not store.keys(module.reader(), feature_store.FILE)


def test_features_of_the_older_reading_are_made_again(folder, tmp_path, passes, encoded):
    encoded(folder)
    path = tmp_path / "features/tiny" / module.STORE
    sql(path, f"UPDATE kept SET kind = 'reading 1' {IMAGES}")
    assert [bool(one.note) for one in encoded(folder)] == [False, True, False, False, False]
    assert (passes["encoded"], passes["loaded"]) == (8, 2)


# --- in a program


def test_paths_and_pil_images_have_the_features_of_the_command(folder, tiny, encoded, passes):
    kept = encoded(folder)
    for i in (0, 1, 2):
        path = Path(kept[i].source)
        for kind in (path, str(path), Image.open(path)):
            np.testing.assert_allclose(encode(tiny, kind)[0], kept[i].features, atol=2e-3)
    assert encode(tiny, iter([folder / "0.png", folder / "4.bmp"])).shape == (2, tiny.embed_dim)
    assert encode(tiny, []).shape == (0, tiny.embed_dim)


def test_what_is_no_image_is_refused(folder, tiny):
    for image in (7, [7], b"bytes", np.zeros((4, 4, 3), np.uint8), {}):
        with pytest.raises(TypeError, match="must be a path or a PIL image"):
            encode(tiny, image)
    (folder / "a.nef").write_bytes(b"")
    for name, why in (("3.png", NO_PICTURE), ("none.png", "No such file"), ("a.nef", "RAW photo")):
        with pytest.raises(DatasetError, match=rf"cannot read image '.*{name}' \(.*{why}"):
            encode(tiny, [folder / "0.png", folder / name])
    with pytest.raises(DatasetError, match="it is an address"):
        encode(tiny, "https://a.org/b.png")
