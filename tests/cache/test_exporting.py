"""What is exported comes back to the bit, as .npz; what a stranger made of it, or a line."""

from pathlib import Path

import numpy as np
import pytest
from feature_files import imported, not_imported, write_features
from made import refused

from zsntta_cli.cache import store
from zsntta_cli.cache.npz import export_features, only_file
from zsntta_cli.cache.store import Text, problems
from zsntta_cli.errors import StoreError

IDENTITY = {
    "model": "ViT-B-32", "pretrained": "openai", "weights_sha256": "40" * 32, "quick_gelu": True,
    "precision": "fp16", "image_size": 224, "preprocessing": {"size": [224, 224]},
    "logit_scale": 100.00000762939453, "versions": {"torch": "2.6.0"},
}  # fmt: skip
SOURCE = {"dataset": "pets", "digest": "ab" * 32, "skipped": ["bad.jpg"]}
PLACES = {"model": "local-dir:/home/me/clip", "pretrained": "/home/me/w.pt"}
PROMPTS = ("a photo of a {}.", "art of a {} | a {}")


pytestmark = pytest.mark.usefixtures("folder")


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def made(name="pets", count=5, dim=3, dtype=np.float16, **changes):
    """A feature file of random rows, as it is read."""
    generator = np.random.default_rng(count)
    names = changes.pop("class_names", ("cat", "dog"))
    texts = [
        Text(prompt, unit(generator.standard_normal((len(names), dim))), scale)
        for prompt, scale in changes.pop("prompts", {PROMPTS[0]: None}).items()
    ]
    values = {
        "kind": "dataset", "encoder": IDENTITY, "source": SOURCE,
        "labels": np.arange(count, dtype=np.int32) % (len(names) + 1) - 1,
        "sample_ids": [f"{i}.jpg" for i in range(count)], "class_names": names, "texts": texts,
        "blocks": [generator.standard_normal((count, dim)).astype(dtype)],
    }  # fmt: skip
    path = Path(f"features/enc/{name}.h5")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_features(path, name=name, **values | changes)
    return store.read(path)


def exported(name="pets", encoder=None, **options):
    path = only_file(Path("features"), name, encoder)
    export_features(path, Path(f"{name}.npz"), **options)
    return Path(f"{name}.npz")


def back_from(there, name="pets", root="back", **plan):
    return imported(there, name, root, encoder="enc", **plan)[0]


def everything(features):
    """All that a feature file holds, as values that can be compared to the bit."""
    rows = features.image_features
    return {
        "rows": (rows.dtype.name, rows.shape, rows.tobytes()), "digest": features.digest,
        "labels": features.labels.tolist(), "ids": store.read_sample_ids(features.path),
        "names": features.class_names, "encoder": features.identity,
        "texts": {t: text.features.tobytes() for t, text in features.texts.items()},
        "scales": [text.logit_scale for text in features.texts.values()],
        "generic": (np.asarray(features.generic).tolist(), features.generic_source),
        "normalized": features.normalized, "kind": features.kind,
        "name": features.name,
    }  # fmt: skip


def test_a_round_trip_is_equal_to_the_bit():
    whole = made(
        count=21, prompts={PROMPTS[0]: None, PROMPTS[1]: None, "photos": 12.5},
        encoder={**IDENTITY, "logit_bias": -13.25}, generic=np.full(3, 0.3, np.float32),
        generic_source="some words",
    )  # fmt: skip
    there = exported()
    features, notes = imported(there, root="back", encoder="enc")
    assert everything(features) == everything(whole)
    assert problems(features.path) == []
    assert features.source == {"images": 21, "imported": ["pets.npz"]}
    assert "pets.npz says that its features are of ViT-B-32" in notes


def test_ids_may_stay_at_home():
    whole = made(count=9)
    there = exported(without_ids=True)
    assert b"4.jpg" not in there.read_bytes()
    assert b"bad.jpg" not in there.read_bytes()
    numbers = {"ids": tuple(f"{i:05d}" for i in range(9))}
    assert everything(back_from(there)) == everything(whole) | numbers


