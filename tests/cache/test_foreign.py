"""Readers of foreign files: what is no array is refused in one line, and no file's code runs."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from zsntta_cli.cache import import_readers
from zsntta_cli.errors import StoreError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(part, path):
    with pytest.raises(StoreError) as info:
        import_readers.read(path)
    assert "\n" not in str(info.value)
    assert part in str(info.value)


def test_only_known_arrays_are_looked_at(folder):
    np.savez("f.npz", features=np.eye(2), config=np.array([{}], object))
    content = import_readers.read(Path("f.npz"))
    assert np.array_equal(
        import_readers.pick(content, import_readers.FEATURES, Path("f.npz")), np.eye(2)
    )
    assert content["config"] is None


def test_a_npy_file_is_not_read_as_a_whole(folder):
    np.save("f.npy", np.eye(3))
    (array,) = import_readers.read(Path("f.npy")).values()
    assert isinstance(array, np.memmap)


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [("f.csv", b"1,2", "f.csv is no file that can be read: must be one of .npz, .npy, .pt"),
     ("f.npy", b"", "cannot read f.npy"), ("f.npz", b"PK\3\4", "cannot read f.npz"),
     ("f.pt", b"PK\3\4", "not a file as torch.save has written it"),
     ("f.json", b'{"0": "cat"}', "it holds a dict, must be a list"),
     ("f.json", b"[" * 100_000, "cannot read f.json"),
     ("f.json", b'[[1], [1, 2]]', "cannot read f.json"),
     ("f.txt", b"caf\xe9\n", "cannot read f.txt")],
)  # fmt: skip
def test_files_that_are_not_what_they_should_be(folder, name, content, part):
    Path(name).write_bytes(content)
    refused(part, Path(name))


def test_missing_files_and_folders_without_parts(folder):
    refused("nothing.npz is no file", Path("nothing.npz"))
    with pytest.raises(StoreError, match="no img_emb_0"):
        import_readers.read_parts(folder)


def test_arrays_that_are_none(folder):
    with zipfile.ZipFile("f.npz", "w") as archive:
        archive.writestr("features.npy", b"no array")
        archive.writestr("../../escape.npy", b"")
    refused("cannot read f.npz ('features' in it is no array)", Path("f.npz"))
    content = io.BytesIO()
    np.save(content, np.ones((4, 3)))
    header = content.getvalue().replace(b"(4, 3)", b"(4, 9)")
    Path("f.npy").write_bytes(header)
    refused("cannot read f.npy", Path("f.npy"))


class Malicious:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("code-has-run",)


def write_malicious(path, key):
    if path.suffix in (".pt", ".pth"):
        import torch

        torch.save({key: Malicious()}, path)
    elif path.suffix == ".npy":
        np.save(path, np.array([Malicious()], object), allow_pickle=True)
    elif path.suffix == ".npz":
        np.savez(path, **{key: np.array([Malicious()], object)})
    else:
        path.with_suffix(".npy").write_bytes(pickle.dumps(Malicious()))


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".npy", ".npz"])
@pytest.mark.parametrize("key", ["features", "labels", "class_names", "text_features"])
def test_malicious_files_never_run(folder, suffix, key):
    path = Path(f"bad{suffix}")
    write_malicious(path, key)
    words = ("objects other than tensors", "Python objects in dtype", "Object arrays cannot")
    with pytest.raises(StoreError, match=f"cannot read bad.*({'|'.join(words)})"):
        import_readers.read(path)
    assert not Path("code-has-run").exists()


@pytest.mark.parametrize("suffix", [".pt", ".npy", ".npz"])
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_bare_pickles_never_run(folder, suffix, protocol):
    path = Path(f"bad{suffix}")
    path.write_bytes(pickle.dumps(Malicious(), protocol=protocol))
    refused("cannot read bad", path)
    assert not Path("code-has-run").exists()
