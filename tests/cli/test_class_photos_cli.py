"""`zsntta detect --class-photos`, as it is typed."""

import json
import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from made import TINY, fails
from PIL import Image

PHOTOS = ("--class-photos", "examples", *TINY)


@pytest.fixture
def examples(pictures):
    """Run the command line beside pictures, and three examples of each of three shapes."""
    for name in ("circle", "star", "cross"):
        Path("examples", name).mkdir(parents=True)
        for path in sorted(Path("pictures", name).iterdir())[:3]:
            path.rename(Path("examples", name, path.name))
    return pictures


def rows(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_rows_have_the_folders_names_and_a_second_run_loads_no_encoder(examples, tiny, monkeypatch):
    shutil.rmtree("features")
    given = ("detect", "pictures", *PHOTOS, "--method", "zs-clip")
    first = examples(*given)
    assert {row["class"] for row in rows(first)} == {"circle", "cross", "star"}
    assert "3 classes from 9 example photos: " in first.stderr
    assert "of the images are example photos" not in first.stderr

    def features(paths):
        pixels = np.stack([tiny.resize(Image.open(path).convert("RGB")) for path in paths])
        rows = tiny.encode_pixels(pixels)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    folders = sorted(Path("examples").iterdir())
    means = np.stack([features(sorted(folder.iterdir())).mean(0) for folder in folders])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    nearest = (features([row["source"] for row in rows(first)]) @ means.T).argmax(1)
    assert [row["class"] for row in rows(first)] == [folders[i].name for i in nearest]

    def load(*_):
        raise AssertionError("an encoder is loaded")

    monkeypatch.setattr("zsntta_cli.encoders.clip.load_encoder", load)
    again = examples(*given)
    assert (again.stdout, again.stderr) == (first.stdout, first.stderr)


@pytest.mark.parametrize("is_piped", [False, True])
def test_examples_among_the_images_are_told_once(examples, is_piped, monkeypatch):
    shutil.copy(next(Path("examples/star").iterdir()), "pictures/renamed.png")
    names = [*Path("pictures").rglob("*.png"), *Path("examples/cross").iterdir()]
    given = ["-"] if is_piped else ["pictures", "examples/cross"]
    read, write = os.pipe()
    os.write(write, "\n".join(map(str, names)).encode())
    os.close(write)
    monkeypatch.setattr("zsntta_cli.detection.sources._standard_input", partial(os.read, read))
    result = examples("detect", *given, *PHOTOS)
    note = "note: 4 of the images are example photos of the classes as well.\n"
    assert result.stderr.count(note) == 1
    assert len(rows(result)) == 55


def test_cached_features_meet_photos_of_the_same_encoder(cached, drawn):
    for name in ("circle", "star"):
        shutil.copytree(drawn / "pictures" / name, Path("examples", name))
    judged = rows(cached("detect", "--set", "glyphs", *PHOTOS))
    assert {row["class"] for row in judged} == {"circle", "star"}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (("--classes", "a,b"), "--classes and --class-photos are both given"),
        (("--classes-file", "a.txt"), "--classes-file and --class-photos are both given"),
        (("--prompt", "paper"), "--prompt is of class names"),
    ],
)
def test_what_does_not_go_with_photos(zsntta, given, error):
    fails(zsntta("detect", "pictures", *PHOTOS, *given), error, code=2)


def test_photos_that_will_not_do_end_it_before_an_encoder_is_loaded(zsntta, monkeypatch):
    def load(*_):
        raise AssertionError("an encoder is loaded")

    monkeypatch.setattr("zsntta_cli.encoders.clip.load_encoder", load)
    Path("pictures").mkdir()
    fails(zsntta("detect", "pictures", *PHOTOS), "cannot read the example photos in examples")
    Path("examples").mkdir()
    fails(zsntta("detect", "pictures", *PHOTOS), "examples has no folders", "2 to 8 photos")
    fails(zsntta("detect", "pictures", *TINY), "--class-photos DIR", code=2)
