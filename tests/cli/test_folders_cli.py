"""`zsntta detect --copy-to`, as it is typed."""

import csv
import subprocess
from pathlib import Path

from made import TINY, ZSNTTA, fails, pack
from sorted_photos import photos_in, tree

from zsntta_cli.datasets.drawn.builtin import render

NAMES = ",".join(render("shapes").class_names)
SHAPES = ("--classes", NAMES, *TINY)


def done(result, *said):
    assert result.exit_code == 0, result.output
    for text in said:
        assert text in result.stderr
    return result


def test_copies_are_made_once_in_a_new_folder(pictures):
    before = photos_in(Path("pictures"))
    run = ("detect", "pictures", *SHAPES)
    done(pictures(*run, "--copy-to", "out"), "out: 60 copied.")
    there = tree(Path("out"))
    assert sorted(photos_in(Path("out")).values()) == sorted(before.values())
    fails(pictures(*run, "--copy-to", "out"), "out is there already", "name another one")
    assert tree(Path("out")) == there
    done(pictures(*run, "--copy-to", "few", "--only", "noise", "--flag", "3"), "few: 3 copied.")
    with open("few/verdicts.csv", newline="") as file:
        assert all(row["copy"].startswith("_noise/") for row in csv.DictReader(file))
    names = "\n".join(map(str, Path("pictures/x").iterdir())).encode()
    piped = [ZSNTTA, "detect", "-", *SHAPES, "--copy-to", "piped"]
    subprocess.run(piped, input=names, capture_output=True, check=True)
    assert len(photos_in(Path("piped"))) == len(names.splitlines())
    assert photos_in(Path("pictures")) == before


def test_archives_are_copied_and_stay(pictures):
    contents = {path.as_posix(): path.read_bytes() for path in Path("pictures").rglob("*.png")}
    pack(Path("all.tar"), contents)
    done(pictures("detect", "all.tar", *SHAPES, "--copy-to", "out"), "60 copied")
    assert sorted(photos_in(Path("out")).values()) == sorted(contents.values())


def test_what_contradicts_itself_is_one_line(pictures):
    for option in ("--out=a/verdicts.csv", "--review=a/b/page.html"):
        fails(
            pictures("detect", "pictures", *SHAPES, "--copy-to", "a", option),
            "is within a, which --copy-to makes as a whole", code=2,
        )  # fmt: skip
        assert not Path("a").exists()
