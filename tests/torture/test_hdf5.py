"""Feature files that somebody made by hand, or damaged: shapes, types, links, storage, bytes."""

import contextlib
import hashlib
import json
import os
import shutil
import zlib

import h5py
import numpy as np
import pytest
from feature_files import reseal
from hypothesis import example, given
from hypothesis import strategies as st
from made import PROMPT

from torture.conftest import make_sets
from torture.tool import LONG, SETS, examples
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
OF_TEXT = ("template", "text digest")
ATTRIBUTES = (
    "format", "kind", "name", "digest", "encoder", "source", "created", "normalized", *OF_TEXT
)  # fmt: skip
BOMB = zlib.compress(bytes(1 << 29), 9)

# How a data set's values are wrong; the digests are made to fit, so that these are looked at.
NUMBERS = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 5.0, 1e-30, 1e30])
CASTS = ["f4", ">f4", "f8", "i4", "i8", "u1", "c8", "?", "S3", "S0", "V4"]
RESHAPED = {
    "flat": np.ravel,
    "column": lambda array: array[..., None],
    "scalar": lambda array: array.ravel()[0],
    "twice": lambda array: np.concatenate([array, array]),
    "empty": lambda array: array[:0],
    "shorter": lambda array: array[2:],
}
VALUES = st.one_of(
    st.tuples(st.just("cast"), st.sampled_from(CASTS)),
    st.tuples(st.just("row"), NUMBERS),
    st.tuples(st.just("scale"), NUMBERS),
    st.tuples(st.just("shape"), st.sampled_from([*RESHAPED])),
)
# How it lies in the file.
STORAGE = st.one_of(
    st.tuples(st.sampled_from(["missing", "group", "soft", "external link", "external", "virtual",
                               "chunked", "gzip", "any length", "bomb"]), st.none()),
    st.tuples(st.sampled_from(["declared", "declared in chunks"]),
              st.integers(1, 12).map(lambda power: 10**power)),
)  # fmt: skip
# Attributes. Too long to be shown: one of them is drawn by its place.
TEXTS = (
    None, 0, 2, -1, True, 1.5, np.nan, b"\xff\xfe", "", "words", "noise", "a\nb", "\x1b[31mred",
    "/etc/passwd", "x" * 50_000, "{}{}", np.zeros(3), np.array([b"a", b"b"]), "null", "[]", "3",
    "{", "[" * 100_000, '{"a":' * 2000, "NaN",
    *(json.dumps({"logit_scale": scale}) for scale in (None, 0, True, 1e300, "20", [20], 20)),
    *(json.dumps({"model": model, "logit_scale": 20}) for model in (None, 3, [], {})),
    *(json.dumps({"images": images}) for images in (None, "9", -4, 2**70)),
)  # fmt: skip
TEXT = st.integers(0, len(TEXTS) - 1).map(lambda place: TEXTS[place])
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(DATA), VALUES),
        st.tuples(st.sampled_from(DATA), STORAGE),
        st.tuples(st.sampled_from(ATTRIBUTES), st.tuples(st.just("value"), TEXT)),
        st.tuples(st.just("text"), st.tuples(
            st.sampled_from(["soft", "external link", "cycle", "dataset", "many"]), st.none())),
    ),
    min_size=1, max_size=2, unique_by=lambda change: change[0],
)  # fmt: skip


def changed(array, how, what):
    """An array with wrong values."""
    if how == "shape":
        return RESHAPED[what](array)
    with np.errstate(all="ignore"):
        if how == "cast":
            is_text = (array.dtype.kind == "S") != (what[0] == "S") or what[0] == "V"
            return np.zeros(array.shape, what) if is_text else array.astype(what)
        array = array.copy()
        if array.dtype.kind == "S":
            array[0] = b"\x1b[31m\xff"
        elif how == "row":
            array[1] = np.array(what).astype(array.dtype)
        else:
            array = (array * what).astype(array.dtype)
    return array


def put(group, name, array, how, count, place):
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
        case "any length":
            values = [str(one) for one in array.ravel().tolist()]
            group.create_dataset(name, data=values, dtype=h5py.string_dtype())
        case "bomb":  # a chunk that unpacks to far more than it declares
            data = group.create_dataset(name, shape or (1,), text, compression="gzip")
            if data.size:
                data.id.write_direct_chunk((0,) * data.ndim, BOMB)
        case "declared" | "declared in chunks":
            chunks = True if how.endswith("chunks") and shape else None
            group.create_dataset(name, (count, *shape[1:]), text, chunks=chunks)
        case _:
            packed = {"chunked": {"chunks": True}, "gzip": {"compression": "gzip"}}
            more = packed.get(how, {}) if shape else {}
            group.create_dataset(name, data=array.astype(text), **more)


