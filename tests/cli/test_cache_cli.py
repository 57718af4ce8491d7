"""`zsntta cache` as a user has it: tables, one line a file, exit codes."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from feature_files import write_features
from made import PROMPT, ZSNTTA, fails, row

from zsntta_cli.cache import accuracy
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET

ENCODER = {"model": "toy", "pretrained": "imported", "logit_scale": 100.0}
ROWS = np.random.default_rng(0).standard_normal((40, 16)).astype(np.float16)
LABELS = (np.arange(40) % 3).astype(np.int32)
NAMES = ["cat", "[bold]dog", "猫"]


def write(name="pets", folder="toy", **changes):
    content = {
        "kind": DATASET, "name": name, "encoder": ENCODER, "source": {"images": 40},
        "blocks": [ROWS], "labels": LABELS, "sample_ids": [f"{i}.png" for i in range(40)],
        "class_names": NAMES, "texts": [Text("a {}.", np.eye(3, 16, dtype=np.float32))],
    }  # fmt: skip
    path = feature_path(Path("features"), folder, name)
    return path, write_features(path, **(content | changes))


def test_list_has_all_files_and_says_what_is_broken_or_unfinished(zsntta):
    write()
    write("out", "other", class_names=(), texts=(), labels=np.full(40, -1, np.int32))
    path, _ = write("half")
    path.write_bytes(path.read_bytes()[:2000])
    Path("features/toy/text.h5").write_text("no HDF5")
    Path("features/toy/.digits.rows").touch()
    result = zsntta("cache", "list")
    assert (result.exit_code, result.stderr) == (0, "")
    assert row(result, "pets")[:4] == ["pets", "40", "3", "a {}."]
    assert row(result, "out")[:4] == ["out", "40", "", ""]
    assert row(result, "half")[3].startswith("broken: ")
    assert row(result, "text")[3].startswith("broken: ")
    assert row(result, "digits")[3] == "unfinished"
    assert "out" not in zsntta("cache", "list", "--encoder", "toy").stdout


def test_show_tells_all_and_breaks_no_digest(zsntta, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, digest = write(labels=np.where(LABELS == 2, -1, LABELS))
    output = zsntta("cache", "show", "pets").stdout
    norm = np.linalg.norm(ROWS.astype(np.float64), axis=1).mean()
    for part in (
        "40 × 16 float16", "(raw)", "2 classes with 13 to 14 images, 13 images without a label",
        "3: cat, [bold]dog, 猫", "a {}.", "encoder: model", "toy", "source: images", digest,
        f"{norm:.4g} on average",
    ):  # fmt: skip
        assert part in output


def test_show_has_every_encoder_or_the_one_that_is_named(zsntta):
    write(folder="ViT-B-16-openai")
    write()
    both = zsntta("cache", "show", "pets").stdout
    assert "features/toy/pets.h5" in both
    assert "features/ViT-B-16-openai/pets.h5" in both
    for options in (("--model", "ViT-B-16"), ("--encoder", "ViT-B-16-openai")):
        assert "features/toy" not in zsntta("cache", "show", "pets", *options).stdout


def test_show_proposes_the_corrupted_sets_that_are_cached(zsntta):
    write("cifar10-c:fog:1")
    fails(zsntta("cache", "show", "cifar10-c"), "did you mean 'cifar10-c:fog:1'?")


def test_verify_has_a_line_a_file(zsntta):
    write()
    path, _ = write("half")
    path.write_bytes(path.read_bytes()[:-40])
    result = zsntta("cache", "verify")
    assert result.exit_code == 1
    half, pets = result.stdout.splitlines()
    assert pets == "features/toy/pets.h5: ok"
    assert half.startswith("features/toy/half.h5: features/toy/half.h5 is not a complete")
    assert "1 of 2 files" in result.stderr
    assert zsntta("cache", "verify", "pets").exit_code == 0


def test_verify_finds_ids_that_are_there_twice_and_files_of_two_encoders(zsntta):
    write(sample_ids=["a"] * 2 + [str(i) for i in range(38)])
    assert "has 1 duplicate among its sample ids" in zsntta("cache", "verify").stdout
    write()
    write("more", encoder={**ENCODER, "model": "other"})
    result = zsntta("cache", "verify")
    assert result.exit_code == 1
    assert "than more.h5 (model is toy, not other)" in result.stdout


def test_a_copied_folder_of_a_known_encoder_is_told(zsntta):
    made = {**ENCODER, "model": "tiny", "pretrained": "embedded", "precision": "fp32"}
    for folder in ("ViT-B-16-openai", "tiny"):
        write(folder=folder, encoder=made)
    notes = zsntta("cache", "verify").stderr
    assert "features/ViT-B-16-openai/ has features of tiny" in notes
    assert "features/tiny/" not in notes


def test_import_and_export_say_what_they_wrote(zsntta, tmp_path):
    np.savez(tmp_path / "in.npz", features=ROWS, labels=LABELS)
    np.savez(tmp_path / "text.npz", text_features=2 * np.eye(3, 16), class_names=NAMES)
    command = ("cache", "import", "pets", "--features", "in.npz", "--text", "text.npz", "--encoder",
               "mine", "--logit-scale", 50, "--prompt", "art of {}")  # fmt: skip
    result = zsntta(*command)
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "features/mine/pets.h5: 40 features of 16 dimensions, 3 class names, text features\n"
    )
    assert "--overwrite" in zsntta(*command).stderr
    result = zsntta("cache", "export", "pets")
    assert (result.exit_code, result.stdout) == (0, "pets.npz: 40 features of 16 dimensions\n")


def test_stdout_gets_the_export_alone(zsntta, tmp_path):
    write()
    words = [ZSNTTA, "cache", "export", "pets", "--output", "/dev/stdout"]
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, check=True)
    (tmp_path / "s.npz").write_bytes(done.stdout)
    with np.load(tmp_path / "s.npz") as arrays:
        assert arrays["labels"].shape == arrays["image_features"].shape[:1]


@pytest.mark.parametrize(("published", "code"), [(90.5, 0), (88.5, 1)])
def test_zero_shot_accuracy_stands_beside_the_published_one(zsntta, monkeypatch, published, code):
    """All images are at the axes of their classes but one in ten, at that of the next class."""
    entry = accuracy.PublishedAccuracy("tiny", "embedded", "shapes", 100, PROMPT, published, "us")
    monkeypatch.setattr(accuracy, "table", lambda: [entry])
    labels = np.arange(100) % 10
    rows = np.eye(10)[(labels + (np.arange(100) < 10)) % 10]
    np.savez("own.npz", features=rows, labels=labels, text_features=np.eye(10))
    line = f"zero-shot accuracy 90.00 % (published: {published:.2f})"
    result = zsntta(
        "cache", "import", "shapes", "--features", "own.npz", "--encoder", "tiny-embedded",
        "--prompt", PROMPT,
    )  # fmt: skip
    assert line in result.stderr
    assert ("1.5 points above" in result.stderr) == bool(code)
    assert line in zsntta("cache", "show", "shapes").stdout
    verified = zsntta("cache", "verify", "--published")
    assert verified.exit_code == code
    assert line in verified.stdout
    assert zsntta("cache", "verify").exit_code == 0
