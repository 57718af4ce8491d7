"""Records of streams that 0.2 had and 0.3 has not: they are shown, and are not run again."""

import json

import pytest
from kept import kept_run
from made import fails

from zsntta_cli.errors import SettingsError
from zsntta_cli.results.exchange import read_row, to_line
from zsntta_cli.results.store import KIND, RecordStore
from zsntta_cli.simulation.recorded import RecordedSettings, check_runnable

USUAL = {"reset": "never", "protocol": None}  # in every record of 0.2
PARTS = [{"id_set": "shapes", "ood_set": "digits", "n_id": 9, "n_ood": 9, "metrics": {}}] * 2


def old_line(key, ood="glyphs", **stream):
    """A line of 0.2: a run with some settings of its stream."""
    line = json.loads(to_line(kept_run("adand", ood)))
    line["record"]["settings"]["stream"] |= USUAL | stream
    line["record"]["parts"] = PARTS if "+" in ood else []
    return line | {"key": key * 64}


GONE = [
    {"order": "separate"}, {"order": "shuffled-blocks:100"}, {"order": "note:0.1"},
    {"order": "note:inf"}, {"order": "classes:1-4"}, {"ratio": "0.1..0.7"},
    {"ratio": "steps:0.1,0.5"}, {"reset": "each"}, {"protocol": "openood", "reset": "each"},
]  # fmt: skip


def read(line):
    return read_row(line["key"], json.dumps(line["record"]), "{}", None)


def test_a_usual_stream_of_0_2_is_the_same_run():
    kept = read(old_line("a"))
    assert kept.record.settings == kept_run("adand").record.settings
    assert kept.key == kept_run("adand").key, "nothing of the key has changed"
    check_runnable(kept.record.settings)


@pytest.mark.parametrize("stream", GONE)
def test_others_are_kept_as_they_are_and_run_no_more(stream):
    kept = read(old_line("a", **stream))
    settings = kept.record.settings
    assert isinstance(settings.stream, RecordedSettings)
    assert vars(settings.stream).items() >= stream.items()
    assert kept.key == "a" * 64, "the key that it was kept with"
    assert read(json.loads(to_line(kept))).record.settings == settings
    with pytest.raises(SettingsError, match=r"(order|ratio) is |'reset' is no setting"):
        check_runnable(settings)


@pytest.mark.parametrize("stream", [
    {"order": "separately"}, {"order": "note:"}, {"order": "note:0.1\n"}, {"ratio": ".."},
    {"order": 3}, {"ratio": "steps:"}, {"ratio": 1.5}, {"reset": ["each"]},
])  # fmt: skip
def test_what_no_version_had_is_no_record(stream):
    assert read(old_line("a", **stream)) is None


def test_lists_tables_and_exports_show_them(zsntta, tmp_path):
    lines = [old_line(f"{number:x}", **stream) for number, stream in enumerate(GONE)]
    lines += [old_line("a"), old_line("b", ood="digits+glyphs")]
    (tmp_path / "old.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert zsntta("records", "import", "old.jsonl").exit_code == 0
    assert zsntta("records", "verify").exit_code == 0
    listed = zsntta("records", "list").stdout
    for word in ("separate", "note:0.1", "0.1..0.7", "openood", "digits+glyphs"):
        assert word in listed
    assert "Order" in listed
    shown = zsntta("report", "--output", "page.html")
    assert shown.exit_code == 0, shown.output
    assert "11 runs" in shown.stdout
    page = (tmp_path / "page.html").read_text()
    assert all(word in page for word in ("separate", "steps:0.1,0.5", "digits+glyphs"))
    assert zsntta("records", "export", "--output", "new.jsonl").exit_code == 0
    again = [json.loads(line) for line in (tmp_path / "new.jsonl").read_text().splitlines()]
    assert {line["key"] for line in again} >= {line["key"] for line in lines[: len(GONE)]}
    fails(zsntta("simulate", "--from", "old.jsonl"), "order is 'separate', must be one of")
    with RecordStore(tmp_path / "features" / "records.sqlite") as store:
        assert store.count() == 11
    assert KIND.format == 2
