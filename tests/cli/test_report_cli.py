"""`zsntta report` as it is typed."""

import dataclasses
import re
import shutil

import pytest
from kept import kept_run

from zsntta_cli.results.exchange import to_line
from zsntta_cli.results.store import RecordStore

KEPT = [kept_run(m, seed=s, known=k + s) for m, k in (("zs-clip", 5), ("cull", 7)) for s in (0, 1)]


@pytest.fixture
def stored(zsntta, tmp_path):
    """The command line beside a store."""
    with RecordStore(tmp_path / "features" / "records.sqlite", create=True) as store:
        store.add(KEPT)
    return zsntta


def test_the_store_beside_the_features_becomes_a_page(stored, tmp_path):
    result = stored("report")
    assert result.exit_code == 0, result.output
    size = round((tmp_path / "report.html").stat().st_size / 1000)
    assert result.stdout == f"report.html: 4 runs in 2 rows, {size} kB\n"
    assert result.stderr == ""
    html = (tmp_path / "report.html").read_text()
    assert "<td>55.00±7.07" in html


def test_the_same_from_any_file_that_holds_the_records(stored, tmp_path):
    (tmp_path / "some.jsonl").write_text("\n".join(map(to_line, KEPT[:3])))
    (tmp_path / "more.jsonl").write_text("\n".join(map(to_line, KEPT[2:])))
    shutil.move("features/records.sqlite", "moved.sqlite")
    wanted = stored("report", "--records", "moved.sqlite", "--output", "-").stdout
    for given in (
        ["moved.sqlite"], ["some.jsonl", "more.jsonl"], ["more.jsonl", "moved.sqlite"],
        ["some.jsonl", "--records", "moved.sqlite"],
    ):  # fmt: skip
        assert stored("report", *given, "--output", "-").stdout == wanted, given
    assert wanted.startswith("<!DOCTYPE html>")
    assert "<p>4 runs. Methods: zs-clip, cull." in wanted


def test_what_is_left_out_is_noted(zsntta, tmp_path):
    other = dataclasses.replace(KEPT[0], revision="0.1")
    with RecordStore(tmp_path / "x.sqlite", create=True) as store:
        store.add([*KEPT[1:], other])
    result = zsntta("report", "x.sqlite")
    assert result.stderr.startswith("note: left out: 1 run by another version or with other code")
    assert result.exit_code == 0


def test_seeds_mark_a_table_and_the_page_alike(simulate, zsntta, tmp_path):
    names = ("zs-clip", "adand", "onzeta", "dota")
    methods = [word for name in names for word in ("--method", name)]
    options = (*methods, "--id", "pets", "--ood", "sky", "--noise", "none", "--format", "markdown")
    table = simulate(*options, "--seed", "0-4").stdout
    assert re.findall(r"\| _[0-9.±]+_", table)
    html = zsntta("report", "--records", tmp_path / "kept.sqlite", "--output", "-").stdout
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    for row in rows:
        name = row[0].strip("| ").removesuffix("°")
        [on_page] = re.findall(rf'<tr><th scope="row">{name}(?:<sup>°</sup>)?\s*(<td.*)', html)[:1]
        cells = re.findall(r"<td>(?:<([bu])>)?([0-9.±]+)", on_page)
        signs = {"b": "**{}**", "u": "_{}_", "": "{}"}
        assert [signs[k].format(text) for k, text in cells] == [c.strip(" |") for c in row[1:]]
