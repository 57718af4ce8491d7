"""Verdict rows as text: lines of files, the table, what is said of all."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reviewed import unread, verdict

from zsntta_cli.detection.verdicts import FIELDS
from zsntta_cli.report.review.review import review
from zsntta_cli.report.verdicts import (
    Facts,
    csv_lines,
    draw,
    json_lines,
    line,
    summary,
    suspicious,
    write_rows,
)


def row(source="a.png", rank=1, noise=True, margin=0.25, **more):
    answer = "noise" if noise else "clean"
    return verdict(source, margin, threshold=0.5, **{"answer": answer, "rank": rank, **more})


def broken(source="b.png"):
    return unread(source, "gone")


def test_lines_of_files():
    head, _, lines = csv_lines([row(), broken('b,"\udcff.png')]).partition(b"\n")
    assert head.decode() == ",".join(FIELDS)
    assert lines == (
        b"1,a.png,cat,0,noise,true,1,0.75,0.5,0.25,adapted,1.5,2.0,"
        b'"[{""class"": ""cat"", ""score"": 1.0}]",,,,tiny\n'
        b'1,"b,""\xff.png",,,,,,,,,,,,,,,gone,tiny\n'
    )
    text = json_lines([broken("\udcff\n.png")])
    assert text.isascii()
    assert json.loads(text) == broken("\udcff\n.png")


def said(*rows, **facts):
    return summary(rows, Facts("cull", 2, 64, **facts))


def doubtless(count, **more):
    """Clean rows of images that differ."""
    return [
        row(f"{i}.png", noise=False, margin=-0.1, **{"score": i / 100, **more})
        for i in range(count)
    ]


CLEAR = "Every image fits one of your classes better than other words."


def test_an_all_clear_is_by_the_images_own_evidence():
    assert said(*doubtless(64))[1:] == [CLEAR]
    for rows, more in (
        (doubtless(63), {}),
        (doubtless(64, score=0.5), {}),  # all were read as white
        (doubtless(64, evidence=None, level=None), {}),  # the method does not say
        (doubtless(64), {"is_asked": True}),  # --flag
        (doubtless(64, stage="warm-up"), {}),
        ([*doubtless(64), row(stage="judged")], {}),  # a person knows one
    ):
        assert CLEAR not in said(*rows, **more)
    assert "Fewer than 64 images differ" in said(*doubtless(63))[-1]


def test_doubt_is_said_and_where_most_do_not_belong():
    unsure = [row(noise=False, answer="unsure", score=i / 100) for i in range(100)]
    clear, doubt = said(*doubtless(161), *unsure[:39])[1:]
    assert (clear, doubt[:15]) == (CLEAR, "39 are doubtful")
    assert "Most images do not seem to belong" in said(*doubtless(99), *unsure)[1]
    none = [row(score=i / 100) for i in range(100)]
    assert "those that fit best come last" in said(*doubtless(99), *none)[1]
    assert not said(*doubtless(101), *none)[1:]


ANSWERS = st.lists(st.sampled_from(["noise", "unsure", "clean", None]), min_size=1, max_size=12)


@given(answers=ANSWERS)
def test_all_outputs_agree_on_how_many(answers):
    rows = [
        row(f"{i}.png", rank=i + 1, noise=answer == "noise", answer=answer) if answer else broken()
        for i, answer in enumerate(answers)
    ]
    noise, unsure, clean = (answers.count(answer) for answer in ("noise", "unsure", "clean"))
    table = [one["answer"] for one in suspicious(rows)]
    assert table == ["noise"] * noise + ["unsure"] * unsure
    assert len(draw(rows).splitlines()) == (1 + len(table) if table else 0)
    facts = Facts("cull", 1, 64)
    doubt = f", {unsure} unsure" if unsure else ""
    assert f", {noise} flagged as noise{doubt} (cull" in summary(rows, facts)[0]
    cells = list(csv.DictReader(io.StringIO(csv_lines(rows).decode())))
    assert [one["answer"] or None for one in cells] == answers
    assert [line(one).split()[0] for one in rows] == [a or "error" for a in answers]
    html = review(rows, ["cat"], facts, {}, {})
    for answer, count in (("noise", noise), ("unsure", unsure), ("clean", clean)):
        assert html.count(f'<b class="is-{answer}">') == count


def test_parquet_has_the_fields_and_their_types(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    write_rows(path, [row(), broken("b\udcff.png")])
    table = parquet.read_table(path)
    assert tuple(table.column_names) == FIELDS
    assert [str(kind) for kind in table.schema.types] == [
        "int64", "string", "string", "int64", "string", "bool", "int64",
        "double", "double", "double", "string", "double", "double",
        "list<element: struct<class: string, score: double>>", "string", "string", "string",
        "string",
    ]  # fmt: skip
    assert table.to_pylist() == [row(), broken("b\\udcff.png")]
