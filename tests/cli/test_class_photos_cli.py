"""Classes that are made of example photos: `--class-photos` of `detect` and of `extract`."""

import json
import shutil
from pathlib import Path

import pytest
from detected import rows
from made import TINY, fails

from zsntta_cli.cache import store
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.settings.prompts import PHOTOS


@pytest.fixture
def examples(pictures):
    """Run the command line beside pictures, and three examples of each of three shapes."""
    for name in ("circle", "star", "cross"):
        Path("examples", name).mkdir(parents=True)
        for path in sorted(Path("pictures", name).iterdir())[:3]:
            path.rename(Path("examples", name, path.name))
    return pictures


def test_rows_have_the_folders_names_and_a_second_run_loads_no_encoder(examples, monkeypatch):
    shutil.rmtree("features")
    given = ("detect", "pictures", "--class-photos", "examples", *TINY, "--method", "zs-clip")
    first = examples(*given)
    assert {row["class"] for row in rows(first)} == {"circle", "cross", "star"}
    assert "3 classes from 9 example photos: " in first.stderr
    monkeypatch.delattr("zsntta_cli.encoders.clip.load_encoder")
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
    fails(photos(*tent, "--prompt", "photos"), "tent needs class names", code=2, stdout=None)
    shutil.rmtree("examples/star")
    fails(photos(*EXTRACT), "examples has no photos of 'star'", stdout=None)
