"""Sets corrupted as they are read: their names, their pixels, and what these depend on."""

import hashlib
import io
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from zsntta_cli import datasets
from zsntta_cli.datasets import status
from zsntta_cli.datasets.corruption import (
    CORRUPTIONS,
    SEVERITIES,
    Corruption,
    blurs,
    elastic,
    parse_corruption,
    pixelwise,
    strengths,
    weather,
)
from zsntta_cli.datasets.corruption.corrupting import (
    CorruptedImages,
    corrupt,
    corrupted,
    cropped,
    seed,
)
from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.datasets.images import ImageSet, limited
from zsntta_cli.datasets.names import SetName, SetParts
from zsntta_cli.encoders.batches import load_batches
from zsntta_cli.errors import DatasetError
from zsntta_cli.report.citations import uncited

LEVELS = range(1, SEVERITIES + 1)
# Whose severities are no more and no less distorted pixel by pixel: several parameters change, and
# not all in one direction, or the picture moves.
_NOT_IN_ORDER = {
    224: {"glass_blur", "snow", "frost", "elastic_transform"},
    32: {"glass_blur", "motion_blur", "snow", "frost", "elastic_transform", "pixelate"},
}


def draws(number=0):
    return np.random.Generator(np.random.PCG64(number))


def picture(size, number=3):
    image = render("shapes").image(number).resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(image)


def psnr(clean, other):
    error = np.mean((clean.astype(float) - other) ** 2)
    return 10 * np.log10(255**2 / error) if error else np.inf


# --- Names ---


@pytest.mark.parametrize(
    ("text", "name", "corruption"),
    [("svhn:fog:5", "svhn:fog:5", Corruption("fog", 5)),
     ("mine:jpeg:3=photos", "mine:jpeg:3", Corruption("jpeg_compression", 3)),
     ("mine:elastic:1:before=a=b:c", "mine:elastic:1:before",
      Corruption("elastic_transform", 1, is_before=True)),
     ("rows:snow:2=hf:ORG/NAME:test", "rows:snow:2", Corruption("snow", 2)),
     ("clip-benchmark/wds_cars:fog:5", "wds_cars:fog:5", Corruption("fog", 5)),
     ("clip-benchmark/wds_vtab-svhn:fog:5", "svhn:fog:5", Corruption("fog", 5)),
     ("svhn", "svhn", None), ("cifar10-c:fog:1", "cifar10-c:fog:1", None),
     ("imagenet-c:all:1", "imagenet-c:all:1", None), ("mine=photos", "mine", None)],
)  # fmt: skip
def test_a_name_says_how_a_set_is_corrupted(text, name, corruption):
    parsed = SetName.parse(text)
    assert (str(parsed), datasets.corruption_of(parsed)) == (name, corruption)
    again = SetName.parse(parsed.absolute)
    assert (str(again), datasets.corruption_of(again)) == (name, corruption)
    assert parsed.says_where == again.says_where == (parsed.path is not None or bool(parsed.hub))


