"""Arrays of other tools: taken or refused, without running code; there and back."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from feature_files import imported, not_imported, write_pets
from made import PROMPT, refused
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors

from zsntta_cli.cache import store
from zsntta_cli.cache.npz import export_features
from zsntta_cli.cache.store import Text, problems
from zsntta_cli.errors import SettingsError, StoreError

RAW = np.array([[3, 4, 0], [0, 5, 12], [8, 0, 15], [1, 2, 2]], np.float32)  # norms 5, 13, 17, 3
LABELS = np.array([0, 1, 2, 1])
TEXT = np.array([[1, 0, 0], [0, 0.6, 0.8], [0, 1, 0]], np.float32)
NAMES = ["cat", "dog", "big_猫"]
ALL = {"features": RAW, "labels": LABELS, "text_features": TEXT, "class_names": np.array(NAMES)}

pytestmark = pytest.mark.usefixtures("zsntta")


def savez(path="f.npz", **arrays):
    np.savez(path, **arrays)
    return Path(path)


def whole(path="all.npz", **changes):
    return savez(path, **ALL | changes)


def test_one_file_with_everything():
    features, notes = imported(whole(), logit_scale=10)
    assert features.path == Path("features/imported/pets.h5")
    assert np.array_equal(features.image_features, RAW)
    assert (features.labels.tolist(), features.class_names) == (LABELS.tolist(), tuple(NAMES))
    assert (features.kind, features.normalized) == ("dataset", False)
    assert "norms are 3 to 17: taken as raw features" in notes
    assert store.read_sample_ids(features.path) == ("00000", "00001", "00002", "00003")
    assert features.source == {"images": 4, "imported": ["all.npz"]}
    assert np.array_equal(features.texts[PROMPT].features, TEXT)
    assert features.identity["logit_scale"] == 10


WRITE = {  # of one array, by the file's ending
    ".npy": lambda path, array, key: np.save(path, array),
    ".npz": lambda path, array, key: np.savez(path, **{key: array}),
    ".pt": lambda path, array, key: torch.save(torch.tensor(array), path),
    ".pth": lambda path, array, key: torch.save({key: torch.tensor(array)}, path),
    ".safetensors": lambda path, array, key: save_file({key: array}, path),
}


@pytest.mark.parametrize("ending", WRITE)
def test_features_and_labels_of_each_kind_of_file(ending):
    WRITE[ending](f"f{ending}", RAW, "image_features")
    WRITE[ending](f"l{ending}", LABELS.astype(np.uint8), "labels")
    np.save("n.npy", np.array([name.encode() for name in NAMES]))
    taken, _ = imported(f"f{ending}", labels=Path(f"l{ending}"), class_names=Path("n.npy"))
    assert np.array_equal(taken.image_features, RAW)
    assert (taken.labels.tolist(), taken.class_names) == (LABELS.tolist(), tuple(NAMES))


@pytest.mark.parametrize(
    ("given", "stored"),
    [("float16", "float16"), ("float64", "float32"), (">f4", "float32"), (">f2", "float16"),
     ("bfloat16", "float32")],
)  # fmt: skip
def test_half_precision_stays_and_any_other_is_stored_as_float32(given, stored):
    if given == "bfloat16":
        save_tensors({"features": torch.tensor(RAW).bfloat16()}, path := "f.safetensors")
    else:
        np.save(path := "f.npy", np.asfortranarray(RAW.astype(given)))
    features, _ = imported(path)
    assert features.image_features.dtype == stored
    assert np.array_equal(features.image_features, RAW)


def test_features_alone_are_an_ood_set_and_those_of_noise_have_no_labels():
    features, notes = imported(savez(features=RAW))
    assert features.labels.tolist() == [-1] * 4
    assert (features.class_names, features.texts) == ((), {})
    assert "it can only be an OOD set" in notes
    noise, _ = imported(whole(), "noise-gaussian")
    assert (noise.kind, set(noise.labels.tolist()), noise.texts) == ("noise", {-1}, {})


def test_text_of_its_own_file_without_names_and_of_another_norm():
    text = savez("text.npz", text_weights=TEXT * [[2], [1], [5]], class_names=np.empty(0))
    features, notes = imported(savez(features=RAW, targets=LABELS), text=text)
    assert features.labels.tolist() == LABELS.tolist()
    assert features.class_names == ("class 0", "class 1", "class 2")
    assert "'class 0' … 'class 2'" in notes
    assert np.allclose(features.texts[PROMPT].features, TEXT, atol=1e-7)
    text = savez("text.npz", text_features=TEXT, classnames=np.array(NAMES))
    assert imported("f.npz", "named", text=text)[0].class_names == tuple(NAMES)


@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_unit_norms_are_noticed(precision):
    unit = (RAW / np.linalg.norm(RAW, axis=1, keepdims=True)).astype(precision)
    path = savez(image_features=unit)
    features, notes = imported(path)
    assert features.normalized
    assert "taken as normalised" in notes
    assert not imported(path, "raw", normalized=False)[0].normalized
    not_imported("norms are not 1", features=savez(features=RAW), normalized=True)


def test_a_folder_is_of_one_encoder_and_one_scale():
    imported(savez(features=RAW), logit_scale=50.0)
    other = savez("g.npz", features=np.ones((2, 4)))
    not_imported("(dims is 3, not 4)", "--encoder NAME",
                 name="more", features=other, logit_scale=50.0)  # fmt: skip
    not_imported("(logit_scale is 50.0, not 100.0)", "the same --logit-scale",
                 name="more", features=Path("f.npz"))  # fmt: skip
    assert imported(other, "more", encoder="mine")[0].identity["model"] == "mine"
    not_imported("--overwrite replaces it", features=Path("f.npz"), logit_scale=50.0)
    assert len(imported(other, logit_scale=50.0, overwrite=True)[0]) == 2


# --- what does not fit


def changed(key, index, value):
    array = ALL[key].astype(np.float32)
    array[index] = value
    return {key: array}


def by_its_texts(value):
    """The id of a value in a case: arrays have none."""
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(
    ("arrays", "part"),
    [({"features": RAW[0]}, "'image_features' is float32 (3,)"),
     ({"features": RAW[:0]}, "must hold 'image_features'"),
     ({"features": RAW.T}, "numbers (3, 4): transpose it"),
     (changed("features", (2, 1), np.nan), "not finite in 1 row (the first is 2)"),
     ({"features": RAW.astype(float) * 1e60}, "not finite in 4 rows"),
     (changed("features", 1, 0), "zeros in 1 row (the first is 1)"),
     ({"labels": LABELS[:3]}, "'labels' is int64 (3,), must be whole numbers (4)"),
     ({"labels": LABELS.astype(float)}, ".astype('int32')"),
     ({"labels": LABELS[:, None]}, ".ravel()"),
     ({"labels": np.eye(4, dtype=int)}, ".argmax(1)"),
     ({"labels": LABELS + 1}, "must be below 3"),
     ({"labels": np.array([0, 1, 3, 2**40])}, "has the label 2147483647"),
     ({"labels": LABELS - 2}, "has the label -2"),
     ({"class_names": np.array(["a", "\x1b[2J", "c"])}, "of one line each"),
     ({"class_names": np.array(["a", "\ud800", "c"])}, "of one line each"),
     ({"class_names": np.arange(3)}, "'class_names' is int64 (3,)"),
     ({"class_names": np.array(NAMES[:2])}, "'text_features' is float32 (3, 3)"),
     ({"text_features": TEXT[:, :2]}, "must be floating-point numbers (3, 3): transpose it"),
     (changed("text_features", 2, 0), "have norms other than 1"),
     ({"sample_ids": np.array(["a"])}, "'sample_ids' is <U1 (1,)"),
     ({"generic_text": np.ones(2, np.float32)}, "'generic_text' is float32 (2,)"),
     ({"generic_text": np.ones(3, np.float32)}, "the generic text's norm is 1.73"),
     ({"templates": np.array(["a", PROMPT])}, "'text_features_1' is"),
     ({"normalized": np.array(True)}, "norms are not 1"),
     ({"encoder": np.array('{"logit_scale": -1}')}, "its logit scale is -1"),
     ({"encoder": np.array('{"logit_scale": 1, "model": 3}')}, "model is not a text"),
     *(({"encoder": np.array(text)}, "") for text in ("[]", "{", "[" * 100_000, "null"))],
    ids=by_its_texts,
)  # fmt: skip
def test_arrays_that_do_not_fit(arrays, part):
    not_imported(part, features=whole(**arrays))


@pytest.mark.parametrize(
    ("plan", "part", "error"),
    [({"name": "n" * 201}, "must be a valid file name", SettingsError),
     ({"prompt": "a photo"}, "prompt 'a photo'", SettingsError),
     ({"logit_scale": -4.6}, "its logit scale is -4.6", StoreError),
     ({"logit_scale": np.inf}, "its logit scale is inf", StoreError),
     ({"logit_bias": np.nan}, "bias is nan", StoreError)],
)  # fmt: skip
def test_options_that_do_not_fit(plan, part, error):
    not_imported(part, error=error, features=whole(), **plan)


@pytest.mark.parametrize(("what", "array"), [("labels", "labels"), ("text", "text_features")])
def test_a_file_without_what_it_is_named_for(what, array):
    not_imported(f"must hold '{array}'", features=savez(features=RAW), **{what: Path("f.npz")})


# --- files that are damaged, hostile, or no such files


def zipped(*files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, inner in files:
            archive.writestr(name, inner)
    return content.getvalue()


def npy(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def torch_file(content):
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


class Malicious:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("code-has-run",)


OBJECTS = npy(np.array([Malicious()], object))


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [("f.csv", b"1,2", "must be one of .npz, .npy, .pt"),
     ("cut.npy", npy(np.ones((4, 3))).replace(b"(4, 3)", b"(4, 9)"), "cannot read cut"),
     ("cut.npz", b"PK\3\4", "cannot read cut"),
     ("raw.npz", zipped(("features.npy", b"no array"), ("../../escape.npy", b"")), "is |S8 ()"),
     ("cut.safetensors", (2**62).to_bytes(8, "little") + b"{}", "cannot read cut"),
     ("list.pt", torch_file([torch.tensor(RAW)]), "is float32 (1, 4, 3)"),
     ("large.pt", torch_file(torch.ones(1).expand(10**12, 8)), "expanded tensor"),
     ("meta.pt", torch_file(torch.ones(4, 3, device="meta")), "cannot read meta"),
     ("bad.pt", torch_file({"features": Malicious()}), "cannot read bad"),
     ("bad.pth", pickle.dumps(Malicious()), "cannot read bad"),
     ("bad.npy", OBJECTS, "cannot read bad"),
     ("bad.npz", zipped(("features.npy", OBJECTS)), "cannot read bad")],
    ids=by_its_texts,
)  # fmt: skip
def test_files_that_are_not_what_they_should_be(name, content, part):
    Path(name).write_bytes(content)
    not_imported(part, features=name)
    assert not Path("code-has-run").exists()


# --- there and back

ART = "art of a {} | a {}"
ENCODER = {
    "model": "local-dir:/home/me/clip", "pretrained": "/home/me/w.pt", "quick_gelu": True,
    "preprocessing": {"size": [224, 224]}, "logit_scale": 100.00000762939453, "logit_bias": -13.25,
}  # fmt: skip


def made(name="pets", count=21, **changes):
    """A feature file of random rows, as it is read."""
    generator = np.random.default_rng(count)
    texts = generator.standard_normal((3, 2, 3)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=2, keepdims=True)
    named = zip((PROMPT, ART, "photos"), texts, (None, None, 12.5), strict=True)
    path = Path(f"features/enc/{name}.h5")
    write_pets(path, **{
        "encoder": ENCODER, "source": {"dataset": "pets", "skipped": ["bad.jpg"]},
        "labels": np.arange(count, dtype=np.int32) % 3 - 1, "texts": [Text(*t) for t in named],
        "sample_ids": [f"/home/me/{i}.jpg" for i in range(count)],
        "blocks": [generator.standard_normal((count, 3)).astype(np.float16)], **changes,
    })  # fmt: skip
    return store.read(path)


def export(name="pets", encoder=None, **options):
    return export_features(Path("features"), name, encoder, Path(f"{name}.npz"), **options)


@pytest.mark.parametrize("without_ids", [False, True])
def test_a_round_trip_is_equal_to_the_bit_and_names_no_folder_but_in_ids(without_ids):
    before = made()
    export(without_ids=without_ids)
    after, notes = imported("pets.npz", root="back", encoder="enc")
    for name in ("digest", "class_names", "kind", "normalized", "name"):
        assert getattr(after, name) == getattr(before, name)
    assert after.texts[PROMPT].features.tobytes() == before.texts[PROMPT].features.tobytes()
    assert problems(after.path) == []
    assert after.source == {"images": 21, "imported": ["pets.npz"]}
    assert after.identity == {**ENCODER, "model": "local-dir:clip", "pretrained": "w.pt"}
    assert "local-dir:clip" in notes
    numbers = tuple(f"{i:05d}" for i in range(21))
    ids = numbers if without_ids else store.read_sample_ids(before.path)
    assert store.read_sample_ids(after.path) == ids
    assert ("home".encode("utf-32-le") in Path("pets.npz").read_bytes()) != without_ids
    with np.load("pets.npz") as exported:
        assert {*exported["templates"]} == {*before.texts}
    own, _ = imported("pets.npz", "own", root="back", encoder="x", logit_scale=7.0, prompt=ART)
    assert own.identity["logit_scale"] == 7.0
    assert own.texts[ART].features.tobytes() == before.texts[ART].features.tobytes()


def test_a_generic_text_is_exported_and_imported_with_its_words():
    """Also of the text file; without its source it is called imported."""
    mean = np.array([0.5, 0.25, 0], np.float32)
    made(generic=mean, generic_source="all words")
    export()
    after, _ = imported("pets.npz", root="back", encoder="enc")
    assert np.array_equal(after.generic, mean)
    assert (after.generic_source, problems(after.path)) == ("all words", [])
    text = savez("text.npz", text_features=TEXT[:2], generic_text=mean / 2)
    other, _ = imported("pets.npz", "own", root="back", encoder="x", text=text)
    assert np.array_equal(other.generic, mean / 2)
    assert other.generic_source == "imported"


def test_what_is_not_exported():
    made()
    export()
    with refused("already exists", "--overwrite replaces it", error=StoreError):
        export()
    made(count=3)
    export(overwrite=True)
    assert len(imported("pets.npz", root="back", encoder="enc")[0]) == 3
    Path("features/more").mkdir()
    Path("features/more/pets.h5").write_bytes(Path("features/enc/pets.h5").read_bytes())
    with refused("enc, more", "--encoder", error=StoreError):
        export()
    made("words-x", kind="words", count=0, labels=np.empty(0, np.int32), sample_ids=[])
    with refused("has no images to export", error=StoreError):
        export("words-x")
