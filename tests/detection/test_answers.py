"""Answers for scripts: files of them."""

import json

import numpy as np
import pytest
from asked import folder

from zsntta_cli.detection.runs.answers import Interview, read_answers
from zsntta_cli.detection.sources.item import Item, content_of, of_file, refuse
from zsntta_cli.errors import StoreError


def written(tmp_path, text, name="a.jsonl"):
    path = tmp_path / name
    path.write_text(text)
    return path


def reply(answers, item):
    return answers.reply(item, None, 0)


def items(count):
    return [Item(f"{i}.png", lambda: refuse("not needed")) for i in range(count)]


def test_answers_are_found_by_content_first_and_then_by_path(tmp_path):
    for name, content in (("a", b"one"), ("b", b"two"), ("c", b"three")):
        (tmp_path / name).write_bytes(content)
    a, b, c = (of_file(tmp_path / name) for name in "abc")
    lines = [
        {"content": content_of(b"one").digest.hex().upper(), "belongs": True},
        {"source": str(tmp_path / "a"), "belongs": False},
        {"source": str(tmp_path / "b"), "belongs": True, "more": 1},
        {"source": str(tmp_path / "b"), "belongs": False},
    ]
    answers = read_answers(written(tmp_path, "\n\n".join(map(json.dumps, lines))))
    assert [reply(answers, item) for item in (a, b, c)] == ["yes", "no", "skip"]
    (tmp_path / "b").unlink()
    assert reply(answers, b) == "no", "it is known by its path"


def test_a_table_of_answers(tmp_path):
    text = "\ufeffbelongs,source\nTrue,a.png\nno,b.png\n0,c.png\n"
    answers = read_answers(written(tmp_path, text, "a.csv"))
    assert answers.by_source == {
        ("a.png", None): True, ("b.png", None): False, ("c.png", None): False,
    }  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_answers_about_frames_count_before_those_about_their_video(tmp_path, ending):
    text = "source,frame,belongs\nv.mp4,3,no\nv.mp4,,yes\nw.mp4,4,no\n"
    if ending == "jsonl":
        rows = [("v.mp4", 3, False), ("v.mp4", None, True), ("w.mp4", 4, False)]
        keys = ("source", "frame", "belongs")
        text = "\n".join(json.dumps(dict(zip(keys, row, strict=True))) for row in rows)
    answers = read_answers(written(tmp_path, text, f"a.{ending}"))
    asked = [("v.mp4", 3), ("v.mp4", 4), ("w.mp4", 4), ("w.mp4", 3)]
    replies = [answers.reply(Item(name, None, frame=frame), None, 0) for name, frame in asked]
    assert replies == ["no", "yes", "no", "skip"]


@pytest.mark.parametrize("frame", ["x", "1.5", "-1", "true"])
def test_a_frame_that_is_no_number_is_no_answer(tmp_path, frame):
    with pytest.raises(StoreError, match="line 2 is no answer"):
        read_answers(written(tmp_path, f"source,frame,belongs\nv.mp4,{frame},no\n", "a.csv"))


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("", "a.jsonl", "a.jsonl has no answers: a line must have 'source' or 'content'"),
        ("x", "a.jsonl", "a.jsonl, line 1 is no JSON"),
        ("\n[]", "a.jsonl", "line 2 is no answer: it must have 'source' or 'content', and"),
        ('{"source": "a"}', "a.jsonl", "line 1 is no answer"),
        ('{"source": "a", "belongs": "yes"}', "a.jsonl", "line 1 is no answer"),
        ('{"source": 1, "belongs": true}', "a.jsonl", "line 1 is no answer"),
        ('{"belongs": true}', "a.jsonl", "line 1 is no answer"),
        ("[" * 9999, "a.jsonl", "line 1 is no JSON"),
        ("source,belongs\na,maybe\n", "a.csv", "a.csv, line 2 is no answer"),
        ("source\na\n", "a.csv", "line 2 is no answer"),
        ("source,belongs\n", "a.csv", "has no answers"),
    ],
)
def test_what_is_no_answer_is_told(tmp_path, text, name, said):
    with pytest.raises(StoreError, match=said):
        read_answers(written(tmp_path, text, name))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(StoreError, match="cannot read the answers"):
        read_answers(tmp_path / "none.jsonl")
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StoreError, match="cannot read the answers"):
        read_answers(tmp_path / "a.csv")


def test_an_interview_counts_and_ends_when_it_is_enough():
    first, truth = folder()
    replies = iter(["yes", "skip", "no", "enough", "yes"])
    interview = Interview(10, lambda *_: next(replies))
    after = interview(first, items(len(truth)))
    assert (interview.answered, interview.noise, interview.before) == (2, 1, 120)
    assert len(interview.skipped) == 1
    assert after.judged.sum() == 2
    assert next(replies) == "yes", "nothing is asked behind it"


def test_no_more_is_asked_than_there_are_images():
    first, _ = folder(count=3)
    interview = Interview(10, lambda *_: "yes")
    assert interview(first, items(3)).judged.all()
    assert np.array_equal(Interview(9, lambda *_: "enough")(first, items(3)).noise, first.noise)
