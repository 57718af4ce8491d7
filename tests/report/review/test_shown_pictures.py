"""Pictures of the page are as a viewer shows them."""

import base64
import io
from functools import partial

import numpy as np
import pytest
from PIL import Image

from zsntta_cli.detection.sources.item import Item, content_of
from zsntta_cli.report.review.pictures import SIDE, pictures


def embedded(image, form, **options):
    content = io.BytesIO()
    image.save(content, form, **options)
    item = Item("a", partial(content_of, content.getvalue()))
    [picture] = pictures([item])
    data = base64.b64decode(picture.uri.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_turned_as_the_exif_says(form):
    pixels = np.zeros((400, 800), np.uint8)
    pixels[:, :400] = 255  # white on the left, which is above when it is turned
    exif = Image.Exif()
    exif[274] = 6
    shown = embedded(Image.fromarray(pixels), form, exif=exif)
    assert shown.shape[:2] == (SIDE, SIDE // 2)
    assert shown[:60].min() > 200
    assert shown[-60:].max() < 50


def test_transparent_pixels_are_white_and_deep_ones_are_grey():
    assert embedded(Image.new("RGBA", (300, 300), (0, 0, 0, 0)), "PNG").min() > 250
    deep = Image.fromarray(np.linspace(0, 65535, 90_000).astype(np.uint16).reshape(300, 300))
    shown = embedded(deep, "PNG")
    assert 100 < shown[SIDE // 2, SIDE // 2, 0] < 155