@pytest.mark.parametrize(
    ("name", "line"),
    [("svhn:fgo:5", "no corruption 'fgo' (did you mean 'fog'?)"), ("svhn:fog", "a severity from"),
     ("svhn:fog:6", "a severity from 1 to 5"), ("svhn:fog:0", "a severity from 1 to 5"),
     ("svhn:fog:05", "a severity from"), ("svhn:fog:5:after", "nothing or :before"),
     ("svhn:fog:5:", "nothing or :before"), ("svhn:fog:5:before:", "nothing or :before"),
     ("svhn:fog:5:snow:1", "nothing or :before"), ("svhn:all:5", "not in all"),
     ("svhn::5", "no corruption ''"), ("mine:mist:1=photos", "no corruption 'mist'"),
     ("svnh:fog:5", "no data set 'svnh:fog:5' (did you mean 'svhn'?)"),
     ("mine:fog:5", "a folder of images is given as mine:fog:5=PATH"),
     ("noise-gaussian:fog:5", "no data set"),
     ("cifar10-c:fog:1:before", "must be cifar10-c:CORRUPTION:SEVERITY"),
     ("cifar10:fog:5=photos", "cannot name a folder")],
)  # fmt: skip
def test_what_is_no_corruption_of_a_set_is_one_line(name, line, tmp_path):
    with pytest.raises(DatasetError) as error:
        datasets.load_images(name, tmp_path)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_a_corrupted_set_is_the_set_in_all_but_its_images():
    clean, foggy = (datasets.load_images(name, Path()) for name in ("shapes", "shapes:fog:5"))
    assert foggy.labels.tolist() == clean.labels.tolist()
    assert (foggy.class_names, foggy.sample_ids) == (clean.class_names, clean.sample_ids)
    assert datasets.has_text(foggy)
    assert not datasets.has_text(datasets.load_images("glyphs:fog:5", Path()))
    assert datasets.partners("cifar10:fog:5") == datasets.partners("cifar10")
    assert datasets.partners("cifar10:fog:5-tune")[0] == "svhn-tune"
    assert datasets.default_prompt("coop-dtd:fog:5") == "{} texture."
    assert datasets.miscounted("svhn:fog:5", 12) == "12 of 26,032 images"
    assert datasets.miscounted("svhn:fog:5", 26_032) == datasets.miscounted("mine:fog:5", 3) == ""
    assert SetName.parse("imagenet:fog:5").family == SetName.parse("imagenet-c:fog:5").family == ""
    assert SetParts.parse("svhn:fog:5-tune").whole == "svhn:fog:5"
    assert uncited(sets=["mine:fog:5"]) == []


def test_the_identity_says_the_corruption_and_that_of_a_clean_set_is_as_it_was():
    names = "shapes", "shapes:fog:5", "shapes:fog:5:before", "shapes:fog:4"
    clean, *others = (datasets.load_images(name, Path()).identity() for name in names)
    assert "corruption" not in clean
    assert [other["corruption"] for other in others] == [
        "fog 5, 224 px, rules 1", "fog 5, own size, rules 1", "fog 4, 224 px, rules 1"
    ]  # fmt: skip


def test_sizes_of_a_corrupted_set_are_not_held_to_those_of_the_clean_one():
    images = limited(datasets.load_images("digits:fog:1", Path()), 5)
    entry = datasets.known("lsun-r")
    assert not [line for line in status.problems(images, entry) if "its images are" in line]
    assert images.read(0).size == (224, 224)
    assert datasets.load_images("digits:fog:1:before", Path()).read(0).size == (32, 32)


# --- What the pixels depend on ---


def own_set(count=8):
    """Pictures of several sizes, some of them twice."""
    sizes = [32, 40, 224, 100]
    images = [Image.fromarray(picture(sizes[i % 4], i % 6)) for i in range(count)]
    ids = [f"{i:02d}" for i in range(count)]
    return ImageSet("mine", images.__getitem__, np.full(count, -1, np.int32), ids)


@pytest.mark.parametrize("is_before", [False, True])
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_any_worker_batch_and_order_gives_the_same_bytes(name, is_before):
    images = corrupted(own_set(), "mine", Corruption(name, 3, is_before))
    backwards = [np.asarray(images.read(i).resize((16, 16))) for i in reversed(range(8))]
    resize = partial(lambda size, image: np.asarray(image.resize((size, size))), 16)
    read = {
        (workers, size): np.concatenate(
            [
                pixels
                for pixels, _ in load_batches(
                    images, [range(8)[i : i + size] for i in range(0, 8, size)], resize,
                    workers, skip_broken=False,
                )
            ]
        ).tobytes()
        for workers, size in ((1, 8), (4, 3))
    }  # fmt: skip
    assert set(read.values()) == {np.stack(backwards[::-1]).tobytes()}


