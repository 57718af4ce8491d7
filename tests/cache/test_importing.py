"""Features made elsewhere: every format, every refusal."""

import dataclasses
import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from made import PROMPT, damaged

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.imports import ImportPlan, import_features
from zsntta_cli.cli import cache
from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.sources import Library

RAW = np.array([[3, 4, 0], [0, 5, 12], [8, 0, 15], [1, 2, 2]], np.float32)  # norms 5, 13, 17, 3
LABELS = np.array([0, 1, 2, 1])
TEXT = np.array([[1, 0, 0], [0, 0.6, 0.8], [0, 1, 0]], np.float32)
NAMES = ["cat", "dog", "big_猫"]
ALL = {"features": RAW, "labels": LABELS, "text_features": TEXT, "class_names": np.array(NAMES)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def savez(path, **arrays):
    np.savez(path, **arrays)
    return Path(path)


def imported(**plan):
    """Import in the current folder and read what was written."""
    done = import_features(ImportPlan(**{"name": "pets"} | plan), Path("features"))
    return hdf5.read_features(done.path), " ".join(done.checked.notes)


def refused(*parts, error=StoreError, remedy="", **plan):
    """One line that says all of `parts`, and the word of what mends it; nothing is written."""
    before = {path: path.read_bytes() for path in Path("features").rglob("*.h5")}
    with pytest.raises(error) as info:
        imported(**plan)
    line = str(info.value)
    assert "\n" not in line
    assert info.value.remedy == remedy
    for part in parts:
        assert part in line
    assert {path: path.read_bytes() for path in Path("features").rglob("*.h5")} == before


def test_one_file_with_everything(folder):
    features, notes = imported(features=savez("all.npz", **ALL))
    assert features.path == Path("features/imported/pets.h5")
    assert np.array_equal(features.image_features, RAW)
    assert features.image_features.dtype == np.float32
    assert (features.labels.tolist(), features.class_names) == (LABELS.tolist(), tuple(NAMES))
    assert np.array_equal(features.text_features[PROMPT], TEXT)
    assert (features.kind, features.normalized) == ("dataset", False)
    assert "norms are 3 to 17: taken as raw features" in notes
    assert hdf5.read_sample_ids(features.path) == ("00000", "00001", "00002", "00003")
    assert features.source == {"images": 4, "imported": ["all.npz"]}


def test_an_import_can_be_classified(folder):
    """Cosines by hand: row 0 is 0.6 to cat, 0.48 to dog, 0.8 to big_猫."""
    features, _ = imported(features=savez("all.npz", **ALL), logit_scale=10)
    scores = zero_shot(
        features.image_features, features.text_features[PROMPT], features.identity["logit_scale"]
    )
    assert scores.class_index.tolist() == [2, 1, 1, 1]
    powers = np.exp([6, 4.8, 8])
    assert scores.noise_score[0] == pytest.approx(1 - powers[2] / powers.sum(), abs=1e-6)


@pytest.mark.parametrize(
    ("given", "stored"),
    [("float16", "float16"), ("float32", "float32"), ("float64", "float32"), (">f4", "float32"),
     (">f2", "float16")],
)  # fmt: skip
def test_precisions(folder, given, stored):
    np.save("f.npy", np.asfortranarray(RAW.astype(given)))
    features, _ = imported(features=Path("f.npy"))
    assert features.image_features.dtype == stored
    assert np.array_equal(features.image_features, RAW)


def test_features_alone_are_an_ood_set(folder):
    np.save("f.npy", RAW)
    features, notes = imported(features=Path("f.npy"))
    assert features.labels.tolist() == [-1] * 4
    assert (features.class_names, features.text_features) == ((), {})
    assert "can be an OOD set only" in notes


def write_labels(path):
    if path.suffix == ".npy":
        np.save(path, LABELS.astype(np.uint8))
    elif path.suffix == ".npz":
        np.savez(path, labels=LABELS)
    elif path.suffix == ".json":
        path.write_text(json.dumps(LABELS.tolist()))
    elif path.suffix == ".txt":
        path.write_bytes(b"\xef\xbb\xbf0\r\n1\r\n 2\r\n1\r\n\r\n")
    else:
        import torch

        torch.save(torch.tensor(LABELS), path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".json", ".txt", ".pt"])
