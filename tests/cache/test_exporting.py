"""What is exported comes back to the bit, in every form; what a stranger made of it, or a line."""

import json
from pathlib import Path

import numpy as np
import pytest
from feature_files import imported, not_imported
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made import damaged, refused

from zsntta_cli.cache import export, hdf5
from zsntta_cli.cache.description import KEY
from zsntta_cli.cache.export import WRITERS, ExportPlan, export_features
from zsntta_cli.cache.features import Text
from zsntta_cli.cache.verify import problems
from zsntta_cli.errors import SettingsError, StoreError

FORMS = [*WRITERS]
IDENTITY = {
    "model": "ViT-B-32", "pretrained": "openai", "weights_sha256": "40" * 32, "quick_gelu": True,
    "precision": "fp16", "image_size": 224, "preprocessing": {"size": [224, 224]},
    "logit_scale": 100.00000762939453, "versions": {"torch": "2.6.0"},
}  # fmt: skip
SOURCE = {"dataset": "pets", "digest": "ab" * 32, "skipped": ["bad.jpg"]}
PLACES = {"model": "local-dir:/home/me/clip", "pretrained": "/home/me/w.pt"}
PROMPTS = ("a photo of a {}.", "art of a {} | a {}")


@pytest.fixture(autouse=True)
def small_blocks(folder, monkeypatch):
    monkeypatch.setattr(export, "_BLOCK", 4)


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
    hdf5.write_features(path, name=name, **values | changes)
    return hdf5.read_features(path)


def exported(form, name="pets", **plan):
    return export_features(ExportPlan(name, form, **plan), Path("features")).path


def back_from(there, name="pets", root="back", **plan):
    return imported(there, name, root, encoder="enc", **plan)[0]


def everything(features):
    """All that a feature file holds, as values that can be compared to the bit."""
    rows = features.image_features
    return {
        "rows": (rows.dtype.name, rows.shape, rows.tobytes()), "digest": features.digest,
        "labels": features.labels.tolist(), "ids": hdf5.read_sample_ids(features.path),
        "names": features.class_names, "encoder": features.identity,
        "texts": {t: text.tobytes() for t, text in features.text_features.items()},
        "scales": features.text_scales, "normalized": features.normalized, "kind": features.kind,
        "name": features.name,
    }  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_round_trip_is_equal_to_the_bit(form):
    whole = made(count=21, prompts={PROMPTS[0]: None, PROMPTS[1]: None, "photos": 12.5})
    there = exported(form)
    features, notes = imported(there, root="back", encoder="enc")
    assert everything(features) == everything(whole)
    assert problems(features.path) == []
    assert features.source == {"images": 21, "imported": [there.name]}
    assert f"{there.name} says that its features are of ViT-B-32" in notes


def test_a_feature_file_can_be_imported():
    whole = made(count=21, prompts={PROMPTS[0]: None, "photos": 12.5})
    assert everything(back_from(whole.path)) == everything(whole)


ODD = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from("\udc80\udcff, \"'\\\n"),
    max_size=8,
)


@st.composite
def feature_files(draw):
    """What a feature file may hold."""
    count, dim, classes = (draw(st.integers(1, most)) for most in (20, 5, 3))
    is_noise = draw(st.booleans())
    dtype = draw(st.sampled_from([np.float16, np.float32]))
    normalized = draw(st.booleans())
    rows = np.random.default_rng(draw(st.integers(0, 9))).standard_normal((count, dim)) + 0.1
    rows = unit(rows) if normalized else rows
    names = () if is_noise else draw(st.lists(ODD, min_size=classes, max_size=classes))
    bias = draw(st.sampled_from([None, -13.25]))
    return {
        "count": count, "dim": dim, "kind": "noise" if is_noise else "dataset",
        "name": "noise-gaussian" if is_noise else "pets", "class_names": tuple(names),
        "blocks": [rows.astype(dtype)], "normalized": normalized,
        "labels": np.array(draw(st.lists(
            st.integers(-1, len(names) - 1), min_size=count, max_size=count)), np.int32),
        "sample_ids": draw(st.lists(ODD, min_size=count, max_size=count)),
        "prompts": {} if is_noise else draw(
            st.dictionaries(ODD, st.none() | st.floats(0.1, 1e5), max_size=3)),
        "encoder": {**IDENTITY, "logit_bias": bias} if bias else IDENTITY,
    }  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=12, deadline=None, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(feature_files())
