"""`zsntta report` as it is typed."""

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
