"""Classes of a cached set that are made of example photos."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from made import fails

from zsntta_cli.cache.hdf5 import add_texts, read_features, read_header
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.settings.prompts import PHOTOS

SHAPES = ("--model", "tiny", "--dataset", "shapes", "--limit", "120", "--no-partners")
SHAPES += ("--noise", "none")
RUN = ("simulate", "--model", "tiny", "--method", "zs-clip", "--id", "shapes", "--noise", "none")


@pytest.fixture
def photos(zsntta, drawn):
    """The command line beside a folder of example photos of all built-in shapes, and features."""
    for folder in (drawn / "pictures").iterdir():
        if folder.name != "x":
            shutil.copytree(folder, Path("examples", folder.name))
    shutil.copytree(drawn / "features", "features")
    made = zsntta("extract", *SHAPES, "--class-photos", "examples")
    assert made.exit_code == 0, made.stderr
    assert "--prompt photos" in made.stderr
    return zsntta


def test_the_set_has_classes_of_its_photos_with_a_scale_of_their_own(photos):
    file = Path("features/tiny/shapes.h5")
    features, header = read_features(file), read_header(file)
    own = features.text_scales[PHOTOS]
    assert own == header.text_scales[PHOTOS] != features.identity["logit_scale"]
    assert features.text_features[PHOTOS].shape == (10, features.dim)
    # By hand: ZS-CLIP's accuracy on a clean stream is that of its class and threshold on these.
    kept = photos(*RUN, "--ratio", "0", "--prompt", "photos", "--format", "json")
    [record] = json.loads(kept.stdout)
    scores = zero_shot(features.image_features, features.text_features[PHOTOS], own)
    right = (scores.class_index == features.labels).mean()
    assert record["detection"]["id_accuracy"] == pytest.approx(right)
    named = photos(*RUN, "--ratio", "0", "--format", "json")
    [other] = json.loads(named.stdout)
    assert other["settings"]["prompt"] != record["settings"]["prompt"] == PHOTOS
    assert other["digests"]["text/shapes"] != record["digests"]["text/shapes"]


def test_again_with_the_same_photos_nothing_changes_and_with_others_it_is_refused(photos):
    file = Path("features/tiny/shapes.h5")
    before = file.read_bytes()
    assert photos("extract", *SHAPES, "--class-photos", "examples").exit_code == 0
    assert file.read_bytes() == before
    for photo in sorted(Path("examples/star").iterdir())[2:]:
        photo.unlink()
    again = ("extract", *SHAPES, "--class-photos", "examples")
    fails(photos(*again), "has classes made of other photos", "--overwrite", stdout=None)
    assert photos(*again, "--overwrite").exit_code == 0


def test_a_split_keeps_the_scale(photos):
    assert photos("cache", "split", "shapes", "--id-classes", "6").exit_code == 0
    part = read_features(Path("features/tiny/shapes-6-s0-id.h5"))
    whole = read_features(Path("features/tiny/shapes.h5"))
    assert part.text_scales == whole.text_scales != {}
    assert part.text_features[PHOTOS].shape[0] == 6


def test_what_is_wrong_is_told(photos):
    tent = ("tent" if word == "zs-clip" else word for word in RUN)
    result = photos(*tent, "--ratio", "0", "--prompt", "photos")
    fails(result, "tent works on class names or words here", code=2, stdout=None)
    shutil.rmtree("examples/star")
    wrong = "examples has no photos of 'star'"
    fails(photos("extract", *SHAPES, "--class-photos", "examples"), wrong, stdout=None)
    two = ("--dataset", "shapes", "--dataset", "glyphs", "--class-photos", "examples")
    fails(photos("extract", "--model", "tiny", *two), "name one --dataset", code=2)
    fails(photos("extract", *SHAPES, "--prompt", "photos"), "'photos' is neither", code=2)


def test_without_classes_of_photos_the_command_to_type_is_told(cached):
    result = cached(*RUN, "--ratio", "0", "--prompt", "photos")
    fails(result, "the prompt 'photos' is not cached", "--class-photos DIR", stdout=None)


def test_a_scale_that_is_none_is_refused(photos):
    from zsntta_cli.cache.features import Text
    from zsntta_cli.errors import StoreError

    file = Path("features/tiny/shapes.h5")
    add_texts(file, [Text("a {}", np.eye(10, 512, dtype=np.float32), -1.0)])
    with pytest.raises(StoreError, match="the logit scale of its text features is -1"):
        read_features(file)
