"""Feature files: what is written is read to the bit, and what is no such file is refused."""

import hashlib
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
from feature_files import LABELS, PET_IDS, PETS, TEXTS, UNIT, write_pets
from made import TINY, refused

from zsntta_cli.cache import store
from zsntta_cli.cache.parts import part_path
from zsntta_cli.cache.store import Text, problems
from zsntta_cli.errors import StoreError
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

GENERIC = {"generic": np.array([0.5, 0, 0.6, 0], np.float32), "generic_source": "some words, a {}."}


@pytest.fixture
def path(tmp_path):
    target = tmp_path / "tiny" / "pets.h5"
    write_pets(target, **GENERIC)
    return target


def test_what_is_written_is_read(path):
    features = store.read(path)
    assert np.array_equal(features.image_features, PETS)
    assert features.image_features.dtype == np.float16
    assert np.array_equal(features.labels, LABELS)
    assert features.class_names == ("cat", "dog")
    assert list(features.texts) == [text.template for text in TEXTS]
    for text in TEXTS:
        assert np.array_equal(features.texts[text.template].features, text.features)
    assert (features.kind, features.name, features.identity) == (
        "dataset", "pets", {"model": "m", "logit_scale": 100.0}
    )  # fmt: skip
    assert np.array_equal(features.generic, GENERIC["generic"])
    assert features.generic_source == GENERIC["generic_source"]
    assert store.read_sample_ids(path) == tuple(PET_IDS)
    assert [p.name for p in path.parent.iterdir()] == ["pets.h5"]


def test_the_digest_depends_on_features_and_labels_alone(path):
    other, digest = path.with_name("again.h5"), store.read(path).digest
    assert digest == hashlib.sha256(PETS.tobytes() + LABELS.tobytes()).hexdigest()
    assert write_pets(other, blocks=[PETS], texts=[], source={}) == digest
    assert write_pets(other, labels=np.zeros(6, np.int32)) != digest
    assert write_pets(other, blocks=[PETS[::-1].copy()]) != digest


def test_a_description_has_all_but_the_rows(path):
    whole, header = store.read(path), store.read(path, rows=False)
    assert (len(header), header.dim, header.image_features.dtype) == (6, 4, np.float16)
    assert header.image_features.shape == header.texts["b {}."].features.shape == (0, 4)
    assert np.array_equal(header.labels, LABELS)
    for name in ("digest", "class_names", "identity", "source", "machine", "created"):
        assert getattr(header, name) == getattr(whole, name)
    digests = [hashlib.sha256(text.features.tobytes()).hexdigest() for text in TEXTS]
    assert [text.digest for text in header.texts.values()] == digests
    assert header.model("b {}.") == {"model": "m", "logit_scale": 20.0, "logit_bias": None}
    assert header.model("a {}.") == {"model": "m", "logit_scale": 100.0}


# --- what is no whole feature file


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file(path, keep):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with refused("not a complete zsntta feature file", error=StoreError):
        store.read(path)


def test_a_foreign_file_and_one_of_another_format(tmp_path, path):
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["data"] = np.zeros(3)
    with h5py.File(path, "r+") as file:
        file.attrs["format"] = 2
    for wrong, part in ((tmp_path / "foreign.h5", "'format'"), (path, "its format is 2")):
        with refused(part, error=StoreError):
            store.read(wrong)
        assert part in problems(wrong)[0]


@pytest.mark.parametrize("name", ["labels", "text_features"])
def test_changed_content_is_noticed(path, name):
    with h5py.File(path, "r+") as file:
        data = next(iter(file["text"].values()))[name] if name == "text_features" else file[name]
        data[0] = 1 - data[0]
    with refused("match"):
        store.read(path)


WHOLE_READERS = (
    "cache verify shapes", "cache show shapes", "cache export shapes", "cache join parted",
    "cache split shapes --id-classes 6", "cache push us/ours shapes", "detect --cached shapes",
    "simulate --method zs-clip --id shapes --ratio 0", "extract --dataset shapes --limit 300",
)  # fmt: skip


def test_features_changed_by_one_bit_are_refused_by_whatever_reads_them_whole(cached):
    path = Path("features/tiny/shapes.h5")
    content, row = bytearray(path.read_bytes()), store.read(path).image_features[7]
    content[content.index(row.tobytes())] ^= 1
    path.write_bytes(content)
    part = part_path(path.with_stem("parted"), 1, 1)
    part.parent.mkdir()
    part.write_bytes(content)
    before = {*Path().rglob("*")}
    for line in WHOLE_READERS:
        of_encoder = ("--encoder", "tiny") if line.startswith("cache") else TINY
        result = cached(*line.split(), *of_encoder)
        assert result.exit_code == 1, line
        assert "its content does not match its digest" in result.output, line
    assert {*Path().rglob("*")} - before <= {*Path().rglob("*.lock")}


