"""What belongs together in a feature file: features of one encoder under another's identity."""

import itertools
import shutil

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, Text
from zsntta_cli.cli import app
from zsntta_cli.errors import StoreError

RNG = np.random.default_rng(0)


def unit(*shape):
    rows = RNG.normal(size=shape)
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def write(path, **changed):
    values = {
        "kind": DATASET, "name": path.stem,
        "encoder": {"model": "a", "logit_scale": 100.0}, "source": {"images": 8},
        "blocks": [unit(8, 6).astype(np.float16)], "labels": np.arange(8, dtype=np.int32) % 3,
        "sample_ids": [f"{i}.png" for i in range(8)], "class_names": ["x", "y", "z"],
        "texts": [Text("a {}.", unit(3, 6)), Text("b {}.", unit(3, 6), 20.0)],
    }  # fmt: skip
    hdf5.write_features(path, **{**values, **changed})
    return path


@pytest.fixture
def two(tmp_path):
    """Files of two encoders, whose sets, classes and prompts are the same."""
    first = write(tmp_path / "a" / "set.h5")
    other = write(
        tmp_path / "b" / "set.h5", encoder={"model": "b", "logit_scale": 20.0},
        class_names=["z", "y", "x"],
    )  # fmt: skip
    return first, other


def exchange(what, file, other):
    if what == "class_names":
        del file[what]
        file.copy(other[what], file, what)
    elif what in ("encoder", "seal"):
        file.attrs[what] = other.attrs[what]
    elif what == "normalized":
        file.attrs[what] = not file.attrs[what]
    else:
        names = sorted(file["text"])
        if what == "texts":
            for name in names:
                del file[f"text/{name}"]
                file.copy(other[f"text/{name}"], file["text"], name)
        elif what == "a text is gone":
            del file[f"text/{names[0]}"]
        elif what == "templates":
            attrs = [file[f"text/{name}"].attrs for name in names]
            templates = [one["template"] for one in attrs]
            for one, template in zip(attrs, [*templates[1:], "c {}."], strict=True):
                one["template"] = template
        elif what == "scale":
            next(g for g in file["text"].values() if "logit_scale" in g.attrs).attrs[
                "logit_scale"
            ] = "50.0"


EXCHANGED = ("encoder", "class_names", "texts", "a text is gone", "templates", "scale",
             "seal")  # fmt: skip


@pytest.mark.parametrize(
    "what", [w for n in (1, 2) for w in itertools.combinations(EXCHANGED, n)], ids=str
)
def test_whatever_was_exchanged_is_found(two, what):
    first, second = two
    assert hdf5.read_features(first).identity["model"] == "a"
    with h5py.File(first, "r+") as file, h5py.File(second, "r") as other:
        for one in what:
            exchange(one, file, other)
    with pytest.raises(StoreError, match="are not those that it was written with"):
        hdf5.read_features(first)
    with pytest.raises(StoreError, match="are not those that it was written with"):
        hdf5.read_without_rows(first)


def test_older_files_say_nothing_of_it_and_are_read(two):
    first, second = two
    with h5py.File(first, "r+") as file, h5py.File(second, "r") as other:
        del file.attrs["seal"]
        exchange("encoder", file, other)
    assert hdf5.read_features(first).identity["model"] == "b"


def test_added_texts_are_part_of_it(two):
    first, second = two
    hdf5.add_texts(first, [Text("c {}.", unit(3, 6))])
    assert {*hdf5.read_features(first).text_features} == {"a {}.", "b {}.", "c {}."}
    with h5py.File(first, "r+") as file, h5py.File(second, "r") as other:
        exchange("encoder", file, other)
    with pytest.raises(StoreError, match="are not those that it was written with"):
        hdf5.read_features(first)


def test_the_digest_of_the_features_is_what_it_was(two):
    first, _ = two
    features = hdf5.read_features(first)
    expected = hdf5.digest_of_rows(features.image_features, features.labels)
    assert features.digest == expected


def test_verify_and_simulate_say_so_in_a_line(two, tmp_path):
    first, second = two
    with h5py.File(first, "r+") as file, h5py.File(second, "r") as other:
        exchange("encoder", file, other)
    folder = tmp_path / "features" / "a"
    folder.mkdir(parents=True)
    shutil.copy(first, folder / "set.h5")
    for words in (["cache", "verify"], ["cache", "show", "--encoder", "a", "set"]):
        done = CliRunner().invoke(app, [*words, "--features-dir", str(tmp_path / "features")])
        assert done.exit_code != 0
        assert "are not those that it was written with" in done.output
        assert "Traceback" not in done.output


def test_a_template_of_bytes_that_are_no_utf8_is_read_as_it_was_written(tmp_path):
    path = write(tmp_path / "set.h5", texts=[Text("a \udc80 {}.", unit(3, 6))])
    assert list(hdf5.read_features(path).text_features) == ["a \udc80 {}."]