def test_labels_from_each_kind_of_file(folder, suffix):
    path = Path(f"labels{suffix}")
    write_labels(path)
    np.save("f.npy", RAW)
    features, _ = imported(features=Path("f.npy"), labels=path)
    assert features.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("name", ["names.txt", "names.json", "names.npy", "names.npz"])
def test_class_names_from_each_kind_of_file(folder, name):
    Path("names.txt").write_text("\n".join(NAMES) + "\n\n", encoding="utf-8")
    Path("names.json").write_text(json.dumps(NAMES))
    np.save("names.npy", np.array([name.encode() for name in NAMES]))
    np.savez("names.npz", class_names=NAMES)
    features, _ = imported(features=savez("f.npz", features=RAW), class_names=Path(name))
    assert features.class_names == tuple(NAMES)


def test_names_of_the_text_file_come_before_those_of_the_features(folder):
    text = savez("text.npz", text_features=TEXT, class_names=["x", "y", "z"])
    features, _ = imported(features=savez("all.npz", **ALL), text=text)
    assert features.class_names == ("x", "y", "z")
    Path("names.txt").write_text("a\nb\nc")
    again, _ = imported(
        features=Path("all.npz"), text=text, class_names=Path("names.txt"), overwrite=True
    )
    assert again.class_names == ("a", "b", "c")


def test_text_without_names(folder):
    text = savez("text.npz", text_features=TEXT, class_names=np.empty(0))
    features, notes = imported(features=savez("f.npz", features=RAW, labels=LABELS), text=text)
    assert features.class_names == ("class 0", "class 1", "class 2")
    assert "called 'class 0' … 'class 2'" in notes
    assert np.array_equal(features.text_features[PROMPT], TEXT)


def test_text_of_another_norm_is_normalised_with_a_note(folder):
    _, silent = imported(features=savez("f.npz", features=RAW), text=savez("t.npz", **text(TEXT)))
    assert "brought" not in silent
    features, notes = imported(
        name="more", features=Path("f.npz"), text=savez("t.npz", **text(TEXT * [[2], [1], [5]]))
    )
    assert "norms are 1 to 5: brought to 1" in notes
    assert np.allclose(features.text_features[PROMPT], TEXT, atol=1e-7)


def text(array):
    return {"text_features": array}


def unit(precision):
    return (RAW / np.linalg.norm(RAW, axis=1, keepdims=True)).astype(precision)


@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_unit_norms_are_noticed(folder, precision):
    path = savez("f.npz", image_features=unit(precision))
    features, notes = imported(features=path)
    assert features.normalized
    assert "taken as normalised" in notes
    assert not imported(name="raw", features=path, normalized=False)[0].normalized
    assert imported(name="unit", features=path, normalized=True)[0].normalized


def test_torch_files(folder):
    import torch

    tensors = {key: torch.tensor(ALL[key]) for key in ("features", "labels", "text_features")}
    torch.save(tensors | {"class_names": NAMES, "epoch": 3}, "all.pt")
    features, _ = imported(features=Path("all.pt"))
    assert np.array_equal(features.image_features, RAW)
    assert (features.labels.tolist(), features.class_names) == (LABELS.tolist(), tuple(NAMES))
    torch.save(torch.tensor(RAW, requires_grad=True).bfloat16(), "bare.pth")
    bare, _ = imported(name="bare", features=Path("bare.pth"))
    assert np.array_equal(bare.image_features, RAW)
    torch.save([torch.tensor(RAW)], "list.pt")
    refused("list.pt", "it holds a list, must be a tensor or a dict", features=Path("list.pt"))