def test_a_loaded_set_is_the_same_in_another_process():
    images = limited(datasets.load_images("shapes:snow:4", Path()), 7)
    again = pickle.loads(pickle.dumps(images.reload))()
    assert again.identity() == images.identity()
    assert [again.read(i).tobytes() for i in range(7)] == [
        images.read(i).tobytes() for i in range(7)
    ]


def test_the_seed_is_of_the_content_and_the_corruption():
    image = picture(40)
    other = image.copy()
    other[0, 0, 0] ^= 1
    seeds = [seed(image, "fog"), seed(other, "fog"), seed(image, "snow"),
             seed(image.reshape(20, 80, 3), "fog")]  # fmt: skip
    assert len(set(seeds)) == 4
    assert seed(image.copy(), "fog") == seeds[0]
    digest = hashlib.sha256(b"fog (40, 40, 3)" + image.tobytes())
    assert seeds[0] == int(digest.hexdigest()[:32], 16)


def test_all_severities_draw_the_same_noise():
    grey = np.full((224, 224, 3), 128, np.uint8)
    mild, strong = (corrupt(grey, Corruption("gaussian_noise", s)).astype(float) for s in (1, 2))
    inside = (strong > 0) & (strong < 255)
    ratio = (strong - 128)[inside] / 1.5
    assert np.abs(ratio - (mild - 128)[inside]).max() <= 1.7, "0.12 is 1.5 times 0.08; bytes"


def test_images_are_corrupted_at_224_pixels_or_at_their_own_size():
    image = Image.fromarray(picture(300)).crop((0, 0, 300, 260))
    read = partial(CorruptedImages, lambda _: image)
    after, before = (read(Corruption("jpeg_compression", 3, b))(0) for b in (False, True))
    assert (after.size, before.size) == ((224, 224), (300, 260))
    for result, source in ((after, cropped(image)), (before, image)):
        content = io.BytesIO()
        source.save(content, "JPEG", quality=15)
        assert result.tobytes() == Image.open(content).tobytes()


@pytest.mark.parametrize("size", [(224, 224), (300, 200), (201, 333), (7, 20), (500, 225)])
def test_the_crop_is_that_of_clips_encoders(size):
    from torchvision.transforms import CenterCrop, Compose, InterpolationMode, Resize

    image = Image.fromarray(draws().integers(0, 256, (*size[::-1], 3), np.uint8))
    theirs = Compose([Resize(224, InterpolationMode.BICUBIC), CenterCrop(224)])(image)
    assert cropped(image).tobytes() == theirs.tobytes()


# --- How strong they are ---


def test_each_corruption_has_five_strengths_of_each_size():
    for table in (strengths.IMAGENET_C, strengths.CIFAR_C):
        assert tuple(table) == CORRUPTIONS
        assert {len(levels) for levels in table.values()} == {SEVERITIES}
    assert strengths.strength("fog", 5, 224, 224) == (3, 1.4)
    assert strengths.strength("fog", 5, 32, 32) == (1.5, 1.75)
    assert strengths.strength("fog", 5, 84, 500) == (1.5, 1.75)
    assert strengths.strength("fog", 5, 85, 85) == (3, 1.4)


@pytest.mark.parametrize("size", [224, 32])
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_higher_severity_distorts_more(name, size):
    images = [picture(size, number) for number in (1, 4, 5)]
    means = [np.mean([psnr(i, corrupt(i, Corruption(name, s))) for i in images]) for s in LEVELS]
    # Of CIFAR-10-C's motion the third and fourth differ in a radius beyond four deviations.
    assert len({round(mean, 4) for mean in means}) >= SEVERITIES - 1
    if name not in _NOT_IN_ORDER[size]:
        assert means == sorted(means, reverse=True), means


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (8, 8), (2, 90), (86, 200)])
def test_every_size_is_corrupted(name, shape):
    for pixels in (
        draws().integers(0, 256, (*shape, 3), np.uint8),
        np.zeros((*shape, 3), np.uint8),
    ):
        for severity in LEVELS:
            result = corrupt(pixels, Corruption(name, severity))
            assert (result.shape, result.dtype) == (pixels.shape, np.uint8)


