"""Corrections as a file: what is read, and what is refused with its line."""

import json

import pytest
from made import refused
from reviewed import unread, verdict

from zsntta_cli.detection.corrections import Corrected, Correction, read_corrections
from zsntta_cli.errors import StoreError

GOOD = {
    "format": 1, "source": "a.png", "content": None, "noise": False, "class": "dog",
    "verdict": {"noise": True, "class": "cat", "margin": 0.5},
}  # fmt: skip


def lines(tmp_path, *rows):
    path = tmp_path / "corrections.jsonl"
    path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows))
    return path


def applied(corrections, *rows):
    corrected = Corrected(corrections)
    corrected.apply(rows, ("cat", "dog"))
    return corrected, rows


def test_each_image_has_its_last_answer(tmp_path):
    digest = "A" * 64
    rows = (
        GOOD, "\n", {**GOOD, "source": "b", "noise": True, "class": None},
        {**GOOD, "source": "c", "content": digest}, {**GOOD, "class": None},
    )  # fmt: skip
    read = read_corrections(lines(tmp_path, *rows))
    assert read == [
        Correction("a.png", False, "dog"), Correction("b", True, ""),
        Correction(digest.lower(), False, "dog"), Correction("a.png", False, ""),
    ]  # fmt: skip
    _, [row] = applied(read, verdict("a.png", -1, name="cat"))
    assert row["class"] == "cat"


BY_HAND = {
    "c.jsonl": """{"source": "a.png", "noise": true}
{"source": "b.png", "noise": false, "class": "dog"}
""",
    "excel.csv": "\ufeffsource;margin;Truth\r\na.png;-1;Noise\r\nc.png;1;\r\nb.png;1;dog\r\n",
    "answers.csv": """source,answer,class,margin,judged
a.png,noise,cat,1,true
c.png,noise,cat,1,false
b.png,clean,dog,-1,true
""",
    "rows.jsonl": """{"source": "a.png", "noise": false, "margin": -1, "truth": "noise"}
{"source": "c.png", "noise": true, "margin": 1, "truth": null}
{"source": "b.png", "noise": true, "margin": 1, "truth": "dog"}
""",
    "typed.csv": "source,noise,class\na.png,yes,\nb.png,no,dog\n",
}


@pytest.mark.parametrize("name", BY_HAND)
def test_answers_in_a_table_and_by_hand(tmp_path, name):
    (tmp_path / name).write_text(BY_HAND[name])
    assert read_corrections(tmp_path / name) == [
        Correction("a.png", True, ""), Correction("b.png", False, "dog"),
    ]  # fmt: skip


def test_rows_are_told_by_content_else_by_source():
    digest = "a" * 64
    same = [verdict(name, -1, content=digest) for name in ("x.png", "copy.png")]
    answers = [Correction(digest, noise, "") for noise in (False, True)]  # the last one counts
    corrected, rows = applied(
        [*answers, Correction("b.png", False, "dog")],
        verdict("a.png", -1), *same, verdict("b.png", 1, content="c" * 64), unread("b.png"),
    )  # fmt: skip
    assert [row["answer"] for row in rows[:4]] == ["clean", "noise", "noise", "clean"]
    assert [row["stage"] for row in rows[:4]] == ["adapted", *["judged"] * 3]
    assert (rows[3]["class"], rows[3]["class_index"]) == ("dog", 1)
    assert rows[4] == unread("b.png")
    judged, contradicted = corrected.notes()
    assert judged.startswith("3 images judged by a person: 2 of 2 corrections")
    assert contradicted.startswith("1 image has contradictory answers")


WRONG = {
    "no JSON": "invalid JSON",
    "[" * 100_000: "recursion",
    "[1]": "it is not a JSON object",
    json.dumps({**GOOD, "margin": 1}): "it is a verdict, not a correction",
    json.dumps({**GOOD, "content": "a.png"}): "'content' is 'a.png', not a SHA-256",
    json.dumps({**GOOD, "noise": None}): "'noise' is None",
    json.dumps({**GOOD, "noise": "never"}): "'noise' is 'never'",
    json.dumps({k: v for k, v in GOOD.items() if k != "noise"}): "'noise' is missing",
    json.dumps({"noise": True, "source": 7}): "neither 'source' nor 'content'",
    json.dumps({**GOOD, "noise": True}): "it is noise and has a class",
}


@pytest.mark.parametrize(("line", "said"), WRONG.items(), ids=range(len(WRONG)))
def test_something_else_is_told_with_its_line(tmp_path, line, said):
    path = lines(tmp_path, GOOD, line + "\n")
    with refused(f"{path}, line 2", said, error=StoreError):
        read_corrections(path)


def test_a_file_that_cannot_be_read_or_has_no_answer(tmp_path):
    for name, content, said in (
        ("picture.png", b"\x89PNG\xff", "cannot read the corrections"),
        ("verdicts.csv", b"source,noise,margin\na.png,true,1\n", "row 2: it is a verdict"),
        ("unanswered.csv", b"source,truth\na.png,\n", "into a column 'truth'"),
    ):
        (tmp_path / name).write_bytes(content)
        with refused(said, error=StoreError):
            read_corrections(tmp_path / name)
