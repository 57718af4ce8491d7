"""What comes from strangers, one thing at a time: feature files, parts, archives."""

import gzip
import hashlib
import io
import tarfile

import h5py
import numpy as np
import pytest
from PIL import Image

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, Text
from zsntta_cli.cache.verify import problems
from zsntta_cli.datasets.readers.archives import open_archive
from zsntta_cli.errors import DatasetError, StoreError
from zsntta_cli.extraction.parts import Parts
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

ROWS = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float16)
UNIT = np.eye(2, 4, dtype=np.float32)


@pytest.fixture
def write(tmp_path):
    def written(**changes):
        content = {
            "kind": DATASET, "name": "pets", "encoder": {"model": "m", "logit_scale": 100},
            "source": {"images": 6}, "blocks": [ROWS], "labels": np.zeros(6, np.int32),
            "sample_ids": list("abcdef"), "class_names": ["cat", "dog"],
            "texts": [Text("{}", UNIT)],
        }  # fmt: skip
        hdf5.write_features(tmp_path / "pets.h5", **(content | changes))
        return tmp_path / "pets.h5"

    return written


def with_value(index, value, dtype=np.float16):
    rows = ROWS.astype(dtype)
    rows[index] = value
    return [rows]


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"encoder": {"logit_scale": scale}}, "its logit scale is")
     for scale in (None, 0, -3, True, float("nan"), 1e300, "100", [1])]
    + [({"blocks": with_value(3, 0)}, "1 features are zero (the first in row 3)"),
       ({"blocks": with_value(3, -0.0)}, "1 features are zero"),
       ({"normalized": True}, "norms are not 1"),
       ({"texts": [Text("{}", 5 * UNIT)]}, "norms other than 1"),
       ({"texts": [Text("{}", np.nan * UNIT)]}, "norms other than 1"),
       ({"kind": "thing"}, "its kind is 'thing'"),
       ({"encoder": {"model": 3, "logit_scale": 1}}, "model is no text"),
       ({"source": {"images": "6"}}, "images is no whole number"),
       ({"sample_ids": ["a"]}, "1 sample ids for 6 features"),
       ({"labels": np.full(6, -2, np.int32)}, "has the label -2")],
)  # fmt: skip
def test_what_verify_refuses_is_not_read(write, changes, said):
    path = write(**changes)
    with pytest.raises(StoreError) as refused:
        hdf5.read_features(path)
    assert said in str(refused.value)
    assert said in " ".join(problems(path))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("method", ["zs-clip", "energy", "adand"])
def test_features_that_are_no_numbers_give_none(write, value, dtype, method):
    """Neither a number nor a warning: reading them looks at no value, their scores tell."""
    path = write(blocks=with_value((5, 3), value, dtype), texts=[Text("a {}.", UNIT)])
    made = path.parent / "features" / "made"
    made.mkdir(parents=True)
    path.rename(made / "pets.h5")
    run = build_run(method, "made", "pets", None, "a {}.", ratio=0, noise="none")
    with pytest.raises(StoreError, match=r"1 features are not finite .the first in row 5"):
        Simulator(made.parent).run(run)
    assert "not finite" in " ".join(problems(made / "pets.h5"))


def test_numbers_in_other_types_are_not_read(write):
    path = write()
    for name, value in (("labels", np.zeros(6)), ("image_features", ROWS.astype(">f2"))):
        with h5py.File(path, "r+") as file:
            del file[name]
            file[name] = value
        with pytest.raises(StoreError, match=f"{name} is"):
            hdf5.read_features(path)


def test_texts_of_any_length_are_read(write):
    """As h5py writes them unasked."""
    path = write()
    with h5py.File(path, "r+") as file:
        del file["class_names"]
        names = file.create_dataset("class_names", (2,), h5py.string_dtype())
        names[:] = ["cat" * 999, "é"]
        del file.attrs["seal"]
    assert hdf5.read_features(path).class_names == ("cat" * 999, "é")


@pytest.fixture
def parts(tmp_path):
    made = Parts(tmp_path / "pets.h5", {"encoder": 1}, [range(6)])
    made.write(range(6), ROWS, np.ones(6, bool))
    return made


