"""`detect --review` and `--learn` as they are typed: a page, answers, and better verdicts."""

import re
from pathlib import Path

from detected import NAMES, SHAPES, by_source, correction, rows, write
from made import TINY


def cards(path):
    """What a page lists: the words of each image's card, by its number."""
    found = re.findall(r'<li id="i(\d+)">(.*)', Path(path).read_text())
    return {int(i): card for i, card in found}


def test_the_page_has_all_images_beside_all_other_results(pictures):
    Path("pictures/bad.png").write_text("no image")
    result = pictures(
        "detect", "pictures", *SHAPES, "--review", "review.html", "--output", "rows.jsonl",
        "--only", "noise",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert len(cards("review.html")) == 60, "--only is of rows"
    html = Path("review.html").read_text()
    assert "<li>pictures/bad.png: it is not a picture in a known format" in html
    again = pictures("detect", "pictures", *SHAPES, "--review", "again.html")
    assert Path("again.html").read_bytes() == Path("review.html").read_bytes()
    assert len(rows(again)) == 61, "rows still go to standard output"


# What was answered


def letters_and_shapes():
    """Corrections of the six letters, and of ten shapes in folders of their names."""
    shapes = [path for path in sorted(Path("pictures").glob("*/*.png")) if path.parent.name != "x"]
    letters = [correction(path, True) for path in sorted(Path("pictures/x").iterdir())]
    return letters + [correction(path, False, path.parent.name) for path in shapes[:10]]


def test_rows_folders_and_page_obey(pictures):
    before = by_source(pictures("detect", "pictures", *SHAPES))
    letter, shape = sorted(Path("pictures/x").iterdir())[0], Path("pictures/star/00043.png")
    write(
        correction(letter, False, "circle"), correction(shape, True), correction("gone.png", True)
    )
    result = pictures(
        "detect", "pictures", *SHAPES, "--learn", "c.jsonl", "--copy-to", "sorted",
        "--review", "r.html",
    )  # fmt: skip
    after = by_source(result)
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
    assert "2 of 3 corrections apply" in result.stderr


def test_cached_features_are_told_by_their_ids_and_keep_a_class_of_their_own(cached):
    before = by_source(cached("detect", "--cached", "shapes", *TINY))
    source = next(iter(before))
    write(correction(source, False, "a unicorn"))
    result = cached("detect", "--cached", "shapes", *TINY, "--learn", "c.jsonl")
    row = by_source(result)[source]
    assert (row["stage"], row["class"]) == ("judged", before[source]["class"])
    assert "1 image corrected to a class that is not one of yours" in result.stderr


def test_what_was_corrected_is_learned_from(pictures):
    before = by_source(pictures("detect", "pictures", *SHAPES))
    write(*letters_and_shapes(), correction("gone.png", True))
    result = pictures("detect", "pictures", *SHAPES, "--learn", "c.jsonl")
    after = by_source(result)
    assert "Learned from 16 of 17 corrections." in result.stderr
    assert all(row["threshold"] == 0 for row in after.values())
    for source, row in after.items():
        assert (row["stage"] == "judged") == (source in Path("c.jsonl").read_text())
        if row["stage"] != "judged":
            assert row["noise"] == (row["margin"] > 0)
            assert row["class"] == before[source]["class"]
    assert all(after[str(path)]["noise"] for path in Path("pictures/x").iterdir())
