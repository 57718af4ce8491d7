"""What is exported comes back to the bit, in every form."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zsntta_cli.cache import export_forms, hdf5
from zsntta_cli.cache.export import ExportPlan, export_features
from zsntta_cli.cache.export_forms import WRITERS
from zsntta_cli.cache.features import Text
from zsntta_cli.cache.imports import ImportPlan, import_features
from zsntta_cli.cache.manifest import EXPORTED
from zsntta_cli.cache.verify import problems
from zsntta_cli.errors import StoreError

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


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=25, deadline=None, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(feature_files())
def test_any_feature_file_comes_back_to_the_bit(folder, form, values):
    path = made(**values)
    there = exported(form, values["name"], overwrite=True)
    back, _ = imported(there, values["name"], values["name"], overwrite=True)
    assert everything(back) == everything(path)
