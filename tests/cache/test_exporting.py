"""What is exported comes back to the bit, in every form."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from zsntta_cli.cache import export_forms, hdf5
from zsntta_cli.cache.export import ExportPlan, export_features
from zsntta_cli.cache.export_forms import FOLDERS, WRITERS
from zsntta_cli.cache.features import Text
from zsntta_cli.cache.imports import ImportPlan, import_features
from zsntta_cli.cache.manifest import EXPORTED
from zsntta_cli.cache.verify import problems
from zsntta_cli.errors import SettingsError, StoreError

FORMS = [*WRITERS]
IDENTITY = {
    "model": "ViT-B-32", "pretrained": "openai", "weights_sha256": "40" * 32, "quick_gelu": True,
    "precision": "fp16", "image_size": 224, "preprocessing": {"size": [224, 224]},
    "logit_scale": 100.00000762939453, "versions": {"torch": "2.6.0"},
}  # fmt: skip
SOURCE = {"dataset": "pets", "digest": "ab" * 32, "skipped": ["bad.jpg"]}
PROMPTS = ("a photo of a {}.", "art of a {} | a {}")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(export_forms, "BLOCK", 4)
    monkeypatch.setattr(export_forms, "PART", 8)
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
        "kind": "dataset", "encoder": IDENTITY, "source": {**SOURCE, "images": count},
        "labels": np.arange(count, dtype=np.int32) % (len(names) + 1) - 1,
        "sample_ids": [f"{i}.jpg" for i in range(count)], "class_names": names, "texts": texts,
        "blocks": [generator.standard_normal((count, dim)).astype(dtype)],
        "machine": {"cpu": "one"}, "created": "2026-01-02T03:04:05+00:00",
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
    source = {k: v for k, v in features.source.items() if k not in ("imported", EXPORTED)}
    rows = features.image_features
    return {
        "rows": (rows.dtype.name, rows.shape, rows.tobytes()), "digest": features.digest,
        "labels": features.labels.tolist(), "ids": hdf5.read_sample_ids(path),
        "names": features.class_names, "source": source, "encoder": features.identity,
        "texts": {t: text.tobytes() for t, text in features.text_features.items()},
        "scales": features.text_scales, "normalized": features.normalized, "kind": features.kind,
        "machine": features.machine, "created": features.created, "name": features.name,
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
    source = hdf5.read_features(back).source
    assert source["imported"] == [there.name]
    assert set(source[EXPORTED]) == {"zsntta"}
    assert "says that it was exported from features of ViT-B-32, weights 404040404040…" in notes


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


def torch_reads(values):
    """Whether torch.load reads all texts: of half a character older versions of it do not."""
    texts = [*values["class_names"], *values["sample_ids"], *values["prompts"]]
    file = io.BytesIO()
    torch.save(texts, file)
    file.seek(0)
    try:
        return torch.load(file, weights_only=True) == texts
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=12, deadline=None, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(feature_files())
def test_any_feature_file_comes_back_to_the_bit(folder, form, values):
    assume(form != "torch" or torch_reads(values))
    path = made(**values)
    there = exported(form, values["name"], overwrite=True)
    back, _ = imported(there, values["name"], values["name"], overwrite=True)
    assert everything(back) == everything(path)


@pytest.mark.parametrize("form", FORMS)
def test_ids_may_stay_at_home(folder, form):
    path = made(count=9)
    there = exported(form, without_ids=True)
    files = [there] if there.is_file() else [p for p in there.rglob("*") if p.is_file()]
    assert not any(b"4.jpg" in file.read_bytes() for file in files)
    assert not any(b"bad.jpg" in file.read_bytes() for file in files)
    back, _ = imported(there)
    numbers = tuple(f"{i:05d}" for i in range(9))
    hidden = {"ids": numbers, "source": {**SOURCE, "images": 9, "skipped": ["00000"]}}
    assert everything(back) == everything(path) | hidden


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
    identity = {**IDENTITY, "model": "local-dir:/home/me/clip", "pretrained": "/home/me/w.pt"}
    made(count=2, encoder=identity, sample_ids=["/home/me/a.jpg", "b.jpg"])
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


@pytest.mark.parametrize("form", FOLDERS)
def test_a_folder_with_files_of_others_is_never_replaced(folder, form):
    made()
    there = exported(form)
    (there / "thesis.tex").write_text("years")
    refused("holds 'thesis.tex', which no export has written", form=form, overwrite=True)
    other = folder / "other"
    other.mkdir()
    assert exported(form, output=other) == other, "an empty one is fine"
    (folder / "file").write_text("")
    refused("is no folder", form=form, output=folder / "file", overwrite=True)
    refused("'fea", "holds", form=form, output=Path(), overwrite=True)


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


@pytest.mark.parametrize("form", FOLDERS)
def test_a_folder_that_an_export_was_cut_short_with_is_kept(folder, form, monkeypatch):
    """Killed when the old folder has its other name, and the new one not yet its own."""
    made()
    there = exported(form)
    before = {path.name: path.read_bytes() for path in there.rglob("*") if path.is_file()}
    replace = os.replace

    def killed(source, target):
        if Path(target) == there.absolute():
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        exported(form, overwrite=True)
    old = Path(f"{there}.old")
    assert before == {path.name: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    refused(f"{old} was left by an export that was cut short", form=form)
    assert old.exists()