def test_a_grey_image_is_corrupted_as_rgb():
    grey = Image.fromarray(picture(40)).convert("L")
    result = CorruptedImages(lambda _: grey, Corruption("gaussian_noise", 5))(0)
    assert result.mode == "RGB"


# --- Each by hand ---

HALF = np.full((200, 200, 3), 0.5, np.float32)


def test_gaussian_noise_has_its_deviation():
    added = pixelwise.gaussian_noise(HALF, draws(), 0.08) - HALF
    assert added.std() == pytest.approx(0.08, rel=0.01)
    assert abs(added.mean()) < 0.001


def test_shot_noise_counts_photons():
    noisy = pixelwise.shot_noise(HALF, draws(), 25)
    assert np.allclose(noisy * 25, np.round(noisy * 25), atol=1e-4)
    assert noisy.mean() == pytest.approx(0.5, rel=0.01)
    assert noisy.var() == pytest.approx(0.5 / 25, rel=0.02)


def test_impulse_noise_is_half_salt_and_half_pepper():
    noisy = pixelwise.impulse_noise(HALF, draws(), 0.1)
    assert (noisy == 0).mean() == pytest.approx(0.05, rel=0.05)
    assert (noisy == 1).mean() == pytest.approx(0.05, rel=0.05)
    assert ((noisy == 0.5) | (noisy == 0) | (noisy == 1)).all()


def test_brightness_adds_to_the_value_of_hsv():
    pixels = pixelwise.to_pixels(np.array([[[100, 50, 0], [0, 0, 0], [250, 125, 25]]], np.uint8))
    brighter = pixelwise.to_bytes(pixelwise.brightness(pixels, draws(), 0.1))
    # V 100 + 25.5, so all times 1.255; black has no hue; V cannot exceed 255: times 1.02.
    assert brighter.tolist() == [[[125, 62, 0], [25, 25, 25], [255, 127, 25]]]


def test_contrast_goes_to_the_mean_of_each_channel():
    pixels = pixelwise.to_pixels(np.array([[[0, 100, 7], [200, 100, 9]]], np.uint8))
    assert pixelwise.to_bytes(pixelwise.contrast(pixels, draws(), 0.4)).tolist() == [
        [[60, 100, 7], [140, 100, 8]]
    ]


def test_pixelate_makes_boxes():
    pixels = np.arange(16, dtype=np.float32).reshape(4, 4, 1).repeat(3, 2) * 8 / 255
    boxes = pixelwise.to_bytes(pixelwise.pixelate(pixels, draws(), 0.5))[..., 0]
    assert boxes.tolist() == [[20, 20, 36, 36]] * 2 + [[84, 84, 100, 100]] * 2


def test_jpeg_is_pillows():
    image = Image.fromarray(picture(64))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=10)
    pixels = pixelwise.to_pixels(np.asarray(image))
    result = pixelwise.to_bytes(pixelwise.jpeg_compression(pixels, draws(), 10))
    assert result.tobytes() == Image.open(content).tobytes()


def test_bytes_are_cut_off_and_rounded_down():
    values = np.array([-1, 0, 0.999 / 255, 1 / 255, 99.6 / 255, 1, 2], np.float32)
    assert pixelwise.to_bytes(values).tolist() == [0, 0, 0, 1, 99, 255, 255]
    every = np.arange(256, dtype=np.uint8)
    assert (pixelwise.to_bytes(pixelwise.to_pixels(every)) == every).all()


