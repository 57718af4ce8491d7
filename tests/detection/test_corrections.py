"""Corrections as a file: what is read, and what is refused with its line."""

import json

import pytest
from reviewed import unread, verdict

from zsntta_cli.detection.detecting.corrections import Corrected, Correction, read_corrections
from zsntta_cli.errors import StoreError

SAID = {"noise": True, "class": "cat", "margin": 0.5}
GOOD = {
    "format": 1, "source": "a.png", "content": None, "noise": False, "class": "dog",
    "verdict": SAID,
}  # fmt: skip


def lines(tmp_path, *rows):
    path = tmp_path / "corrections.jsonl"
    path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows))
    return path


def test_each_image_has_its_last_answer(tmp_path):
    digest = "A" * 64
    rows = (
        GOOD, "\n", {**GOOD, "source": "b", "noise": True, "class": None},
        {**GOOD, "source": "c", "content": digest}, {**GOOD, "class": None},
    )  # fmt: skip
    assert set(read_corrections(lines(tmp_path, *rows))) == {
        Correction(False, None, "a.png"), Correction(True, None, "b"),
        Correction(False, "dog", "c", content=digest.lower()),
    }  # fmt: skip


def test_rows_are_told_by_content_else_by_source():
    digest = "a" * 64
    corrected = Corrected(
        [
            Correction(True, None, "moved.png", content=digest),
            Correction(False, "dog", "b.png"),
        ],
        ("cat", "dog"),
    )
    same = [verdict(name, -1, content=digest) for name in ("x.png", "copy.png")]
    found = [verdict("a.png", -1), *same, verdict("b.png", 1, content="c" * 64), unread("b.png")]
    rows = corrected.rows(found)
    assert [row["answer"] for row in rows[:4]] == ["clean", "noise", "noise", "clean"]
    assert [row["stage"] for row in rows[:4]] == ["adapted", *["judged"] * 3]
    assert (rows[3]["class"], rows[3]["class_index"]) == ("dog", 1)
    assert rows[4] == unread("b.png")
    assert list(corrected.notes()) == [
        "3 images judged by a person: 2 of 2 corrections are of images here."
    ]


WRONG = {
    "no JSON": "is no JSON",
    "[" * 100_000: "is no JSON",
    "[1]": "it is no object",
    json.dumps({**GOOD, "format": 5}): "its format is 5, not 1",
    json.dumps({**GOOD, "margin": 1}): "it is a verdict, and no correction",
    json.dumps({**GOOD, "source": 1}): "'source' is 1",
    json.dumps({**GOOD, "content": "a.png"}): "'content' is 'a.png', no SHA-256",
    json.dumps({**GOOD, "noise": None}): "'noise' is None",
    json.dumps({**GOOD, "noise": "no"}): "'noise' is 'no'",
    json.dumps({**GOOD, "class": 3}): "'class' is 3",
    json.dumps({k: v for k, v in GOOD.items() if k != "class"}): "'class' is missing",
    json.dumps({**GOOD, "noise": True}): "an image that is noise has a class",
}


@pytest.mark.parametrize(("line", "said"), WRONG.items(), ids=range(len(WRONG)))
def test_something_else_is_told_with_its_line(tmp_path, line, said):
    path = lines(tmp_path, GOOD, line + "\n")
    with pytest.raises(StoreError) as caught:
        read_corrections(path)
    assert str(caught.value).startswith(f"{path}, line 2")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_or_is_empty(tmp_path):
    with pytest.raises(StoreError, match="cannot read the corrections"):
        read_corrections(tmp_path / "none.jsonl")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff")
    with pytest.raises(StoreError, match="cannot read the corrections"):
        read_corrections(tmp_path / "picture.png")
    with pytest.raises(StoreError, match="has no corrections"):
        read_corrections(lines(tmp_path, "\n"))
