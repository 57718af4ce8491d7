"""Features made elsewhere: how their arrays are taken, why they are not, and that no code runs."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from feature_files import imported, not_imported
from made import PROMPT, damaged
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors

from zsntta_cli.cache import store
from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.methods.scores import zero_shot

RAW = np.array([[3, 4, 0], [0, 5, 12], [8, 0, 15], [1, 2, 2]], np.float32)  # norms 5, 13, 17, 3
LABELS = np.array([0, 1, 2, 1])
TEXT = np.array([[1, 0, 0], [0, 0.6, 0.8], [0, 1, 0]], np.float32)
NAMES = ["cat", "dog", "big_猫"]
ALL = {"features": RAW, "labels": LABELS, "text_features": TEXT, "class_names": np.array(NAMES)}

pytestmark = pytest.mark.usefixtures("folder")


def savez(path="f.npz", **arrays):
    np.savez(path, **arrays)
    return Path(path)


def whole(path="all.npz", **changes):
    return savez(path, **ALL | changes)


def tensors(arrays):
    return {key: torch.tensor(array) for key, array in arrays.items()}


def test_one_file_with_everything():
    features, notes = imported(whole())
    assert features.path == Path("features/imported/pets.h5")
    assert np.array_equal(features.image_features, RAW)
    assert features.image_features.dtype == np.float32
    assert (features.labels.tolist(), features.class_names) == (LABELS.tolist(), tuple(NAMES))
    assert np.array_equal(features.texts[PROMPT].features, TEXT)
    assert (features.kind, features.normalized) == ("dataset", False)
    assert "norms are 3 to 17: taken as raw features" in notes
    assert store.read_sample_ids(features.path) == ("00000", "00001", "00002", "00003")
    assert features.source == {"images": 4, "imported": ["all.npz"]}


def test_an_import_can_be_classified():
    """Cosines by hand: row 0 is 0.6 to cat, 0.48 to dog, 0.8 to big_猫."""
    features, _ = imported(whole(), logit_scale=10)
    scores = zero_shot(
        features.image_features, features.texts[PROMPT].features, features.identity["logit_scale"]
    )
    assert scores.class_index.tolist() == [2, 1, 1, 1]
    powers = np.exp([6, 4.8, 8])
    assert scores.noise_score[0] == pytest.approx(1 - powers[2] / powers.sum(), abs=1e-6)


WRITE = {  # of one array, by the file's ending
    ".npy": lambda path, array, key: np.save(path, array),
    ".npz": lambda path, array, key: np.savez(path, **{key: array}),
    ".pt": lambda path, array, key: torch.save(torch.tensor(array), path),
    ".pth": lambda path, array, key: torch.save(tensors({key: array}), path),
    ".safetensors": lambda path, array, key: save_file({key: array}, path),
}


@pytest.mark.parametrize("ending", WRITE)
def test_features_and_labels_of_each_kind_of_file(ending):
    WRITE[ending](f"f{ending}", RAW, "image_features")
    WRITE[ending](f"l{ending}", LABELS, "targets")
    np.save("n.npy", np.array([name.encode() for name in NAMES]))
    taken, _ = imported(f"f{ending}", labels=Path(f"l{ending}"), class_names=Path("n.npy"))
    assert np.array_equal(taken.image_features, RAW)
    assert (taken.labels.tolist(), taken.class_names) == (LABELS.tolist(), tuple(NAMES))


@pytest.mark.parametrize(
    ("given", "stored"),
    [("float16", "float16"), ("float32", "float32"), ("float64", "float32"), (">f4", "float32"),
     (">f2", "float16")],
)  # fmt: skip
def test_precisions(given, stored):
    np.save("f.npy", np.asfortranarray(RAW.astype(given)))
    features, _ = imported("f.npy")
    assert features.image_features.dtype == stored
    assert np.array_equal(features.image_features, RAW)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_halves_of_torch(half):
    save_tensors({"features": torch.tensor(RAW).to(getattr(torch, half))}, "f.safetensors")
    taken, _ = imported("f.safetensors")
    assert taken.image_features.dtype == ("float16" if half == "float16" else "float32")
    assert np.array_equal(taken.image_features, RAW)


def test_features_alone_are_an_ood_set():
    features, notes = imported(savez(features=RAW))
    assert features.labels.tolist() == [-1] * 4
    assert (features.class_names, features.texts) == ((), {})
    assert "can be an OOD set only" in notes


def test_text_of_its_own_file_without_names_and_of_another_norm():
    text = savez("text.npz", text_features=TEXT * [[2], [1], [5]], class_names=np.empty(0))
    features, notes = imported(savez(features=RAW, labels=LABELS), text=text)
    assert features.class_names == ("class 0", "class 1", "class 2")
    assert "called 'class 0' … 'class 2'" in notes
    assert np.allclose(features.texts[PROMPT].features, TEXT, atol=1e-7)


@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_unit_norms_are_noticed(precision):
    unit = (RAW / np.linalg.norm(RAW, axis=1, keepdims=True)).astype(precision)
    path = savez(image_features=unit)
    features, notes = imported(path)
    assert features.normalized
    assert "taken as normalised" in notes
    assert not imported(path, "raw", normalized=False)[0].normalized
    not_imported("is marked as normalised, but norms are not 1",
                 features=savez(features=RAW), normalized=True)  # fmt: skip


def test_noise_images():
    features, _ = imported(savez(features=RAW, labels=LABELS), "noise-gaussian")
    assert (features.kind, set(features.labels.tolist())) == ("noise", {-1})
    not_imported("has neither labels nor text", name="noise-poisson", labels=Path("f.npz"),
                 features=Path("f.npz"), error=SettingsError)  # fmt: skip


def test_a_folder_is_of_one_encoder_and_one_scale():
    imported(savez(features=RAW), logit_scale=50.0)
    other = savez("g.npz", features=np.ones((2, 4)))
    not_imported("features/imported/pets.h5 is of another encoder (dims is 3, not 4)",
                 "--encoder NAME", name="more", features=other, logit_scale=50.0)  # fmt: skip
    not_imported("another encoder (logit_scale is 50.0, not 100.0)", "the same --logit-scale",
                 name="more", features=Path("f.npz"))  # fmt: skip
    assert imported(other, "more", encoder="mine")[0].identity["model"] == "mine"


def test_what_is_there_is_replaced_on_demand_alone():
    imported(whole())
    changed = whole("changed.npz", class_names=np.array(NAMES[::-1]))
    not_imported("pets.h5 is there already", "--overwrite replaces it", features=changed)
    again, _ = imported("changed.npz", overwrite=True)
    assert again.class_names == tuple(NAMES[::-1])


# --- what does not fit


def changed(key, index, value):
    array = ALL[key].astype(np.float32)
    array[index] = value
    return {key: array}


@pytest.mark.parametrize(
    ("arrays", "parts"),
    [({"features": RAW[0]}, ["the features are float32 (3,), must be (N, D)"]),
     ({"features": RAW[:0]}, ["the features are float32 (0, 3)"]),
     ({"features": LABELS[:, None]}, ["the features are int64 (4, 1)", "floating-point"]),
     ({"features": np.array([["a"]])}, ["the features are <U1"]),
     (changed("features", (2, 1), np.nan), ["1 features are not finite (the first in row 2)"]),
     ({"features": RAW.astype(float) * 1e60}, ["4 features are not finite (the first in row 0)"]),
     (changed("features", 1, 0), ["1 features are zero (the first in row 1)"]),
     ({"labels": LABELS[:3]}, ["the labels (0 to 2) are int64 (3,)"]),
     ({"labels": LABELS[:, None]}, ["are int64 (4, 1)", "labels.ravel()"]),
     ({"labels": np.eye(4, dtype=int)}, ["are int64 (4, 4)", "argmax(1)"]),
     ({"labels": LABELS.astype(float)}, ["are float64 (4,)", "labels.astype"]),
     ({"labels": LABELS - 2}, ["the labels (-2 to 0) are", "or -1 for none"]),
     ({"labels": LABELS + 1}, ["the labels (1 to 3) are", "from 0 to 2"]),
     ({"class_names": np.array(["a", "", "c"])}, ["class names are <U1 (3,)", "one line each"]),
     ({"class_names": np.array(["a", "\x1b[2J", "c"])}, ["of one line each"]),
     ({"class_names": np.arange(3)}, ["the class names are int64"]),
     ({"class_names": np.array(NAMES[:2])}, ["text features for 2 classes are float32 (3, 3)"]),
     ({"text_features": TEXT[:, :2]}, ["text features for 3 classes are float32 (3, 2)"]),
     (changed("text_features", 2, 0), ["have norms other than 1"])],
)  # fmt: skip
def test_what_does_not_fit(arrays, parts):
    not_imported("all.npz", *parts, features=whole(**arrays))


@pytest.mark.parametrize("name", ["cifar10-c:fog:1", "imagenet-c:snow:3"])
def test_a_set_with_parameters_has_the_name_that_an_extraction_gives(name):
    features, _ = imported(whole(), name)
    assert features.path == Path(f"features/imported/{name}.h5")


@pytest.mark.parametrize(
    ("plan", "part"),
    [({"name": "../pets"}, "name is '../pets'"), ({"encoder": "a/b"}, "encoder is 'a/b'"),
     ({"name": "n" * 101}, "must be up to 100 letters"),
     ({"prompt": "a photo"}, "prompt 'a photo' is neither"),
     ({"name": "cifar10:fog:1"}, "is read as it is"), ({"name": "pets:a"}, "no data set"),
     ({"name": "noise-pink"}, "one of: noise-gaussian"),
     ({"logit_scale": -4.6}, "logit-scale is -4.6"), ({"logit_scale": np.inf}, "logit-scale is"),
     ({"logit_bias": np.nan}, "logit-bias is nan")],
)  # fmt: skip
def test_options_out_of_range(plan, part):
    not_imported(part, error=SettingsError, features=whole(), **plan)


def test_a_file_without_what_is_asked_of_it():
    path = savez(features=RAW)
    not_imported("f.npz holds 'features', must hold 'labels'", features=path, labels=path)
    not_imported("must hold 'text_features'", features=path, text=path)
    not_imported("f.npz holds 'x', must hold 'features' or 'image_features'",
                 features=savez(x=RAW))  # fmt: skip


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


WRONG = [
    ("f.csv", b"1,2", "f.csv is no file that can be read: must be one of .npz, .npy, .pt"),
    ("f.npy", b"", "cannot read f.npy"), ("f.npz", b"PK\3\4", "cannot read f.npz"),
    ("f.npy", npy(np.ones((4, 3))).replace(b"(4, 3)", b"(4, 9)"), "cannot read f.npy"),
    ("f.npz", zipped(("features.npy", b"no array"), ("../../escape.npy", b"")),
     "cannot read f.npz ('features' in it is no array)"),
    ("f.pt", b"PK\3\4", "cannot read f.pt"),
    ("f.safetensors", (2**62).to_bytes(8, "little") + b"{}", "cannot read f.safetensors"),
    ("f.pt", torch_file([torch.tensor(RAW)]), "it holds a list, must be a tensor or a dict"),
    ("f.pt", torch_file(torch.ones(1).expand(10**12, 8)), "a tensor in it repeats itself"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "said"), WRONG, ids=[w[2][:50] for w in WRONG])
def test_files_that_are_not_what_they_should_be(name, content, said):
    Path(name).write_bytes(content)
    not_imported(said, features=name)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pt"])
@pytest.mark.filterwarnings("ignore")  # numpy's and torch's on damaged headers
def test_damaged_files_are_imported_or_refused(suffix):
    path = Path(f"f{suffix}")
    WRITE[suffix](path, RAW, "features")
    content, generator, refusals = path.read_bytes(), np.random.default_rng(0), []
    for _ in range(60):
        path.write_bytes(damaged(content, generator, most=6))
        try:
            imported(path, overwrite=True)
        except StoreError as error:
            refusals.append(str(error))
    assert refusals
    assert not any("\n" in line for line in refusals)


class Malicious:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("code-has-run",)


MALICIOUS = {
    ".pt": lambda: torch_file({"features": Malicious()}), ".pth": lambda: pickle.dumps(Malicious()),
    ".npy": lambda: npy(np.array([Malicious()], object)),
    ".npz": lambda: zipped(("features.npy", npy(np.array([Malicious()], object)))),
}  # fmt: skip


@pytest.mark.parametrize("suffix", MALICIOUS)
def test_malicious_files_never_run(suffix):
    Path(f"bad{suffix}").write_bytes(MALICIOUS[suffix]())
    not_imported("cannot read bad", features=f"bad{suffix}")
    assert not Path("code-has-run").exists()
