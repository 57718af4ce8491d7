"""Parquet, safetensors and exports of strangers: read as what they are, or refused in one line."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made import damaged
from safetensors.numpy import save_file

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.description import KEY
from zsntta_cli.cache.export import WRITERS, ExportPlan, export_features
from zsntta_cli.cache.features import Text
from zsntta_cli.cache.imports import ImportPlan, import_features
from zsntta_cli.errors import StoreError

RAW = np.array([[3, 4, 0], [0, 5, 12], [8, 0, 15], [1, 2, 2]], np.float32)
TEXT = np.array([[1, 0, 0], [0, 0.6, 0.8]], np.float32)
LABELS = np.array([0, 1, -1, 1], np.int32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def imported(path, name="pets", **plan):
    done = import_features(ImportPlan(name, Path(path), **plan), Path("back"))
    return hdf5.read_features(done.path), " ".join(done.checked.notes)


def refused(*parts, path, remedy="", **plan):
    with pytest.raises(StoreError) as info:
        imported(path, **plan)
    line = str(info.value)
    assert "\n" not in line
    assert all(part in line for part in parts), line
    assert info.value.remedy == remedy
    assert not [*Path("back").rglob("*.h5")]


def table(path="t.parquet", **columns):
    pq.write_table(pa.table(columns), path)
    return path


VECTORS = {
    "list<float>": pa.array(RAW.tolist(), pa.list_(pa.float32())),
    "list<double>": pa.array(RAW.tolist()),
    "list<half>": pa.array([row.astype(np.float16) for row in RAW], pa.list_(pa.float16())),
    "large": pa.array(RAW.tolist(), pa.large_list(pa.float32())),
    "fixed": pa.array(RAW.tolist(), pa.list_(pa.float32(), 3)),
}


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize("column", ["embedding", "image_features", "features"])
def test_a_parquet_of_lists(folder, vectors, column):
    path = table(
        id=pa.array(range(4)), **{column: VECTORS[vectors]}, label=pa.array([1, 0, None, 1])
    )
    features, _ = imported(path)
    assert np.array_equal(features.image_features, RAW)
    assert features.image_features.dtype == ("float16" if vectors == "list<half>" else "float32")
    assert features.labels.tolist() == [1, 0, -1, 1]
    assert features.source == {"images": 4, "imported": ["t.parquet"]}


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_labels_that_are_texts_become_numbers_of_names_in_order(folder, kind):
    labels = pa.array(["dog", "cat", None, "dog"]).cast(kind)
    path = table(embedding=VECTORS["fixed"], label=labels)
    features, _ = imported(path)
    assert (features.class_names, features.labels.tolist()) == (("cat", "dog"), [1, 0, -1, 1])
    Path("names.txt").write_text("dog\nbird\ncat\n")
    features, _ = imported(path, "named", class_names=Path("names.txt"))
    assert features.labels.tolist() == [0, 2, -1, 0]


def test_labels_that_are_texts_and_names_that_are_others(folder):
    path = table(embedding=VECTORS["fixed"], label=pa.array(["dog", "cat", "cow", "dog"]))
    Path("names.txt").write_text("dog\ncat\n")
    refused("the label 'cow' is 0 of the class names", path=path, class_names=Path("names.txt"))
    Path("names.txt").write_text("dog\ncat\ncow\ncat\n")
    refused("the label 'cat' is 2 of the class names", path=path, class_names=Path("names.txt"))


@pytest.mark.parametrize(
    ("columns", "parts"),
    [({"x": pa.array([1.0])}, ["holds 'x', must hold 'features'"]),
     ({"embedding": pa.array([1.0])}, ["must be lists of numbers"]),
     ({"embedding": pa.array([[1.0], [1.0, 2.0]])}, ["of several lengths"]),
     ({"embedding": pa.array([[1.0], None])}, ["missing in rows"]),
     ({"embedding": pa.array([[1.0], [None]])}, ["features of row 1 are not finite"]),
     ({"embedding": pa.array([["a"]])}, ["are object, must be float16"]),
     ({"embedding": pa.array([[[1.0]]])}, ["t.parquet"]),
     ({"embedding": pa.array([], pa.list_(pa.float32()))}, ["of 0 rows"]),
     ({"embedding": pa.array([[1.0]]), "label": pa.array([1.5])}, ["must be integers"]),
     ({"embedding": pa.array([[1.0]]), "label": pa.array([[1]])}, ["t.parquet"]),
     ({"embedding": pa.array([[1.0]]), "label": pa.array(["a\x1b[2J"])}, ["class name 0 is"])],
)  # fmt: skip
def test_parquet_that_does_not_fit(folder, columns, parts):
    refused(*parts, path=table(**columns))


def test_parquet_that_unpacks_to_far_more(folder):
    part = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2**20, np.float32)), 2**12)
    path = table(embedding=pa.chunked_array([part] * 17))
    assert Path(path).stat().st_size < 2**20
    refused("it would unpack to", path=path)


def test_parquet_without_the_extra(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    Path("t.parquet").write_bytes(b"PAR1")
    refused("t.parquet is Parquet", path="t.parquet", remedy="install-parquet")


def test_safetensors(folder):
    arrays = {"image_features": RAW, "labels": LABELS, "text_features": TEXT, "other": TEXT}
    save_file(arrays, "f.safetensors", {"class_names": '["a", "b"]', "license": "MIT"})
    features, _ = imported("f.safetensors")
    assert np.array_equal(features.image_features, RAW)
    assert (features.class_names, features.labels.tolist()) == (("a", "b"), LABELS.tolist())
    save_file({"x": RAW}, "x.safetensors")
    with pytest.raises(StoreError, match="holds 'x', must hold 'features'"):
        imported("x.safetensors", "more")


def test_safetensors_of_bfloat16(folder):
    import torch
    from safetensors.torch import save_file as save_tensors

    save_tensors({"features": torch.tensor(RAW).bfloat16()}, "f.safetensors")
    assert np.array_equal(imported("f.safetensors")[0].image_features, RAW)


@pytest.mark.parametrize(
    "head",
    [{"features": {"dtype": "F32", "shape": [2**40, 3], "data_offsets": [0, 3 * 2**42]}},
     {"features": {"dtype": "F32", "shape": [1, 3], "data_offsets": [0, 4]}},
     {"features": {"dtype": "F99", "shape": [1, 3], "data_offsets": [0, 12]}}, [], {}],
)  # fmt: skip
def test_safetensors_that_lie(folder, head):
    text = json.dumps(head).encode()
    Path("f.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 12)
    refused("f.safetensors", path="f.safetensors")
    Path("f.safetensors").write_bytes((2**62).to_bytes(8, "little") + text)
    refused("cannot read f.safetensors", path="f.safetensors")


# Exports of others, and those that say what cannot be.


def export(form, **values):
    path = Path("features/enc/pets.h5")
    path.parent.mkdir(parents=True, exist_ok=True)
    hdf5.write_features(
        path, name="pets",
        **{
            "kind": "dataset", "encoder": {"model": "M", "logit_scale": 50.0},
            "source": {"images": 4}, "blocks": [RAW], "labels": LABELS,
            "sample_ids": ["a", "b", "c", "d"], "class_names": ["cat", "dog"],
            "texts": [Text("a photo of a {}.", TEXT)],
        } | values,
    )  # fmt: skip
    return export_features(ExportPlan("pets", form, overwrite=True), Path("features")).path


def altered(**changes):
    """An export whose arrays are saved anew, with some of them changed, and its manifest."""
    with np.load(export("npz")) as archive:
        arrays = dict(archive)
    np.savez("altered.npz", **arrays | changes)
    return "altered.npz"


@pytest.mark.parametrize(
    ("change", "part"),
    [({"labels": LABELS[:3]}, "labels' shape is (3,), must be (4,)"),
     ({"labels": np.array(3)}, "labels' shape is ()"),
     ({"labels": LABELS + 1}, "a label is 2, must be at most 1"),
     ({"class_names": np.array(["dog"])}, "'text_features' is missing or of another shape"),
     ({"text_features": 2 * TEXT}, "have norms other than 1"),
     ({"sample_ids": np.array(["a"])}, "1 sample ids for 4 features")],
)  # fmt: skip
def test_an_export_whose_arrays_do_not_fit_is_refused(folder, change, part):
    refused("altered.npz", part, path=altered(**change))


def test_an_export_without_its_description_is_of_plain_arrays(folder):
    with np.load(export("npz")) as archive:
        np.savez("plain.npz", **{key: archive[key] for key in archive if key != KEY})
    features, _ = imported("plain.npz")
    assert (features.identity["model"], features.identity["logit_scale"]) == ("imported", 100)
    assert features.source == {"images": 4, "imported": ["plain.npz"]}
    assert hdf5.read_sample_ids(features.path)[0] == "00000"


def test_names_and_texts_of_other_files_come_before_those_of_an_export(folder):
    path = export("npz", texts=[Text("photos", TEXT, 3.0), Text("a photo of a {}.", TEXT[::-1])])
    Path("names.txt").write_text("Katze\nHund\n")
    features, _ = imported(path, class_names=Path("names.txt"))
    assert features.class_names == ("Katze", "Hund")
    assert {*features.text_features} == {"a photo of a {}.", "photos"}
    assert features.text_scales == {"photos": 3.0}
    np.savez("t.npz", text_features=TEXT[::-1])
    features, _ = imported(path, "other", encoder="other", text=Path("t.npz"))
    assert [*features.text_features] == ["a photo of a {}."]
    assert features.class_names == ("cat", "dog")
    Path("names.txt").write_text("cat\ndog\ncow\n")
    with pytest.raises(StoreError, match="'text_features' is missing or of another shape"):
        imported(path, "more", class_names=Path("names.txt"))


def test_the_same_arrays_saved_anew_are_an_export_still(folder):
    features, _ = imported(altered())
    assert features.identity["model"] == "M"
    own, _ = imported("altered.npz", "own", encoder="x", logit_scale=7.0)
    assert own.identity == {"model": "M", "logit_scale": 7.0}


def description(**changes):
    values = json.loads(str(np.load(export("npz"))[KEY]))
    return {KEY: np.array(json.dumps(values | changes))}


@pytest.mark.parametrize(
    ("changes", "part"),
    [({"format": 2}, "of no format that is known here"), ({"encoder": []}, "'encoder' in its"),
     ({"texts": [1]}, "cannot read"), ({"texts": [{"key": "k"}]}, "lacks its name"),
     ({"normalized": "yes"}, "'normalized'"),
     ({"encoder": {"logit_scale": -1}}, "its logit scale is -1"),
     ({"encoder": {"logit_scale": 1, "model": 3}}, "encoder's model is no text"),
     ({"normalized": True}, "must be 1 of features that are said to be normalised"),
     ({"texts": [{"key": "x", "template": "\ud800"}]}, "'\\ud800' is no text"),
     ({"texts": [{"key": "x", "template": "t"}]}, "'x' is missing"),
     ({"texts": [{"key": "x", "template": "t", "logit_scale": -1}]}, "logit scale of a template")],
)  # fmt: skip
def test_descriptions_that_cannot_be(folder, changes, part):
    remedy = "raw" if changes == {"normalized": True} else ""
    refused(part, path=altered(**description(**changes)), remedy=remedy)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "null", '{"format": 1}'])
def test_descriptions_that_are_none(folder, text):
    refused("altered.npz", path=altered(**{KEY: np.array(text)}))


def test_other_encoders_do_not_meet(folder):
    imported(export("npz"), "pets")
    np.save("f.npy", RAW)
    with pytest.raises(StoreError, match=r"is of another encoder \(model: M, not imported\)"):
        imported("f.npy", "more", logit_scale=50.0)


def test_a_folder_of_parts_and_one_part_twice(folder):
    Path("out/img_emb").mkdir(parents=True)
    for name in ("img_emb_0", "img_emb_00"):
        np.save(f"out/img_emb/{name}.npy", RAW)
    refused("are the same part", path="out")


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.filterwarnings("ignore")  # NumPy's and torch's on damaged headers
def test_damaged_exports_are_imported_or_refused(folder, form):
    path = export(form)
    generator, refusals = np.random.default_rng(0), []
    content = path.read_bytes()
    for _ in range(40):
        path.write_bytes(damaged(content, generator, most=6))
        try:
            imported(path, overwrite=True)
        except StoreError as error:
            refusals.append(str(error))
    assert refusals
    assert not any("\n" in line for line in refusals)


def test_a_zip_that_unpacks_to_far_more(folder):
    with zipfile.ZipFile("b.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("features.npy", bytes(2**26 + 2**20))
    refused("it would unpack to", path="b.npz")


@pytest.mark.parametrize(("key", "text"), [("class_names", "\ud800"), ("sample_ids", "x" * 5000)])
def test_names_that_no_feature_file_holds(folder, key, text):
    texts = {"class_names": ["cat", "dog"], "sample_ids": ["a", "b", "c", "d"]}
    texts[key][0] = text
    arrays = {name: np.array(values) for name, values in texts.items()}
    refused("must be a name of up to 4,096 bytes", path=altered(**arrays))


def test_torch_with_keys_that_are_no_texts(folder):
    import torch

    torch.save({"features": torch.tensor(RAW), 3: "three"}, "f.pt")
    assert np.array_equal(imported("f.pt")[0].image_features, RAW)
