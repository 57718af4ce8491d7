"""`--dataset svhn:fog:5` through the commands that meet such a name."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from made import TINY
from PIL import Image

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.published import _set_of
from zsntta_cli.datasets.drawn.builtin import render

FEATURES = Path("features/tiny")


def extracted(zsntta, *names, limit=24):
    options = [word for name in names for word in ("--dataset", name)]
    result = zsntta("extract", *TINY, *options, "--limit", limit, "--no-partners")
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def corrupted(zsntta, cache):
    """Foggy shapes and glyphs, beside features of the clean sets."""
    shutil.copytree(cache, "features")
    result = extracted(zsntta, "shapes:fog:2", "glyphs:fog:2", "shapes:jpeg:5:before", limit=60)
    assert "published" not in result.stderr, "an accuracy beside that of clean images"
    return zsntta


def test_a_stream_of_corrupted_sets_from_extraction_to_record(corrupted):
    source = hdf5.read_features(FEATURES / "shapes:fog:2.h5").source
    assert source["corruption"] == "fog 2, 224 px, rules 1"
    result = corrupted(
        "simulate", *TINY, "--method", "zs-clip", "--id", "shapes:fog:2", "--ood", "glyphs:fog:2",
        "--format", "json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    [record] = json.loads(result.stdout)
    assert record["settings"]["id_set"] == "shapes:fog:2"
    assert record["counts"]["ood"] == 60
    clean = corrupted(
        "simulate", *TINY, "--method", "zs-clip", "--id", "shapes:fog:2", "--format", "csv"
    )
    assert ",shapes:fog:2,glyphs," in clean.stdout, "without --ood the clean partners"
    every = corrupted(
        "simulate", *TINY, "--method", "zs-clip", "--id", "shapes:fog:2", "--ood", "all",
        "--format", "csv",
    )  # fmt: skip
    assert "shapes:fog:2,glyphs:fog:2," in every.stdout
    assert "shapes:fog:2,shapes" not in every.stdout, "its own images are no noise"


def test_verified_and_listed(corrupted):
    assert f"{FEATURES}/shapes:fog:2.h5: ok" in corrupted("cache", "verify").stdout
    shown = corrupted("cache", "show", "shapes:jpeg:5:before").stdout
    assert "jpeg_compression 5, own size, rules 1" in shown
    Path("features/tiny/textures:fog:2.h5").touch()
    Path("features/tiny/textures.h5").unlink()
    [line] = [line for line in corrupted("datasets").stdout.splitlines() if " textures " in line]
    assert "tiny" not in line, "clean textures are not cached"
    assert "shapes:fog:5" in corrupted("datasets", "show", "shapes").stdout
    card = corrupted("datasets", "show", "shapes:fog:2").stdout
    assert "zsntta extract --dataset shapes:fog:2" in card


def test_a_live_method_reads_the_corrupted_images(corrupted):
    result = corrupted(
        "simulate",
        *TINY,
        "--method",
        "tent",
        "--id",
        "shapes:jpeg:5:before",
        "--ood",
        "glyphs:fog:2",
    )
    assert result.exit_code == 0, result.output


def test_a_folder_is_corrupted_by_its_content(zsntta):
    for i, name in enumerate("badc"):  # two images are alike
        path = Path("photos") / "ab"[i % 2] / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        render("shapes").image(i // 2).resize((60, 50)).save(path)
    extracted(zsntta, "mine=photos", "mine:gaussian_noise:5=photos")
    clean, noisy = (
        hdf5.read_features(FEATURES / f"{name}.h5") for name in ("mine", "mine:gaussian_noise:5")
    )
    first, second, third, fourth = noisy.image_features.tolist()  # a/b, a/d, b/a, b/c
    assert (first, second) == (third, fourth), "the same bytes for the same content"
    assert first != second
    assert not np.array_equal(noisy.image_features, clean.image_features)
    again = extracted(zsntta, "mine:gaussian_noise:5=photos")
    assert "there already" in again.stdout
    Image.new("RGB", (60, 50)).save("photos/a/b.png")
    changed = zsntta("extract", *TINY, "--dataset", "mine:gaussian_noise:5=photos")
    assert changed.exit_code == 1
    assert "was made from other images" in changed.stderr


def test_features_of_other_rules_are_refused(zsntta, monkeypatch):
    extracted(zsntta, "shapes:fog:1", limit=3)
    monkeypatch.setattr("zsntta_cli.datasets.corruption.RULES", 2)
    result = zsntta("extract", *TINY, "--dataset", "shapes:fog:1", "--limit", 3)
    assert result.exit_code == 1
    assert "corruption fog 1, 224 px, rules 1, now fog 1, 224 px, rules 2" in result.stderr


@pytest.mark.parametrize("name", ["shapes:fgo:1", "shapes:fog", "shapes:fog:6", "shapes:all:1"])
def test_an_unknown_corruption_is_one_line_before_anything_is_encoded(zsntta, name):
    for command in (("extract", *TINY, "--dataset", "glyphs", "--dataset"), ("datasets", "verify")):
        result = zsntta(*command, name)
        assert result.exit_code == 1
        assert result.stderr.count("\n") == 1
        assert name in result.stderr
    assert not Path("features").exists()


def test_a_dry_run_and_the_hint_where_features_are_missing(zsntta):
    Path("photos/a").mkdir(parents=True)
    render("shapes").image(0).save("photos/a/x.png")
    result = zsntta("extract", *TINY, "--dataset", "mine:fog:2=photos", "--dry-run")
    assert "features/tiny/mine:fog:2.h5: 1 image to encode" in result.stdout
    missing = zsntta("simulate", *TINY, "--method", "zs-clip", "--id", "svhn:fog:2")
    assert "zsntta extract --dataset svhn:fog:2" in missing.stderr
    own = zsntta("simulate", *TINY, "--method", "zs-clip", "--id", "mine:fog:2")
    assert "zsntta extract --dataset mine:fog:2=PATH" in own.stderr


def test_no_accuracy_is_published_of_a_corrupted_set():
    assert _set_of("cifar10:fog:1") != _set_of("cifar10")
    assert _set_of("cifar10:fog:1-tune") == "cifar10:fog:1"


def test_a_word_list_has_no_corruption(zsntta):
    Path("nouns.txt").write_text("cat\ndog\n")
    result = zsntta("extract", *TINY, "--words", "mine:fog:1=nouns.txt")
    assert result.exit_code == 1
    assert "'mine:fog:1' cannot name a word list" in result.stderr