def test_damaged_parts_say_what_to_delete(parts, tmp_path):
    [path] = tmp_path.rglob("*.npz")
    content, generator = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        broken = bytearray(content)
        for at in generator.integers(len(broken), size=3):
            broken[at] = generator.integers(256)
        path.write_bytes(broken)
        try:
            found = np.concatenate(list(parts.blocks()))
        except StoreError as error:
            refused += "delete it, the same command makes it again" in str(error)
        else:
            assert np.array_equal(found, ROWS)
            refused += 1
    assert refused == 300


def test_a_part_of_another_shape_is_refused(parts):
    parts.write(range(6), ROWS[:5], np.ones(6, bool))
    with pytest.raises(StoreError, match="is broken"):
        parts.readable()


@pytest.fixture
def archive(tmp_path):
    path, content = tmp_path / "a.tar", io.BytesIO()
    Image.new("RGB", (8, 8)).save(content, "png")
    with tarfile.open(path, "w") as tar:
        for i in range(9):
            entry = tarfile.TarInfo(f"{i}.png")
            entry.size = len(content.getvalue())
            tar.addfile(entry, io.BytesIO(content.getvalue()))
    return path.read_bytes()


@pytest.mark.parametrize("parts_of", [1, 2])
def test_an_archive_short_of_its_checksum_is_refused(archive, tmp_path, parts_of):
    """Whole archives of one part or of several are read; whatever lacks is noticed."""
    step = -(-len(archive) // parts_of)
    packed = b"".join(gzip.compress(archive[i : i + step]) for i in range(0, len(archive), step))
    path = tmp_path / "a.tar.gz"
    path.write_bytes(packed)
    assert len(open_archive("a", path)[0]) == 9
    for missing in range(1, 40):
        path.write_bytes(packed[:-missing])
        with pytest.raises(DatasetError, match="no whole"):
            open_archive("a", path)


def exchanged(path, other, name):
    """A file with an attribute of another file in the place of its own."""
    with h5py.File(path, "r+") as file, h5py.File(other) as stranger:
        file.attrs[name] = stranger.attrs[name]


@pytest.fixture
def two(write, tmp_path):
    other = tmp_path / "other.h5"
    write(encoder={"model": "n", "logit_scale": 10}, class_names=["fox", "hen"]).rename(other)
    return write(), other


READERS = (hdf5.read_features, hdf5.read_header, hdf5.read_without_rows)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("names", [["encoder"], ["normalized"], ["encoder", "digest"], ["seal"]])
def test_an_encoder_that_was_exchanged_is_refused(two, read, names):
    path, other = two
    for name in names:
        exchanged(path, other, name)
    with h5py.File(path, "r+") as file:
        if names == ["normalized"]:
            file.attrs["normalized"] = True
        if names == ["seal"]:
            file.attrs["seal"] = "0" * 64
    with pytest.raises(StoreError, match="not those that it was written with"):
        read(path)
    assert "not those that it was written with" in problems(path)[0]


@pytest.mark.parametrize("read", READERS)
def test_class_names_and_texts_that_were_exchanged_are_refused(two, read):
    path, other = two
    with h5py.File(path, "r+") as file, h5py.File(other) as stranger:
        file["class_names"][:] = stranger["class_names"][:]
    with pytest.raises(StoreError, match="class names"):
        read(path)


def test_a_text_that_was_exchanged_with_its_digest_is_refused(write):
    path = write()
    swapped = np.ascontiguousarray(UNIT[::-1])
    with h5py.File(path, "r+") as file:
        [group] = file["text"].values()
        group["text_features"][:] = swapped
        group.attrs["digest"] = np.bytes_(hashlib.sha256(swapped.data).hexdigest())
    with pytest.raises(StoreError, match="text features are not those"):
        hdf5.read_header(path)


def test_files_of_before_the_seal_are_read_and_texts_can_be_added(write):
    path = write()
    with h5py.File(path, "r+") as file:
        del file.attrs["seal"]
    assert not problems(path)
    hdf5.add_texts(path, [Text("a {}", UNIT)])
    with h5py.File(path) as file:
        assert len(file.attrs["seal"]) == 64
    assert not problems(path)
    hdf5.add_texts(path, [Text("the {}", UNIT)])
    assert len(hdf5.read_features(path).texts()) == 3
