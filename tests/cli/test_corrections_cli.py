"""`detect --learn` as it is typed: answers become verdicts, and teach others."""

import hashlib
import json
import shutil
from pathlib import Path

from made import TINY, fails

from zsntta_cli.datasets.drawn.builtin import render

NAMES = ",".join(render("shapes").class_names)
SHAPES = ("--classes", NAMES, *TINY)


def correction(source, noise, name=None, **values):
    said = {"noise": not noise, "class": "star", "stage": "adapted"}
    return {
        "format": 1, "source": str(source), "frame": None, "noise": noise, "class": name,
        "verdict": said, **values,
    }  # fmt: skip


def write(*corrections, path="c.jsonl"):
    Path(path).write_text("".join(json.dumps(one) + "\n" for one in corrections))
    return path


def rows(result):
    assert result.exit_code == 0, result.output
    return {row["source"]: row for row in map(json.loads, result.stdout.splitlines())}


def letters_and_shapes():
    """Corrections of the six letters, and of ten shapes in folders of their names."""
    shapes = [path for path in sorted(Path("pictures").glob("*/*.png")) if path.parent.name != "x"]
    letters = [correction(path, True) for path in sorted(Path("pictures/x").iterdir())]
    return letters + [correction(path, False, path.parent.name) for path in shapes[:10]]


def test_rows_folders_and_page_obey(pictures):
    before = rows(pictures("detect", "pictures", *SHAPES))
    [letter, *_], shape = sorted(Path("pictures/x").iterdir()), Path("pictures/star/00043.png")
    write(
        correction(letter, False, "circle"), correction(shape, True), correction("gone.png", True)
    )
    result = pictures(
        "detect", "pictures", *SHAPES, "--learn", "c.jsonl", "--copy-to", "sorted",
        "--review", "r.html",
    )  # fmt: skip
    after = rows(result)
    one, other = after[str(letter)], after[str(shape)]
    assert (one["noise"], one["answer"], one["stage"], one["class"]) == (
        False, "clean", "judged", "circle",
    )  # fmt: skip
    assert one["class_index"] == NAMES.split(",").index("circle")
    assert (other["noise"], other["answer"], other["stage"]) == (True, "noise", "judged")
    rest = before.keys() - {str(letter), str(shape)}
    assert all(after[source]["class"] == before[source]["class"] for source in rest)
    assert {after[source]["stage"] for source in rest} == {"adapted"}
    copies = [path.read_bytes() for path in Path("sorted/circle").iterdir()]
    assert letter.read_bytes() in copies
    assert Path("sorted/_noise", shape.name).read_bytes() == shape.read_bytes()
    assert Path("r.html").read_text().count('"judged",') == 2
    said = "2 images judged by a person: 2 of 3 corrections are of images here."
    assert said in result.stderr.splitlines()


def test_an_image_is_told_by_its_content_wherever_it_lies(pictures):
    content = Path("pictures/star/00043.png").read_bytes()
    write(
        correction("elsewhere/old.png", True, format=2, content=hashlib.sha256(content).hexdigest())
    )
    shutil.move("pictures/star/00043.png", "pictures/star/renamed.png")
    shutil.copy("pictures/star/renamed.png", "pictures/copy.png")
    result = pictures("detect", "pictures", *SHAPES, "--learn", "c.jsonl")
    judged = {source for source, row in rows(result).items() if row["stage"] == "judged"}
    assert judged == {"pictures/star/renamed.png", "pictures/copy.png"}
    assert "2 images judged by a person: 1 of 1 corrections" in result.stderr


def test_another_image_at_the_same_path_is_not_judged(pictures):
    path = "pictures/star/00043.png"
    write(correction(path, True, format=2, content="0" * 64))
    fails(pictures("detect", "pictures", *SHAPES, "--learn", "c.jsonl"), "not one of the 1 images")


def test_cached_features_by_their_ids_and_a_class_of_others(cached):
    before = rows(cached("detect", "--set", "shapes", *TINY))
    source = next(iter(before))
    write(correction(source, False, "a unicorn"))
    result = cached("detect", "--set", "shapes", *TINY, "--learn", "c.jsonl")
    row = rows(result)[source]
    assert (row["stage"], row["class"]) == ("judged", before[source]["class"])
    assert "1 image corrected to a class that is none of yours" in result.stderr
    assert "Learned from 1 of 1 correction." in result.stderr


def test_what_was_corrected_is_learned_from(pictures):
    before = rows(pictures("detect", "pictures", *SHAPES))
    write(*letters_and_shapes(), correction("gone.png", True))
    result = pictures("detect", "pictures", *SHAPES, "--learn", "c.jsonl")
    after = rows(result)
    assert "Learned from 16 of 17 corrections." in result.stderr
    assert all(row["threshold"] == 0 for row in after.values())
    for source, row in after.items():
        assert (row["stage"] == "judged") == (source in Path("c.jsonl").read_text())
        if row["stage"] != "judged":
            assert row["noise"] == (row["margin"] > 0)
            assert row["class"] == before[source]["class"]
    assert all(after[str(path)]["noise"] for path in Path("pictures/x").iterdir())


def test_strangers_files_are_told_with_their_line(pictures):
    write(correction("a", True), {"format": 1})
    write(correction("a", True, format=2, content="7"), path="d.jsonl")
    learn = ("detect", "pictures", *SHAPES, "--learn")
    fails(pictures(*learn, "c.jsonl"), "c.jsonl, line 2")
    fails(pictures(*learn, "d.jsonl"), "line 1: 'content'")
    fails(pictures(*learn, "e.jsonl"), "cannot read")
    pictures("detect", "pictures", *SHAPES, "--out", "rows.jsonl")
    fails(pictures(*learn, "rows.jsonl"), "line 1: it is a verdict, and no correction")