def test_a_point_out_of_focus_is_a_disk():
    point = np.zeros((41, 41, 3), np.float32)
    point[20, 20] = 1
    disk = blurs.defocus_blur(point, draws(), 3, 0.1)[..., 0]
    rows, columns = np.nonzero(disk > 1e-4)
    inside = (np.arange(41)[:, None] - 20) ** 2 + (np.arange(41) - 20) ** 2 <= 9
    assert (disk > 1e-4).sum() == inside.sum() == 29
    assert np.allclose(disk[rows, columns], 1 / 29, atol=1e-5)
    assert disk.sum() == pytest.approx(1, abs=1e-4)
    assert np.allclose(blurs.defocus_blur(HALF, draws(), 10, 0.5), HALF, atol=1e-5)


@pytest.mark.parametrize(
    ("reach", "shape"), [(1, (9, 12)), (3, (20, 17)), (4, (40, 40)), (4, (8, 9))]
)
def test_glass_scatters_as_a_loop_over_views_does(reach, shape):
    image = draws(1).integers(0, 256, (*shape, 3), np.uint8)
    expected = image.copy()
    rows, columns = (range(size - reach, reach, -1) for size in shape)
    size = max(len(rows), 0), max(len(columns), 0)
    down, right = draws(2).integers(-reach, reach, (2, *size), np.int8) if all(size) else (0, 0)
    for h in rows:
        for w in columns:
            at = h - reach - 1, w - reach - 1
            there = expected[h + down[at], w + right[at]]
            here = expected[h, w]
            here[:], there[:] = there, here  # as the original's exchange: `there` stays
    assert (blurs._scatter(image, draws(2), reach) == expected).all()


def test_motion_spreads_a_point_along_half_a_gaussian():
    point = np.zeros((31, 31), np.float32)
    point[15, 15] = 1
    weights = np.exp(-(np.arange(7) ** 2) / (2 * 2**2))
    weights /= weights.sum()
    level = blurs.streaked(point, 3, 2, 0)
    assert np.allclose(level[15, 15 : 15 - 7 : -1], weights)
    assert level.sum() == pytest.approx(1)
    upright = blurs.streaked(point, 3, 2, -90)
    assert np.allclose(upright[15 : 15 + 7, 15], weights)


@pytest.mark.parametrize("zoom", [1, 1.03, 1.25, 2, 3, 4.5])
@pytest.mark.parametrize("size", [32, 101, 224])
def test_the_enlarged_middle_is_scipys_zoom(zoom, size):
    image = draws(3).random((size, size, 3), np.float32)
    kept = int(np.ceil(size / zoom))
    first = (size - kept) // 2
    part = image[first : first + kept, first : first + kept]
    wide = ndimage.zoom(part, (zoom, zoom, 1), order=1)
    trimmed = (len(wide) - size) // 2
    expected = wide[trimmed : trimmed + size, trimmed : trimmed + size]
    assert np.allclose(blurs.enlarged(image, zoom), expected, atol=1e-5)


def test_zoom_blur_is_the_mean_of_the_image_and_its_enlargements():
    image = draws(4).random((32, 32, 3), np.float32)
    zooms = [1 + 0.01 * i for i in range(7)]  # a range of floats that has its end, as published
    expected = (image + sum(blurs.enlarged(image, z) for z in zooms)) / 8
    assert np.allclose(blurs.zoom_blur(image, draws(), 1.06, 0.01), expected, atol=1e-5)


def test_a_plasma_of_two_by_two_by_hand():
    generator = draws(5)
    drawn = [2 * float(generator.random((1, 1), np.float32)[0, 0]) - 1 for _ in range(3)]
    centre = 100**2 * drawn[0]
    top, left = ((2 * 0 + 2 * centre) / 4 + 100**2 * draw for draw in drawn[1:])
    heights = np.array([[0, top], [left, centre]])
    expected = (heights - heights.min()) / (heights.max() - heights.min())
    assert np.allclose(weather.plasma(2, 2, draws(5)), expected, atol=1e-5)