@pytest.mark.parametrize("inside", ["", "img_emb"])
def test_clip_retrieval_parts_in_numeric_order(folder, inside):
    parts = Path("out", inside)
    parts.mkdir(parents=True)
    rows = np.random.default_rng(0).standard_normal((24, 3)).astype(np.float16)
    for i, part in enumerate(np.array_split(rows, 12)):  # 10 comes after 9, not after 1
        np.save(parts / f"img_emb_{i}.npy", part)
    Path("out", "metadata").mkdir()
    Path("out", "metadata", "metadata_0.parquet").write_bytes(b"ignored")
    features, _ = imported(features=Path("out"))
    assert np.array_equal(features.image_features, rows)
    (parts / "img_emb_4.npy").unlink()
    refused("no img_emb_4.npy in out", name="gap", features=Path("out"))
    np.save(parts / "img_emb_4.npy", np.ones((2, 5)))
    refused("its parts have 3 and 5 dims", name="dims", features=Path("out"))


def test_noise_images(folder):
    features, _ = imported(
        name="noise-gaussian", features=savez("f.npz", features=RAW, labels=LABELS)
    )
    assert (features.kind, set(features.labels.tolist())) == ("noise", {-1})
    refused("has neither labels nor text", error=SettingsError, name="noise-poisson",
            features=Path("f.npz"), labels=Path("f.npz"))  # fmt: skip
    refused("one of: noise-gaussian", error=SettingsError, name="noise-pink",
            features=Path("f.npz"))  # fmt: skip


def test_sets_of_one_encoder_meet_whatever_their_precision(folder):
    imported(name="in", features=savez("f.npz", **ALL))
    imported(name="out", features=savez("g.npz", features=RAW.astype(np.float16)))
    imported(name="noise-gaussian", features=savez("h.npz", features=RAW.astype(np.float64)))
    settings = build_run("adand", "imported", "in", "out", PROMPT)
    assert Library(Path("features")).sources(settings).sizes == (4, 4, 4)


def test_a_folder_is_of_one_encoder(folder):
    imported(features=savez("f.npz", features=RAW))
    other = savez("g.npz", features=np.ones((2, 4)))
    refused("features/imported/pets.h5 is of another encoder (dims: 3, not 4)",
            remedy="other-encoder", name="more", features=other)  # fmt: skip
    refused("another encoder (logit_scale: 100.0, not 50)", remedy="other-encoder", name="more",
            features=Path("f.npz"), logit_scale=50)  # fmt: skip
    assert imported(name="more", features=other, encoder="mine")[0].identity["model"] == "mine"


def test_the_same_again_and_other_content(folder):
    path = savez("all.npz", **ALL)
    first, _ = imported(features=path)
    before = first.path.read_bytes()
    done = import_features(ImportPlan("pets", path), Path("features"))
    assert (done.written, first.path.read_bytes()) == (False, before)
    for key, array in ALL.items():
        changed = savez("changed.npz", **ALL | {key: array[::-1]})
        refused("pets.h5 holds other features", remedy="import-elsewhere", features=changed)
    again, _ = imported(features=changed, overwrite=True)
    assert again.class_names == tuple(NAMES[::-1])


def test_another_template_joins_the_same_features(folder):
    imported(features=savez("all.npz", **ALL))
    features, _ = imported(features=savez("more.npz", **ALL | text(TEXT[::-1])), prompt="art of {}")
    assert set(features.text_features) == {PROMPT, "art of {}"}
    assert np.array_equal(features.text_features["art of {}"], TEXT[::-1])
    assert np.array_equal(features.text_features[PROMPT], TEXT)


def changed(key, index, value):
    array = ALL[key].astype(np.float32)
    array[index] = value
    return {key: array}


