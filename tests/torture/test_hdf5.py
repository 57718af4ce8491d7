"""Feature files that somebody made by hand, or damaged: shapes, types, links, storage, bytes."""

import contextlib
import hashlib
import shutil
import zlib

import h5py
import numpy as np
import pytest
from feature_files import reseal
from made import PROMPT, damaged

from torture.tool import LONG, SETS
from zsntta_cli.cache.store import problems
from zsntta_cli.errors import ZsnttaError
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

SECRET = "root:x:0:0:do-not-tell"
COMMANDS = (
    ("simulate", *SETS, "--method", "zs-clip", "--format", "markdown", "--fresh"),
    ("cache", "verify", "pets"), ("cache", "show", "pets"),
)  # fmt: skip
DATA = ("image_features", "labels", "sample_ids", "class_names", "text_features")
BOMB = zlib.compress(bytes(1 << 26), 9)
VALUES = {  # of data sets; the digests are made to fit, so that these are looked at
    "complex": lambda a: a.astype("c8"),
    "big-endian": lambda a: a.astype(">f4"),
    "texts": lambda a: np.zeros(a.shape, "S3"),
    "flat": np.ravel,
    "empty": lambda a: a[:0],
    "shorter": lambda a: a[2:],
}
ATTRIBUTES = {
    "name": "a\nb\x1b[31m", "created": b"\xff\xfe", "normalized": "x" * 50_000,
    "encoder": "[" * 100_000, "source": '{"images": -4}',
}  # fmt: skip


def put(group, name, array, how, place):
    """Put a data set into a file in one of the ways that HDF5 has."""
    shape, dtype = array.shape, array.dtype
    text = h5py.string_dtype("utf-8", max(1, dtype.itemsize)) if dtype.kind == "S" else dtype
    match how:
        case "missing":
            return
        case "group":
            group.create_group(name)
        case "soft":
            group.file[f"elsewhere-{name}"] = array
            group[name] = h5py.SoftLink(f"/elsewhere-{name}")
        case "external link":
            with h5py.File(place / "other.h5", "w") as other:
                other[name] = array
            group[name] = h5py.ExternalLink(str(place / "other.h5"), name)
        case "external":
            data = [(str(place / "secret"), 0, max(1, array.nbytes))]
            group.create_dataset(name, shape, text, external=data)
        case "virtual":
            with h5py.File(place / "other.h5", "w") as other:
                other.create_dataset(name, data=array.astype(text))
            layout = h5py.VirtualLayout(shape, text)
            layout[...] = h5py.VirtualSource(str(place / "other.h5"), name, shape)
            group.create_virtual_dataset(name, layout)
        case "bomb":  # a chunk that unpacks to far more than it declares
            data = group.create_dataset(name, shape, text, compression="gzip")
            data.id.write_direct_chunk((0,) * data.ndim, BOMB)
        case "declared":
            group.create_dataset(name, (10**9, *shape[1:]), text)
        case _:
            group.create_dataset(name, data=array.astype(text), chunks=True, compression=how)


@contextlib.contextmanager
def opened(place):
    """The feature file of `pets` to be changed, and its text features; then it is sealed anew."""
    path = place / "features" / "made" / "pets.h5"
    shutil.copy(place / "whole.h5", path)
    with h5py.File(path, "r+", libver="v110") as file:
        text, *_ = file["text"].values()
        yield file, text
        with contextlib.suppress(Exception):  # of what is none, or cannot be read
            digest = digest_of(file["image_features"], file["labels"])
            file.attrs["digest"] = np.bytes_(digest)
            text.attrs["digest"] = np.bytes_(digest_of(text["text_features"]))
        with contextlib.suppress(Exception):
            reseal(file)


def digest_of(*data):
    """The digest of what data sets hold, unless they declare more than a test needs to read."""
    assert all(one.size <= 10_000 for one in data)
    return hashlib.sha256(b"".join(one[()].tobytes() for one in data)).hexdigest()


@pytest.fixture(scope="module")
def stage(place):
    (place / "secret").write_text(SECRET * 100)
    shutil.copy(place / "features" / "made" / "pets.h5", place / "whole.h5")
    return place


@pytest.fixture
def asked(zsntta, stage):
    """Ask about the file: each command refuses it in one line, or none does and it is whole."""

    def ask():
        answers = [zsntta(*command, cwd=stage).check() for command in COMMANDS]
        assert not any(SECRET[:9] in answer.stdout + answer.stderr for answer in answers)
        return [answer.code for answer in answers]

    return ask


@pytest.mark.parametrize("how", ["missing", "group", "soft", "external link", "external",
                                 "virtual", "bomb", "declared", "gzip"])  # fmt: skip
@pytest.mark.parametrize("name", DATA if LONG else ["image_features"])
def test_what_lies_elsewhere_or_is_not_there_is_refused(asked, stage, name, how):
    with opened(stage) as (file, text):
        group = text if name == "text_features" else file
        array = group[name][()]
        del group[name]
        put(group, name, array, how, stage)
    codes = asked()
    assert all(codes) or (how == "gzip" and not any(codes))


@pytest.mark.parametrize("wrong", VALUES)
@pytest.mark.parametrize("name", ["image_features", *["text_features"] * LONG])
def test_wrong_values_are_not_scored(asked, stage, name, wrong):
    with opened(stage) as (file, text):
        group = text if name == "text_features" else file
        array = group[name][()]
        del group[name]
        group[name] = VALUES[wrong](array)
    simulated, verified, _ = asked()
    assert simulated or not verified


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_wrong_attributes_are_not_obeyed(asked, stage, name):
    with opened(stage) as (file, _):
        del file.attrs[name]
        value = ATTRIBUTES[name]
        file.attrs[name] = np.bytes_(value) if isinstance(value, str) else value
    assert any(asked())


def test_damaged_files_are_refused_or_give_the_same_numbers(features, tmp_path):
    shutil.copytree(features, tmp_path, dirs_exist_ok=True)
    run = build_run("adand", "made", "pets", "sky", PROMPT, noise="none", update_every=8, warmup=2)
    expected = Simulator(tmp_path).run(run)
    path = tmp_path / "made" / "pets.h5"
    content, generator, refusals = path.read_bytes(), np.random.default_rng(1), []
    files = 2_000 if LONG else 50
    for _ in range(files):
        path.write_bytes(damaged(content, generator, most=9))
        try:
            record = Simulator(tmp_path).run(run)
        except ZsnttaError as error:
            refusals.append(str(error))
        else:
            assert record.accuracies == expected.accuracies
            assert record.detection == expected.detection
        problems(path)  # as `cache verify`: says what is wrong, never raises
    assert len(refusals) > files / 4
    assert not any("\n" in line for line in refusals)
