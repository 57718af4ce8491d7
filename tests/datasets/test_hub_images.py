"""Images that the library `datasets` loads: columns by their types, lazily, one line where not."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made import refused
from web_hub import REVISION, local_hub
from web_writer import encoded, pictures

from zsntta_cli import datasets

library = pytest.importorskip("datasets")
if library.__file__ is None:  # the folder that this file is in
    pytest.skip("the library datasets is not installed", allow_module_level=True)
NAMES, LABELS = ["tabby cat", "ox"], [1, 0, 1, 1, 0]
PIXELS = pictures(5)
CLASSES = library.ClassLabel(names=NAMES)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """What the library prepares goes with the test."""
    monkeypatch.setattr(library.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    library.disable_progress_bars()


def columns(**more):
    """Rows with a picture each, and other columns with their types."""
    kinds = {"picture": library.Image(), **{name: kind for name, (kind, _) in more.items()}}
    rows = {name: values for name, (_, values) in more.items()}
    content = [{"bytes": encoded(pixels, "png"), "path": None} for pixels in PIXELS]
    return library.Dataset.from_dict({"picture": content, **rows}, features=library.Features(kinds))


def load(address):
    return datasets.load_images(f"pets={address}", Path())


def parquet(rows, root):
    root.mkdir()
    rows.to_parquet(root / "test-00000-of-00001.parquet")


def splits(rows, root):
    library.DatasetDict({"train": rows.select([0]), "test": rows}).save_to_disk(root)


@pytest.mark.parametrize(
    ("save", "split"), [(library.Dataset.save_to_disk, ""), (splits, ":test"), (parquet, ":test")]
)
def test_rows_are_images_in_their_order(tmp_path, save, split):
    save(columns(target=(CLASSES, LABELS)), tmp_path / "rows")
    images = load(f"hf:{tmp_path}/rows{split}")
    assert images.labels.tolist() == LABELS
    assert list(images.class_names) == NAMES
    assert list(images.sample_ids) == [f"{i:05d}" for i in range(5)]
    for i, pixels in enumerate(PIXELS):
        assert np.array_equal(images.read(i), pixels)
    sizes = ",".join(str(len(encoded(pixels, "png"))) for pixels in PIXELS)
    assert images.fingerprint == sizes


@pytest.mark.parametrize(
    ("kind", "values", "labels", "names"),
    [
        ("string", ["ox", "cat", "ox", None, "cat"], [1, 0, 1, -1, 0], ["cat", "ox"]),
        ("int64", [4, 0, 1, 1, None], [4, 0, 1, 1, -1], []),
        (CLASSES, [1, 0, -1, None, 0], [1, 0, -1, -1, 0], NAMES),
        (CLASSES, [-1] * 5, [-1] * 5, []),
        ("float32", [0.5] * 5, [-1] * 5, []),
    ],
)
def test_a_label_column_that_is_named_gives_labels_or_says_that_it_has_none(
    tmp_path, kind, values, labels, names
):
    kind = library.Value(kind) if isinstance(kind, str) else kind
    columns(what=(kind, values)).save_to_disk(tmp_path / "rows")
    images = load(f"hf:{tmp_path}/rows?label=what")
    assert images.labels.tolist() == labels
    assert list(images.class_names) == names
    assert any("picture, what" in note for note in images.notes) == (max(labels) < 0)


@pytest.mark.parametrize("beside", [lambda png: png, lambda png: {"bytes": png, "path": None}])
def test_files_as_bytes_are_images_and_a_column_called_label_has_labels(tmp_path, beside):
    """As pandas and polars write them."""
    content = [beside(encoded(pixels, "png")) for pixels in PIXELS]
    rows = library.Dataset.from_dict({"file": content, "label": LABELS})
    rows.to_parquet(tmp_path / "t.parquet")
    images = load(f"hf:{tmp_path}:train")
    assert images.labels.tolist() == LABELS
    np.testing.assert_array_equal(np.asarray(images.read(3)), PIXELS[3])


def test_several_columns_or_none_are_one_line(tmp_path):
    rows = columns(fine=(CLASSES, LABELS), coarse=(CLASSES, LABELS[::-1]))
    rows.save_to_disk(tmp_path / "a")
    columns(other=(library.Image(), rows[:]["picture"])).save_to_disk(tmp_path / "b")
    rows.remove_columns("picture").save_to_disk(tmp_path / "c")
    assert load(f"hf:{tmp_path}/a?label=coarse").labels.tolist() == LABELS[::-1]
    assert len(load(f"hf:{tmp_path}/b?image=other")) == 5
    for address, word in {
        "a": "?label=fine", "a?label=none": "fine, coarse", "b": "picture, other",
        "c?label=fine": "its columns are fine", "b?image=more": "picture, other",
    }.items():  # fmt: skip
        with refused(word):
            load(f"hf:{tmp_path}/{address}")


LOAD = """
import sys
from pathlib import Path
from zsntta_cli import datasets
images = datasets.load_images(sys.argv[1], Path())
print(images.facts["hub"], images.labels.tolist(), list(images.class_names), images.read(4).size)
"""


def test_one_split_is_fetched_of_one_revision(tmp_path, monkeypatch):
    """In processes of their own: the library takes the hub's address as it is loaded."""
    root = tmp_path / "repository"
    (root / "data").mkdir(parents=True)
    columns(label=(CLASSES, LABELS)).to_parquet(root / "data" / "test-00000-of-00001.parquet")
    (root / "data" / "train-00000-of-00001.parquet").write_bytes(b"150 GB that nobody asks for")

    def run(address, **more):
        hub = {"HF_ENDPOINT": where, "HF_HOME": str(tmp_path / "home"), **more}
        words = [sys.executable, "-c", LOAD, address]
        return subprocess.run(
            words, env=os.environ | hub, capture_output=True, text=True, check=False
        )

    with local_hub(monkeypatch, {"org/name": root}) as served:
        where = f"http://127.0.0.1:{served.server_address[1]}"
        result = run("x=hf:org/name:test")
        line = f"org/name@{REVISION} {LABELS} {NAMES} {PIXELS[4].shape[1::-1]}\n"
        assert result.stdout == line, result.stderr
        assert not [path for way, path in served.asked if way == "GET" and "train" in path]
    assert run(f"x=hf:org/name@{REVISION}:test", HF_HUB_OFFLINE="1").stdout == line
    result = run(f"x=hf:org/name@{REVISION[::-1]}:test", HF_HUB_OFFLINE="1")
    assert f"only {REVISION}" in result.stderr