def test_any_feature_file_comes_back_to_the_bit(folder, form, values):
    whole = made(**values)
    there = exported(form, values["name"], overwrite=True)
    back = back_from(there, values["name"], values["name"], overwrite=True, as_is=True)
    assert everything(back) == everything(whole)


@pytest.mark.parametrize("form", FORMS)
def test_ids_may_stay_at_home(form):
    whole = made(count=9)
    there = exported(form, without_ids=True)
    assert b"4.jpg" not in there.read_bytes()
    assert b"bad.jpg" not in there.read_bytes()
    numbers = {"ids": tuple(f"{i:05d}" for i in range(9))}
    assert everything(back_from(there)) == everything(whole) | numbers


@pytest.mark.parametrize("form", FORMS)
def test_templates_are_chosen_on_the_way_out_and_in(form):
    whole = everything(made(prompts={PROMPTS[0]: None, PROMPTS[1]: None, "photos": 2.5}))
    there = exported(form, prompts=["photos", "code"])
    back = everything(back_from(there))
    assert back["texts"] == {t: whole["texts"][t] for t in ("photos", PROMPTS[0])}
    assert back["scales"] == {"photos": 2.5}
    alone = everything(back_from(there, prompt="code", root="alone"))
    assert alone["texts"] == {PROMPTS[0]: whole["texts"][PROMPTS[0]]}
    not_imported("has text features of ", "choose with --prompt", features=there, encoder="enc",
                 root="none", prompt="my {}")  # fmt: skip
    with refused("no text features of 'my {}', it has 'art of a {} | a {}'", error=StoreError):
        exported(form, overwrite=True, prompts=["my {}"])


def test_paths_of_the_encoder_stay_at_home_and_those_of_ids_are_noted():
    made(count=2, encoder={**IDENTITY, **PLACES}, sample_ids=["/home/me/a.jpg", "b.jpg"])
    done = export_features(ExportPlan("pets", "npz"), Path("features"))
    assert "('/home/me/a.jpg'): --without-ids" in done.notes[0]
    back = back_from(done.path)
    assert (back.identity["model"], back.identity["pretrained"]) == ("local-dir:clip", "w.pt")


@pytest.mark.parametrize("form", FORMS)
def test_what_is_there_is_replaced_on_demand_alone(folder, form):
    made()
    there = exported(form)
    size = len([*folder.rglob("*")])
    with refused("is there already", error=StoreError, remedy="overwrite-output"):
        exported(form)
    made(count=3)
    assert exported(form, overwrite=True) == there
    assert len(back_from(there)) == 3
    assert len([*folder.rglob("*")]) == size + 4, "the import's folder, file and lock alone"


@pytest.mark.parametrize("form", FORMS)
def test_a_failing_write_leaves_what_was_there(folder, form):
    """A row that is not what its digest says, found at the end of the second block."""
    made(count=7)
    there = exported(form)
    before = outside_features(folder)
    whole = made(count=7, dtype=np.float32)
    content, rows = whole.path.read_bytes(), whole.image_features
    assert content.count(rows[6].tobytes()) == 1
    whole.path.write_bytes(content.replace(rows[6].tobytes(), rows[5].tobytes()))
    with refused("its content does not match its digest", error=StoreError):
        exported(form, overwrite=True)
    assert outside_features(folder) == before
    assert there.exists()


def outside_features(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if "features" not in path.parts}


def test_what_cannot_be_exported():
    made()
    with refused("form", error=SettingsError):
        exported("xlsx")
    Path("features/more").mkdir()
    Path("features/more/pets.h5").write_bytes(Path("features/enc/pets.h5").read_bytes())
    assert exported("npz", encoder="more").name == "pets.npz"
    made("words-x", kind="words", count=0, labels=np.empty(0, np.int32), sample_ids=[])
    for name, said in (
        ("pets", "'pets' is cached of enc, more: choose one with --encoder"),
        ("dogs", "no features of"),
        ("words-x", "has no images, so there is nothing to export"),
    ):
        with refused(said, error=StoreError):
            exported("npz", name)


# --- exports of strangers, and those that say what cannot be


RAW = np.array([[3, 4, 0], [0, 5, 12], [8, 0, 15], [1, 2, 2]], np.float32)
TEXT = np.array([[1, 0, 0], [0, 0.6, 0.8]], np.float32)
LABELS = np.array([0, 1, -1, 1], np.int32)


