"""Feature files that somebody made by hand: shapes, types, links, storage, attributes."""

import contextlib
import hashlib
import json
import os
import zlib

import h5py
import numpy as np
import pytest
from feature_files import reseal
from hypothesis import example, given
from hypothesis import strategies as st

from torture.conftest import DIM, IMAGES, NAMES, PROMPT
from torture.tool import SETS, examples

SECRET = "root:x:0:0:do-not-tell"
SIMULATE = ("simulate", *SETS, "--method", "zs-clip", "--format", "markdown", "--fresh")

COMMANDS = (SIMULATE, ("cache", "verify", "pets"), ("cache", "show", "pets"))
DATA = ("image_features", "labels", "sample_ids", "class_names", "text_features", "generic_text")
ATTRIBUTES = ("format", "kind", "name", "digest", "encoder", "source", "created", "normalized",
              "template", "text digest")  # fmt: skip


def good() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    text = np.linalg.qr(generator.standard_normal((DIM, 3)))[0].T.astype(np.float32)
    labels = np.arange(IMAGES, dtype=np.int32) % 3
    rows = generator.standard_normal((IMAGES, DIM)) + 8 * text[labels]
    return {
        "image_features": rows.astype(np.float16), "labels": labels, "text_features": text,
        "sample_ids": np.array([f"{i}.png" for i in range(IMAGES)], "S"),
        "class_names": np.array(NAMES, "S"), "generic_text": text.mean(axis=0),
    }  # fmt: skip


numbers = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 5.0, 1e-30, 1e30])
# How a data set's values are wrong; the digests are made to fit, so that these are looked at.
VALUES = st.one_of(
    st.tuples(st.just("cast"), st.sampled_from(["f2", "f4", ">f4", "f8", "i4", "i8", "u1", "c8"])),
    st.tuples(st.just("cast"), st.sampled_from(["?", "S3", "S0", "V4"])),
    st.tuples(st.just("row"), st.tuples(st.integers(0, 2), numbers)),
    st.tuples(st.just("scale"), numbers),
    st.tuples(st.just("cut"), st.integers(0, 4)),
    st.tuples(st.just("shape"), st.sampled_from(["flat", "column", "scalar", "twice", "empty"])),
)
# How it lies in the file.
STORAGE = st.one_of(
    st.tuples(st.sampled_from(["missing", "group", "soft", "external link", "external", "virtual",
                               "chunked", "gzip", "any length", "bomb"]), st.none()),
    st.tuples(st.just("declared"), st.integers(1, 12).map(lambda power: 10**power)),
    st.tuples(st.just("declared in chunks"), st.integers(1, 12).map(lambda power: 10**power)),
)  # fmt: skip


def pool(*values):
    """One of some values, which may be too long to be shown."""
    return st.integers(0, len(values) - 1).map(values.__getitem__)


VALUE_CHANGES = ("cast", "row", "scale", "cut", "shape", "value")  # numbers may be others
BOMB = zlib.compress(bytes(1 << 29), 9)


JSONS = st.one_of(
    pool("null", "[]", "3", '"x"', "{", "", "[" * 100_000, '{"a":' * 2000, "NaN"),
    st.fixed_dictionaries(
        {"logit_scale": st.sampled_from([None, 0, -1, True, 1e300, "20", [20], float("nan"), 20])}
    ).map(json.dumps),
    st.fixed_dictionaries({"model": st.sampled_from([None, 3, [], {}]), "logit_scale": st.just(20)})
    .map(json.dumps),
    st.fixed_dictionaries({"images": st.sampled_from([None, "9", -4, 1.5, 2**70])}).map(json.dumps),
)  # fmt: skip
ATTRIBUTE = st.one_of(
    pool(None, 0, 1, 2, -1, True, 1.5, np.nan, b"\xff\xfe", "", "words", "noise", "dataset"),
    pool("a\nb", "\x1b[31mred", "/etc/passwd", "x" * 50_000, "{}{}", np.zeros(3)),
    pool(np.zeros((2, 2), "i4"), np.array([b"a", b"b"])),
    JSONS,
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(DATA), VALUES),
        st.tuples(st.sampled_from(DATA), STORAGE),
        st.tuples(st.sampled_from(ATTRIBUTES), ATTRIBUTE.map(lambda value: ("value", value))),
        st.tuples(st.just("text"), st.tuples(st.sampled_from(["soft", "external link", "cycle",
                                                              "dataset", "many"]), st.none())),
    ),
    min_size=1, max_size=2, unique_by=lambda change: change[0],
)  # fmt: skip