def test_paths_of_the_encoder_stay_at_home_and_those_of_ids_are_noted():
    made(count=2, encoder={**IDENTITY, **PLACES}, sample_ids=["/home/me/a.jpg", "b.jpg"])
    _, note = export_features(Path("features/enc/pets.h5"), Path("pets.npz"))
    assert "('/home/me/a.jpg'): --without-ids" in note
    back = back_from("pets.npz")
    assert (back.identity["model"], back.identity["pretrained"]) == ("local-dir:clip", "w.pt")


def test_what_is_there_is_replaced_on_demand_alone(folder):
    made()
    there = exported()
    size = len([*folder.rglob("*")])
    with refused("is there already", "--overwrite replaces it", error=StoreError):
        exported()
    made(count=3)
    assert exported(overwrite=True) == there
    assert len(back_from(there)) == 3
    assert len([*folder.rglob("*")]) == size + 4, "the import's folder, file and lock alone"


def test_what_cannot_be_exported():
    made()
    Path("features/more").mkdir()
    Path("features/more/pets.h5").write_bytes(Path("features/enc/pets.h5").read_bytes())
    assert exported(encoder="more").name == "pets.npz"
    made("words-x", kind="words", count=0, labels=np.empty(0, np.int32), sample_ids=[])
    for name, said in (
        ("pets", "'pets' is cached of enc, more: choose one with --encoder"),
        ("dogs", "no features of"),
        ("words-x", "has no images, so there is nothing to export"),
    ):
        with refused(said, error=StoreError):
            exported(name)


# --- exports of strangers


RAW = np.array([[3, 4, 0], [0, 5, 12], [8, 0, 15], [1, 2, 2]], np.float32)
TEXT = np.array([[1, 0, 0], [0, 0.6, 0.8]], np.float32)
LABELS = np.array([0, 1, -1, 1], np.int32)


def small(**changes):
    """An export of four images of an encoder M."""
    values = {
        "count": 4, "encoder": {"model": "M", "logit_scale": 50.0}, "source": {"images": 4},
        "blocks": [RAW], "labels": LABELS, "sample_ids": ["a", "b", "c", "d"],
        "texts": [Text(PROMPTS[0], TEXT)],
    }  # fmt: skip
    made(**values | changes)
    return exported(overwrite=True)


def altered(without=(), **changes):
    """An export whose arrays are saved anew, with some of them changed."""
    with np.load(small()) as archive:
        arrays = {key: archive[key] for key in archive if key not in without}
    np.savez("altered.npz", **arrays | changes)
    return "altered.npz"


def test_the_encoder_of_an_export_is_believed():
    features, _ = imported(altered(), root="back")
    assert features.identity["model"] == "M"
    own, _ = imported("altered.npz", "own", root="back", encoder="x", logit_scale=7.0)
    assert own.identity == {"model": "M", "logit_scale": 7.0}
    np.save("f.npy", RAW)
    not_imported("is of another encoder (model is M, not imported)", features="f.npy", name="more",
                 root="back", logit_scale=50.0)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [({"labels": LABELS[:3]}, "are int32 (3,)"),
     ({"labels": LABELS + 1}, "(0 to 2) are int32"),
     ({"class_names": np.array(["\ud800", "dog"])}, "of one line each"),
     ({"sample_ids": np.array(["a"])}, "1 sample ids for 4 rows"),
     ({"templates": np.array(["a {}", "b {}"])}, "are not one for each of the templates"),
     ({"templates": np.array(["a", "b"]), "logit_scales": np.full(2, np.nan)}, "'text_features_1'"),
     ({"logit_scales": np.array([-1.0])}, "is -1.0, must be above 0"),
     ({"generic_text": np.full(2, 0.5)}, "'generic_text' in it are float64 (2,), must be (3,)"),
     ({"generic_text": np.ones(3)}, "the generic text's norm is 1.732"),
     ({"normalized": np.array(True)}, "is marked as normalised, but norms are not 1"),
     ({"encoder": np.array('{"logit_scale": -1}')}, "its logit scale is -1"),
     ({"encoder": np.array('{"logit_scale": 1, "model": 3}')}, "encoder's model is no text"),
     *(({"encoder": np.array(text)}, "") for text in ("", "[]", "{", "[" * 100_000, "null"))],
)  # fmt: skip
def test_an_export_whose_arrays_do_not_fit_is_refused(change, said):
    not_imported("altered.npz", said, features=altered(**change))