def small(form="npz", **changes):
    """An export of four images of an encoder M."""
    values = {
        "count": 4, "encoder": {"model": "M", "logit_scale": 50.0}, "source": {"images": 4},
        "blocks": [RAW], "labels": LABELS, "sample_ids": ["a", "b", "c", "d"],
        "texts": [Text(PROMPTS[0], TEXT)],
    }  # fmt: skip
    made(**values | changes)
    return exported(form, overwrite=True)


def altered(**changes):
    """An export whose arrays are saved anew, with some of them changed, and its description."""
    with np.load(small()) as archive:
        arrays = dict(archive)
    np.savez("altered.npz", **arrays | changes)
    return "altered.npz"


def description(**changes):
    values = json.loads(str(np.load(small())[KEY]))
    return {KEY: np.array(json.dumps(values | changes))}


def test_the_same_arrays_saved_anew_are_an_export_still():
    features, _ = imported(altered(), root="back")
    assert features.identity["model"] == "M"
    own, _ = imported("altered.npz", "own", root="back", encoder="x", logit_scale=7.0)
    assert own.identity == {"model": "M", "logit_scale": 7.0}
    np.save("f.npy", RAW)
    not_imported("is of another encoder (model: M, not imported)", features="f.npy", name="more",
                 root="back", logit_scale=50.0, remedy="other-encoder")  # fmt: skip


def test_an_export_without_its_description_is_of_plain_arrays():
    with np.load(small()) as archive:
        np.savez("plain.npz", **{key: archive[key] for key in archive if key != KEY})
    features, _ = imported("plain.npz", root="back")
    assert (features.identity["model"], features.identity["logit_scale"]) == ("imported", 100)
    assert features.source == {"images": 4, "imported": ["plain.npz"]}
    assert hdf5.read_sample_ids(features.path)[0] == "00000"


def test_names_and_texts_of_other_files_come_before_those_of_an_export():
    path = small(texts=[Text("photos", TEXT, 3.0), Text(PROMPTS[0], TEXT[::-1])])
    Path("names.txt").write_text("Katze\nHund\n")
    features, _ = imported(path, root="back", class_names=Path("names.txt"))
    assert features.class_names == ("Katze", "Hund")
    assert {*features.text_features} == {PROMPTS[0], "photos"}
    assert features.text_scales == {"photos": 3.0}
    np.savez("t.npz", text_features=TEXT[::-1])
    features, _ = imported(path, "other", root="back", encoder="other", text=Path("t.npz"))
    assert [*features.text_features] == [PROMPTS[0]]
    assert features.class_names == ("cat", "dog")
    Path("names.txt").write_text("cat\ndog\ncow\n")
    not_imported("'text_features' is missing or of another shape", features=path, name="more",
                 root="back", class_names=Path("names.txt"))  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [({"labels": LABELS[:3]}, "labels' shape is (3,), must be (4,)"),
     ({"labels": np.array(3)}, "labels' shape is ()"),
     ({"labels": LABELS + 1}, "a label is 2, must be at most 1"),
     ({"class_names": np.array(["dog"])}, "'text_features' is missing or of another shape"),
     ({"class_names": np.array(["\ud800", "dog"])}, "must be a name of up to 4,096 bytes"),
     ({"text_features": 2 * TEXT}, "have norms other than 1"),
     ({"sample_ids": np.array(["a"])}, "1 sample ids for 4 features"),
     ({"sample_ids": np.array(["x" * 5000, "b", "c", "d"])}, "must be a name of up to 4,096"),
     *(({KEY: np.array(text)}, "")
       for text in ("", "[]", "{", "[" * 100_000, "null", '{"format": 1}'))],
)  # fmt: skip
def test_an_export_whose_arrays_do_not_fit_is_refused(change, said):
    not_imported("altered.npz", said, features=altered(**change))


@pytest.mark.parametrize(
    ("changes", "said"),
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
def test_descriptions_that_cannot_be(changes, said):
    remedy = "raw" if changes == {"normalized": True} else ""
    not_imported(said, features=altered(**description(**changes)), remedy=remedy)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore")  # NumPy's and torch's on damaged headers
def test_damaged_exports_are_imported_or_refused(form):
    path = small(form)
    generator, refusals = np.random.default_rng(0), []
    content = path.read_bytes()
    for _ in range(40):
        path.write_bytes(damaged(content, generator, most=6))
        try:
            imported(path, root="back", overwrite=True)
        except StoreError as error:
            refusals.append(str(error))
    assert refusals
    assert not any("\n" in line for line in refusals)
