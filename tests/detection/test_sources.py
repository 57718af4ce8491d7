"""Where images come from, each of them once, and what is left out is said."""

import os
import unicodedata
from io import BytesIO

import pytest
from made import pack, refused
from PIL import Image

from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection.sources import check_sources, photos_of, piped
from zsntta_cli.errors import DatasetError


def png():
    content = BytesIO()
    Image.new("RGB", (4, 4)).save(content, "png")
    return content.getvalue()


def make(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(png())


def found(*given, left_out=None):
    given, left_out = [str(g) for g in given], left_out or LeftOut()
    return [photo for photos in photos_of(given, left_out) for photo in photos]


def sources(*given):
    return [photo.source for photo in found(*given)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_gives_its_images_by_the_parts_of_their_paths(here):
    make(here / "f", "b.png", "a/z.JPG", "a.png", "a/b/c.webp", "notes.txt.png", "z.HEIC")
    (here / "f/readme.md").write_text("no image")
    expected = ["f/a/b/c.webp", "f/a/z.JPG", "f/a.png", "f/b.png", "f/notes.txt.png", "f/z.HEIC"]
    assert sources("f") == expected
    files = {one.removeprefix("f/"): png() for one in expected}
    assert sources(pack(here / "f.tar", dict(reversed(files.items())))) == [
        f"{here}/f.tar/{one.removeprefix('f/')}" for one in expected
    ], "an archive is what its folder would be"


def test_globs_shards_and_lists(here):
    make(here, "x1.png", "x2.png", "d/x3.png", "-.png")
    pack(here / "s-0.tar", {"k.png": png()})
    pack(here / "s-1.tar", {"k.png": png()})
    (here / "d/list.txt").write_bytes(b"\xef\xbb\xbfx1.png\n\n  x3.png\r\nnone.png\nd\n")
    assert sources("x*.png") == ["x1.png", "x2.png"]
    assert sources("**/x*.png") == ["d/x3.png", "x1.png", "x2.png"]
    assert sources("s-{0..1}.tar") == ["s-0.tar/k.png", "s-1.tar/k.png"]
    assert sources("d/list.txt") == ["x1.png", "d/x3.png", "none.png", "d"]
    assert sources("./-.png", "x1.png") == ["-.png", "x1.png"]


NAMES = [f"my photos/{name}.png" for name in ("a", "b", "caf\u00e9")]
NOTATIONS = {
    "semicolons.csv": "\ufeffpath;label\r\n" + "".join(f"{name};cat\r\n" for name in NAMES),
    "tabs.tsv": "label\timage_path\n" + "".join(f"cat\t{name}\n" for name in NAMES),
    "fiftyone.csv": "id,filepath,ground_truth\n" + "".join(f"7,{name},cat\n" for name in NAMES),
    "headless.csv": "".join(f"{name},cat\n" for name in NAMES),
    "rows.jsonl": "".join(f'{{"format": 1, "source": "{name}"}}\n' for name in NAMES),
    "excel.csv": "sep=;\r\nno;File Name\r\n" + "".join(f"7;{name}\r\n" for name in NAMES),
    "windows.txt": "".join(name.replace("/", "\\") + "\n" for name in NAMES),
    "mac.csv": "file\n" + "".join(unicodedata.normalize("NFD", name) + "\n" for name in NAMES),
    "quoted.txt": "".join(f'"{name}"\n' for name in NAMES),
    "powershell.txt": "\r\n".join(NAMES).encode("utf-16"),
}


@pytest.mark.parametrize("name", NOTATIONS)
def test_a_list_is_read_as_whatever_wrote_it(here, name):
    make(here, *NAMES)
    text = NOTATIONS[name]
    (here / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert sources(name) == NAMES


def test_a_raw_photo_has_one_answer_however_it_is_named(here):
    make(here / "f", "a.NEF", "b.dng")
    pack(here / "f.zip", {"a.NEF": png(), "b.dng": png()})
    (here / "list.txt").write_text("f/a.NEF\nf/b.dng\n")
    for source in ("f", "f/*", "list.txt", "f.zip"):
        photos = found(source)
        assert len(photos) == 2
        for photo in photos:
            with pytest.raises(OSError, match="RAW photo: develop it"):
                photo.read()


def test_what_cannot_be_read_says_why_when_it_is_read(here):
    os.mkfifo(here / "pipe.png")
    (here / "list.txt").write_text("none.png\npipe.png\n.\nhttps://a.org/b.png\n")
    gone, pipe, folder, address = found("list.txt")
    for photo, said in ((gone, "No such file"), (pipe, "regular")):
        with pytest.raises(OSError, match=said):
            photo.read()
    assert folder.error == "it is a folder, not an image"
    assert address.error.startswith("it is a URL")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("x*.png", r"there is no file or folder x\*\.png"),
        ("empty.txt", "names no image: must have one path per line"),
        ("cut.tar", "is not a complete .tar archive"),
        ("clips.zip", r"no image in clips.zip .* skipped: 1 \.mp4"),
        ("clips", r"no image in clips .* skipped: 1 \.mp4"),
        ("x" * 5000, "there is no file or folder xxx"),
        ("a\0b", "there is no file or folder a"),
    ],
)
def test_a_wrong_path_is_one_line(here, given, said):
    (here / "empty.txt").write_text("\n")
    (here / "cut.tar").write_bytes(b"x" * 700)
    make(here, "clips/a.mp4")
    pack(here / "clips.zip", {"clips/a.mp4": b""})
    with pytest.raises(DatasetError, match=said):
        sources(given)


def test_a_closed_standard_input_is_not_read(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)  # as Python does; another file may have its number
    with refused("closed"):
        check_sources(["-"])


@pytest.mark.parametrize("mark", [b"\n", b"\0", b"\r\n"])
def test_paths_come_through_a_pipe_in_any_pieces(mark):
    names = [b"a b.png", b"\xff.png", b"c.png", *[b"new\nline.png"] * (mark == b"\0")]
    whole = mark.join(names)
    for size in (1, 7, 1000) if mark != b"\0" else (30, 1000):  # the first piece has a NUL
        pieces = iter([*(whole[i : i + size] for i in range(0, len(whole), size)), b""])
        parts = piped(lambda _, it=pieces: next(it))
        assert [os.fsencode(photo.source) for photos in parts for photo in photos] == names


# --- once


SOURCES = [
    "photos", "photos/within", "photos/../photos", "link", "link/within", "one.png", "hard.png",
    "photos/2.png", "photos/*.png", "list.txt", "a.zip",
]  # fmt: skip


@pytest.mark.parametrize("order", [SOURCES, SOURCES[::-1], SOURCES * 2])
def test_each_image_comes_once_whatever_names_it(here, order):
    """A hard link and the members of an archive are images of their own."""
    folder = here / "photos"
    make(folder, *(f"{within}{i}.png" for within in ("", "within/") for i in range(4)))
    (here / "link").symlink_to(folder)
    (here / "one.png").symlink_to(folder / "0.png")
    os.link(folder / "1.png", here / "hard.png")
    (here / "list.txt").write_text("link/3.png\nphotos/within/0.png\n")
    pack(here / "a.zip", {"0.png": png(), "1.png": png()})
    left_out = LeftOut()
    photos = found(*order, left_out=left_out)
    assert len(photos) == 8 + 1 + 2
    assert len({(os.path.realpath(photo.file), photo.member) for photo in photos}) == 11
    assert left_out.again == sum(len(sources(source)) for source in order) - 11
