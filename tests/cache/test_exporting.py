"""What is exported comes back to the bit, in every form."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zsntta_cli.cache import export, hdf5
from zsntta_cli.cache.export import WRITERS, ExportPlan, export_features
from zsntta_cli.cache.features import Text
from zsntta_cli.cache.imports import ImportPlan, import_features
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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(export, "_BLOCK", 4)
    return tmp_path


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def made(name="pets", count=5, dim=3, dtype=np.float16, **changes):
    """A feature file of random rows."""
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
    return path


def exported(form, name="pets", **plan):
    return export_features(ExportPlan(name, form, **plan), Path("features")).path


def imported(path, name="pets", root="back", **plan):
    done = import_features(ImportPlan(name, path, encoder="enc", **plan), Path(root))
    return done.path, " ".join(done.checked.notes)


def everything(path):
    """All that a feature file holds, as values that can be compared to the bit."""
    features = hdf5.read_features(path)
    rows = features.image_features
    return {
        "rows": (rows.dtype.name, rows.shape, rows.tobytes()), "digest": features.digest,
        "labels": features.labels.tolist(), "ids": hdf5.read_sample_ids(path),
        "names": features.class_names, "encoder": features.identity,
        "texts": {t: text.tobytes() for t, text in features.text_features.items()},
        "scales": features.text_scales, "normalized": features.normalized, "kind": features.kind,
        "name": features.name,
    }  # fmt: skip


def refused(*parts, error=StoreError, call=exported, remedy="", **values):
    with pytest.raises(error) as info:
        call(**values)
    line = str(info.value)
    assert "\n" not in line
    assert all(part in line for part in parts), line
    assert info.value.remedy == remedy


@pytest.mark.parametrize("form", FORMS)
def test_a_round_trip_is_equal_to_the_bit(folder, form):
    path = made(count=21, prompts={PROMPTS[0]: None, PROMPTS[1]: None, "photos": 12.5})
    there = exported(form)
    back, notes = imported(there)
    assert everything(back) == everything(path)
    assert problems(back) == []
    assert hdf5.read_features(back).source == {"images": 21, "imported": [there.name]}
    assert f"{there.name} says that its features are of ViT-B-32" in notes


def test_a_feature_file_can_be_imported(folder):
    path = made(count=21, prompts={PROMPTS[0]: None, "photos": 12.5})
    back, notes = imported(path)
    assert everything(back) == everything(path)
    assert "pets.h5 says that its features are of ViT-B-32" in notes
    Path("other.h5").write_bytes(b"no HDF5")
    refused("other.h5", call=imported, path=Path("other.h5"), root="none")


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
    path = made(**values)
    there = exported(form, values["name"], overwrite=True)
    back, _ = imported(there, values["name"], values["name"], overwrite=True)
    assert everything(back) == everything(path)


@pytest.mark.parametrize("form", FORMS)
def test_ids_may_stay_at_home(folder, form):
    path = made(count=9)
    there = exported(form, without_ids=True)
    assert b"4.jpg" not in there.read_bytes()
    assert b"bad.jpg" not in there.read_bytes()
    back, _ = imported(there)
    assert everything(back) == everything(path) | {"ids": tuple(f"{i:05d}" for i in range(9))}


@pytest.mark.parametrize("form", FORMS)
def test_templates_are_chosen_on_the_way_out_and_in(folder, form):
    path = made(prompts={PROMPTS[0]: None, PROMPTS[1]: None, "photos": 2.5})
    there = exported(form, prompts=["photos", "code"])
    whole, back = everything(path), everything(imported(there)[0])
    assert back["texts"] == {t: whole["texts"][t] for t in ("photos", PROMPTS[0])}
    assert back["scales"] == {"photos": 2.5}
    alone = everything(imported(there, prompt="code", root="alone")[0])
    assert alone["texts"] == {PROMPTS[0]: whole["texts"][PROMPTS[0]]}
    refused("has text features of ", "choose with --prompt", call=imported, path=there,
            root="none", prompt="my {}")  # fmt: skip
    refused("no text features of 'my {}', it has 'art of a {} | a {}'", form=form, overwrite=True,
            prompts=["my {}"])  # fmt: skip


def test_paths_of_the_encoder_stay_at_home_and_those_of_ids_are_noted(folder):
    made(count=2, encoder={**IDENTITY, **PLACES}, sample_ids=["/home/me/a.jpg", "b.jpg"])
    done = export_features(ExportPlan("pets", "npz"), Path("features"))
    assert "('/home/me/a.jpg'): --without-ids" in done.notes[0]
    back = hdf5.read_features(imported(done.path)[0])
    assert (back.identity["model"], back.identity["pretrained"]) == ("local-dir:clip", "w.pt")


@pytest.mark.parametrize("form", FORMS)
def test_what_is_there_is_replaced_on_demand_alone(folder, form):
    made()
    there = exported(form)
    size = len([*folder.rglob("*")])
    refused("is there already", remedy="overwrite-output", form=form)
    made(count=3)
    assert exported(form, overwrite=True) == there
    assert len(hdf5.read_features(imported(there)[0])) == 3
    assert len([*folder.rglob("*")]) == size + 4, "the import's folder, file and lock alone"


@pytest.mark.parametrize("form", FORMS)
def test_a_failing_write_leaves_what_was_there(folder, form):
    """A row that is not what its digest says, found at the end of the second block."""
    path = made(count=7)
    there = exported(form)
    before = outside_features(folder)
    made(count=7, dtype=np.float32)
    content = path.read_bytes()
    rows = hdf5.read_features(path).image_features
    assert content.count(rows[6].tobytes()) == 1
    path.write_bytes(content.replace(rows[6].tobytes(), rows[5].tobytes()))
    refused("its content does not match its digest", form=form, overwrite=True)
    assert outside_features(folder) == before
    assert there.exists()


def outside_features(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if "features" not in path.parts}


def test_what_cannot_be_exported(folder):
    made()
    refused("form", error=SettingsError, form="xlsx")
    Path("features/more").mkdir()
    Path("features/more/pets.h5").write_bytes(Path("features/enc/pets.h5").read_bytes())
    refused("'pets' is cached of enc, more: choose one with --encoder", form="npz")
    assert exported("npz", encoder="more").name == "pets.npz"
    refused("no features of", form="npz", name="dogs")
    made("words-x", kind="words", count=0, labels=np.empty(0, np.int32), sample_ids=[])
    refused("has no images, so there is nothing to export", form="npz", name="words-x")
