"""Images in folders by their verdicts: as the list there says, and nothing else is touched."""

import csv
import errno
import hashlib
import os
from pathlib import Path

import pytest
from made import Notes
from reviewed import run_of, unread, verdict
from sorted_photos import pairs, photos_in, sort, tree, write

from zsntta_cli.detection.detecting import Batch
from zsntta_cli.detection.sources import batches
from zsntta_cli.detection.sources.item import Item, failed, of_file
from zsntta_cli.errors import StoreError
from zsntta_cli.report import placing
from zsntta_cli.report.placed_list import PlacedList
from zsntta_cli.report.verdict_folders import Sorter, folder_names

PHOTOS = {"a/1.png": b"one", "b/1.png": b"two", "c/1.png": b"one", "d/2.png": b"noise"}
ANSWERS = {"a/1.png": "cat", "b/1.png": "cat", "c/1.png": "_unsure", "d/2.png": "_noise"}


@pytest.fixture
def here(tmp_path):
    write(tmp_path / "in", PHOTOS)
    return tmp_path


def answers(here, **changed):
    """Where photos are from, and what they are."""
    all_of_them = ANSWERS | {name.replace("_", "/") + ".png": one for name, one in changed.items()}
    return {here / "in" / name: answer for name, answer in all_of_them.items()}


