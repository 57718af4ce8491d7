"""`zsntta records`: what a list shows, which runs it chooses; what is asked."""

import csv
import io
import json
import re

import pytest
from kept import kept_run
from made import fails

from zsntta_cli.results.store import RecordStore

PATH = "kept.sqlite"


@pytest.fixture
def keep(tmp_path):
    """Put runs into a store."""

    def keep(*runs):
        with RecordStore(tmp_path / PATH, create=True) as store:
            store.add(runs)

    return keep


def rows(zsntta, *words):
    """A list as CSV has it."""
    result = zsntta("records", "list", "--records", PATH, "--format", "csv", *words)
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_a_list_has_what_differs_in_the_order_of_keeping(keep, zsntta):
    keep(kept_run("adand", warmup=5), kept_run("zs-clip"))
    title, *lines = zsntta("records", "list", "--records", PATH).stdout.splitlines()
    assert title == "preset paper, encoder tiny, id_set shapes, ood_set glyphs, ratio 0.5, seed 0"
    cells = [re.sub("[┃│]", "", line).split() for line in lines if line[0] in "┃│"]
    heads, first, second = cells
    assert heads == ["key", "run", "acc_h", "auroc"]
    assert first[1:] == ["adand", "warmup=5", "0.8000", "0.9000"]
    assert second[1:] == ["zs-clip", "0.8000", "0.9000"]


def test_runs_are_chosen_by_what_they_are_of(keep, zsntta):
    runs = [
        kept_run(m, ratio=r, seed=s, **({"warmup": w} if m == "adand" else {}))
        for m in ("adand", "zs-clip") for r in (0.25, 0.5) for s in (0, 1)
        for w in ((5, 7) if m == "adand" else (0,))
    ]  # fmt: skip
    keep(*runs)
    for words, count in (
        ((), 12),
        (("--method", "adand"), 8),
        (("--seed", "1", "--ratio", "0.5"), 3),
        (("--setting", "warmup=7"), 4),
        (("--setting", "warmup=7", "--setting", "warmup=5", "--seed", "0"), 4),
        (("--setting", "preset=paper"), 12),
        (("--method", "nonsense"), 0),
    ):
        assert len(rows(zsntta, *words)) == count, words


def test_csv_and_json_have_the_one_schema_and_the_key(keep, zsntta, tmp_path):
    kept = kept_run("adand", warmup=5)
    keep(kept)
    [row] = rows(zsntta)
    assert (row["key"], row["settings"], row["acc_h"]) == (
        kept.key, "warmup=5", str(kept.accuracies.acc_h),
    )  # fmt: skip
    assert zsntta("records", "list", "--records", PATH, "--output", "l.json").exit_code == 0
    [plain] = json.loads((tmp_path / "l.json").read_text())
    assert list(plain) == list(row)


# Removing


@pytest.fixture
def some_live(keep, zsntta):
    keep(kept_run(), kept_run("tent", record={"seconds": 9000}), kept_run("tpt", seed=1))

    return lambda *words, **stdin: zsntta("records", "remove", *words, "--records", PATH, **stdin)


def test_live_runs_are_not_removed_unasked(some_live, zsntta):
    refused = some_live("--all")
    fails(refused, "2 live runs of 2.5 hours of method time", "add --yes to remove them", code=2)
    assert len(rows(zsntta)) == 3
    assert some_live("--method", "zs-clip").stdout == "removed 1 run\n"
    assert some_live("--all", "--yes").stdout == "removed 2 runs\n"


@pytest.mark.parametrize(("answer", "left"), [("n\n", 3), ("y\n", 0), ("", 3)])
def test_on_a_terminal_it_is_a_question(some_live, zsntta, answer, left):
    result = some_live("--all", said=answer, is_terminal=True)
    assert "Remove 2 live runs of 2.5 hours of method time?" in result.stderr
    assert (result.exit_code == 0) == (left == 0)
    assert len(rows(zsntta)) == left


def test_a_set_whose_name_is_not_utf8_is_written(keep, zsntta, tmp_path):
    keep(*(kept_run(method, ood="sky\udc80") for method in ("zs-clip", "adand")))
    of_store = ("--records", PATH)
    for words in (("export", "--format", "csv"), ("list",)):
        assert zsntta("records", *words, *of_store, "--output", "runs.csv").exit_code == 0
        assert b"sky\x80" in (tmp_path / "runs.csv").read_bytes()
