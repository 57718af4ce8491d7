"""How features came to be: what files say, what records keep of it, what differs."""

import json

import pytest
from feature_files import write_pets
from made import MADE_UP

from zsntta_cli.cache import store
from zsntta_cli.cache.origin import differences_in_words, origin_of, origins_in, shared_once

ENCODER = {
    **MADE_UP, "pretrained": "/home/me/secret/mine.pt", "weights_sha256": "ab" * 32,
    "precision": "fp32", "threads": 8, "device": "cpu",
    "preprocessing": {"size": [32, 32], "interpolation": "bicubic"},
    "versions": {"torch": "2.15.0"},
}  # fmt: skip
SOURCE = {"dataset": "pets", "images": 300, "limit": 300, "digest": "c" * 64, "skipped": ["a.png"]}


def origin(path, **changes):
    write_pets(path, **{"encoder": ENCODER, "source": SOURCE} | changes)
    return origin_of(store.read(path))


def test_an_origin_names_no_place_of_the_machine(tmp_path):
    weights = origin(tmp_path / "pets.h5")
    folder = origin(tmp_path / "pets.h5", encoder={**ENCODER, "model": "local-dir:/home/me/clip"})
    hub = origin(tmp_path / "pets.h5", encoder={**ENCODER, "model": "hf-hub:one/clip"})
    assert weights["pretrained"] == "mine.pt"
    assert folder["model"] == "local-dir:clip"
    assert hub["model"] == "hf-hub:one/clip"
    assert "/home" not in json.dumps([weights, folder, hub])


def test_what_all_sets_share_stands_in_a_record_once(tmp_path):
    origins = {
        name: origin(tmp_path / f"{name}.h5", source={**SOURCE, "limit": limit})
        for name, limit in (("pets", 300), ("sky", None))
    }
    kept = json.loads(json.dumps(shared_once(origins)))
    assert kept["shared"]["weights_sha256"] == "ab" * 32
    for own in kept["sets"].values():
        own.pop("created", None)  # of two files that were made within a second it is the same
    assert kept["sets"] == {"pets": {"limit": 300}, "sky": {"limit": None}}
    assert origins_in(kept) == origins


@pytest.mark.parametrize("kept", [{}, {"sets": 3}, {"shared": [], "sets": {"x": 3}}])
def test_what_a_stranger_keeps_is_no_origin(kept):
    assert all(not origin for origin in origins_in(kept).values())
    assert shared_once(origins_in({}))["shared"] == {}


@pytest.mark.parametrize(
    ("here", "there", "words"),
    [({"threads": 2}, {"threads": 8}, "threads: 8 -> 2"),
     ({"threads": 2, "versions": {"torch": "2.13.0"}}, {},
      "versions.torch: 2.15.0 -> 2.13.0; threads: 8 -> 2"),
     ({"preprocessing": {"size": [64, 64], "interpolation": "bicubic"}}, {},
      "size 64 64, interpolation bicubic")],
)  # fmt: skip
def test_what_differs_between_two_machines(tmp_path, here, there, words):
    both = [origin(tmp_path / "pets.h5", encoder={**ENCODER, **own}) for own in (here, there)]
    assert words in differences_in_words(*both)
    assert "precision" not in differences_in_words(*both), "what is equal is not said"


def test_limits_images_batches_and_processors_differ_too(tmp_path):
    here = origin(tmp_path / "pets.h5", source={**SOURCE, "limit": None, "images": 10_000},
                  machine={"cpu": "A", "batch_size": 50})  # fmt: skip
    there = origin(tmp_path / "pets.h5", machine={"cpu": "B", "batch_size": 128})
    assert differences_in_words(here, there) == (
        "cpu: B -> A; batch_size: 128 -> 50; images: 300 -> 10000; limit: 300 -> none"
    )
