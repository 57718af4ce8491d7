"""What systems and tools put beside images is no class and no image, wherever it lies."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import pack
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.datasets.hidden import TOOL_FOLDERS, hidden_part, is_hidden
from zsntta_cli.datasets.left_out import LeftOut
from zsntta_cli.datasets.readers.folders import images_in
from zsntta_cli.detection.sources import Scan, batches

DOTTED = (".git", ".ipynb_checkpoints", ".Trashes", ".Trash-1000", ".thumbnails", ".@__thumb")
WRITTEN = (
    "@eaDir", "#recycle", "@Recycle", "#snapshot", "$RECYCLE.BIN", "lost+found", "__MACOSX",
    "System Volume Information", "node_modules", "FOUND.000", "Catalog Previews.lrdata",
)  # fmt: skip


def picture(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4), "red").save(path)


@pytest.mark.parametrize("name", [*DOTTED, *WRITTEN])
def test_each_is_hidden_in_any_case(name):
    assert all(map(is_hidden, (name, name.upper(), name.lower())))


@given(st.sampled_from(sorted(TOOL_FOLDERS)), st.sampled_from(["x", " ", "1"]))
def test_a_longer_name_is_a_class(name, more):
    """A folder is not hidden because its name has one of these in it."""
    assert not is_hidden(name + more)
    assert not is_hidden(more + name)
    assert hidden_part(("cat", name, "1.png")) == name
    assert hidden_part(("cat", name + more, "1.png")) is None


places = st.lists(st.sampled_from(["", "cat/", "cat/small/"]), min_size=1, max_size=3, unique=True)


@settings(max_examples=20, deadline=None)
@given(places, st.lists(st.sampled_from([*DOTTED, *WRITTEN]), min_size=1, max_size=2, unique=True))
def test_folders_archives_and_detect_leave_out_the_same(tmp_path_factory, wheres, names):
    """All hidden folders are counted, and the classes are those of the images that are seen."""
    base = tmp_path_factory.mktemp("set")
    for name in ("cat/1.png", "cat/small/2.png", "dog/1.png"):
        picture(base / name)
    for where in wheres:
        for name in names:
            picture(base / where / name / "deeper" / "9.png")
    expected = ["cat/1.png", "cat/small/2.png", "dog/1.png"]
    packed = pack(base.with_suffix(".zip"), {
        str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*.png")
    })  # fmt: skip
    for path in (base, packed):
        images = datasets.load_images(f"own={path}", Path())
        assert (list(images.sample_ids), list(images.class_names)) == (expected, ["cat", "dog"])
        left_out = LeftOut()
        [items] = batches([str(path)], Scan(left_out=left_out))
        assert [str(Path(item.source).relative_to(path)) for item in items] == expected
        count = len(wheres) * len(names)
        assert left_out.words().startswith(f"{count} hidden folder")


def test_a_class_folder_may_be_a_link_but_no_folder_is_listed_twice(tmp_path):
    picture(tmp_path / "elsewhere" / "1.png")
    picture(tmp_path / "set" / "cat" / "1.png")
    os.symlink(tmp_path / "elsewhere", tmp_path / "set" / "dog")
    os.symlink(tmp_path / "set", tmp_path / "set" / "cat" / "again")
    found = [str(path.relative_to(tmp_path / "set")) for path in images_in(tmp_path / "set")]
    assert found == ["cat/1.png", "dog/1.png"]


def test_hidden_files_are_counted(tmp_path):
    for name in ("a.png", "._a.png", ".b.jpg", ".DS_Store"):
        (tmp_path / name).touch()
    left_out = LeftOut()
    assert [path.name for path in images_in(tmp_path, left_out)] == ["a.png"]
    assert left_out.words() == "3 hidden files (.DS_Store, ._a.png, .b.jpg)"