@pytest.mark.parametrize(
    ("arrays", "parts"),
    [({"features": RAW[0]}, ["the features have the shape (3,), must be (N, D)"]),
     ({"features": RAW[None]}, ["the features have the shape (1, 4, 3)"]),
     ({"features": RAW[:0]}, ["the features have the shape (0, 3)", "not empty"]),
     ({"features": LABELS[:, None]}, ["the features are int64, must be float16"]),
     ({"features": RAW.astype(np.complex64)}, ["the features are complex64"]),
     ({"features": np.array([["a"]])}, ["the features are <U1"]),
     (changed("features", (2, 1), np.nan), ["the features of row 2 are not finite (1 of 4 rows)"]),
     (changed("features", (3, 1), np.inf), ["the features of row 3 are not finite"]),
     ({"features": RAW.astype(float) * 1e60}, ["the features of row 0 are not finite (4 of 4"]),
     (changed("features", 1, 0), ["the features of row 1 are zero"]),
     ({"labels": LABELS[:3]}, ["labels' shape is (3,), must be (4,)"]),
     ({"labels": np.tile(LABELS[:, None], 2)}, ["labels' shape is (4, 2), must be (4,)"]),
     ({"labels": LABELS.astype(float)}, ["the labels are float64, must be integers"]),
     ({"labels": LABELS == 1}, ["the labels are bool, must be integers"]),
     ({"labels": LABELS - 2}, ["a label is -2, must be 0 or more, or -1"]),
     ({"labels": LABELS + 1}, ["run from 1 to 3 for 3 class names", "counted from 1"]),
     ({"labels": LABELS + 2}, ["a label is 4, must be at most 2", "3 class names"]),
     ({"class_names": np.array(NAMES[:2]), "text_features": TEXT[:2]}, ["a label is 2, must be"]),
     ({"class_names": np.array(["a", "", "c"])}, ["class name 1 is ''"]),
     ({"class_names": np.array(["a", "b\0b", "c"])}, ["class name 1 is 'b\\x00b'"]),
     ({"class_names": np.array(["a", "\x1b[2J", "c"])}, ["class name 1 is '\\x1b[2J'"]),
     ({"class_names": np.array([NAMES])}, ["the class names are <U5 of shape (1, 3)"]),
     ({"class_names": np.arange(3)}, ["the class names are int64"]),
     ({"class_names": np.array(NAMES[:2])}, ["3 text features for 2 class names"]),
     ({"text_features": TEXT[:, :2]}, ["text features have 2 dims, the image features 3"]),
     ({"text_features": TEXT[0]}, ["text features have the shape (3,)"]),
     (changed("text_features", (1, 1), np.nan), ["the text features of row 1 are not finite"]),
     (changed("text_features", 2, 0), ["the text features of row 2 are zero"])],
)  # fmt: skip
def test_what_does_not_fit(folder, arrays, parts):
    refused("all.npz: ", *parts, features=savez("all.npz", **ALL | arrays))


@pytest.mark.parametrize(
    "name",
    [
        "cifar10-c:fog:1",
        "cifar100-c:all:5",
        "imagenet-c:snow:3",
    ],
)
def test_a_set_with_parameters_has_the_name_that_an_extraction_gives(folder, name):
    features, _ = imported(name=name, features=savez("all.npz", **ALL))
    assert features.path == Path(f"features/imported/{name}.h5")
    assert (features.name, list(features.text_features)) == (name, [PROMPT])


@pytest.mark.parametrize(
    ("name", "part"),
    [("cifar10-c:fog", "must be cifar10-c:CORRUPTION:SEVERITY"), ("cifar10-c:fog:6", "severity 1"),
     ("cifar10-c:frog:1", "must be cifar10-c:"), ("cifar10:fog:1", "is read as it is"),
     ("pets:a", "no data set"), ("cifar10-c:../x:1", "must be cifar10-c:"), (":fog:1", "no data"),
     ("noise-gaussian:fog:1", "no data set"), ("mine:fog:1", "no data set"),
     ("cifar10-c:", "must be cifar10-c:")],
)  # fmt: skip
def test_parameters_that_no_set_has(folder, name, part):
    refused(part, error=SettingsError, features=savez("all.npz", **ALL), name=name)


