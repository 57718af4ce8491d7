"""Files of other tools: what their arrays are, what is refused, and that no code in them runs."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from feature_files import imported, not_imported
from made import damaged, refused
from safetensors.numpy import save_file

from zsntta_cli.cache.npz import read_arrays
from zsntta_cli.errors import StoreError

RAW = np.array([[3, 4, 0], [0, 5, 12], [8, 0, 15], [1, 2, 2]], np.float32)
LABELS = np.array([0, 1, -1, 1])
TEXT = np.array([[1, 0, 0], [0, 0.6, 0.8]], np.float32)
NAMES = ["cat", "dog"]
ARRAYS = {"features": RAW, "labels": LABELS, "text_features": TEXT}

pytestmark = pytest.mark.usefixtures("folder")


def save_torch(path, content):
    import torch

    torch.save(content, path)


def tensors(arrays):
    import torch

    return {key: torch.tensor(array) for key, array in arrays.items()}


WRITE = {  # of one array, by the file's ending
    ".npy": lambda path, array, key: np.save(path, array),
    ".npz": lambda path, array, key: np.savez(path, **{key: array}),
    ".pt": lambda path, array, key: save_torch(path, tensors({"": array})[""]),
    ".pth": lambda path, array, key: save_torch(path, tensors({key: array})),
    ".safetensors": lambda path, array, key: save_file({key: array}, path),
}


@pytest.mark.parametrize("ending", WRITE)
def test_features_and_labels_of_each_kind_of_file(ending):
    features, labels = Path(f"f{ending}"), Path(f"l{ending}")
    WRITE[ending](features, RAW, "image_features")
    WRITE[ending](labels, LABELS, "targets")
    taken, _ = imported(features, labels=labels)
    assert np.array_equal(taken.image_features, RAW)
    assert taken.image_features.dtype == np.float32
    assert taken.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_halves_of_torch(half):
    import torch
    from safetensors.torch import save_file as save_tensors

    save_tensors({"features": torch.tensor(RAW).to(getattr(torch, half))}, "f.safetensors")
    taken, _ = imported("f.safetensors")
    assert taken.image_features.dtype == ("float16" if half == "float16" else "float32")
    assert np.array_equal(taken.image_features, RAW)


@pytest.mark.parametrize("name", ["n.npy", "n.npz"])
def test_class_names_of_each_kind_of_file(name):
    np.save("n.npy", np.array([name.encode() for name in NAMES]))
    np.savez("n.npz", class_names=NAMES)
    np.save("f.npy", RAW)
    assert imported("f.npy", class_names=Path(name))[0].class_names == tuple(NAMES)


def test_all_of_one_file():
    np.savez("f.npz", **ARRAYS, class_names=NAMES)
    save_torch("f.pt", tensors(ARRAYS) | {"class_names": NAMES})
    for name in ("f.npz", "f.pt"):
        taken, _ = imported(name, overwrite=True)
        assert np.array_equal(taken.image_features, RAW)
        assert (taken.class_names, taken.labels.tolist()) == (tuple(NAMES), LABELS.tolist())
        assert np.array_equal(*(text.features for text in taken.texts.values()), TEXT)


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


WRONG = [
    ("f.csv", b"1,2", "f.csv is no file that can be read: must be one of .npz, .npy, .pt"),
    ("f.npy", b"", "cannot read f.npy"), ("f.npz", b"PK\3\4", "cannot read f.npz"),
    ("f.npy", npy(np.ones((4, 3))).replace(b"(4, 3)", b"(4, 9)"), "cannot read f.npy"),
    ("f.npz", zipped(("features.npy", b"no array"), ("../../escape.npy", b"")),
     "cannot read f.npz ('features' in it is no array)"),
    ("f.pt", b"PK\3\4", "cannot read f.pt"),
    ("f.safetensors", (2**62).to_bytes(8, "little") + b"{}", "cannot read f.safetensors"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "said"), WRONG, ids=[w[2][:50] for w in WRONG])
def test_files_that_are_not_what_they_should_be(name, content, said):
    Path(name).write_bytes(content)
    with refused(said, error=StoreError):
        read_arrays(Path(name))
    not_imported(features=name)


def test_a_list_of_tensors_one_that_repeats_itself_and_what_is_not_there():
    import torch

    save_torch("list.pt", [torch.tensor(RAW)])
    not_imported("list.pt", "it holds a list, must be a tensor or a dict", features="list.pt")
    save_torch("long.pt", torch.ones(1).expand(10**12, 8))
    not_imported("a tensor in it repeats itself", features="long.pt")
    not_imported("nothing.npz is no file", features="nothing.npz")


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pt"])
@pytest.mark.filterwarnings("ignore")  # numpy's and torch's on damaged headers
def test_damaged_files_are_imported_or_refused(suffix):
    path = Path(f"f{suffix}")
    if suffix == ".pt":
        save_torch(path, tensors({"features": RAW}) | {"class_names": NAMES})
    elif suffix == ".npy":
        np.save(path, RAW)
    else:
        np.savez(path, **ARRAYS, class_names=NAMES)
    content, generator = path.read_bytes(), np.random.default_rng(0)
    refusals = []
    for _ in range(100):
        path.write_bytes(damaged(content, generator, most=6))
        try:
            imported(path, overwrite=True)
        except StoreError as error:
            refusals.append(str(error))
    assert refusals
    assert not any("\n" in line for line in refusals)


# --- no code runs


class Malicious:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("code-has-run",)


def write_malicious(path, key):
    if path.suffix in (".pt", ".pth"):
        save_torch(path, {key: Malicious()})
    elif path.suffix == ".npy":
        np.save(path, np.array([Malicious()], object), allow_pickle=True)
    else:
        np.savez(path, **{key: np.array([Malicious()], object)})


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".npy", ".npz"])
@pytest.mark.parametrize("key", ["features", "labels", "class_names", "text_features"])
def test_malicious_files_never_run(suffix, key):
    path = Path(f"bad{suffix}")
    write_malicious(path, key)
    words = ("objects other than tensors", "Python objects in dtype", "Object arrays cannot")
    with pytest.raises(StoreError, match=f"cannot read bad.*({'|'.join(words)})"):
        read_arrays(path)
    assert not Path("code-has-run").exists()