def with_value(index, value, dtype=np.float16):
    rows = PETS.astype(dtype)
    rows[index] = value
    return [rows]


@pytest.mark.parametrize(
    ("changes", "part"),
    [({"encoder": {"logit_scale": scale}}, "its logit scale is")
     for scale in (None, 0, True, float("nan"), 1e300, "100", [1])]
    + [({"blocks": with_value(3, 0)}, "zeros in 1 row (the first is 3)"),
       ({"blocks": with_value(3, -0.0)}, "zeros in 1 row"),
       ({"normalized": True}, "norms are not 1"),
       ({"texts": [Text("{}", 5 * UNIT)]}, "norms other than 1"),
       ({"texts": [Text("{}", np.nan * UNIT)]}, "norms other than 1"),
       ({"generic": np.ones(4, np.float32)}, "the generic text's norm is 2,"),
       ({"generic": np.full(4, np.nan, np.float32)}, "the generic text's norm is nan,"),
       ({"generic": np.zeros(4, np.float32)}, "the generic text's norm is 0,"),
       ({"generic": np.ones(3, np.float32) / 2}, "generic_text is"),
       ({"generic": np.ones(4) / 2}, "generic_text is"),
       ({"kind": "thing"}, "its kind is 'thing'"),
       ({"encoder": {"model": 3, "logit_scale": 1}}, "model is not a text"),
       ({"source": {"images": "6"}}, "images is not a whole number"),
       ({"sample_ids": ["a"]}, "sample_ids is"),
       ({"labels": np.array([0, 1, 2, -1, 0, 0], np.int32)}, "has the label 2, must be below 2"),
       ({"labels": np.full(6, -2, np.int32)}, "has the label -2")],
)  # fmt: skip
def test_what_verify_refuses_is_not_read(path, changes, part):
    write_pets(path, **changes)
    with refused(part, error=StoreError):
        store.read(path)
    assert part in " ".join(problems(path))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused_by_a_run_and_by_verify(tmp_path, value):
    """Reading them looks at no value: their scores do."""
    path = tmp_path / "features" / "made" / "pets.h5"
    write_pets(path, blocks=with_value((5, 3), value), labels=np.zeros(6, np.int32))
    run = build_run("adand", "made", "pets", None, "a {}.", ratio=0, noise="none")
    with refused("not finite in 1 row (the first is 5", error=StoreError):
        Simulator(tmp_path / "features").run(run)
    assert "not finite" in " ".join(problems(path))


# --- what belongs together: features of one encoder under another's identity


KEYS = [f"text/{hashlib.sha256(text.template.encode()).hexdigest()[:16]}" for text in TEXTS]
EXCHANGED = [  # a member, or an attribute behind @
    "class_names", "text", "generic_text", KEYS[0], "@encoder", "@seal", "@normalized",
    f"{KEYS[1]}@logit_scale", "generic_text@source",
]  # fmt: skip


@pytest.mark.parametrize("what", EXCHANGED)
def test_whatever_was_exchanged_is_found(path, tmp_path, what):
    other = [Text("a {}.", UNIT[::-1].copy()), Text("b {}.", UNIT, 50.0)]
    write_pets(
        tmp_path / "pets.h5", encoder={"model": "n", "logit_scale": 20.0}, texts=other,
        class_names=["dog", "cat"], generic=-GENERIC["generic"], generic_source="words",
        normalized=True,
    )  # fmt: skip
    member, at, name = what.partition("@")
    with h5py.File(path, "r+") as file, h5py.File(tmp_path / "pets.h5", "r") as second:
        if at:
            file[member or "/"].attrs[name] = second[member or "/"].attrs[name]
        else:
            del file[member]
            file.copy(second[member], file, member)
    for read in (store.read, partial(store.read, rows=False)):
        with refused("were changed after it was written"):
            read(path)


# --- nothing is half written


@pytest.mark.parametrize("where", ["os.fsync", "os.replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(path, monkeypatch, where):
    def full(*_):
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(where, full)
    with refused("No space left on device", error=StoreError):
        write_pets(path, labels=np.zeros(6, np.int32))
    with refused("No space left on device", error=StoreError):
        store.write(store.read(path))
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["pets.h5"]