def test_a_plasma_goes_on_at_its_other_side_and_is_smoother_where_it_decays_more():
    rough, smooth = (weather.plasma(256, decay, draws(6)) for decay in (1.4, 3))
    for clouds in (rough, smooth):
        assert (clouds.min(), clouds.max()) == (0, 1)
    jumps = [np.abs(np.diff(clouds, axis=1)).mean() for clouds in (rough, smooth)]
    assert jumps[0] > 3 * jumps[1]
    assert np.abs(smooth[:, 0] - smooth[:, -1]).mean() < 3 * jumps[1]


def test_fog_keeps_the_brightest_value():
    white = np.ones((224, 224, 3), np.float32)
    foggy = weather.fog(white, draws(7), 3, 1.4)
    clouds = weather.plasma(256, 1.4, draws(7))[:224, :224, None]
    assert np.allclose(foggy, (1 + 3 * clouds) / 4, atol=1e-6)
    assert (weather.fog(0 * white, draws(7), 3, 1.4) == 0).all()


def test_snow_whitens_and_falls_on_all():
    dark = np.full((224, 224, 3), 0.2, np.float32)
    snowy = weather.snow(dark, draws(8), *strengths.IMAGENET_C["snow"][0])
    # Where no flake is: 0.8 * 0.2 + 0.2 * max(0.2, 1.5 * 0.2 + 0.5).
    assert snowy.min() == pytest.approx(0.8 * 0.2 + 0.2 * 0.8)
    assert (snowy > snowy.min() + 0.1).mean() > 0.02


def test_frost_is_a_texture_over_the_picture():
    image = draws(9).random((100, 900, 3), np.float32)
    frosty = weather.frost(image, draws(10), 0.7, 0.6)
    over = (frosty - np.float32(0.7) * image) / np.float32(0.6)
    assert over.min() > -1e-5
    assert over.max() < 1 + 1e-5
    assert np.allclose(over[:, :260], over[:, 640:], atol=1e-5), "it goes on at its other side"
    textures = [weather.ice(i, False) for i in range(5)]
    assert all(0.4 < texture.mean() < 0.6 for texture in textures)
    assert len({texture.tobytes() for texture in textures}) == 5
    assert weather.ice(0, True).shape == (128, 128, 3)


@pytest.mark.parametrize("sigma", [0.9, 6.4, 19.5, 170.8])
def test_a_smoothed_field_is_scipys(sigma):
    noise = 2 * draws(11).random((60, 41), np.float32) - 1
    expected = ndimage.gaussian_filter(noise, sigma, mode="reflect", truncate=3)
    assert np.allclose(elastic.smoothed(noise, sigma), expected, atol=2e-6)
    assert elastic.smoothed(noise, 0) is noise


def test_an_elastic_transform_without_reach_is_no_transform():
    image = draws(12).random((50, 60, 3), np.float32)
    assert np.allclose(elastic.elastic_transform(image, draws(), 0, 0, 0), image, atol=1e-5)


def test_an_affine_map_moves_its_three_points_where_they_are_drawn():
    image = np.zeros((90, 90, 3), np.float32)
    points = np.array([[75, 75], [15, 75], [15, 15]])  # 30 from the middle
    for row, column in points:
        image[row - 1 : row + 2, column - 1 : column + 2] = 1
    moved = elastic._moved(image, draws(13), 5)[..., 0]
    new = points + draws(13).uniform(-5, 5, points.shape)
    labels, count = ndimage.label(moved > 0.3)
    centres = ndimage.center_of_mass(moved, labels, range(1, count + 1))
    assert count == 3
    for point in new:
        assert min(np.hypot(*(np.array(c) - point)) for c in centres) < 0.7


def test_a_name_is_parsed_from_its_parameters():
    assert str(parse_corruption("x", "fog:5:before")) == "fog 5, own size, rules 1"