def rearrange(file, how, place):
    """Change the group of text features itself."""
    [name] = file["text"]
    match how:
        case "soft":
            file.move("text", "moved")
            file["text"] = h5py.SoftLink("/moved")
        case "external link":
            del file["text"]
            file["text"] = h5py.ExternalLink(str(place / "pipe"), "/text")
        case "cycle":
            file["text/root"] = file["/"]
        case "dataset":
            file["text/data"] = np.zeros(3)
        case _:
            for i in range(300):
                file[f"text/{i}"] = file[f"text/{name}"]


def build(place, changes):
    """The feature file of `pets` with some changes, sealed anew."""
    path = place / "features" / "made" / "pets.h5"
    shutil.copy(place / "whole.h5", path)
    with h5py.File(path, "r+", libver="v110") as file:
        [text] = file["text"].values()
        for name, (how, what) in (change for change in changes if change[0] in DATA):
            group = text if name == "text_features" else file
            array, has_values = group[name][()], how in ("cast", "row", "scale", "shape")
            del group[name]
            array = np.asarray(changed(array, how, what)) if has_values else array
            put(group, name, array, how, what, place)
        with contextlib.suppress(Exception):  # of what is none, or cannot be read
            digest = digest_of(file["image_features"], file["labels"])
            file.attrs["digest"] = np.bytes_(digest)
            text.attrs["digest"] = np.bytes_(digest_of(text["text_features"]))
        for name, (how, what) in changes:
            if name == "text":
                rearrange(file, how, place)
            elif name in ATTRIBUTES:
                attributes, key = (text if name in OF_TEXT else file).attrs, name.split()[-1]
                del attributes[key]
                if isinstance(what, str):  # as the package writes it
                    raw = what.encode()
                    what = np.array(raw, h5py.string_dtype("utf-8", max(1, len(raw))))
                if what is not None:
                    attributes[key] = what
        with contextlib.suppress(Exception):
            reseal(file)


def digest_of(*data):
    """The digest of what data sets hold, unless they declare more than a test needs to read."""
    assert all(one.size <= 10_000 for one in data)
    return hashlib.sha256(b"".join(one[()].tobytes() for one in data)).hexdigest()


@pytest.fixture(scope="module")
def stage(place):
    (place / "secret").write_text(SECRET * 100)
    os.mkfifo(place / "pipe")
    shutil.copy(place / "features" / "made" / "pets.h5", place / "whole.h5")
    return place


@pytest.fixture(scope="module")
def right(zsntta, stage):
    build(stage, [])
    answer = zsntta(*COMMANDS[0], cwd=stage).check()
    assert answer.code == 0, answer
    return answer.stdout


@given(changes=CHANGES)
@example(changes=[("class_names", ("external", None))])
@example(changes=[("image_features", ("external link", None))])
@example(changes=[("text", ("external link", None))])
@example(changes=[("image_features", ("declared", 10**9))])
@example(changes=[("labels", ("declared in chunks", 10**9))])
@example(changes=[("image_features", ("bomb", None))])
@examples(8, 250)
def test_hand_made_files(zsntta, stage, right, changes):
    """Each is refused in one line, or gives the numbers of the undamaged file."""
    build(stage, changes)
    answers = [zsntta(*command, cwd=stage).check() for command in COMMANDS]
    for answer in answers:
        assert SECRET[:9] not in answer.stdout + answer.stderr
    simulated, verified = answers[:2]
    if simulated.code == 0:
        assert verified.code == 0 or {"created", "name"} & dict(changes).keys(), (changes, verified)
        if {how for _, (how, _) in changes} <= {"chunked", "gzip", "many", "cycle", "dataset"}:
            assert simulated.stdout == right


def damaged(content, generator):
    """Flip some bytes, cut, repeat or blank a run of them."""
    data = bytearray(content)
    start, length = int(generator.integers(len(data))), int(generator.integers(1, 200))
    match generator.integers(4):
        case 0:
            for place in generator.integers(len(data), size=generator.integers(1, 9)):
                data[place] ^= int(generator.integers(1, 256))
        case 1:
            del data[start:]
        case 2:
            data[start:start] = data[start : start + length]
        case _:
            data[start : start + length] = bytes(length)
    return bytes(data)


def test_damaged_files_are_refused_or_give_the_same_numbers(tmp_path):
    make_sets(tmp_path)
    run = build_run("adand", "made", "pets", "sky", PROMPT, noise="none", update_every=8, warmup=2)
    expected = Simulator(tmp_path).run(run)
    path = tmp_path / "made" / "pets.h5"
    content, generator, refusals = path.read_bytes(), np.random.default_rng(1), []
    files = 2_000 if LONG else 50
    for _ in range(files):
        path.write_bytes(damaged(content, generator))
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
