"""Bundles as people send them: made, damaged, repeated here and where features differ."""

import json
import random
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from made import OWN_SCRIPT, ZSNTTA

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import Text

RUNS = ("simulate", "--encoder", "made", "--id", "pets", "--ood", "sky", "--seed", 0, "--seed", 1)
REPLAY = ("replay", "result.zip")


@pytest.fixture
def typed(tmp_path, features):
    """Run zsntta in a process of its own beside features."""
    shutil.copytree(features, tmp_path / "features")

    def run(*words):
        command = [ZSNTTA, *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def bundled(typed):
    """Run it beside a bundle of four records."""
    assert typed(*RUNS, "--method", "adand", "--method", "zs-clip", "--keep-items").returncode == 0
    done = typed("records", "bundle", "--output", "result.zip")
    assert (done.returncode, done.stdout) == (0, "result.zip: 4 records\n"), done.stderr
    return typed


def change(path, rows_of=lambda rows: rows):
    """Write a feature file again with other rows, as another machine would make them."""
    old = hdf5.read_features(path)
    hdf5.write_features(
        path, kind=old.kind, name=old.name, encoder=old.identity, source=old.source,
        blocks=[rows_of(old.image_features)], labels=old.labels,
        sample_ids=hdf5.read_sample_ids(path), class_names=old.class_names,
        texts=[Text(*text) for text in old.text_features.items()],
        machine={**old.machine, "platform": "Plan 9"},
    )  # fmt: skip


def test_a_bundle_comes_out_again_to_the_bit(bundled, tmp_path):
    done = bundled(*REPLAY)
    assert (done.returncode, done.stdout) == (0, "4 of 4 records to the bit\n"), done.stderr
    (tmp_path / "features" / "records.sqlite").unlink()
    assert bundled(*REPLAY, "--jobs", 2).stdout == "4 of 4 records to the bit\n"
    assert not (tmp_path / "features" / "records.sqlite").exists(), "nothing is kept of it"


def test_it_holds_what_it_says(bundled, tmp_path):
    with zipfile.ZipFile(tmp_path / "result.zip") as archive:
        contents = {name: archive.read(name).decode() for name in archive.namelist()}
    assert list(contents) == [
        "bundle.json", "records.jsonl", "features.json",
        "tables/accuracy.md", "tables/ood.md", "tables/runs.csv",
    ]  # fmt: skip
    about, features = json.loads(contents["bundle.json"]), json.loads(contents["features.json"])
    assert about["command"].endswith("records bundle --output result.zip")
    assert about["versions"]["numpy"] == [np.__version__]
    lines = [json.loads(line) for line in contents["records.jsonl"].splitlines()]
    for line in lines:
        for name, digest in line["record"]["digests"].items():
            assert features["digests"]["made"][name] == digest
    assert {line["record"]["settings"]["method"] for line in lines} == {"adand", "zs-clip"}
    assert all(line["items"] for line in lines)
    assert set(features["origins"]["made"]) == {"pets", "sky", "noise-gaussian"}
    assert any("cache import pets" in command for command in features["commands"])
    assert "adand" in contents["tables/accuracy.md"]


def test_the_same_runs_make_the_same_bundle(bundled, tmp_path):
    first = (tmp_path / "result.zip").read_bytes()
    (tmp_path / "result.zip").unlink()
    bundled("records", "bundle", "--output", "result.zip")
    assert (tmp_path / "result.zip").read_bytes() == first


def test_a_bundle_with_one_other_byte_is_refused(bundled, tmp_path):
    from zsntta_cli.errors import StoreError
    from zsntta_cli.results.bundle import read_bundle

    content = (tmp_path / "result.zip").read_bytes()
    places = [*random.Random(0).sample(range(len(content)), 200), 0, len(content) - 1]
    damaged = tmp_path / "damaged.zip"
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << (place % 8)
        damaged.write_bytes(changed)
        with pytest.raises(StoreError, match=r"damaged\.zip is no"):
            read_bundle(damaged)
    for end in (0, 1, 64, len(content) // 2, len(content) - 1):
        damaged.write_bytes(content[:end])
        with pytest.raises(StoreError):
            read_bundle(damaged)
    done = bundled("replay", "damaged.zip")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_other_features_are_said_and_by_how_much_results_differ(bundled, tmp_path):
    generator = np.random.default_rng(1)

    def shaken(rows):
        return (rows + 0.5 * generator.standard_normal(rows.shape)).astype(np.float16)

    change(tmp_path / "features" / "made" / "sky.h5", shaken)
    done = bundled(*REPLAY)
    assert done.returncode == 1
    assert "note: the features of 'sky' are not those of the record: " in done.stderr
    assert "made on Plan 9 here, " in done.stderr
    assert done.stdout.endswith("0 of 4 records to the bit\n")
    for word in ("Records that came out otherwise", "adand", "zs-clip", "pets", "sky", "50%"):
        assert word in done.stdout
    rows = [line.split("│") for line in done.stdout.splitlines() if line.startswith("│")]
    assert all(int(row[-2].replace(",", "")) > 0 for row in rows), "decisions that differ"


def test_one_other_decision_of_equal_metrics_is_found(bundled, tmp_path):
    from zsntta_cli.results.bundle import Bundle, read_bundle, write_bundle

    kept, *others = read_bundle(tmp_path / "result.zip").runs
    right = np.flatnonzero(kept.items.is_noise & kept.items.is_right)  # an OOD item has no class
    kept.items.class_index[right[0]] += 1
    write_bundle(tmp_path / "result.zip", Bundle([kept, *others]))
    done = bundled(*REPLAY)
    assert done.stdout.endswith("3 of 4 records to the bit\n")
    [row] = [line for line in done.stdout.splitlines() if line.startswith("│")]
    assert row.split("│")[-2].strip() == "1"


def test_what_is_missing_is_named_with_what_to_type(bundled, tmp_path):
    (tmp_path / "features" / "made" / "sky.h5").unlink()
    done = bundled(*REPLAY)
    assert done.returncode == 1
    assert "1 by made: type zsntta cache import sky --encoder made" in done.stderr


def test_a_method_of_ones_own_travels_with_its_source_and_runs_when_it_is_trusted(typed, tmp_path):
    (tmp_path / "own.py").write_text(OWN_SCRIPT)
    (tmp_path / "shifts.py").write_text("SHIFT = 0.0\n")
    done = typed("--plugin", "own.py", *RUNS, "--method", "own", "--cut", 0.4)
    assert done.returncode == 0, done.stderr
    bundle = ("records", "bundle", "--output", "result.zip")
    assert "note: the source of own is not in it: add --plugin" in typed(*bundle).stderr
    done = typed("--plugin", "own.py", *bundle)
    assert done.stdout == "result.zip: 2 records, own.py, shifts.py\n", done.stderr
    assert done.stderr == ""
    for name in ("own.py", "shifts.py"):
        (tmp_path / name).unlink()
    refused = typed(*REPLAY)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "result.zip has code of its own (own.py, shifts.py), which nobody checked" in (
        refused.stderr
    )
    done = typed(*REPLAY, "--run-plugins", "--jobs", 2)
    assert (done.returncode, done.stdout) == (0, "2 of 2 records to the bit\n"), done.stderr
    assert done.stderr == ""


@pytest.mark.slow
def test_a_source_whose_name_leads_elsewhere_is_refused(bundled, tmp_path):
    from zsntta_cli.results.bundle import Bundle, read_bundle, write_bundle

    runs = read_bundle(tmp_path / "result.zip").runs
    for name in ("../x.py", "/tmp/x.py", "a/../../x.py", "..", "~/x.py"):
        write_bundle(tmp_path / "result.zip", Bundle(runs, plugins={name: b"print(1)"}))
        done = bundled(*REPLAY, "--run-plugins")
        assert done.returncode == 1
        assert "which is no name of a source" in done.stderr


def test_a_bundle_is_never_larger_than_what_is_read(bundled, tmp_path, monkeypatch):
    from zsntta_cli.errors import StoreError
    from zsntta_cli.results import bundle

    runs = bundle.read_bundle(tmp_path / "result.zip").runs
    monkeypatch.setattr(bundle, "_LARGEST", 10_000)
    with pytest.raises(StoreError, match=r"4 runs are more than the 10,000 bytes of a bundle"):
        bundle.write_bundle(tmp_path / "other.zip", bundle.Bundle(runs))
    assert not (tmp_path / "other.zip").exists()
    with pytest.raises(StoreError):
        bundle.read_bundle(tmp_path / "result.zip")


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + bytes(18), b"nothing"])
def test_what_is_no_bundle_is_refused_in_a_line(typed, tmp_path, content):
    (tmp_path / "x.zip").write_bytes(content)
    done = typed("replay", "x.zip")
    assert (done.returncode, done.stderr) == (
        1, "error: x.zip is no bundle: records bundle makes one.\n"
    )  # fmt: skip


def test_a_bundle_of_nothing_is_none_and_its_ending_is_zip(typed, tmp_path):
    typed(*RUNS, "--method", "zs-clip")
    assert typed("records", "bundle", "--output", "x.tar").returncode == 2
    nothing = typed("records", "bundle", "--method", "tda", "--output", "x.zip")
    assert nothing.returncode == 2, nothing.stderr
    assert not Path(tmp_path / "x.zip").exists()
