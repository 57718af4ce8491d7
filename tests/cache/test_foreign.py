"""Foreign files: each form is read, what is none is refused in a line, and no file's code runs."""

import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from feature_files import imported, not_imported, write_pets
from made import damaged, refused
from safetensors.numpy import save_file

from zsntta_cli.cache import import_readers
from zsntta_cli.errors import StoreError

RAW = np.array([[3, 4, 0], [0, 5, 12], [8, 0, 15], [1, 2, 2]], np.float32)
TEXT = np.array([[1, 0, 0], [0, 0.6, 0.8]], np.float32)
LABELS = np.array([0, 1, -1, 1], np.int32)
NAMES = ["cat", "big_猫"]
MANY = np.vstack([RAW * i for i in range(1, 7)])  # no two rows alike

pytestmark = pytest.mark.usefixtures("folder")


def table(path="f.parquet", **columns):
    pq.write_table(pa.table(columns), path)
    return path


def torch_file(path, value):
    import torch

    torch.save(value(torch), path)


def hdf5_file(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name.replace("_in_", "/")] = array


def parts_in(folder, count=12):
    """As clip-retrieval writes them: 10 comes after 9, not after 1."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path("metadata").mkdir()
    Path("metadata/metadata_0.parquet").write_bytes(b"ignored")
    for i, part in enumerate(np.array_split(MANY, count)):
        np.save(f"{folder}/img_emb_{i}.npy", part)


VECTORS = {
    "list<float>": pa.array(RAW.tolist(), pa.list_(pa.float32())),
    "list<double>": pa.array(RAW.tolist()),
    "list<half>": pa.array([row.astype(np.float16) for row in RAW], pa.list_(pa.float16())),
    "large": pa.array(RAW.tolist(), pa.large_list(pa.float32())),
    "fixed": pa.array(RAW.tolist(), pa.list_(pa.float32(), 3)),
}
FORMS = {  # what writes the same features, and what is asked for
    "npz": (lambda: np.savez("f.npz", features=RAW, epoch=3), "f.npz"),
    "npy": (lambda: np.save("f.npy", RAW), "f.npy"),
    "pt": (lambda: torch_file("f.pt", lambda t: {"features": t.tensor(RAW), 3: "three"}), "f.pt"),
    "pth, bare, of bfloat16": (
        lambda: torch_file("f.pth", lambda t: t.tensor(RAW, requires_grad=True).bfloat16()),
        "f.pth",
    ),
    "safetensors": (lambda: save_file({"image_features": RAW}, "f.safetensors"), "f.safetensors"),
    "h5": (lambda: hdf5_file("f.h5", deep_in_x=RAW, names=["a"]), "f.h5:deep/x"),
    "parts": (lambda: parts_in("."), "."),
    "parts in a folder": (lambda: parts_in("img_emb"), "."),
    **{
        f"parquet, {kind}": (
            lambda column=column, vectors=vectors: table(**{column: vectors}), "f.parquet"
        )
        for column, (kind, vectors) in zip(
            ("embedding", "image_features", "features") * 2, VECTORS.items(), strict=False
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_features_of_each_form(form):
    write, path = FORMS[form]
    write()
    features, _ = imported(path)
    expected = MANY if "parts" in form else RAW
    assert np.array_equal(features.image_features, expected)
    is_half = form == "parquet, list<half>"
    assert features.image_features.dtype == ("float16" if is_half else "float32")


def test_bfloat16_in_safetensors_and_a_feature_file():
    import torch
    from safetensors.torch import save_file as save_tensors

    save_tensors({"features": torch.tensor(RAW).bfloat16()}, "f.safetensors")
    assert np.array_equal(imported("f.safetensors")[0].image_features, RAW)
    write_pets(Path("features/my/own.h5"))
    copy, notes = imported("features/my/own.h5", "copy", root="back")
    assert copy.identity == {"model": "m", "logit_scale": 100.0}
    assert "own.h5 says that its features are of m" in notes


LABELLED = {
    "l.npy": lambda path: np.save(path, LABELS.astype(np.int8)),
    "l.npz": lambda path: np.savez(path, labels=LABELS),
    "l.json": lambda path: path.write_text(json.dumps(LABELS.tolist())),
    "l.txt": lambda path: path.write_bytes(b"\xef\xbb\xbf0\r\n1\r\n -1\r\n1\r\n\r\n"),
    "l.pt": lambda path: torch_file(path, lambda torch: torch.tensor(LABELS)),
    "l.parquet": lambda path: table(path, label=pa.array([0, 1, None, 1])),
    "l.h5:y": lambda path: hdf5_file("l.h5", y=LABELS),
    "l.safetensors": lambda path: save_file({"labels": LABELS}, path),
}


@pytest.mark.parametrize("name", LABELLED)
def test_labels_from_each_kind_of_file(name):
    LABELLED[name](Path(name))
    np.save("f.npy", RAW)
    assert imported("f.npy", labels=Path(name))[0].labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("name", ["n.txt", "n.json", "n.npy", "n.npz"])
def test_class_names_from_each_kind_of_file(name):
    Path("n.txt").write_text("\n".join(NAMES) + "\n\n", encoding="utf-8")
    Path("n.json").write_text(json.dumps(NAMES))
    np.save("n.npy", np.array([name.encode() for name in NAMES]))
    np.savez("n.npz", class_names=NAMES)
    np.save("f.npy", RAW)
    assert imported("f.npy", class_names=Path(name))[0].class_names == tuple(NAMES)


def test_all_of_one_file():
    arrays = {"features": RAW, "labels": LABELS, "text_features": TEXT}
    save_file(arrays, "f.safetensors", {"class_names": json.dumps(NAMES), "license": "MIT"})
    torch_file("f.pt", lambda torch: {
        **{key: torch.tensor(array) for key, array in arrays.items()}, "class_names": NAMES,
    })  # fmt: skip
    for name in ("f.safetensors", "f.pt"):
        features, _ = imported(name, overwrite=True)
        assert np.array_equal(features.image_features, RAW)
        assert (features.class_names, features.labels.tolist()) == (tuple(NAMES), LABELS.tolist())
        assert np.array_equal(*(features.text_features.values()), TEXT)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_labels_that_are_texts_become_numbers_of_names_in_order(kind):
    labels = pa.array(["dog", "cat", None, "dog"]).cast(kind)
    path = table(embedding=VECTORS["fixed"], label=labels)
    features, _ = imported(path)
    assert (features.class_names, features.labels.tolist()) == (("cat", "dog"), [1, 0, -1, 1])
    Path("names.txt").write_text("dog\nbird\ncat\n")
    features, _ = imported(path, "named", class_names=Path("names.txt"))
    assert features.labels.tolist() == [0, 2, -1, 0]


@pytest.mark.parametrize(
    ("names", "said"),
    [("dog\ncat\n", "the label 'cow' is 0 of the class names"),
     ("dog\ncat\ncow\ncat\n", "the label 'cat' is 2 of the class names")],
)  # fmt: skip
def test_labels_that_are_texts_and_names_that_are_others(names, said):
    path = table(embedding=VECTORS["fixed"], label=pa.array(["dog", "cat", "cow", "dog"]))
    Path("names.txt").write_text(names)
    not_imported(said, features=path, class_names=Path("names.txt"))


def test_arrays_in_hdf5_are_offered_by_name():
    hdf5_file("f.h5", deep_in_embeddings=RAW, y=LABELS, names=["a", "b"])
    not_imported("name a data set in it, as f.h5:deep/embeddings.", features="f.h5")
    not_imported("'x' is no data set of it: it has deep/embeddings, y", features="f.h5:x")


def test_known_arrays_alone_are_looked_at_and_a_npy_is_not_read_as_a_whole():
    np.savez("f.npz", features=np.eye(2), config=np.array([{}], object))
    content = import_readers.read(Path("f.npz"))
    picked = import_readers.pick(content, import_readers.FEATURES, Path("f.npz"))
    assert np.array_equal(picked, np.eye(2))
    assert content["config"] is None
    np.save("f.npy", np.eye(3))
    (array,) = import_readers.read(Path("f.npy")).values()
    assert isinstance(array, np.memmap)


# --- what is none


def tensors(head, content=b"\0" * 12):
    text = json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + content


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
    ("f.npz", zipped(("features.npy", bytes(2**26 + 2**20))), "it would unpack to"),
    ("f.pt", b"PK\3\4", "not a file as torch.save has written it"),
    ("f.json", b'{"0": "cat"}', "it holds a dict, must be a list"),
    ("f.json", b"[" * 100_000, "cannot read f.json"),
    ("f.json", b"[[1], [1, 2]]", "cannot read f.json"),
    ("f.txt", b"caf\xe9\n", "cannot read f.txt"), ("f.h5", b"no HDF5", "f.h5"),
    ("f.safetensors", (2**62).to_bytes(8, "little") + b"{}", "cannot read f.safetensors"),
    *(("f.safetensors", tensors(head), "f.safetensors") for head in (
        {"features": {"dtype": "F32", "shape": [2**40, 3], "data_offsets": [0, 3 * 2**42]}},
        {"features": {"dtype": "F32", "shape": [1, 3], "data_offsets": [0, 4]}},
        {"features": {"dtype": "F99", "shape": [1, 3], "data_offsets": [0, 12]}}, [], {},
    )),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "said"), WRONG, ids=[w[2][:50] for w in WRONG])
def test_files_that_are_not_what_they_should_be(name, content, said):
    Path(name).write_bytes(content)
    with refused(said, error=StoreError):
        import_readers.read(Path(name))
    not_imported(features=name)


@pytest.mark.parametrize(
    ("columns", "said"),
    [({"x": pa.array([1.0])}, "holds 'x', must hold 'features'"),
     ({"embedding": pa.array([1.0])}, "must be lists of numbers"),
     ({"embedding": pa.array([[1.0], [1.0, 2.0]])}, "of several lengths"),
     ({"embedding": pa.array([[1.0], None])}, "missing in rows"),
     ({"embedding": pa.array([[1.0], [None]])}, "features of row 1 are not finite"),
     ({"embedding": pa.array([["a"]])}, "are object, must be float16"),
     ({"embedding": pa.array([[[1.0]]])}, "f.parquet"),
     ({"embedding": pa.array([], pa.list_(pa.float32()))}, "of 0 rows"),
     ({"embedding": pa.array([[1.0]]), "label": pa.array([1.5])}, "must be integers"),
     ({"embedding": pa.array([[1.0]]), "label": pa.array([[1]])}, "f.parquet"),
     ({"embedding": pa.array([[1.0]]), "label": pa.array(["a\x1b[2J"])}, "class name 0 is")],
)  # fmt: skip
def test_parquet_that_does_not_fit(columns, said):
    not_imported(said, features=table(**columns))


def test_parquet_that_unpacks_to_far_more():
    part = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2**20, np.float32)), 2**12)
    path = table(embedding=pa.chunked_array([part] * 17))
    assert Path(path).stat().st_size < 2**20
    not_imported("it would unpack to", features=path)


def test_parquet_without_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    Path("t.parquet").write_bytes(b"PAR1")
    not_imported("t.parquet is Parquet", features="t.parquet", remedy="install-parquet")


def test_a_list_of_tensors_and_what_is_not_there():
    torch_file("list.pt", lambda torch: [torch.tensor(RAW)])
    not_imported("list.pt", "it holds a list, must be a tensor or a dict", features="list.pt")
    not_imported("nothing.npz is no file", features="nothing.npz")


def test_parts_that_lack_repeat_or_differ():
    not_imported("no img_emb_0", features=".")
    parts_in("out")
    Path("out/img_emb_4.npy").unlink()
    not_imported("no img_emb_4.npy in out", features="out")
    np.save("out/img_emb_4.npy", np.ones((2, 5)))
    not_imported("its parts have 3 and 5 dims", features="out")
    np.save("out/img_emb_00.npy", RAW)
    not_imported("are the same part", features="out")


@pytest.mark.parametrize(
    ("lines", "said"),
    [("0\n1\n2.0\n1", "line 3 is '2.0'"), ("0\ncat\n2\n1", "line 2 is 'cat'"), ("", "line 1 is ''"),
     ("9" * 30 + "\n1\n2\n1", "line 1 is '9999"), ("0\n1\n2", "must be (4,)")],
)  # fmt: skip
def test_label_lines(lines, said):
    Path("labels.txt").write_text(lines)
    np.save("f.npy", RAW)
    not_imported("labels.txt: ", said, features="f.npy", labels=Path("labels.txt"))


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pt"])
@pytest.mark.filterwarnings("ignore")  # numpy's and torch's on damaged headers
def test_damaged_files_are_imported_or_refused(suffix):
    path = Path(f"f{suffix}")
    if suffix == ".pt":
        torch_file(path, lambda torch: {"features": torch.tensor(RAW), "class_names": NAMES})
    elif suffix == ".npy":
        np.save(path, RAW)
    else:
        np.savez(path, features=RAW, labels=LABELS, text_features=TEXT, class_names=NAMES)
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
        torch_file(path, lambda _: {key: Malicious()})
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
        import_readers.read(path)
    assert not Path("code-has-run").exists()


@pytest.mark.parametrize("suffix", [".pt", ".npy", ".npz"])
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_bare_pickles_never_run(suffix, protocol):
    path = Path(f"bad{suffix}")
    path.write_bytes(pickle.dumps(Malicious(), protocol=protocol))
    with refused("cannot read bad", error=StoreError):
        import_readers.read(path)
    assert not Path("code-has-run").exists()
