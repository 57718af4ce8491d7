"""`zsntta cache` as a user has it: tables, one line a file, exit codes."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from feature_files import write_features
from made import ZSNTTA, fails, row

from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET

ENCODER = {"model": "toy", "pretrained": "imported", "logit_scale": 100.0}
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((40, 16)).astype(np.float16)
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


def test_list(zsntta):
    write()
    write("out", "other", class_names=(), texts=(), labels=np.full(40, -1, np.int32))
    result = zsntta("cache", "list")
    assert (result.exit_code, result.stderr) == (0, "")
    assert row(result, "pets")[:4] == ["pets", "40", "3", "a {}."]
    assert row(result, "out")[:4] == ["out", "40", "", ""]
    assert "toy" in result.stdout
    assert "other" in result.stdout
    assert "out" not in zsntta("cache", "list", "--encoder", "toy").stdout


def test_list_says_what_is_broken_or_unfinished(zsntta):
    write()
    path, _ = write("half")
    path.write_bytes(path.read_bytes()[:2000])
    Path("features/toy/text.h5").write_text("no HDF5")
    Path("features/toy/.digits.rows").touch()
    result = zsntta("cache", "list")
    assert result.exit_code == 0
    assert row(result, "half")[3].startswith("broken: ")
    assert row(result, "text")[3].startswith("broken: ")
    assert row(result, "digits")[3] == "unfinished"
    assert row(result, "pets")[1] == "40"


@pytest.mark.parametrize("command", ["list", "verify"])
def test_an_empty_folder_says_what_to_type(zsntta, command):
    result = zsntta("cache", command)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("nothing in features: type zsntta demo, zsntta extract --da")


def test_show_tells_all_and_breaks_no_digest(zsntta, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, digest = write(labels=np.where(LABELS == 2, -1, LABELS))
    output = zsntta("cache", "show", "pets").stdout
    for part in (
        "40 × 16 float16", "(raw)", "2 classes with 13 to 14 images, 13 images without a label",
        "3: cat, [bold]dog, 猫", "a {}.", "encoder: model", "toy", "source: images", digest,
    ):  # fmt: skip
        assert part in output
    norms = np.linalg.norm(ROWS.astype(np.float64), axis=1)
    assert f"{norms.mean():.4g} on average" in output


def test_show_finds_the_encoder(zsntta):
    write(folder="ViT-B-16-openai")
    write()
    both = zsntta("cache", "show", "pets").stdout
    assert "features/toy/pets.h5" in both
    assert "features/ViT-B-16-openai/pets.h5" in both
    for options in (("--model", "ViT-B-16"), ("--encoder", "ViT-B-16-openai")):
        assert "features/toy" not in zsntta("cache", "show", "pets", *options).stdout
    fails(zsntta("cache", "show", "pets", "--precision", "fp16"),
          "by ViT-B-16-openai-fp16 in features/ (available by ViT-B-16-openai, toy: ",
          "type zsntta extract --dataset pets=PATH --precision fp16\n")  # fmt: skip
    near = "no features of 'pet' in features/ (did you mean 'pets'?)\n"
    fails(zsntta("cache", "show", "pet"), near)


def test_verify_all_and_some(zsntta):
    write()
    path, _ = write("half")
    path.write_bytes(path.read_bytes()[:-40])
    result = zsntta("cache", "verify")
    assert result.exit_code == 1
    half, pets = result.stdout.splitlines()
    assert pets == "features/toy/pets.h5: ok"
    assert half.startswith("features/toy/half.h5: features/toy/half.h5 is not a complete")
    assert result.stderr.startswith("error: 1 of 2 files are bad: ")
    assert zsntta("cache", "verify", "pets").exit_code == 0


def test_verify_finds_ids_that_are_there_twice_and_files_of_two_encoders(zsntta):
    write(sample_ids=["a"] * 2 + [str(i) for i in range(38)])
    assert "1 sample ids are duplicates" in zsntta("cache", "verify").stdout
    write()
    write("more", encoder={**ENCODER, "model": "other"})
    result = zsntta("cache", "verify")
    assert result.exit_code == 1
    assert (
        "pets.h5: made with a different encoder than more.h5 (model is toy, not other)"
        in result.stdout
    )


def test_a_copied_folder_of_a_known_encoder_is_told(zsntta):
    made = {**ENCODER, "model": "tiny", "pretrained": "embedded", "precision": "fp32"}
    for folder in ("ViT-B-16-openai", "tiny"):
        write(folder=folder, encoder=made)
    told = zsntta("cache", "verify").stderr
    assert "note: features/ViT-B-16-openai/ has features of tiny: was it copied?" in told
    assert "features/tiny/" not in told
    run = zsntta("simulate", "--method=zs-clip", "--id=pets", "--ratio=0", "--prompt=a {}.",
                 "--noise=none", "--encoder=ViT-B-16-openai")  # fmt: skip
    assert "the features in ViT-B-16-openai/ were made with tiny" in run.output


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
    assert "note: pets: norms are" in result.stderr
    assert "already exists: --overwrite replaces it" in zsntta(*command).stderr
    result = zsntta("cache", "export", "pets")
    assert (result.exit_code, result.stdout) == (0, "pets.npz: 40 features of 16 dimensions\n")


def test_stdout_gets_the_export_alone(cached, tmp_path):
    words = [ZSNTTA, "cache", "export", "shapes", "--output", "/dev/stdout"]
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, check=True)
    (tmp_path / "s.npz").write_bytes(done.stdout)
    with np.load(tmp_path / "s.npz") as arrays:
        assert arrays["labels"].shape == arrays["image_features"].shape[:1]