def rows(here):
    """The list, as any reader of CSV has it."""
    with (here / "out/verdicts.csv").open(newline="", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def test_safe_folders_for_classes():
    names = folder_names([
        "cat", "a/b", "a_b", "../x", "..", "_noise", "_Unsure", "CAT", "ö ä", "x" * 300,
        "verdicts.csv",
    ])  # fmt: skip
    assert list(names.values()) == [
        "cat", "a_b", "a_b-2", "_x", "class", "_noise-2", "_Unsure-2", "CAT-2", "ö ä", "x" * 80,
        "verdicts.csv-2",
    ]  # fmt: skip


def test_images_are_put_where_they_belong_and_nothing_is_replaced(here):
    write(here, {"out/_noise/2.png": b"mine"})
    before = tree(here / "in")
    for _ in range(2):  # the second time all is there
        notes = sort(here / "out", answers(here))
        assert photos_in(here / "out") == {
            name: b"mine" if source is None else PHOTOS[source]
            for name, source in {
                "cat/1.png": "a/1.png", "cat/1-2.png": "b/1.png", "_unsure/1.png": "c/1.png",
                "_noise/2.png": None, "_noise/2-2.png": "d/2.png",
            }.items()
        }  # fmt: skip
    assert notes == [f"{here / 'out'}: 4 as they were."]
    assert tree(here / "in") == before
    assert len(rows(here)) == 4


def test_the_list_says_what_came_from_where(here):
    notes = sort(here / "out", answers(here))
    assert notes == [f"{here / 'out'}: 4 copied."]
    listed = rows(here)
    assert [(row["copy"], row["answer"], row["class"]) for row in listed] == [
        ("cat/1.png", "clean", "cat"), ("cat/1-2.png", "clean", "cat"),
        ("_unsure/1.png", "unsure", "cat"), ("_noise/2.png", "noise", "cat"),
    ]  # fmt: skip
    for row in listed:
        assert (here / "out" / row["copy"]).read_bytes() == Path(row["source"]).read_bytes()
        content = (here / "out" / row["copy"]).read_bytes()
        assert row["content"] == hashlib.sha256(content).hexdigest()
        assert row["margin"] == "-1.0"
    (images,) = batches([str(here / "out/verdicts.csv")])
    assert [image.load().data for image in images] == [*PHOTOS.values()]


ODD = [
    b"two\nlines.png",
    b"a\rb.png",
    b' "q", .png',
    b"\xff\xfe.png",
    "ä b.png".encode(),
    b"=1.png",
]


def test_names_of_any_bytes_survive_the_list(tmp_path):
    paths = [tmp_path / "in" / os.fsdecode(name) for name in ODD]
    write(tmp_path, {path: bytes([n]) for n, path in enumerate(paths)})
    sort(tmp_path / "out", dict.fromkeys(paths, "cat"))
    assert [row["source"] for row in rows(tmp_path)] == [str(path) for path in paths]
    (images,) = batches([str(tmp_path / "out/verdicts.csv")])
    assert [image.load().data for image in images] == [bytes([n]) for n in range(len(ODD))]
    assert sort(tmp_path / "out", dict.fromkeys(paths, "dog")) == [
        f"{tmp_path / 'out'}: 6 moved within it."
    ]
    assert len(photos_in(tmp_path / "out")) == 6


def test_other_verdicts_move_images_within_the_folder(here):
    sort(here / "out", answers(here))
    notes = sort(here / "out", answers(here, a_1="_noise", d_2="dog"))
    assert notes == [f"{here / 'out'}: 2 moved within it, 2 as they were."]
    names = {"_noise/1.png", "cat/1-2.png", "_unsure/1.png", "dog/2.png"}
    assert {*photos_in(here / "out")} == names, "none is in two folders"
    assert {row["copy"] for row in rows(here)} == names
    assert next(row["answer"] for row in rows(here) if row["copy"] == "_noise/1.png") == "noise"


def test_images_that_are_gone_from_the_run_are_gone_from_the_folder(here):
    sort(here / "out", answers(here))
    few = {here / "in/b/1.png": "cat"}
    assert sort(here / "out", few) == [f"{here / 'out'}: 3 removed, 1 as they were."]
    assert [*photos_in(here / "out")] == ["cat/1-2.png"]
    assert not (here / "out/_noise").exists(), "it was made for images"
    assert photos_in(here / "in") == PHOTOS


def test_the_last_copy_of_an_image_stays(here):
    sort(here / "out", answers(here))
    (here / "in/a/1.png").unlink()
    write(here / "in", {"d/2.png": b"another"})
    notes = sort(here / "out", {here / "in/b/1.png": "cat"})
    assert "2 in" in notes[-1]
    assert "originals are gone or changed" in notes[-1]
    assert {*photos_in(here / "out")} == {"cat/1.png", "cat/1-2.png", "_noise/2.png"}


def test_what_a_person_put_or_changed_stays(here):
    sort(here / "out", answers(here))
    mine = {"cat/1.png": b"edited", "cat/mine.png": b"mine", "_noise/2.png": b"replaced"}
    for name in ("cat/1.png", "_noise/2.png"):
        (here / "out" / name).unlink()
    write(here / "out", mine)
    kept = {here / "in" / n: "dog" for n in ("a/1.png", "b/1.png", "c/1.png")}
    notes = sort(here / "out", kept)
    assert mine.items() <= photos_in(here / "out").items()
    assert any("changed after zsntta put them there" in note for note in notes), notes
    assert {"cat/1.png", "_noise/2.png"} <= {row["copy"] for row in rows(here)}


def test_an_original_that_changed_is_copied_anew(here):
    sort(here / "out", answers(here))
    write(here / "in", {"a/1.png": b"edited"})
    sort(here / "out", answers(here))
    assert photos_in(here / "out")["cat/1.png"] == b"edited"
    assert len(photos_in(here / "out")) == 4


def test_names_that_differ_in_case_alone_do_not_clash(tmp_path):
    write(tmp_path / "in", {"a/X.png": b"1", "b/x.PNG": b"2"})
    sort(tmp_path / "out", {tmp_path / "in/a/X.png": "cat", tmp_path / "in/b/x.PNG": "cat"})
    assert {*photos_in(tmp_path / "out")} == {"cat/X.png", "cat/x-2.PNG"}


def test_an_image_that_is_there_twice_is_put_once(here):
    twice = pairs(answers(here))
    batch = Batch([*twice.items, *twice.items], [*twice.rows, *twice.rows])
    sort(here / "out", {}, batch=batch)
    assert len(photos_in(here / "out")) == 4
    os.link(here / "in/a/1.png", here / "in/e.png")  # another name, which is another image
    sort(here / "out", answers(here) | {here / "in/e.png": "cat"})
    assert len(photos_in(here / "out")) == 5


def test_what_has_no_file_and_what_went_is_told(here):
    batch = pairs(answers(here))
    (here / "in/a/1.png").unlink()
    write(here / "in", {"b/1.png": b"changed since"})
    items = [*batch.items, Item("a.mp4", None, frame=0), failed("none", "gone")]
    rows_of = [*batch.rows, verdict("a.mp4", -1.0, frame=0), unread("none")]
    member = Item("x.zip/a.png", of_file(here / "in/d/2.png").load, here / "x.zip", "a.png")
    content = hashlib.sha256(b"noise").hexdigest()
    batch = Batch([*items, member], [*rows_of, verdict(member.source, -1.0, content=content)])
    notes = sort(here / "out", {}, batch)
    assert "note: 1 not copied: no files of their own." in notes
    assert any("a/1.png is left out: No such file" in note for note in notes)
    assert any("1 not copied: changed after they were judged" in note for note in notes)
    assert {*photos_in(here / "out")} == {"_unsure/1.png", "_noise/2.png", "cat/a.png"}


def test_a_link_is_copied_as_the_file_that_it_leads_to(here):
    (here / "in/l.png").symlink_to("a/1.png")
    sort(here / "out", {here / "in/l.png": "cat"})
    assert not (here / "out/cat/l.png").is_symlink()
    assert photos_in(here / "out") == {"cat/l.png": b"one"}


def test_folders_that_were_there_stay(here):
    write(here, {"out/cat/mine.png": b"mine"})
    (here / "out/_noise").mkdir()
    sort(here / "out", answers(here))
    sort(here / "out", {here / "in/c/1.png": "_unsure"})
    assert {*tree(here / "out")} == {
        "_noise", "_unsure", "_unsure/1.png", "cat", "cat/mine.png", "verdicts.csv",
    }  # fmt: skip


def test_a_folder_is_filled_by_one_process(here):
    sort(here / "out", answers(here))
    placed = PlacedList(here / "out")
    with pytest.raises(StoreError, match="is being filled by another zsntta"):
        sort(here / "out", answers(here))
    assert placed.images
    del placed
    sort(here / "out", answers(here))


ROW = "/in/a.png,cat/a.png,clean,cat,-1.0,00,1"
HEAD = "source,copy,answer,class,margin,content,made\n"


@pytest.mark.parametrize(
    "text",
    [
        "source\na.png\n", '"', HEAD + ROW[1:].replace("cat/", "/"),
        HEAD + ROW.replace("cat/a", "../a"),
        HEAD + ROW.replace(",1", ",x"), HEAD + "a,b",
        HEAD + ROW.replace("cat/a.png", "verdicts.csv"),
        "source,copy,how,answer,class,margin,frame,time_s,content,made\n",  # of moved ones, perhaps
    ],
)  # fmt: skip
def test_what_is_no_list_is_left_alone(here, text):
    write(here, {"out/verdicts.csv": text.encode()})
    with pytest.raises(StoreError, match="is no list of images that zsntta put there"):
        sort(here / "out", answers(here))
    assert photos_in(here) == {f"in/{name}": content for name, content in PHOTOS.items()}


def test_rows_beside_the_list_count_as_far_as_they_go(here):
    sort(here / "out", answers(here))
    placed = PlacedList(here / "out")
    image = next(iter(placed.images.values()))
    placed.add([])
    placed._due = float("inf")
    others = [image._replace(copy=f"cat/{n}.png") for n in (7, 8)]
    for other in others:
        placed.add([other])
    more = here / "out/.verdicts.more"
    placed.unlock()  # as where the process is killed
    assert [*PlacedList(here / "out").images][-2:] == ["cat/7.png", "cat/8.png"]
    more.write_bytes(more.read_bytes()[:-9])  # a write that was cut off
    assert [*PlacedList(here / "out").images][-1] == "cat/7.png"
    (here / "out/verdicts.csv").write_text(HEAD)  # a list that was written after them
    assert not PlacedList(here / "out").images


def test_a_full_disk_is_one_line_and_the_next_run_goes_on(here, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(placing, "sync", full)
        with pytest.raises(StoreError, match=r"cannot write .*No space left on device"):
            sort(here / "out", answers(here))
    assert not photos_in(here / "out")
    sort(here / "out", answers(here))
    assert len(photos_in(here / "out")) == 4
    assert {*PlacedList(here / "out").images} == {*photos_in(here / "out")}


def test_a_file_in_the_way_of_a_folder_is_one_line(here):
    write(here, {"file": b"x", "out/cat": b"mine"})
    for root in ("file", "out"):
        with pytest.raises(StoreError, match="cannot write"):
            sort(here / root, answers(here))
    assert (here / "out/cat").read_bytes() == b"mine"
    assert photos_in(here / "in") == PHOTOS


def test_a_name_that_is_taken_meanwhile_is_not_replaced(here, monkeypatch):
    write_new = placing.write_new

    def slow(content, path, scratch, *original):
        if path.name == "1.png" and path.parent.name == "cat":
            path.write_bytes(b"came first")
        write_new(content, path, scratch, *original)

    monkeypatch.setattr("zsntta_cli.report.verdict_folders.write_new", slow)
    sort(here / "out", answers(here))
    placed = photos_in(here / "out")
    assert placed["cat/1.png"] == b"came first"
    assert sorted(placed.values()) == sorted([*PHOTOS.values(), b"came first"])
    assert "cat/1.png" not in {row["copy"] for row in rows(here)}


def test_a_run_that_is_ended_removes_nothing(here):
    sort(here / "out", answers(here))
    sorter = Sorter(here / "out", Notes())
    sorter.open(run_of("cat", "dog"))
    sorter.take(pairs({here / "in/a/1.png": "dog"}))
    sorter.close()
    assert len(photos_in(here / "out")) == 4


def test_a_folder_with_files_but_no_list_is_told(here):
    write(here, {"out/cat/1.png": b"one"})
    notes = sort(here / "out", answers(here))
    assert notes[0] == f"note: {here / 'out'} has files that no list names: they stay."
