"""Features that are encoded once: kept by content with how they were read, found by stamps."""

import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from made import PROMPT, Notes, at_once, refused
from PIL import Image

from zsntta_cli import encode
from zsntta_cli.detection import encoding as module
from zsntta_cli.detection import sources
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.feature_store import FILE, IMAGE, FeatureStore, Kept
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.encoders.text import prompt_features
from zsntta_cli.errors import DatasetError, EncoderError, StoreError
from zsntta_cli.settings import EncoderChoice

NO_PICTURE = "it is not a picture in a known format: it begins 'no image'"
STORE = Path("features/tiny/images.sqlite")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Whole pictures, one of 16 bits, one of a camera, one that is none, and a copy."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "f"
    root.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (5, 40, 40), np.uint8)
    Image.fromarray(pixels[0]).save(root / "0.png")
    Image.fromarray(pixels[0].astype(np.uint16) * 257).save(root / "1.png")
    Image.fromarray(pixels[2]).save(root / "2.jpg")
    (root / "3.png").write_bytes(b"no image")
    Image.fromarray(pixels[4]).save(root / "4.bmp")
    shutil.copy(root / "0.png", root / "5.png")
    return root


def said(photos):
    return [(one.note, one.error, one.features is None) for one in photos]


def test_what_is_known_is_neither_read_nor_encoded_again(folder, tmp_path, passes, encoded):
    first = encoded(folder)
    assert [one.note for one in first] == ["", "reduced to 8 bits", "", "", "", ""]
    assert [one.error for one in first] == ["", "", "", NO_PICTURE, "", ""]
    np.testing.assert_array_equal(first[5].features, first[0].features)
    np.testing.assert_allclose(first[0].features, first[1].features, rtol=2e-3, atol=2e-3)
    # The first batch is read twice, as the encoder is loaded then.
    assert passes == {"encoded": 4, "read": 12, "loaded": 1}
    again = encoded(folder)
    assert passes == {"encoded": 4, "read": 12, "loaded": 1}, "nor what is no picture"
    folder.rename(tmp_path / "moved")
    (tmp_path / "moved/2.jpg").rename(tmp_path / "moved/9.jpg")
    moved = encoded(tmp_path / "moved")
    assert passes == {"encoded": 4, "read": 18, "loaded": 1}, "the encoder is not even loaded"
    for other, order in ((again, range(6)), (moved, [0, 1, 3, 4, 5, 2])):
        assert said(other) == said([first[i] for i in order])
        for one, i in zip(other, order, strict=True):
            np.testing.assert_array_equal(one.features, first[i].features)


def test_a_changed_file_is_encoded_anew_even_with_its_old_time_and_size(
    folder, passes, encoded, monkeypatch
):
    path = folder / "4.bmp"
    before, first = path.stat(), encoded(folder)
    content = bytearray(path.read_bytes())
    content[-20:] = bytes(20)  # black pixels
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert (first[4].features != encoded(folder)[4].features).any()
    read = passes["read"]
    monkeypatch.setattr(sources, "_SETTLED", 60.0)
    encoded(folder)
    assert passes["read"] == read + 6, "what was changed just now is read again"


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
    with refused("the encoder of mine is not known", error=EncoderError):
        given.encode_texts(["cat"])


def sql(statement):
    with sqlite3.connect(STORE) as database:
        database.execute(statement)
    database.close()


def test_features_of_another_encoder_are_refused(folder, passes, encoded):
    encoded(folder)
    given = Encoding(EncoderChoice(folder="tiny"), Path("features"), "cpu", 1, Notes())
    assert given.identity["model"] == "tiny", "a folder by its name is the encoder that made it"
    sql("UPDATE kept SET words = replace(words, 'fp32', 'fp16') WHERE kind = 'encoder'")
    with refused("is from a different encoder (precision is fp16", error=StoreError):
        encoded(folder)


IMAGES = f"WHERE kind = '{IMAGE}'"
DAMAGE = {
    "is not a database": lambda: STORE.write_bytes(b"no database" * 100),
    "another program's": lambda: sql("PRAGMA application_id=1"),
    "made by another version of zsntta": lambda: sql("PRAGMA user_version=9"),
    "is not a JSON object": lambda: sql("UPDATE kept SET words='[1]'"),
    "multiple of element": lambda: sql(f"UPDATE kept SET value=x'00' {IMAGES}"),
    "its features have different lengths": lambda: sql(
        f"UPDATE kept SET value=x'0000' {IMAGES} AND words != ''"
    ),
    "is a folder": lambda: (STORE.unlink(), STORE.mkdir()),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_a_broken_store_is_one_line(folder, passes, message, encoded):
    encoded(folder)
    for extra in STORE.parent.glob("*-wal"):
        extra.unlink()
    DAMAGE[message]()
    with refused(message, error=StoreError):
        encoded(folder)


def test_where_nothing_can_be_written_it_goes_on(folder, passes, monkeypatch, encoded):
    encoded(folder)
    monkeypatch.setattr(os, "access", lambda *_: False)
    (folder / "0.png").unlink()
    assert len(encoded(folder)) == 5
    assert passes["encoded"] == 4


def test_two_that_make_a_store_at_once_share_it_and_what_was_kept_first_stays(tmp_path):
    path = tmp_path / "deep" / "images.sqlite"

    def work(number):
        with FeatureStore(path) as store:
            store.begin({"model": "one"})
            for i in range(20):
                row, same = Kept(bytes([i] * 6)), Kept(bytes([number] * 6))
                store.keep({IMAGE: {bytes([number, i]): row, b"same": same}})

    at_once(4, work)
    with FeatureStore(path) as store:
        assert store.identity == {"model": "one"}
        assert len(store.keys(IMAGE)) == 81
        first = store.kept(IMAGE, [b"same"])
        store.keep({IMAGE: {b"same": Kept(b"others")}})
        assert store.kept(IMAGE, [b"same"]) == first
        assert store.features(IMAGE, [b"\1\0"])[b"\1\0"][0].tolist() == [0, 0, 0]


# --- what cannot be read


def test_what_is_no_fault_of_the_file_is_not_kept(folder, passes, monkeypatch, encoded):
    def no_memory(_):
        raise MemoryError("no memory")

    (folder / "gone.png").symlink_to(folder / "none")
    monkeypatch.setattr("zsntta_cli.datasets.decoding.opened", no_memory)
    errors = {Path(one.source).name: one.error for one in encoded(folder)}
    assert errors.pop("gone.png").startswith("No such file")
    assert {*errors.values()} == {"no memory"}
    with FeatureStore(STORE) as store:
        assert not store.keys(module.reader(), FILE)


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
        with refused("cannot read image", name, why, error=DatasetError):
            encode(tiny, [folder / "0.png", folder / name])
    with refused("it is a URL", error=DatasetError):
        encode(tiny, "https://a.org/b.png")
