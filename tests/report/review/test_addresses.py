"""Where a page finds image files: addresses that no name can make anything else of."""

import os
import sys
from pathlib import Path
from urllib.parse import unquote_to_bytes, urljoin, urlsplit

import pytest

from zsntta_cli.detection.sources.item import Item, failed, of_file
from zsntta_cli.report.review.pictures import address

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
    file = Path("a.png")
    assert address(failed("a.png", "it is gone"), HERE) is None
    assert address(Item("s.tar/a.png", of_file(file).load, Path("s.tar"), "a.png"), HERE) is None
    assert address(Item("v.png", of_file(file).load, file, frame=3), HERE) is None
    for name in ("a.heic", "a.tif", "a.jp2", "a", "png"):
        assert address(of_file(Path(name)), HERE) is None, name


@pytest.mark.skipif(sys.platform == "win32", reason="no such name there")
def test_browsers_take_a_backslash_for_a_slash_so_such_a_file_has_none():
    assert address(of_file(Path("a\\b.png")), HERE) is None


def test_another_drive_is_no_error(monkeypatch):
    def refuse(*_):
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr("os.path.relpath", refuse)
    assert address(of_file(Path("a.png")), HERE) is None