def changed(array: np.ndarray, how: str, what) -> np.ndarray:
    array = array.copy()
    if how == "cast":
        with np.errstate(all="ignore"):
            is_text = (array.dtype.kind == "S") != (what[0] == "S") or what[0] == "V"
            return np.zeros(array.shape, what) if is_text else array.astype(what)
    if how == "cut":
        return array[what:]
    if how == "shape":
        return {
            "flat": array.ravel(), "column": array[..., None], "scalar": array.ravel()[0],
            "twice": np.concatenate([array, array]), "empty": array[:0],
        }[what]  # fmt: skip
    with np.errstate(all="ignore"):
        if array.dtype.kind == "S":
            array[0] = b"\x1b[31m\xff"
        elif how == "row":
            array[what[0]] = np.array(what[1]).astype(array.dtype)
        else:
            array = (array * what).astype(array.dtype)
    return array


def put(group, name: str, array: np.ndarray, how: str, count: int | None, place) -> None:
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
        case "chunked" | "gzip":
            more = {"compression": "gzip"} if how == "gzip" and shape else {}
            group.create_dataset(name, data=array.astype(text), chunks=bool(shape), **more)
        case "any length":
            values = [str(one) for one in array.ravel().tolist()]
            group.create_dataset(name, data=values, dtype=h5py.string_dtype())
        case "bomb":  # a chunk that unpacks to far more than it declares
            data = group.create_dataset(name, shape or (1,), text, compression="gzip")
            if data.size:
                data.id.write_direct_chunk((0,) * data.ndim, BOMB)
        case "declared" | "declared in chunks":
            more = {"chunks": True} if how.endswith("chunks") and shape else {}
            group.create_dataset(name, (count, *shape[1:]), text, **more)
        case _:
            group.create_dataset(name, data=array.astype(text))


def build(place, changes) -> None:
    """The feature file of `pets`, but for some changes."""
    changes, arrays = dict(changes), good()
    how = dict.fromkeys(DATA, ("", None))
    for name in DATA:
        if name in changes:
            kind, what = changes[name]
            if kind in ("cast", "row", "scale", "cut", "shape"):
                arrays[name] = np.asarray(changed(arrays[name], kind, what))
            else:
                how[name] = (kind, what)
    digest = hashlib.sha256(np.ascontiguousarray(arrays["image_features"]).tobytes())
    digest.update(np.ascontiguousarray(arrays["labels"]).tobytes())
    text_digest = hashlib.sha256(arrays["text_features"].tobytes()).hexdigest()
    values = {
        "format": 1, "kind": "dataset", "name": "pets", "digest": digest.hexdigest(),
        "encoder": '{"model": "made-up", "logit_scale": 20.0}', "source": '{"images": 60}',
        "created": "2026-01-01T00:00:00+00:00", "normalized": False, "template": PROMPT,
        "text digest": text_digest, "machine": "{}",
    }  # fmt: skip
    values |= {name: change[1] for name, change in changes.items() if name in ATTRIBUTES}
    path = place / "features" / "made" / "pets.h5"
    path.unlink(missing_ok=True)
    with h5py.File(path, "w", libver="v110") as file:
        text = file.create_group("text/one")
        for name, array in arrays.items():
            put(text if name == "text_features" else file, name, array, *how[name], place)
        for name, value in values.items():
            group = text if name in ("template", "text digest") else file
            if value is not None:
                group.attrs[name.removeprefix("text ")] = of_fixed_length(value)
        with contextlib.suppress(KeyError):
            file["generic_text"].attrs["source"] = of_fixed_length("some words")
        rearrange(file, changes.get("text", ("", None))[0], place)
        with contextlib.suppress(Exception):  # of what is none, or cannot be read
            reseal(file)


def of_fixed_length(value):
    """A text as the package writes it; anything else as it is."""
    if not isinstance(value, str):
        return value
    raw = value.encode()
    return np.array(raw, h5py.string_dtype("utf-8", max(1, len(raw))))


def rearrange(file, how: str, place) -> None:
    """The group of text features itself."""
    if how == "soft":
        file.move("text", "moved")
        file["text"] = h5py.SoftLink("/moved")
    elif how == "external link":
        del file["text"]
        file["text"] = h5py.ExternalLink(str(place / "pipe"), "/text")
    elif how == "cycle":
        file["text/root"] = file["/"]
    elif how == "dataset":
        file["text/data"] = np.zeros(3)
    elif how == "many":
        for i in range(300):
            file[f"text/{i}"] = file["text/one"]


@pytest.fixture(scope="module")
def stage(place):
    (place / "secret").write_text(SECRET * 100)
    os.mkfifo(place / "pipe")
    return place


@pytest.fixture(scope="module")
def right(zsntta, stage):
    build(stage, [])
    answer = zsntta(*SIMULATE, cwd=stage).check()
    assert answer.code == 0
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
        if all(how not in VALUE_CHANGES for _, (how, _) in changes):
            assert simulated.stdout == right
