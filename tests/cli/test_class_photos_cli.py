"""Classes that are made of example photos: `--class-photos` of `detect` and of `extract`."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from detected import rows
from made import TINY, fails
from PIL import Image

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Text
from zsntta_cli.errors import StoreError
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.settings.prompts import PHOTOS

GIVEN = ("--class-photos", "examples", *TINY)


@pytest.fixture
def unloaded(monkeypatch):
    """Whatever is typed from now on loads no encoder."""

    def forbid():
        def load(*_):
            raise AssertionError("an encoder is loaded")

        monkeypatch.setattr("zsntta_cli.encoders.clip.load_encoder", load)

    return forbid


@pytest.fixture
def examples(pictures):
    """Run the command line beside pictures, and three examples of each of three shapes."""
    for name in ("circle", "star", "cross"):
        Path("examples", name).mkdir(parents=True)
        for path in sorted(Path("pictures", name).iterdir())[:3]:
            path.rename(Path("examples", name, path.name))
    return pictures


def test_rows_have_the_folders_names_and_a_second_run_loads_no_encoder(examples, tiny, unloaded):
    shutil.rmtree("features")
    given = ("detect", "pictures", *GIVEN, "--method", "zs-clip")
    first = examples(*given)
    assert {row["class"] for row in rows(first)} == {"circle", "cross", "star"}
    assert "3 classes from 9 example photos: " in first.stderr
    assert "of the images are also example photos" not in first.stderr

    def features(paths):
        pixels = np.stack([tiny.resize(Image.open(path).convert("RGB")) for path in paths])
        rows = tiny.encode_pixels(pixels)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    folders = sorted(Path("examples").iterdir())
    means = np.stack([features(sorted(folder.iterdir())).mean(0) for folder in folders])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    nearest = (features([row["source"] for row in rows(first)]) @ means.T).argmax(1)
    assert [row["class"] for row in rows(first)] == [folders[i].name for i in nearest]
    unloaded()
    again = examples(*given)
    assert (again.stdout, again.stderr) == (first.stdout, first.stderr)


# Of a cached set

SHAPES = (*TINY, "--dataset", "shapes", "--limit", "120", "--no-partners", "--noise", "none")
EXTRACT = ("extract", *SHAPES, "--class-photos", "examples")
RUN = ("simulate", *TINY, "--method", "zs-clip", "--id", "shapes", "--noise", "none", "--ratio", 0)
FILE = Path("features/tiny/shapes.h5")


@pytest.fixture
def photos(zsntta, drawn):
    """The command line beside a folder of example photos of all built-in shapes, and features."""
    for folder in (drawn / "pictures").iterdir():
        if folder.name != "x":
            shutil.copytree(folder, Path("examples", folder.name))
    shutil.copytree(drawn / "features", "features")
    made = zsntta(*EXTRACT)
    assert made.exit_code == 0, made.stderr
    assert "--prompt photos" in made.stderr
    return zsntta


def test_a_set_has_classes_of_its_photos_with_a_scale_of_their_own(photos):
    features, header = store.read(FILE), store.read(FILE, rows=False)
    own = features.texts[PHOTOS].logit_scale
    assert own == header.texts[PHOTOS].logit_scale != features.identity["logit_scale"]
    assert features.texts[PHOTOS].features.shape == (10, features.dim)
    # By hand: ZS-CLIP's accuracy on a clean stream is that of its class and threshold on these.
    [record], [other] = (
        json.loads(photos(*RUN, *prompt, "--format", "json").stdout)
        for prompt in (("--prompt", "photos"), ())
    )
    scores = zero_shot(features.image_features, features.texts[PHOTOS].features, own)
    right = (scores.class_index == features.labels).mean()
    assert record["detection"]["id_accuracy"] == pytest.approx(right)
    assert other["settings"]["prompt"] != record["settings"]["prompt"] == PHOTOS
    assert other["digests"]["text/shapes"] != record["digests"]["text/shapes"]
    assert photos("cache", "split", "shapes", "--id-classes", "6").exit_code == 0
    part = store.read(FILE.with_name("shapes-6-s0-id.h5"))
    assert part.texts[PHOTOS].logit_scale == features.texts[PHOTOS].logit_scale
    assert part.texts[PHOTOS].features.shape[0] == 6


def test_what_will_not_do_is_one_line(photos):
    tent = ("tent" if word == "zs-clip" else word for word in RUN)
    result = photos(*tent, "--prompt", "photos")
    fails(result, "tent needs class names or words", code=2, stdout=None)
    shutil.rmtree("examples/star")
    fails(photos(*EXTRACT), "examples has no photos of 'star'", stdout=None)
    text = Text("a {}", np.eye(10, 512, dtype=np.float32), -1.0)
    store.write(replace(store.read(FILE), texts={"a {}": text}))
    with pytest.raises(StoreError, match=r"logit scale of .* is -1"):
        store.read(FILE)
