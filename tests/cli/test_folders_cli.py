"""`zsntta detect --copy-to`, as it is typed."""

import csv
import subprocess
from pathlib import Path

from made import TINY, ZSNTTA, fails, pack
from sorted_photos import photos_in, tree

from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.report.placed_list import PlacedList

NAMES = ",".join(render("shapes").class_names)
SHAPES = ("--classes", NAMES, *TINY)


def done(result, *said):
    assert result.exit_code == 0, result.output
    for text in said:
        assert text in result.stderr
    return result


def rows(folder):
    with open(f"{folder}/verdicts.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_a_second_run_is_as_the_first_and_others_move(pictures):
    before = photos_in(Path("pictures"))
    first = ("detect", "pictures", *SHAPES, "--copy-to", "out")
    done(pictures(*first), "out: 60 copied.")
    there = tree(Path("out"))
    done(pictures(*first), "out: 60 as they were.")
    assert tree(Path("out")) == there
    other = done(pictures(*first, "--flag", "3"))
    assert "moved within it" in other.stderr
    listed = rows("out")
    assert len(photos_in(Path("out"))) == len(listed) == 60, "none is in two folders"
    assert sum(row["copy"].startswith("_noise/") for row in listed) == 3
    assert photos_in(Path("pictures")) == before
    done(pictures(*first, "--only", "noise", "--flag", "3"), "57 removed, 3 as they were")
    assert len(photos_in(Path("out"))) == 3
    names = "\n".join(map(str, Path("pictures/x").iterdir())).encode()
    piped = [ZSNTTA, first[0], "-", *first[2:]]
    subprocess.run(piped, input=names, capture_output=True, check=True)
    assert len(photos_in(Path("out"))) > 3, "what comes on arrival is added"


def test_the_folder_is_no_source(pictures):
    first = ("detect", *SHAPES, "--copy-to", "pictures/out")
    done(pictures(*first, "pictures"), "60 images,")
    done(pictures(*first, "pictures"), "60 images,", "60 as they were")
    Path("link").symlink_to("pictures/out")
    through = ("detect", *SHAPES, "--copy-to", "link")
    done(pictures(*through, "pictures"), "60 images,", "60 as they were")
    left = "60 of the images left out: they are in pictures/out, where results go."
    done(pictures(*first, "pictures/**/*.png"), left, "60 images,")
    Path("list.txt").write_text("".join(f"{path}\n" for path in Path("pictures").rglob("*.png")))
    done(pictures(*first, "list.txt"), left, "60 images,")
    for source in ("pictures/out", "link", "pictures/out/_noise"):
        if Path(source).exists():
            fails(pictures(*first, source), "lie where results go: name another folder", code=2)
    fails(pictures("detect", "link", *SHAPES, "--copy-to", "pictures/out"), "results go", code=2)
    Path("list.txt").write_text(
        "".join(f"{path}\n" for path in Path("pictures/out").rglob("*.png"))
    )
    nothing = pictures(*first, "list.txt")
    assert nothing.exit_code == 1
    assert left in nothing.stderr
    assert nothing.stderr.endswith("error: nothing was judged: there was no image.\n")
    assert len(photos_in(Path("pictures"))) == 120, "a run without images removes nothing"


def test_archives_are_copied_and_stay(pictures):
    contents = {path.as_posix(): path.read_bytes() for path in Path("pictures").rglob("*.png")}
    pack(Path("all.tar"), contents)
    run = ("detect", "all.tar", *SHAPES)
    done(pictures(*run, "--copy-to", "out"), "60 copied")
    assert sorted(photos_in(Path("out")).values()) == sorted(contents.values())
    done(pictures(*run, "--copy-to", "out", "--only", "noise", "--flag", "2"), "58 removed")


def test_what_contradicts_itself_is_one_line(pictures):
    both = ("--copy-to", "a", "--out", "a/verdicts.csv")
    fails(pictures("detect", "pictures", *SHAPES, *both), "name another file", code=2)
    assert not Path("a").exists()


def test_one_process_at_a_time_and_strange_lists(pictures):
    Path("out").mkdir()
    copy = ("detect", "pictures", *SHAPES, "--copy-to", "out")
    placed = PlacedList(Path("out"))
    fails(pictures(*copy), "out is being filled by another zsntta")
    del placed
    Path("out/verdicts.csv").write_text("source,answer\n")
    fails(pictures(*copy), "out/verdicts.csv is no list of images that zsntta put there")


def test_as_it_is_installed(pictures):
    run = (ZSNTTA, "detect", "pictures", *SHAPES, "--copy-to", "out")
    subprocess.run(run, check=True, capture_output=True)
    assert len(photos_in(Path("pictures"))) == len(photos_in(Path("out"))) == 60
