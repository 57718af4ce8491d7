"""What belongs together in a feature file: features of one encoder under another's identity."""

import hashlib
import itertools
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


def exchange(what, file, other):
    """Put what another file says in the place of its own."""
    groups = [file[f"text/{name}"] for name in sorted(file["text"])]
    if what in ("class_names", "generic_text"):
        del file[what]
        file.copy(other[what], file, what)
    elif what in ("encoder", "seal"):
        file.attrs[what] = other.attrs[what]
    elif what == "another seal":
        file.attrs["seal"] = np.bytes_("0" * 64)
    elif what == "normalized":
        file.attrs[what] = not file.attrs[what]
    elif what == "encoder and digest":
        for name in ("encoder", "digest"):
            file.attrs[name] = other.attrs[name]
    elif what == "texts":
        for name in sorted(file["text"]):
            del file[f"text/{name}"]
            file.copy(other[f"text/{name}"], file["text"], name)
    elif what == "a text with its digest":
        rows = groups[0]["text_features"][()][::-1].copy()
        groups[0]["text_features"][:] = rows
        groups[0].attrs["digest"] = np.bytes_(hashlib.sha256(rows.data).hexdigest())
    elif what == "a text is gone":
        del file[groups[0].name]
    elif what == "no generic text":
        del file["generic_text"]
    elif what == "source of the generic text":
        file["generic_text"].attrs["source"] = np.bytes_("others")
    elif what == "templates":
        templates = [group.attrs["template"] for group in groups]
        for group, template in zip(groups, [*templates[1:], np.bytes_("c {}.")], strict=True):
            group.attrs["template"] = template
    else:
        assert what == "scale"
        [scaled] = [group for group in groups if "logit_scale" in group.attrs]
        scaled.attrs["logit_scale"] = np.bytes_("50.0")


EXCHANGED = ("encoder", "class_names", "texts", "a text is gone", "templates", "scale", "seal")
ONCE = ("another seal", "normalized", "encoder and digest", "a text with its digest",
        "generic_text", "no generic text", "source of the generic text")  # fmt: skip
PAIRS = [*itertools.combinations(EXCHANGED, 1), *itertools.combinations(EXCHANGED, 2)]


@pytest.mark.parametrize("what", [*PAIRS, *((one,) for one in ONCE)], ids=" and ".join)
def test_whatever_was_exchanged_is_found(two, what):
    first, second = two
    assert store.read(first).identity["model"] == "m"
    with h5py.File(first, "r+") as file, h5py.File(second, "r") as other:
        for one in what:
            exchange(one, file, other)
    for read in READERS:
        with refused(BROKEN):
            read(first)
    assert BROKEN in problems(first)[0]


def test_added_texts_are_part_of_it(two):
    first, second = two
    store.add_texts(first, [Text("c {}.", UNIT)])
    assert {*store.read(first).texts} == {"a {}.", "b {}.", "c {}."}
    with h5py.File(first, "r+") as file, h5py.File(second, "r") as other:
        exchange("encoder", file, other)
    with refused(BROKEN):
        store.read(first)
