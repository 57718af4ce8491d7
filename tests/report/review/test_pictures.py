"""Pictures of a page: addresses that no name can make anything else of, and what is shown."""

import base64
import io
import os
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes, urljoin, urlsplit

import pytest
from PIL import Image

from zsntta_cli.detection.sources import Photo, of_file
from zsntta_cli.report.review.review import address, pictures

HERE = Path("pages")
NAMES = [
    "a b.png", "a:b.png", "javascript:alert(1).jpg", "50%25.png", "#1?.png",
    "'\"><img src=x>.png", "\udcff\n.jpeg", "ä\u202e.webp", "..hidden.gif", "&amp;.avif",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_it_is_relative_plain_and_of_that_file(name):
    found = address(of_file(HERE / name), HERE)
    assert found.startswith("./")
    assert not set(found) & set(" :#?'\"<>&\\\n")
    assert found.isascii()
    at = urlsplit(urljoin("file:///home/pages/review.html", found))
    assert (at.scheme, at.netloc, at.query, at.fragment) == ("file", "", "", "")
    assert unquote_to_bytes(at.path) == b"/home/pages/" + os.fsencode(name)


def test_it_goes_from_the_page_to_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert address(of_file(Path("photos/a.png")), Path("out/now")) == "../../photos/a.png"
    assert address(of_file(Path("//host/a.png")), Path()).startswith("../"), "and of no host"
    assert address(of_file(tmp_path / "photos" / "a.PNG"), Path()) == "./photos/a.PNG"


def test_what_has_no_file_that_browsers_draw_has_none():
    assert address(Photo("a.png", bytes, error="it is gone"), HERE) is None
    assert address(Photo("s.tar/a.png", bytes, Path("s.tar"), "a.png"), HERE) is None
    # Browsers take a backslash for a slash, however it is spelled.
    for name in ("a.heic", "a.tif", "a.jp2", "a", "png", "a\\b.png"):
        assert address(of_file(Path(name)), HERE) is None, name


def image_file(size, kind, mode):
    content = io.BytesIO()
    Image.new(mode, size, 120).save(content, kind)
    return content.getvalue()


def opened(picture):
    """The picture that is embedded."""
    kind, coded = re.fullmatch(r"data:image/(webp|jpeg);base64,(.*)", picture.uri).groups()
    image = Image.open(io.BytesIO(base64.b64decode(coded)))
    assert image.format.lower() == kind
    assert not image.getexif()
    return image


def test_pictures_are_small_and_what_cannot_be_read_has_none():
    sizes = ((4000, 1000), "JPEG", "RGB"), ((20, 300), "PNG", "L"), ((8, 8), "PNG", "P")
    data = [image_file(*one) for one in sizes]
    photos = [Photo(str(i), lambda one=one: one) for i, one in enumerate(data)]
    photos += [of_file(Path("gone")), Photo("cut", lambda: data[0][:200])]
    found = pictures(photos)
    assert found[3:] == [None, None]
    assert [(one.width, one.height) for one in found[:3]] == [(256, 64), (17, 256), (8, 8)]
    assert [opened(one).size for one in found[:3]] == [(256, 64), (17, 256), (8, 8)]
    assert max(len(one.uri) for one in found[:3]) < 8000
