"""Features that are encoded once: kept by content, found again by stamps."""

import os
import shutil
import sqlite3

import numpy as np
import pytest
from made import PROMPT, Notes, at_once
from PIL import Image

from zsntta_cli.detection import encoding as module
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.feature_store import FeatureStore, KeptImage, Stamp
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.errors import EncoderError, StoreError
from zsntta_cli.settings import EncoderChoice


@pytest.fixture
def folder(tmp_path):
    generator = np.random.default_rng(0)
    root = tmp_path / "f"
    root.mkdir()
    for i in range(5):
        pixels = generator.integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(root / f"{i}.png")
    return root


def test_what_is_known_is_neither_read_nor_encoded_again(folder, tmp_path, passes, encoded):
    first = encoded(folder)
    # Twice the first time, to see that they are not known; the first once more, to see whether it
    # can be decoded before the encoder is loaded.
    assert passes == {"encoded": 5, "read": 11, "loaded": 1}
    again = encoded(folder)
    assert passes == {"encoded": 5, "read": 11, "loaded": 1}
    folder.rename(tmp_path / "moved")
    (tmp_path / "moved/3.png").rename(tmp_path / "moved/9.png")
    moved = encoded(tmp_path / "moved")
    assert passes == {"encoded": 5, "read": 16, "loaded": 1}, "the encoder is not even loaded"
    for other, order in ((again, [0, 1, 2, 3, 4]), (moved, [0, 1, 2, 4, 3])):
        for one, i in zip(other, order, strict=True):
            np.testing.assert_array_equal(one.features, first[i].features)


def test_a_changed_file_is_encoded_anew_even_with_its_old_time_and_size(folder, passes, encoded):
    path = folder / "2.bmp"
    Image.open(folder / "2.png").save(path)
    (folder / "2.png").unlink()
    before = path.stat()
    first = encoded(folder)
    passes["read"] = 0
    content = bytearray(path.read_bytes())
    content[-20:] = bytes(20)  # black pixels
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    changed = encoded(folder)
    assert passes["read"] == 3, "of the one file: is it new, can it be decoded, then its pixels"
    assert (first[2].features != changed[2].features).any()


def test_a_file_that_was_changed_just_now_is_read_again(folder, passes, monkeypatch, encoded):
    monkeypatch.setattr(module, "_SETTLED", 60.0)
    encoded(folder)
    encoded(folder)
    assert passes == {"encoded": 5, "read": 16, "loaded": 1}


def test_images_of_one_content_are_one(folder, passes, encoded):
    for i in range(200):
        shutil.copy(folder / "0.png", folder / f"copy{i:03}.png")
    found = encoded(folder)
    assert len(found) == 205
    assert passes["encoded"] < 205 / 2
    for one in found[5:]:
        np.testing.assert_allclose(one.features, found[0].features, rtol=2e-3, atol=2e-3)


def test_features_are_those_of_an_extraction(drawn, tiny, encoded):
    [first, *_] = encoded(drawn / "pictures", drawn / "features")
    with Image.open(first.item.source) as image:
        expected = tiny.encode_pixels(np.array(tiny.resize(image.convert("RGB")))[None])[0]
    np.testing.assert_allclose(first.features, expected, atol=2e-3)


def test_class_names_are_encoded_once(tmp_path, passes, monkeypatch):
    calls = []
    plain = Encoder.encode_texts
    monkeypatch.setattr(
        Encoder, "encode_texts", lambda self, texts: calls.append(list(texts)) or plain(self, texts)
    )
    given = Encoding(EncoderChoice("tiny"), tmp_path, "cpu", 2, Notes())
    both = given.texts(["star", "big_circle"], PROMPT)
    assert calls == [["a photo of a star.", "a photo of a big circle."]]
    more = given.texts(["big circle", "cross", "star"], PROMPT)
    assert calls[1:] == [["a photo of a cross."]]
    np.testing.assert_array_equal(more[[2, 0]], both)


def test_a_folder_is_made_only_when_something_is_encoded(tmp_path, passes):
    Encoding(EncoderChoice("no-such-model"), tmp_path / "features", "cpu", 1, Notes())
    assert not (tmp_path / "features").exists()
    given = Encoding(EncoderChoice(folder="mine"), tmp_path / "features", "cpu", 1, Notes())
    with pytest.raises(EncoderError, match="what made the features of mine is not known"):
        given.texts(["cat"], PROMPT)


def test_features_of_another_encoder_are_refused(folder, tmp_path, passes, encoded):
    encoded(folder)
    path = tmp_path / "features/tiny" / module.STORE
    with sqlite3.connect(path) as database:
        database.execute("UPDATE encoder SET identity = replace(identity, 'fp32', 'fp16')")
    database.close()
    with pytest.raises(StoreError, match=r"is of another encoder \(precision is fp16"):
        encoded(folder)


def test_a_folder_by_its_name_is_the_encoder_that_made_it(folder, tmp_path, passes, encoded):
    encoded(folder)
    given = Encoding(EncoderChoice(folder="tiny"), tmp_path / "features", "cpu", 1, Notes())
    [cat] = given.texts(["cat"], PROMPT)
    assert np.linalg.norm(cat) == pytest.approx(1, abs=1e-5)
    assert given.identity["model"] == "tiny"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.write_bytes(b"no database" * 100), "is not a database"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "malformed|disk image|not a d"),
        (lambda path: sql(path, "PRAGMA application_id=1"), "of another program"),
        (lambda path: sql(path, "PRAGMA user_version=9"), "made by another version of zsntta"),
        (lambda path: sql(path, "DROP TABLE images"), "no such table"),
        (lambda path: sql(path, "UPDATE encoder SET identity='[1'"), "no JSON"),
        (lambda path: sql(path, "UPDATE encoder SET identity='[1]'"), "no JSON object"),
        (lambda path: sql(path, "UPDATE images SET features=x'00'"), "multiple of element size"),
        (lambda path: sql(path, "UPDATE images SET features=7"), "bytes-like|buffer"),
        (
            lambda path: sql(path, "UPDATE images SET features=x'0000' WHERE rowid=1"),
            "features of several lengths",
        ),
        (lambda path: (path.unlink(), path.mkdir()), "is a folder"),
    ],
)
def test_a_broken_store_is_one_line(folder, tmp_path, passes, damage, said, encoded):
    encoded(folder)
    path = tmp_path / "features/tiny" / module.STORE
    for extra in path.parent.glob("*-wal"):
        extra.unlink()
    damage(path)
    with pytest.raises(StoreError, match=said):
        encoded(folder)


def sql(path, statement):
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()


def test_where_nothing_can_be_written_it_goes_on(folder, passes, monkeypatch, encoded):
    encoded(folder)
    monkeypatch.setattr(os, "access", lambda *_: False)
    (folder / "0.png").unlink()
    assert len(encoded(folder)) == 4
    assert passes["encoded"] == 5


def test_two_that_make_a_store_at_once_share_it(tmp_path):
    path = tmp_path / "deep" / "images.sqlite"

    def work(number):
        store = FeatureStore(path)
        store.set_identity({"model": "one"})
        for i in range(20):
            digest = bytes([number, i])
            image = KeptImage(np.full(3, i, np.float16))
            store.add({digest: image}, {digest: (Stamp(1, "2"), digest)})
        store.close()

    at_once(4, work)
    store = FeatureStore(path)
    assert store.identity == {"model": "one"}
    assert len(store.all_digests()) == 80
    assert store.digests({b"\0\0": Stamp(1, "2"), b"\1\1": Stamp(1, "3")}) == {b"\0\0": b"\0\0"}