def test_labels_too_large_without_class_names(folder):
    path = savez("f.npz", features=RAW, labels=LABELS.astype(np.uint64) + 2**31)
    refused("a label is 2147483650, must be at most 2147483647.", features=path)


@pytest.mark.parametrize(
    ("plan", "part"),
    [({"logit_scale": 0}, "logit-scale is 0, must be above 0"),
     ({"logit_scale": -4.6}, "logit-scale is -4.6"), ({"logit_scale": np.inf}, "scale is inf"),
     ({"logit_scale": np.nan}, "scale is nan"), ({"name": "../pets"}, "name is '../pets'"),
     ({"name": ".pets"}, "name is '.pets'"), ({"encoder": "a/b"}, "encoder is 'a/b'"),
     ({"encoder": ""}, "encoder is ''"), ({"name": "n" * 101}, "must be up to 100 letters"),
     ({"prompt": "a photo"}, "prompt 'a photo' is neither")],
)  # fmt: skip
def test_options_out_of_range(folder, plan, part):
    refused(part, error=SettingsError, features=savez("all.npz", **ALL), **plan)


def test_normalized_against_the_norms(folder):
    refused("norms are 3 to 17, must be 1 of features that are said to be normalised", remedy="raw",
            features=savez("f.npz", features=RAW), normalized=True)  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "part"),
    [("0\n1\n2.0\n1", "line 3 is '2.0'"), ("0\ncat\n2\n1", "line 2 is 'cat'"), ("", "line 1 is ''"),
     ("9" * 30 + "\n1\n2\n1", "line 1 is '9999"), ("0\n1\n2", "must be (4,)")],
)  # fmt: skip
def test_label_lines(folder, lines, part):
    Path("labels.txt").write_text(lines)
    refused("labels.txt: ", part, features=savez("f.npz", features=RAW), labels=Path("labels.txt"))


def test_a_file_without_what_is_asked_of_it(folder):
    path = savez("f.npz", features=RAW)
    refused("f.npz holds 'features', must hold 'labels'", features=path, labels=path)
    refused("must hold 'text_features'", features=path, text=path)
    refused(". is no file that can be read", features=path, labels=Path("."))
    refused(". is no file that can be read", features=Path("."), labels=Path("."))
    refused("f.npz holds 'x', must hold 'features' or 'image_features'",
            features=savez("f.npz", x=RAW))  # fmt: skip


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pt"])
@pytest.mark.filterwarnings("ignore")  # numpy's and torch's on damaged headers
def test_damaged_files_are_imported_or_refused(folder, suffix):
    if suffix == ".pt":
        import torch

        torch.save({"features": torch.tensor(RAW), "class_names": NAMES}, "good.pt")
    elif suffix == ".npy":
        np.save("good.npy", RAW)
    else:
        savez("good.npz", **ALL)
    content = Path(f"good{suffix}").read_bytes()
    generator, path = np.random.default_rng(0), Path(f"bad{suffix}")
    refusals = []
    for _ in range(100):
        path.write_bytes(damaged(content, generator, most=6))
        try:
            imported(features=path, overwrite=True)
        except StoreError as error:
            refusals.append(str(error))
    assert refusals
    assert not any("\n" in line for line in refusals)


def test_defaults_of_the_command_line_are_the_plans(folder):
    options = inspect.signature(cache.import_).parameters
    for field in dataclasses.fields(ImportPlan):
        default = options[field.name].default
        required = default is inspect.Parameter.empty and field.default is dataclasses.MISSING
        assert required or default == field.default, field.name
