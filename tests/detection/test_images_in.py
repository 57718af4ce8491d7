"""NoiseDetector: images of all kinds to one encoder, loaded when it is first needed."""

import copy
import io

import numpy as np
import pytest
import torch
from PIL import Image

from zsntta_cli import NoiseDetector, OnlineDetector
from zsntta_cli.errors import DatasetError, SettingsError
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.prompts import class_prompts

NAMES = ["circle", "square", "star"]
PHOTOS = {"class_names": None}


@pytest.fixture
def online(tiny):
    return NoiseDetector(NAMES, "tiny", encoder=tiny)


@pytest.fixture
def files(picture_folder):
    return sorted(path for path in picture_folder.rglob("*.*") if path.suffix != ".jpg")


def test_nothing_is_loaded_before_it_is_needed(tiny, monkeypatch):
    loaded = []

    def load(choice, device):
        loaded.append((choice, device))
        return tiny

    monkeypatch.setattr("zsntta_cli.encoders.clip.load_encoder", load)
    detector = NoiseDetector(NAMES, "tiny", device="cpu")
    assert (detector.seen, detector.stage, detector.ready) == (0, "warm-up", False)
    detector.reset()
    assert copy.deepcopy(detector).seen == 0
    assert loaded == []
    detector.update(features=np.eye(2, tiny.embed_dim))
    detector.predict(Image.new("RGB", (9, 9)))
    assert loaded == [(EncoderChoice("tiny"), "cpu")]
    assert detector.seen == 2


def test_it_is_the_online_detector_on_the_encoders_features(online, tiny, files):
    pixels = np.stack([tiny.resize(Image.open(path).convert("RGB")) for path in files])
    features = tiny.encode_pixels(pixels)
    text = tiny.encode_texts(class_prompts("a photo of a {}.", NAMES))
    alone = OnlineDetector(text, tiny.identity["logit_scale"])
    expected, found = alone.update(features), online.update(files)
    np.testing.assert_array_equal(found.score, expected.score)
    assert [v.source for v in found] == [str(path) for path in files]
    assert {v.class_name for v in found} <= set(NAMES)
    likely = found[0].top
    assert sorted(name for name, _ in likely) == NAMES
    assert sum(share for _, share in likely) == pytest.approx(1, abs=1e-5)
    assert online.online.identity == tiny.identity


def test_the_same_detector_on_features_alone_learns_with_it(online, tiny, files):
    features = online.encode(files)
    assert online.online.update(features, ["a"] * len(features))[0].source == "a"
    assert online.seen == len(files)
    np.testing.assert_array_equal(online.online.score(features), online.score(features=features))
    np.testing.assert_array_equal(online.online.text_features, online.text_features)


def test_paths_and_pil_images_have_the_same_score(online, files):
    path = files[0]
    known = online.score(path)
    for kind in (str(path), Image.open(path), Image.open(path).convert("RGB")):
        np.testing.assert_array_equal(online.score(kind), known)
        np.testing.assert_allclose(online.score([kind, kind]), np.repeat(known, 2), atol=1e-5)
    np.testing.assert_array_equal(online.score(iter([path])), known)
    assert [v.source for v in online.predict((path, Image.open(path)))] == [str(path), None]
    assert len(online.update([])) == 0
    assert online.seen == 0


def test_what_is_no_whole_picture_is_read_as_a_viewer_shows_it(online, files, tmp_path):
    upright = Image.open(files[0]).convert("RGB")
    exif = Image.Exif()
    exif[274] = 6  # turn it by 90 degrees to see it upright
    lying = tmp_path / "lying.png"
    upright.transpose(Image.Transpose.ROTATE_90).save(lying, exif=exif)
    deep = Image.fromarray(np.array(upright.convert("L")).astype(np.uint16) * 257)
    for image, same in (
        (lying, upright),
        (Image.open(lying), upright),
        (deep, upright.convert("L")),
    ):
        np.testing.assert_array_equal(online.score(image), online.score(same))


@pytest.mark.parametrize(
    "image",
    [7, [7], b"bytes", np.zeros((4, 4, 3), np.uint8), torch.zeros(3, 4, 4), io.BytesIO(b"\n"), {}],
)
def test_what_is_no_image_teaches_nothing(online, image):
    with pytest.raises(TypeError, match="must be a path or a PIL image"):
        online.update(image)
    assert online.seen == 0


def test_files_that_cannot_be_read_teach_nothing(online, files, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(files[0].read_bytes()[:40])
    for path in (broken, tmp_path / "none.png"):
        with pytest.raises(DatasetError, match=f"cannot read image '{path}'"):
            online.update([files[0], path])
    assert online.seen == 0


def test_either_images_or_features(online):
    for given in ({}, {"images": "a.jpg", "features": np.ones((1, 64))}):
        with pytest.raises(SettingsError, match="give either images or features"):
            online.update(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"class_names": "cat"}, "class names are the text 'cat', not a list"),
        ({"class_names": []}, "there are no class names: name one or more"),
        ({"class_names": None}, "give either class_names or class_photos"),
        ({"class_names": ["cat", "cat"]}, "the class name 'cat' is there twice"),
        ({"prompt": "photo"}, "prompt 'photo' is neither one of code, paper, clip-80"),
        ({"method": "tent"}, "method is 'tent', must be one of: zs-clip, adand, cull"),
        ({"precision": "int8"}, "precision is 'int8', must be one of: fp32, fp16, bf16"),
        ({"rings": 3}, "rings is no setting of cull"),
        ({"normalized": True}, "normalized is no setting here: features are raw"),
        ({"class_photos": "examples"}, "either class_names or class_photos"),
        (PHOTOS | {"class_photos": "examples", "prompt": "paper"}, "a prompt is for class n"),
    ],
)
def test_a_detector_that_cannot_be_is_refused_before_anything_is_loaded(given, message):
    with pytest.raises(SettingsError, match=message):
        NoiseDetector(**{"class_names": NAMES, "model": "tiny", **given})


def test_copy_and_reset(online, files):
    online.update(files)
    other = copy.deepcopy(online)
    other.update(files)
    assert (online.seen, other.seen) == (len(files), 2 * len(files))
    assert "tiny" in repr(online)
    assert "cull, 3 classes" in repr(online.online)
    online.reset()
    assert (online.seen, other.seen) == (0, 2 * len(files))


def test_hindsight_on_images(online, files):
    found, features = online.decide_all(files), online.encode(files)
    assert [v.source for v in found] == [str(path) for path in files]
    np.testing.assert_array_equal(online.decide_all(features=features).score, found.score)
    assert online.decide_all(files, flag=1).noise.sum() == 1
    assert online.seen == 0
