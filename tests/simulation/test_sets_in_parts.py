"""Streams over sets in parts: the decisions are those of the same features in one file."""

import json
import shutil
from dataclasses import replace

import h5py
import numpy as np
import pytest
from made import with_some_pairs

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, PartOf, Shard, Text
from zsntta_cli.cache.folder import part_path
from zsntta_cli.cache.parts import PartsIdentity, claim_parts, join_parts
from zsntta_cli.cache.verify import problems
from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.settings import StreamSettings, ThresholdSettings
from zsntta_cli.simulation import sources
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import Simulator

PROMPT = "a photo of a {}."
CACHED = with_some_pairs(name for name, line in METHODS.items() if not (line.live or line.needs))


def in_parts(plain, path, sizes):
    """The features of a plain set once more, in parts of these sizes."""
    source = {"dataset": plain.name, "images": len(plain), "digest": "1"}
    claim_parts(path, PartsIdentity(plain.identity, source, len(sizes)))
    ids, start = hdf5.read_sample_ids(plain.path), 0
    for index, size in enumerate(sizes, 1):
        rows = slice(start, start + size)
        hdf5.write_features(
            part_path(path, index), kind=DATASET, name=plain.name, encoder=plain.identity,
            source=source, blocks=[plain.image_features[rows]], labels=plain.labels[rows],
            sample_ids=ids[rows], class_names=plain.class_names,
            texts=[Text(t, f) for t, f in plain.text_features.items()] if index == 1 else (),
            part=PartOf(index, len(sizes), "1", (Shard("x", 0, ""),) if size else ()),
        )  # fmt: skip
        start += size
    assert start == len(plain)
    join_parts(path)


@pytest.fixture(scope="module")
def root(cache, tmp_path_factory):
    """Shapes and glyphs in one file each under `plain`, in parts under `parts`."""
    root = tmp_path_factory.mktemp("parts")
    shutil.copytree(cache / "tiny", root / "plain" / "tiny")
    (root / "parts" / "tiny").mkdir(parents=True)
    shutil.copy(root / "plain/tiny/noise-gaussian.h5", root / "parts/tiny")
    for name, sizes in (("shapes", (130, 0, 100, 70)), ("glyphs", (1, 299))):
        plain = hdf5.read_features(root / "plain" / "tiny" / f"{name}.h5")
        in_parts(plain, root / "parts" / "tiny" / f"{name}.h5", sizes)
    return root


def run_of(method, **stream_settings):
    return RunSettings(
        method, "tiny", "shapes", "glyphs", PROMPT,
        replace(StreamSettings(), **stream_settings), ThresholdSettings(),
        METHODS[method].settings_class(),
    )  # fmt: skip


def assert_same(one, other):
    for name, column in vars(one).items():
        np.testing.assert_array_equal(column, getattr(other, name), err_msg=name)


@pytest.mark.parametrize("method", CACHED)
def test_decisions_do_not_depend_on_the_files(root, method, monkeypatch):
    monkeypatch.setattr(hdf5, "_BLOCK", 40)
    options = METHODS[method].settings_class()
    if hasattr(options, "no_text"):
        pytest.skip("reads a file of its own")
    run = run_of(method, noise="gaussian", ratio=0.4)
    plain, parts = (Simulator(root / name).replay(run) for name in ("plain", "parts"))
    assert_same(plain.decisions, parts.decisions)
    assert plain.record().detection == pytest.approx(parts.record().detection, nan_ok=True)


@pytest.mark.parametrize("method", ["adand+tda", "ridge+stata"])
def test_decisions_of_pairs(root, method):
    run = run_of(method, noise="none", ratio=0.5)
    plain, parts = (Simulator(root / name).replay(run) for name in ("plain", "parts"))
    assert_same(plain.decisions, parts.decisions)


def test_rows_that_changed(root, tmp_path):
    shutil.copytree(root / "parts", tmp_path / "parts")
    folder = tmp_path / "parts" / "tiny"
    row = hdf5.read_features(folder / "shapes.h5").image_features[200:201]
    file = part_path(folder / "shapes.h5", 3)
    content = bytearray(file.read_bytes())
    content[content.index(row.tobytes())] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(StoreError, match=r"00003\.h5 is not a whole .* does not match its digest"):
        Simulator(tmp_path / "parts").replay(run_of("zs-clip", noise="none"))


def test_rows_that_are_not_finite(root, tmp_path):
    plain = hdf5.read_features(root / "plain" / "tiny" / "shapes.h5")
    rows = plain.image_features.copy()
    rows[200, 3] = np.inf
    path = tmp_path / "tiny" / "shapes.h5"
    in_parts(replace(plain, image_features=rows), path, (130, 0, 100, 70))
    with pytest.raises(StoreError, match=r"1 features are not finite \(the first in row 200\)"):
        Simulator(tmp_path).replay(replace(run_of("zs-clip", noise="none", ratio=0), ood_set=None))


def test_features_that_memory_is_too_small_for(root, monkeypatch):
    size = 300 * hdf5.read_header(root / "parts/tiny/shapes.h5").dim * 2
    monkeypatch.setattr(sources, "physical_memory", lambda: size)
    Simulator(root / "parts").replay(run_of("zs-clip", noise="none"))
    monkeypatch.setattr(sources, "physical_memory", lambda: size - 1)
    with pytest.raises(StoreError, match=r"'shapes' take 0\.0 GB, and a replay holds them in mem"):
        Simulator(root / "parts").replay(run_of("zs-clip", noise="none"))


@pytest.mark.parametrize("is_older", [False, True])
def test_a_joined_set_with_other_labels_than_its_parts_is_refused(root, tmp_path, is_older):
    shutil.copytree(root / "parts", tmp_path / "parts")
    path = tmp_path / "parts" / "tiny" / "shapes.h5"
    assert problems(path) == []
    with h5py.File(path, "r+") as file:
        if is_older:
            del file.attrs["labels_digest"]
            assert problems(path) == []
        file["labels"][...] = np.roll(file["labels"][...], 1)
    [problem, *_] = problems(path)
    if is_older:
        assert problem == "its labels are not those of 00001.h5: join its parts again"
    else:
        assert "its content does not match its digest" in problem
        with pytest.raises(StoreError, match="does not match"):
            hdf5.read_features(path)


def test_a_part_of_another_encoder_is_found(root, tmp_path):
    shutil.copytree(root / "parts", tmp_path / "parts")
    path = tmp_path / "parts" / "tiny" / "shapes.h5"
    with h5py.File(part_path(path, 3), "r+") as file:
        digest = json.loads(file.attrs["encoder"])["weights_sha256"]
        encoder = file.attrs["encoder"].decode().replace(digest, digest[::-1])
        del file.attrs["seal"]  # of a part of an older version; the file's size is the same
        file.attrs.modify("encoder", np.bytes_(encoder))
    assert any("00003.h5 is of another encoder" in problem for problem in problems(path))
