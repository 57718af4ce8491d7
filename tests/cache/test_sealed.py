"""What belongs together in a feature file: features of one encoder under another's identity."""

import hashlib
from functools import partial

import h5py
import numpy as np
import pytest
from feature_files import UNIT, write_pets
from made import refused

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Text, problems

READERS = (store.read, partial(store.read, rows=False))
BROKEN = "are not those that it was written with"


@pytest.fixture
def two(tmp_path):
    """Files of two encoders, whose sets, numbers of classes and prompts are the same."""
    first, second = tmp_path / "a" / "pets.h5", tmp_path / "b" / "pets.h5"
    generic = np.full(4, 0.4, np.float32)
    write_pets(first, generic=generic, generic_source="words")
    other = [Text("a {}.", UNIT[::-1].copy()), Text("b {}.", UNIT, 20.0)]
    encoder = {"model": "n", "logit_scale": 20.0}
    write_pets(second, encoder=encoder, class_names=["dog", "cat"], texts=other, generic=-generic,
               generic_source="words")  # fmt: skip
    return first, second


def replaced(name):
    """Put a member of another file in the place of its own."""

    def change(file, other):
        del file[name]
        file.copy(other[name], file, name)

    return change


def attribute(*names):
    def change(file, other):
        for name in names:
            file.attrs[name] = other.attrs[name]

    return change


def text_with_its_digest(file, _other):
    group = next(iter(file["text"].values()))
    rows = group["text_features"][()][::-1].copy()
    group["text_features"][:] = rows
    group.attrs["digest"] = np.bytes_(hashlib.sha256(rows.data).hexdigest())


def text_gone(file, _other):
    del file[f"text/{next(iter(file['text']))}"]


def template(file, _other):
    next(iter(file["text"].values())).attrs["template"] = np.bytes_("c {}.")


def scale(file, _other):
    [scaled] = [group for group in file["text"].values() if "logit_scale" in group.attrs]
    scaled.attrs["logit_scale"] = np.bytes_("50.0")


def norms(file, _other):
    file.attrs["normalized"] = not file.attrs["normalized"]


def source(file, _other):
    file["generic_text"].attrs["source"] = np.bytes_("others")


CHANGES = {
    "class names": replaced("class_names"), "texts": replaced("text"),
    "generic text": replaced("generic_text"), "encoder": attribute("encoder"),
    "seal": attribute("seal"), "encoder and digest": attribute("encoder", "digest"),
    "text with its digest": text_with_its_digest, "text gone": text_gone, "template": template,
    "scale": scale, "norms": norms, "source": source,
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_was_exchanged_is_found(two, what):
    first, second = two
    assert store.read(first).identity["model"] == "m"
    with h5py.File(first, "r+") as file, h5py.File(second, "r") as other:
        CHANGES[what](file, other)
    for read in READERS:
        with refused(BROKEN):
            read(first)
    assert BROKEN in problems(first)[0]


def test_added_texts_are_part_of_it(two):
    first, _ = two
    store.add_texts(store.read(first), [Text("c {}.", UNIT)])
    assert {*store.read(first).texts} == {"a {}.", "b {}.", "c {}."}
    with h5py.File(first, "r+") as file:
        text_gone(file, None)
    with refused(BROKEN):
        store.read(first)
