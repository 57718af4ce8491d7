"""Verdict rows as text: lines of files, the table, what is said of all."""

import gc
import json
import warnings

import pytest

from zsntta_cli.detection.runs.detecting import Batch
from zsntta_cli.detection.verdicts import FIELDS, row_schema
from zsntta_cli.errors import StoreError
from zsntta_cli.report.verdict_files import (
    GrowingFile,
    csv_lines,
    json_lines,
    rows_file,
)
from zsntta_cli.report.verdicts import Tally, line, place, suspicious


def row(source="a.png", rank=1, noise=True, margin=0.25, **more):
    judged = {
        "format": 2, "source": source, "class": "cat", "class_index": 0,
        "answer": "noise" if noise else "clean", "noise": noise, "rank": rank, "score": 0.75, "threshold": 0.5, "margin": margin,
        "stage": "adapted", "evidence": 1.0, "kind": "another kind", "top": [{"class": "cat", "score": 0.5}], "encoder": "tiny",
    }  # fmt: skip
    return {**dict.fromkeys(FIELDS), **judged, **more}


def broken(source="b.png"):
    return {**dict.fromkeys(FIELDS), "format": 2, "source": source, "error": "gone", "encoder": "t"}


def test_lines_of_files():
    assert csv_lines([row(), broken('b,"\udcff.png')]) == (
        b"2,a.png,,,cat,0,noise,true,1,0.75,0.5,0.25,adapted,1.0,another kind,"
        b'"[{""class"": ""cat"", ""score"": 0.5}]",,,tiny\n2,"b,""\xff.png",,,,,,,,,,,,,,,,gone,t\n'
    )
    text = json_lines([broken("\udcff\n.png")])
    assert text.isascii()
    assert json.loads(text) == broken("\udcff\n.png")


def test_the_suspicious_are_those_of_the_first_ranks():
    some = [row("c", 3), row("x", 4, noise=False), row("a", 1), broken(), row("b", 2)]
    assert [one["source"] for one in suspicious(some)] == ["a", "b", "c"]
    assert [one["source"] for one in suspicious(some, 1)] == ["a"]


def test_a_row_as_a_line():
    assert line(row()) == "noise  +0.25  cat  a.png"
    assert line(row(noise=False, margin=-0.5)) == "clean  -0.50  cat  a.png"
    assert line(broken()) == "error  b.png: gone"
    assert place(row("c.mp4", frame=3, time_s=1.5)) == "c.mp4 at 1.50 s"


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_rows_that_nobody_writes_leave_nothing_open(tmp_path, ending):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for batches in ([], [batch(row())]):
            file = rows_file(tmp_path / f"x{ending}")
            for one in batches:
                file.take(one)
            del file
        gc.collect()
    assert [str(warning.message) for warning in said] == []
    assert not list(tmp_path.iterdir())


def batch(*rows):
    return Batch([None] * len(rows), list(rows))


def said(*rows, method="ridge", classes=2):
    tally = Tally(method, classes, {"ridge": 64, "adand": 1280}[method])
    tally.add(rows)
    return tally.lines()


def test_what_is_said_of_all():
    assert said(row(), row(noise=False)) == ["2 images, 1 flagged as noise (ridge, 2 classes)."]
    assert said(row(noise=False), classes=1) == [
        "1 image, 0 flagged as noise (ridge, 1 class).",
        "No sign of images beyond your classes.",
    ]
    assert said(row(stage="warm-up"), row(), broken("b\n.png"), method="adand") == [
        "3 images, 2 flagged as noise (adand, 2 classes), 1 not read, the first: b\\n.png: gone.",
        "1 of 2 by ZS-CLIP's rule: before 1,280 images adand cannot tell what is usual here.",
    ]
    assert said(row(stage="warm-up"))[1].startswith("All by ZS-CLIP's rule: before 64 images ridge")
    assert said(broken())[1:] == [], "of nothing that was judged nothing is said"


def test_a_whole_file_appears_at_its_end(tmp_path):
    path = tmp_path / "deep" / "rows.csv"
    file = rows_file(path)
    file.take(batch(row()))
    assert not path.exists()
    file.take(batch(broken()))
    file.close()
    assert path.read_text().splitlines()[0] == ",".join(FIELDS)
    assert len(path.read_text().splitlines()) == 3


def test_a_growing_file_is_cut_to_what_counts(tmp_path):
    path = tmp_path / "rows.csv"
    file = GrowingFile(path).begin(0, is_new=True)
    file.take(batch(row()))
    size = file.size
    file.take(batch(row("lost.png")))
    file.close()
    again = GrowingFile(path).begin(size, is_new=False)
    again.take(batch(row("b.png")))
    again.close()
    lines = path.read_text().splitlines()
    assert [one.split(",")[1] for one in lines] == ["source", "a.png", "b.png"]
    with pytest.raises(StoreError, match="has rows already"):
        GrowingFile(path).begin(0, is_new=True)
    with pytest.raises(StoreError, match=r"has [\d,]+ bytes, and the state says 9,999"):
        GrowingFile(path).begin(9999, is_new=False)


def test_parquet_has_the_fields_and_their_types(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    file = rows_file(path)
    file.take(batch(row(), broken("b\udcff.png")))
    file.close()
    table = parquet.read_table(path)
    assert tuple(table.column_names) == FIELDS == tuple(row_schema()["properties"])
    assert [str(kind) for kind in table.schema.types] == [
        "int64", "string", "int64", "double", "string", "int64", "string", "bool", "int64",
        "double", "double", "double", "string", "double", "string",
        "list<element: struct<class: string, score: double>>", "string", "string", "string",
    ]  # fmt: skip
    assert table.to_pylist() == [row(), broken("b\\udcff.png")]
