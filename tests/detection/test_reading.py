"""How images were read is kept with their features, and what cannot be read is kept too."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from zsntta_cli.datasets.decoding import limited_to
from zsntta_cli.detection import encoding as module
from zsntta_cli.detection import feature_store
from zsntta_cli.detection.feature_store import FeatureStore, KeptImage

NO_PICTURE = "it is no picture of a known kind"


@pytest.fixture
def folder(tmp_path):
    """A whole picture, one of 16 bits, one of a camera, one that is none."""
    root = tmp_path / "f"
    root.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (40, 40), np.uint8)
    Image.fromarray(pixels).save(root / "0.png")
    Image.fromarray(pixels.astype(np.uint16) * 257).save(root / "1.png")
    Image.fromarray(pixels).save(root / "2.jpg")
    (root / "3.png").write_bytes(b"no image")
    return root


def store_path(tmp_path):
    return tmp_path / "features/tiny" / module.STORE


def test_notes_and_errors_are_the_same_without_the_encoder(folder, tmp_path, passes, encoded):
    first = encoded(folder)
    assert [one.note for one in first] == [
        "", "brought to 8 bits", "", "",
    ]  # fmt: skip
    assert [one.error for one in first] == ["", "", "", NO_PICTURE]
    np.testing.assert_allclose(first[0].features, first[1].features, rtol=2e-3, atol=2e-3)
    assert (passes["encoded"], passes["loaded"]) == (3, 1)
    for _ in range(2):
        again = encoded(folder)
        for one, other in zip(first, again, strict=True):
            assert one[2:] == other[2:]
            assert (one.features is None) == (other.features is None)
    folder.rename(tmp_path / "moved")  # known by content alone
    assert [one[2:] for one in encoded(tmp_path / "moved")] == [one[2:] for one in first]
    assert (passes["encoded"], passes["loaded"]) == (3, 1)


def test_a_known_failure_is_not_even_read(folder, passes, monkeypatch, encoded):
    encoded(folder)
    monkeypatch.setattr(module, "read", lambda *_: pytest.fail("it was read"))
    assert encoded(folder)[3].error == NO_PICTURE


def test_a_failure_is_tried_again_by_another_reader(folder, passes, monkeypatch, encoded):
    encoded(folder)
    monkeypatch.setattr(feature_store, "reader", lambda: "with a plug-in")
    plain = Image.open(folder / "0.png")
    monkeypatch.setattr("zsntta_cli.datasets.decoding._opened", lambda _: plain.copy())
    again = encoded(folder)
    assert again[3].error == ""
    assert again[3].features is not None
    assert (passes["encoded"], passes["loaded"]) == (4, 2)
    encoded(folder)
    assert (passes["encoded"], passes["loaded"]) == (4, 2)


def test_a_limit_of_megapixels_tries_again(tmp_path, passes, encoded):
    (tmp_path / "f").mkdir()
    Image.new("L", (1200, 1000)).save(tmp_path / "f/large.png")
    for limit, error in ((1, "more than 1"), (2, ""), (1, "")):  # features that are kept stay
        with limited_to(limit):
            [one] = encoded(tmp_path / "f")
            assert error in one.error
            assert bool(error) == bool(one.error)
    assert passes["encoded"] == 1


def test_only_broken_files_load_no_encoder(folder, passes, monkeypatch, encoded):
    for name in ("0.png", "1.png", "2.jpg"):
        (folder / name).unlink()
    (folder / "gone.png").symlink_to(folder / "none")
    (folder / "locked.png").write_bytes(b"x")
    monkeypatch.setattr("zsntta_cli.detection.sources.item.read_input", refusing)
    errors = {Path(one.item.source).name: one.error for one in encoded(folder)}
    assert errors.pop("gone.png").startswith("No such file")
    assert errors == {
        "3.png": NO_PICTURE,
        "locked.png": "Permission denied",
    }
    assert (passes["encoded"], passes["loaded"]) == (0, 0)


def refusing(path, largest):
    if path.name == "locked.png":
        raise PermissionError(13, "Permission denied")
    return path.read_bytes()


def test_what_is_no_fault_of_the_file_is_not_kept(folder, tmp_path, passes, monkeypatch, encoded):
    def no_memory(_):
        raise MemoryError("no memory")

    encoded(folder)
    with sqlite3.connect(store_path(tmp_path)) as database:
        for table in ("images", "files", "failures"):
            database.execute(f"DELETE FROM {table}")
    database.close()
    monkeypatch.setattr("zsntta_cli.datasets.decoding._opened", no_memory)
    assert {one.error for one in encoded(folder)} == {"no memory"}
    monkeypatch.undo()
    with sqlite3.connect(store_path(tmp_path)) as database:
        assert database.execute("SELECT count(*) FROM failures").fetchone() == (0,)
    database.close()


def test_what_was_kept_of_an_image_first_stays(tmp_path):
    with FeatureStore(tmp_path / "images.sqlite") as store:
        store.add({b"d" * 32: KeptImage(np.zeros(3, np.float16), "a note")}, {})
        store.add({b"d" * 32: KeptImage(np.ones(3, np.float16), "another")}, {})
        [kept] = store.images([b"d" * 32]).values()
    assert (kept.features.tolist(), kept.note) == ([0, 0, 0], "a note")


def test_features_of_the_older_reading_are_made_again(folder, tmp_path, passes, encoded):
    encoded(folder)
    with sqlite3.connect(store_path(tmp_path)) as database:
        database.execute("UPDATE images SET reading = 1, note = ''")
    database.close()
    again = encoded(folder)
    assert (passes["encoded"], passes["loaded"]) == (6, 2)
    assert [bool(one.note) for one in again] == [False, True, False, False]
    encoded(folder)
    assert (passes["encoded"], passes["loaded"]) == (6, 2)
